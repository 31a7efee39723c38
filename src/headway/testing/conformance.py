"""``StoreConformance``: what every store has to promise, as tests for whoever writes one.

Derive a class from it in a test module and say how your store is opened; pytest finds the tests. Nothing here needs
pytest itself, and no test sleeps: time is a ``ManualClock``.

    class TestMyStore(StoreConformance):
        def open_store(self, clock):
            return MyStore(clock=clock)
"""

from __future__ import annotations

import multiprocessing
import threading
import unittest
from itertools import permutations
from random import Random
from typing import Final

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Refused
from headway.core.rule import State
from headway.stores.base import Store, settled_bill
from headway.testing._after_charging import AfterCharging
from headway.testing._promises import DAY, SECOND, Promises, agree, expect, hit, run_threads, wait_of
from headway.testing.clock import ManualClock

__all__ = ["StoreConformance"]

_BUDGET: Final = 100
_SPENT_ONCE: Final = Limit("budget", f"{_BUDGET} per 365 days", by="id")
_BESIDE: Final = Limit("beside", "100000 per 365 days")
_AWKWARD: Final[tuple[Key, ...]] = (
    "", " ", "a", "A", "a:b", "a/b", "a|b", "a,b", "a\x00b", "a\nb", "a%b", "a\\b", 'a"b', "a'b", "{a}", "{", "{}x", "*",
    "x'); DROP TABLE headway_state; --", "../../x", "1", "01", "s1:a", "é", "e\u0301", "👩\u200d👧", "\ud800", "x" * 10_000, "x" * 10_001,
    b"", b"a", b"1", b"\x00\xff", ("a", "b"), ("ab",), ("a", ("b",)), (("a",), "b"), ("a", b"b"), (),
)  # fmt: skip


class StoreConformance(AfterCharging, Promises):
    """The contract of ``headway.stores.base.Store``, one test a promise.

    Each test opens fresh state: give every test a place of its own (a temporary folder, a key prefix) in a fixture or
    in ``setup_method``. For an ``AsyncStore`` return ``headway.testing.blocking(store)``.

    Attributes:
        limits: of which random histories are made; leave out algorithms that the store does not have.
        grid_ns: the store's clock counts in units of so many ns (1000 for µs); times are floored to it, waits may
            be up to one unit above the exact ones.
        shared: stores opened in several processes share their state; adds tests with second stores and processes.
            The class and its attributes must be picklable then.
    """

    # What a decision is

    def test_it_answers_as_the_core_does(self) -> None:
        """On random histories of every algorithm, over one to four limits, each answer is the core's, field by field.

        Time goes forward here: a store may forget what has recovered, so after a step back two answers are right.
        """
        for seed, first in enumerate(self.limits):
            random = Random(seed)  # noqa: S311  # a history, no secret
            others = [limit for limit in self.limits if limit is not first]
            limits = [first, *random.sample(others, random.randint(0, min(3, len(others))))]
            with self._opened() as (store, clock):
                self._replay(store, clock, limits, random, f"history {seed}")

    def _replay(self, store: Store, clock: ManualClock, limits: list[Limit], random: Random, name: str) -> None:
        states: dict[tuple[str, Key], State] = {}
        hint = 0
        for number in range(40):
            if hint and random.random() < 0.5:
                clock.advance(ns=-(-hint // self.grid_ns) * self.grid_ns)
            else:
                clock.advance(ns=random.choice([0, 1, 999, SECOND // 3, 2 * SECOND, 11 * SECOND, DAY]))
            key, commit, cost = (
                random.choice(["a", "b"]),
                random.random() < 0.8,
                random.choice([0, 1, 1, 1, 2, 5, 6, 10**30]),
            )
            charges = [Charge("n", limit, key, cost) for limit in limits]
            answer = store.advance(charges, commit=commit)
            where = f"{name}, step {number}: cost {cost} at {clock.now} ns"
            agree(answer.now, clock.now // self.grid_ns * self.grid_ns, f"{where}: the store's clock")
            places = [(limit.name, key) for limit in limits]
            before = [states.get(place) for place in places]
            expected, _ = settled_bill(charges, before, answer.now)
            agree(answer.allowed, expected.allowed, f"{where}: admitted")
            for limit, got, exact in zip(limits, answer.outcomes, expected.outcomes, strict=True):
                self._same(got, exact, f"{where}: {limit.name} ({limit.quota})")
            for index, state in expected.writes if commit else ():
                states[places[index]] = state
            hint = max((getattr(outcome, "retry_after", 0) for outcome in expected.outcomes), default=0)
            if random.random() < 0.1:
                store.reset([Charge("n", limits[0], key, 0)])
                states.pop(places[0], None)

    def test_equality_conforms(self) -> None:
        """100/s burst 20: 5 ms after a full burst one is told 5 ms; a unit of time before it is refused, at it admitted."""
        limit = Limit("l", "100/s burst 20", by="id")
        with self._opened() as (store, clock):
            expect(hit(store, limit, cost=20).allowed, "a full burst passes")
            clock.advance(ns=5_000_000)
            agree(wait_of(hit(store, limit)), 5_000_000, "the wait after 5 ms")
            clock.advance(ns=5_000_000 - self.grid_ns)
            agree(wait_of(hit(store, limit)), self.grid_ns, "the wait one unit of time before")
            clock.advance(ns=self.grid_ns)
            expect(hit(store, limit).allowed, "exactly on time passes")

    def test_all_or_nothing_whatever_the_order(self) -> None:
        """If one of three limits refuses, none is charged, in any order; the others are shown as they stand."""
        limits = [Limit("tight", "1/day", by="id"), Limit("medium", "5/day", by="id"), Limit("loose", "9/day")]
        for number, order in enumerate(permutations(limits)):
            with self._opened() as (store, _):
                namespace = f"order {number}"
                charges = [Charge(namespace, limit, "k" if limit.by else (), 1) for limit in order]
                expect(store.advance(charges).allowed, "the first request passes")
                answer = store.advance(charges)
                for _ in range(20):
                    answer = store.advance(charges)
                    expect(not answer.allowed, "tight is spent")
                    left = {
                        limit.name: outcome.remaining for limit, outcome in zip(order, answer.outcomes, strict=True)
                    }
                    agree(left, {"tight": 0, "medium": 4, "loose": 8}, "what remains after refusals")
                kinds = {limit.name: type(outcome) for limit, outcome in zip(order, answer.outcomes, strict=True)}
                agree(kinds, {"tight": Refused, "medium": Admitted, "loose": Admitted}, "the outcomes")

    def test_looking_writes_nothing(self) -> None:
        """Cost 0 and ``commit=False`` report what a hit would be told, on an unused and a used key, and leave no trace."""
        limit = Limit("l", "3 per 10s", by="id")
        with self._opened() as (store, _):
            for spent in range(4):
                for _ in range(5):
                    agree(hit(store, limit, cost=0).outcomes[0].remaining, 3 - spent, "cost 0 reports what remains")
                    store.advance([Charge("n", limit, "k", 1)], commit=False)
                    hit(store, limit, cost=4)
                looked = store.advance([Charge("n", limit, "k", 1)], commit=False)
                answer = hit(store, limit)
                agree(looked.allowed, answer.allowed, "a look predicts the decision")
                agree(looked.outcomes, answer.outcomes, "a look predicts the outcome")

    def test_above_the_burst_is_never(self) -> None:
        """A cost that cannot fit is ``Never`` with the balance, however large, and leaves the key alone."""
        limit = Limit("l", "5 per 10s", by="id")
        with self._opened() as (store, _):
            hit(store, limit, cost=2)
            for cost in (6, 2**31, 2**63, 10**30):
                outcome = hit(store, limit, cost=cost).outcomes[0]
                expect(isinstance(outcome, Never), f"a cost of {cost} of 5 is Never, not {outcome}")
                agree(outcome.remaining, 3, f"what remains after a cost of {cost}")

    # Time

    def test_state_is_kept_until_it_has_recovered(self) -> None:
        """A spent key is refused up to the last unit of time of its wait: nothing is forgotten, or expires, early."""
        for quota in ("1/ms", "1/s", "1 per 1.5 s", "1 per 65 min", "1/day", "1 per 3650 days"):
            limit = Limit("l", quota, by="id")
            with self._opened() as (store, clock):
                expect(hit(store, limit).allowed, f"{quota}: the first passes")
                clock.advance(ns=limit.quota.period_ns - self.grid_ns)
                hit(store, Limit("other", "1/s", by="id"), key="other")  # whoever cleans up does so with others' calls
                agree(wait_of(hit(store, limit)), self.grid_ns, f"{quota}: the wait one unit before the end")
                clock.advance(ns=self.grid_ns)
                expect(hit(store, limit).allowed, f"{quota}: passes at the end")

    def test_a_clock_set_back_locks_nobody_out(self) -> None:
        """After a step back of any size the wait is at most a recovery and 10 s, and refused calls heal it: the cap is kept."""
        limit = Limit("l", "2 per 10s", by="id")
        for back in (1, 9, 11, 3600, 10 * 365 * 86_400):
            with self._opened() as (store, clock):
                hit(store, limit, cost=2)
                clock.advance(-back)
                looked = store.advance([Charge("n", limit, "k", 2)], commit=False)
                wait = wait_of(hit(store, limit, cost=2))
                agree(
                    looked.outcomes[0],
                    Refused(0, wait, looked.outcomes[0].replenish_after, wait),
                    f"{back} s back: a look",
                )
                expect(0 < wait <= 20 * SECOND, f"{back} s back: the wait is {wait} ns")
                clock.advance(ns=wait)
                expect(hit(store, limit, cost=2).allowed, f"{back} s back: passes when told")

    def test_a_clock_set_forward_owes_no_more_than_nothing(self) -> None:
        """A century of idle time makes a key as if unused, not richer."""
        limit = Limit("l", "50000000 per 3650 days", by="id")
        with self._opened() as (store, clock):
            hit(store, limit, cost=50_000_000)
            clock.advance(100 * 365 * 86_400)
            agree(hit(store, limit).outcomes[0].remaining, 49_999_999, "what remains after a century")

    def test_a_changed_quota_keeps_the_state(self) -> None:
        """What was used under the old quota is used under the new one, and no wait exceeds the new recovery."""
        for algorithm in sorted(
            {limit.algorithm.value for limit in self.limits} & {"gcra", "fixed-window", "sliding-log"}
        ):
            old, less, more = (Limit("l", f"{n} per 1000s", by="id", algorithm=algorithm) for n in (10, 5, 20))
            with self._opened() as (store, _):
                hit(store, old, cost=10)
                agree(hit(store, old, cost=0).outcomes[0].remaining, 0, f"{algorithm}: before")
                lowered = hit(store, less)
                expect(not lowered.allowed, f"{algorithm}: 10 used of now 5")
                expect(0 < wait_of(lowered) <= 1010 * SECOND, f"{algorithm}: a wait of {wait_of(lowered)} ns")
                agree(lowered.outcomes[0].remaining, 0, f"{algorithm}: what remains of 5")
                left = hit(store, more, cost=0).outcomes[0].remaining
                expect(0 <= left <= 10, f"{algorithm}: {left} remain of 20 after 10 of 10")

    # Keys

    def test_no_two_counters_share_state(self) -> None:
        """Separators, quotes, NUL, emoji, bytes, tuples, 10 kB: each key has its own budget, in each namespace and limit."""
        one, other, pair = (
            Limit("one", "1/day", by="id"),
            Limit("other", "1/day", by="id"),
            Limit("one", "1/day", by=["id", "x"]),
        )
        with self._opened() as (store, _):
            charges = [
                Charge(name, limit, key, 1) for key in _AWKWARD for name in ("n", "n2") for limit in (one, other)
            ]
            charges += [Charge("n", pair, key, 1) for key in _AWKWARD if isinstance(key, tuple) and len(key) == 2]
            for charge in charges:
                expect(store.advance([charge]).allowed, f"the first hit of {charge} passes")
            for charge in charges:
                expect(not store.advance([charge]).allowed, f"the second hit of {charge} is refused")

    def test_reset_forgets_what_it_is_given_and_nothing_else(self) -> None:
        """After a reset the named keys are as if unused, others still refused; resetting the unknown is no error."""
        limits = [Limit("a", "1/day", by="id"), Limit("b", "1/day", by="id")]
        with self._opened() as (store, _):
            for key in ("x", "y"):
                expect(store.advance([Charge("n", limit, key, 1) for limit in limits]).allowed, "the first passes")
            store.reset([Charge("n", limit, "x", 0) for limit in limits] + [Charge("n", limits[0], "never seen", 0)])
            for limit in limits:
                expect(not hit(store, limit, key="y").allowed, "y was not reset")
                expect(hit(store, limit, key="x").allowed, "x was reset")

    # Together

    def test_threads_are_admitted_exactly_the_budget(self) -> None:
        """Eight threads on one key: exactly the budget passes, and each balance is told once."""
        with self._opened() as (store, _):
            left: list[int] = []
            start = threading.Barrier(8)

            def work() -> None:
                start.wait()
                left.extend(_spend(store, 25))

            run_threads([work] * 8)
            agree(sorted(left), list(range(_BUDGET)), "the balances told to those admitted")
            charge = Charge("n", _BESIDE, (), 0)
            agree(store.advance([charge]).outcomes[0].remaining, 100_000 - _BUDGET, "what the limit beside was charged")

    def test_processes_are_admitted_exactly_the_budget(self) -> None:
        """Four processes that open the store at the same moment: exactly the budget passes, each balance once."""
        self._only_if_shared()
        context = multiprocessing.get_context("spawn")
        with context.Pool(4) as pool:
            told = pool.map(_spend_in_process, [self] * 4, chunksize=1)
        agree(sorted(left for one in told for left in one), list(range(_BUDGET)), "the balances told to those admitted")

    def test_a_second_store_sees_the_first_ones_state(self) -> None:
        """What is spent, reset or capped through one store is so through another."""
        self._only_if_shared()
        limit = Limit("l", "1/day", by="id")
        with self._opened() as (store, clock):
            second = self.open_store(clock)
            expect(hit(store, limit).allowed, "the first passes")
            expect(not hit(second, limit).allowed, "the second store sees it")
            second.reset([Charge("n", limit, "k", 0)])
            expect(hit(store, limit).allowed, "the first store sees the reset")
            second.close()
            expect(not hit(store, limit).allowed, "closing one store closes no other")

    def test_closing_twice_is_fine(self) -> None:
        """``close`` can be called again."""
        store = self.open_store(ManualClock())
        hit(store, _SPENT_ONCE)
        store.close()
        store.close()

    def _only_if_shared(self) -> None:
        if not self.shared:
            raise unittest.SkipTest("the store is not shared between processes")


def _spend(store: Store, calls: int) -> list[int]:
    """The balances told to the admitted ones of that many calls on one key."""
    bill = [Charge("n", _SPENT_ONCE, "k", 1), Charge("n", _BESIDE, (), 1)]
    answers = [store.advance(bill) for _ in range(calls)]
    return [answer.outcomes[0].remaining for answer in answers if answer.allowed]


def _spend_in_process(suite: StoreConformance) -> list[int]:
    store = suite.open_store(None)
    try:
        return _spend(store, 50)
    finally:
        store.close()
