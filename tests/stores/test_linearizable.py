"""The checker of concurrent histories itself: what it explains, and what it must not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.stores.base import Answer, Store
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore
from headway.testing.clock import ManualClock
from linearizable import Call, assert_linearizable, overlaps, record

LIMIT = Limit("l", "2 per 365 days", by="id")


def calls(store: Store, clock: ManualClock, *spans: tuple[int, int, int]) -> list[Call]:
    """One hit after the other, said to have been made by that process, from then to then."""
    made = []
    for process, begin, end in spans:
        charges = (Charge("n", LIMIT, "k", 1),)
        answer = store.advance(charges)
        made.append(Call(process, begin, end, charges, answer=answer))
        clock.advance(ns=1000)
    return made


@pytest.fixture
def memory(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock=clock)


def test_calls_that_overlap_may_come_in_any_order(memory: MemoryStore, clock: ManualClock) -> None:
    """A history whose answers fit only another order than that of the beginnings is explained, in that order."""
    first, second, third = calls(memory, clock, (0, 50, 100), (1, 10, 90), (2, 0, 95))
    assert assert_linearizable([third, second, first]) == [first, second, third]
    assert overlaps([first, second, third]) == 2


def test_calls_that_did_not_overlap_keep_their_order(memory: MemoryStore, clock: ManualClock) -> None:
    """The same answers are not explained where the call that was decided first began after the other had ended."""
    first, second = calls(memory, clock, (0, 50, 100), (1, 10, 40))
    with pytest.raises(AssertionError, match=r"0 of them can be explained"):
        assert_linearizable([first, second])


def test_a_budget_spent_twice_is_not_explained(memory: MemoryStore, clock: ManualClock) -> None:
    """Two calls that were told the same balance, as a lost update would, are not explained in any order."""
    first, second = calls(memory, clock, (0, 0, 100), (1, 0, 100))
    lost = replace(second, answer=first.answer)
    with pytest.raises(AssertionError, match=r"1 of them can be explained"):
        assert_linearizable([first, lost])


def test_a_refusal_of_what_was_free_is_not_explained(memory: MemoryStore, clock: ManualClock) -> None:
    """Nor is a refusal while units are left."""
    *_, refused = calls(memory, clock, (0, 0, 10), (0, 20, 30), (1, 0, 100))
    assert refused.answer == Answer(False, refused.answer.now, refused.answer.outcomes, (1,))  # type: ignore[union-attr]  # it is a bill
    with pytest.raises(AssertionError):
        assert_linearizable([refused])


def test_processes_on_one_file_are_explained(tmp_path: Path) -> None:
    """Eight processes on one SQLite file: some order of the core explains all that they were told."""
    history = record(partial(SqliteStore, tmp_path / "limits.db"), seed=1, calls=15)
    assert len(assert_linearizable(history)) == 8 * 15
