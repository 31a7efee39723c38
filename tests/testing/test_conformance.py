"""The public conformance suite, as an author of another store would run it: on every store of our own, and on bad ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.gcra import Gcra
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


CHANGES = "test_changes_do_as_the_core_does"


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


class RefundsNothing(Wrong):
    """Changes are answered and not done."""

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        return (True,) * len(changes)


class ForgetsReservations(Wrong):
    """What has recovered is forgotten, whoever still holds a reservation on it."""

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        for table in self._tables.values():
            for key, state in list(table.states.items()):
                if isinstance(table.rule, Gcra) and state is not None and table.rule.ticks(state) <= self.clock():
                    table.states[key] = None
        return super().change(changes)


class ForgetsRefunds(Wrong):
    """Of what was given back nothing is remembered."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        for table in self._tables.values():
            for key, state in table.states.items():
                if type(state) is tuple and len(state) > 6 and state[3] <= 0 and isinstance(table.rule, Gcra):
                    table.states[key] = state[:3] + state[7:]
        return super().advance(charges, commit=commit)


class SettlesTwice(Wrong):
    """A lease that was settled gives back again."""

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        super().change([replace(c, charge=replace(c.charge, lease=None)) for c in changes])
        return (True,) * len(changes)


class ForgivesDebt(Wrong):
    """What a commit takes beyond the reservation is not charged."""

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        return super().change([replace(change, take=0) for change in changes])


class RenewsNothing(Wrong):
    """A renewal is answered and not done."""

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        return tuple(change.renew or super(RenewsNothing, self).change([change])[0] for change in changes)


class GrantsAllOrNothing(Wrong):
    """A flexible cost that does not bend."""

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        return super().advance([replace(charge, flexible=False) for charge in charges], commit=commit)


class ChangesOneByOne(Wrong):
    """Between two changes of one call others are let in."""

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        done = []
        for change in changes:
            done += super().change([change])
            time.sleep(0.001)
        return tuple(done)


class RequotaChangesNothing(Wrong):
    """The states stay as they are."""

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        return len(self._table(namespace, new).states)


class ClearsOtherNamespaces(Wrong):
    """A limit of that name is cleared for everybody."""

    def clear(self, namespace: str, limit: Limit) -> int:
        found = [place[0] for place in self._tables if place[1] == limit.name and place[3] == limit.by]
        return sum(super(ClearsOtherNamespaces, self).clear(each, limit) for each in found)


class LinesClearAtOnce(Wrong):
    """Nobody is told how long a line is."""

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        return 0, self.clock()


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
        (RefundsNothing, {"test_a_refund_leaves_the_key_as_if_it_had_not_been_charged", CHANGES}),
        (ForgetsReservations, {"test_an_open_reservation_keeps_its_key", CHANGES}),
        (ForgetsRefunds, {"test_what_was_given_back_is_remembered_as_long_as_it_matters"}),
        (SettlesTwice, {"test_a_lease_is_settled_once", CHANGES}),
        (ForgivesDebt, {"test_debt_is_charged_without_asking", CHANGES}),
        (RenewsNothing, {"test_leases_are_given_back_renewed_and_expire", CHANGES}),
        (GrantsAllOrNothing, {"test_a_partial_grant_is_what_fits", CHANGES}),
        (ChangesOneByOne, {"test_changes_of_one_call_are_done_in_one_step"}),
        (RequotaChangesNothing, {"test_a_requota_keeps_the_share_of_every_key"}),
        (ClearsOtherNamespaces, {"test_clear_forgets_every_key_of_its_limit_alone"}),
        (LinesClearAtOnce, {"test_a_line_clears_when_the_core_says", CHANGES}),
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
