"""The public conformance suite, as an author of another store would run it: on every store of our own, and on bad ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.core.outcome import Outcome, Refused
from headway.stores.base import Answer, Store
from headway.stores.clock import wall_clock
from headway.stores.immediate import ImmediateStore
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing import StoreConformance, blocking
from headway.testing.clock import ManualClock


class TestMemoryStore(StoreConformance):
    """The memory store keeps the contract."""

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return MemoryStore(clock=clock)


class TestImmediateStore(StoreConformance):
    """So does its asynchronous shape."""

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return blocking(ImmediateStore(MemoryStore(clock=clock)))


class TestSqliteStore(StoreConformance):
    """The SQLite store keeps the contract, between processes too."""

    shared = True

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "limits.db"

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return SqliteStore(self.path, clock=clock or wall_clock)


class TestThreadedStore(TestSqliteStore):
    """So does its asynchronous shape, and calls from several threads meet in one event loop."""

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return blocking(ThreadedStore(SqliteStore(self.path, clock=clock or wall_clock)))


class Wrong(MemoryStore):
    """A memory store with one fault; each subclass has its own."""


class ChargesOneByOne(Wrong):
    """Not all or nothing."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        answers = [super(ChargesOneByOne, self).advance([charge], commit=commit) for charge in charges]
        outcomes = tuple(answer.outcomes[0] for answer in answers)
        return Answer(
            all(answer.allowed for answer in answers), answers[0].now, outcomes, tuple(c.cost for c in charges)
        )


class PeeksWrite(Wrong):
    """A look that charges."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        return super().advance(charges)


class WaitsRoundedDown(Wrong):
    """A wait one nanosecond short."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        def short(outcome: Outcome) -> Outcome:
            if isinstance(outcome, Refused) and outcome.retry_after > 1:
                return Refused(outcome.remaining, outcome.retry_after - 1, outcome.replenish_after, outcome.reset_after)
            return outcome

        answer = super().advance(charges, commit=commit)
        return answer._replace(outcomes=tuple(map(short, answer.outcomes)))


class JoinsKeys(Wrong):
    """Keys told apart only by their printed text."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        joined = [Charge(c.namespace, c.limit, str(c.key).strip("()',b"), c.cost) for c in charges]
        return super().advance(joined, commit=commit)


class ForgetsEarly(Wrong):
    """State that expires in whole seconds, rounded down."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        for table in self._tables.values():
            for key, state in list(table.states.items()):
                if state is not None and table.rule.expires_at(state) // 10**9 <= self.clock() // 10**9:
                    table.states[key] = None
        return super().advance(charges, commit=commit)


class OwnClock(Wrong):
    """A store that reads another clock than it was given."""

    def __init__(self, clock: Callable[[], int] | None) -> None:
        super().__init__(clock=ManualClock(0))


class ResetsTooMuch(Wrong):
    """A reset that clears everything."""

    def reset(self, charges: Sequence[Charge]) -> None:
        self.close()


def promises() -> list[str]:
    return [name for name in dir(StoreConformance) if name.startswith("test_")]


def broken_promises(kind: Callable[..., Store]) -> set[str]:
    class Suite(StoreConformance):
        def open_store(self, clock: Callable[[], int] | None) -> Store:
            return kind(clock=clock)

    broken = set()
    for name in promises():
        try:
            getattr(Suite(), name)()
        except AssertionError:
            broken.add(name)
        except BaseException as error:
            if type(error).__name__ != "SkipTest":
                raise
    return broken


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        (ChargesOneByOne, {"test_all_or_nothing_whatever_the_order", "test_it_answers_as_the_core_does"}),
        (PeeksWrite, {"test_looking_writes_nothing", "test_it_answers_as_the_core_does"}),
        (WaitsRoundedDown, {"test_equality_conforms", "test_it_answers_as_the_core_does"}),
        (JoinsKeys, {"test_no_two_counters_share_state"}),
        (ForgetsEarly, {"test_state_is_kept_until_it_has_recovered"}),
        (OwnClock, {"test_it_answers_as_the_core_does", "test_equality_conforms"}),
        (ResetsTooMuch, {"test_reset_forgets_what_it_is_given_and_nothing_else"}),
    ],
)
def test_a_store_with_a_fault_does_not_pass(kind: type[Wrong], least: set[str]) -> None:
    """Each fault that stores are known to have fails at least the test that names the promise it breaks."""
    assert least <= broken_promises(kind)


def test_a_right_store_breaks_no_promise() -> None:
    """The same harness finds nothing wrong with the memory store."""
    assert broken_promises(MemoryStore) == set()


def test_a_suite_that_opens_nothing_says_what_is_missing() -> None:
    """Forgetting ``open_store`` is one clear error."""
    with pytest.raises(NotImplementedError, match=r"def open_store\(self, clock\)"):
        StoreConformance().test_equality_conforms()


def test_every_promise_says_what_it_is() -> None:
    """Each test has a one-sentence docstring for whoever reads a failure."""
    for name in promises():
        assert (getattr(StoreConformance, name).__doc__ or "").rstrip().endswith("."), name


def test_a_coarser_clock_is_allowed_for() -> None:
    """A store that counts in microseconds passes with ``grid_ns = 1000``."""

    class Microseconds(StoreConformance):
        grid_ns = 1000
        limits = (Limit("gcra", "5 per 10s", by="id"), Limit("third", "3/s", by="id"))

        def open_store(self, clock: Callable[[], int] | None) -> Store:
            assert clock is not None
            return MemoryStore(clock=lambda: clock() // 1000 * 1000)

    for name in promises():
        if "processes" not in name and "second_store" not in name:
            getattr(Microseconds(), name)()
