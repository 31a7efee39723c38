"""The conformance suite's tests of what happens to a charge after it was made: ``change``, ``requota``, ``clear``, ``clears_after``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import NamedTuple

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.lease import Lease, Receipt
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted, Refused
from headway.core.rule import State
from headway.stores.base import Answer, Store, settled_bill
from headway.testing._promises import DAY, SECOND, Promises, agree, expect, hit, receipt, run_threads, wait_of
from headway.testing.clock import ManualClock

__all__ = ["AfterCharging"]


class _Made(NamedTuple):
    """A charge that was admitted: what the store answered, and what the core would have."""

    charge: Charge
    receipt: Receipt
    exact: Receipt


class AfterCharging(Promises):
    """See ``StoreConformance``."""

    # What can be done to a charge that was made

    def test_changes_do_as_the_core_does(self) -> None:
        """On random histories with reservations, partial grants, refunds, debts and renewals nothing differs from the core."""
        for seed, first in enumerate(self.limits):
            random = Random(100 + seed)  # noqa: S311  # a history, no secret
            others = [limit for limit in self.limits if limit is not first]
            limits = [first, *random.sample(others, random.randint(0, min(2, len(others))))]
            with self._opened() as (store, clock):
                history = _History(self, store, clock, limits, random)
                for _ in range(60):
                    history.step()

    def test_a_refund_leaves_the_key_as_if_it_had_not_been_charged(self) -> None:
        """Of 3 of 5 units 2 are given back, then all of a second charge: just the one that was kept is missing."""
        for limit in self._holding_five():
            with self._opened() as (store, _):
                answer = hit(store, limit, cost=3)
                agree(_give_back(store, limit, answer, 2), (True,), f"{limit.name}: in time")
                agree(_remaining(store, limit), 4, f"{limit.name}: what remains after giving 2 of 3 back")
                second = hit(store, limit, cost=4)
                agree(_remaining(store, limit), 0, f"{limit.name}: after 4 more")
                _give_back(store, limit, second, 4)
                agree(_remaining(store, limit), 4, f"{limit.name}: when those are given back")
                expect(hit(store, limit, cost=4).allowed, f"{limit.name}: then as many pass")
                expect(not hit(store, limit).allowed, f"{limit.name}: and no more")

    def test_a_refund_makes_no_burst(self) -> None:
        """Giving back what has recovered since, or more than was charged, lifts no key above unused."""
        for limit in self._holding_five():
            with self._opened() as (store, clock):
                old = hit(store, limit, cost=5)
                clock.advance(2 * 86_400)
                _give_back(store, limit, old, 5)
                expect(hit(store, limit, cost=5).allowed, f"{limit.name}: as if unused")
                _give_back(store, limit, old, 5)
                agree(_remaining(store, limit), 0, f"{limit.name}: what was charged long ago gives nothing back")
            with self._opened() as (store, _):
                answer = hit(store, limit, cost=1)
                hit(store, limit, cost=2)
                _give_back(store, limit, answer, 10**30)
                agree(_remaining(store, limit), 3, f"{limit.name}: giving back more than was charged gives back that")

    def test_refunds_of_one_instant_are_exact_in_any_order(self) -> None:
        """Each gives the whole of its charge back, however many there are and whichever comes first."""
        limit = Limit("l", "12 per 60 s", by="id")
        for order in ((2, 0, 1, 3), (0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 1, 0, 3)):
            with self._opened() as (store, _):
                made = [hit(store, limit, cost=cost) for cost in (1, 2, 3, 4)]
                left = 2
                for index in order:
                    _give_back(store, limit, made[index], index + 1)
                    left += index + 1
                    agree(_remaining(store, limit), left, f"what remains after refunds in the order {order}")

    def test_a_lease_is_settled_once(self) -> None:
        """A reservation that was settled, or has expired by itself, is not in time: nothing is given back and no debt taken."""
        limit = Limit("l", "5 per 1000s", by="id")
        with self._opened() as (store, clock):
            lease = Lease(7, 10 * SECOND)
            answer = hit(store, limit, cost=3, lease=lease)
            agree(_give_back(store, limit, answer, 1, lease), (True,), "the first time")
            agree(_give_back(store, limit, answer, 2, lease), (False,), "the second time")
            agree(_remaining(store, limit), 3, "what remains: one unit came back, once")
            late = Lease(8, 10 * SECOND)
            answer = hit(store, limit, cost=3, lease=late)
            clock.advance(ns=10 * SECOND)
            agree(_give_back(store, limit, answer, 3, late, take=5), (False,), "when the lease has expired")
            agree(_remaining(store, limit), 0, "what was reserved stays charged")

    def test_an_open_reservation_keeps_its_key(self) -> None:
        """A commit is in time as long as its lease lasts, though the key has recovered long ago: its debt is not lost."""
        for algorithm in self._algorithms():
            limit = Limit("l", "5/s", by="id", algorithm=algorithm)
            with self._opened() as (store, clock):
                lease = Lease(7, DAY)
                answer = hit(store, limit, cost=2, lease=lease)
                clock.advance(ns=DAY - self.grid_ns)
                for number in range(200):  # whoever cleans up does so with others' calls
                    hit(store, limit, key=f"other {number}")
                    hit(store, Limit("other", "5/s", by="id", algorithm=algorithm), key=f"other {number}")
                agree(_give_back(store, limit, answer, 0, lease, take=3), (True,), f"{algorithm}: in time")
                agree(_remaining(store, limit), 2, f"{algorithm}: what remains after a debt of 3")

    def test_what_was_given_back_is_remembered_as_long_as_it_matters(self) -> None:
        """Two charges at once, both refunded, the second after the key recovered: later charges stay charged in full."""
        limit = Limit("l", "1/s burst 4", by="id")
        with self._opened() as (store, clock):
            first, second = hit(store, limit), hit(store, limit)
            clock.advance(ns=SECOND // 10)
            _give_back(store, limit, first, 1)
            clock.advance(ns=SECOND * 14 // 10)
            for number in range(200):
                hit(store, limit, key=f"other {number}")
            hit(store, limit, cost=4)
            _give_back(store, limit, second, 1)
            agree(wait_of(hit(store, limit)), SECOND, "the wait after a burst: nothing of it was given back")

    def test_debt_is_charged_without_asking(self) -> None:
        """What a commit takes beyond the quota is owed: nothing remains, and the wait grows with it."""
        limit = Limit("l", "1/s burst 2", by="id")
        with self._opened() as (store, clock):
            lease = Lease(7, DAY)
            answer = hit(store, limit, cost=2, lease=lease)
            agree(_give_back(store, limit, answer, 0, lease, take=20), (True,), "in time")
            agree(_remaining(store, limit), 0, "what remains")
            agree(wait_of(hit(store, limit)), 21 * SECOND, "the wait")
            clock.advance(ns=21 * SECOND - self.grid_ns)
            agree(wait_of(hit(store, limit)), self.grid_ns, "the wait one unit of time before its end")

    def test_what_nothing_was_estimated_for_is_charged_too(self) -> None:
        """Units are taken of a key of which nothing was asked before, and no lease has to be open for it."""
        kinds = [Algorithm.GCRA, Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG]
        for kind in filter(self._has, kinds):
            limit = Limit(kind.value, "10 per hour", by="id", algorithm=kind)
            with self._opened() as (store, _):
                looked = hit(store, limit, cost=0)
                agree(_give_back(store, limit, looked, 0, take=3), (True,), f"{kind.value}: in time")
                agree(_remaining(store, limit), 7, f"{kind.value}: what remains")

    def test_leases_are_given_back_renewed_and_expire(self) -> None:
        """Of two places one is given back and one renewed: each is free exactly when no lease holds it."""
        if not self._has(Algorithm.CONCURRENCY):
            return
        limit = Limit("l", "2 at once for 10 s", by="id")
        with self._opened() as (store, clock):
            store.reset([Charge("n", limit, "k", 0)])
            leases = [Lease(token, 10 * SECOND) for token in (1, 2)]
            answers = [hit(store, limit, lease=lease) for lease in leases]
            expect(not hit(store, limit, lease=Lease(3, 1)).allowed, "both places are held")
            agree(_give_back(store, limit, answers[0], 1, leases[0]), (True,), "the first is given back")
            agree(_give_back(store, limit, answers[0], 1, leases[0]), (False,), "and not twice")
            agree(_remaining(store, limit), 1, "one place is free")
            clock.advance(6)
            renewing = Change(Charge("n", limit, "k", 1, leases[1]), receipt(answers[1], 0, leases[1]), renew=True)
            agree(store.change([renewing]), (True,), "renewed in time")
            clock.advance(ns=10 * SECOND - self.grid_ns)
            agree(_remaining(store, limit), 1, "held for a whole period more")
            clock.advance(ns=self.grid_ns)
            agree(_remaining(store, limit), 2, "a crashed holder's place is free")
            agree(store.change([renewing]), (False,), "what has expired cannot be renewed")

    def test_a_partial_grant_is_what_fits(self) -> None:
        """A flexible cost is lowered to what fits in every limit that bends, never below 1; a fixed one stays as it is."""
        small, large = Limit("l", "3 per 1000s", by="id"), Limit("other", "9 per 1000s", by="id")
        with self._opened() as (store, _):
            bill = [Charge("n", small, "k", 7, None, True), Charge("n", large, "k", 7, None, True)]
            looked = store.advance(bill, commit=False)
            answer = store.advance(bill)
            agree((looked.allowed, looked.costs), (True, (3, 3)), "what a look says")
            agree((answer.allowed, answer.costs), (True, (3, 3)), "what is granted")
            agree(_remaining(store, large), 6, "what remains of 9")
            none = store.advance(bill)
            agree((none.allowed, none.costs), (False, (1, 1)), "when nothing fits")
            agree(none.outcomes[0], store.advance([Charge("n", small, "k", 1)]).outcomes[0], "the wait is that for 1")
            fixed = store.advance([Charge("n", large, "k", 9, None, True), Charge("n", small, "a", 2)])
            agree((fixed.allowed, fixed.costs), (True, (6, 2)), "one that bends beside one that does not")

    def test_changes_of_one_call_are_done_in_one_step(self) -> None:
        """Eight threads hit two limits and give back at once: in the end both are as if unused, and never is one without the other."""
        limits = [Limit("l", "8 per 365 days", by="id"), Limit("other", "8 per 365 days", by="id")]
        with self._opened() as (store, _):
            problems: list[object] = []

            def work(thread: int) -> None:
                for number in range(10):
                    lease = Lease(1 + thread * 100 + number, DAY)
                    charges = [Charge("n", limit, "k", 1, lease) for limit in limits]
                    answer = store.advance(charges)
                    left = [outcome.remaining for outcome in answer.outcomes]
                    if not answer.allowed or left[0] != left[1]:
                        problems.append(answer)
                        return
                    changes = [
                        Change(charge, receipt(answer, index, lease), give_back=1)
                        for index, charge in enumerate(charges)
                    ]
                    if store.change(changes) != (True, True):
                        problems.append("a lease was not in time")

            run_threads([lambda thread=thread: work(thread) for thread in range(8)])  # type: ignore[misc]  # bound at once
            agree(problems, [], "what went wrong")
            agree([_remaining(store, limit) for limit in limits], [8, 8], "what remains in the end")

    # Every key of a limit

    def test_a_requota_keeps_the_share_of_every_key(self) -> None:
        """Twice and half the count: each key uses the same share as before; other limits and namespaces are untouched."""
        for limit in self._scalable():
            for count in (limit.quota.count * 2, max(1, limit.quota.count // 2)):
                burst = count if limit.quota.burst == limit.quota.count else limit.quota.burst
                new = replace(limit, quota=replace(limit.quota, count=count, burst=burst))
                if self.grid_ns > 1 and new.quota.period_ns % (count * self.grid_ns):
                    continue
                where = f"{limit.name}: '{limit.quota}' to '{new.quota}'"
                other = Limit("other", "5 per 1000s", by="id")
                with self._opened() as (store, clock):
                    states: dict[str, State] = {}
                    for key, cost in (("a", 1), ("b", limit.quota.burst)):
                        states[key] = limit.rule.decide(None, clock.now, cost)[0]
                        hit(store, limit, key=key, cost=cost)
                    hit(store, other, key="a", cost=2)
                    clock.advance(1)
                    expect(store.requota("n", limit, new) >= 2, f"{where}: both keys are counted")
                    agree(store.requota("elsewhere", limit, new), 0, f"{where}: keys of a namespace without any")
                    for key, state in states.items():
                        exact = new.rule.decide(new.rule.scaled(state, clock.now, limit.rule), clock.now, 0)[1]
                        self._same(hit(store, new, key=key, cost=0).outcomes[0], exact, f"{where}: key {key}")
                    agree(hit(store, other, key="a", cost=0).outcomes[0].remaining, 3, f"{where}: another limit")

    def test_clear_forgets_every_key_of_its_limit_alone(self) -> None:
        """After ``clear`` all keys of that limit are as if unused, those of other names, namespaces and attributes are not."""
        limit = Limit("l", "1 per 365 days", by="id")
        beside = [Limit("l2", "1 per 365 days", by="id"), Limit("l", "1 per 365 days", by="name")]
        with self._opened() as (store, _):
            others = [Charge("n", each, "k", 1) for each in beside] + [Charge("elsewhere", limit, "k", 1)]
            store.reset(others)
            keys: tuple[Key, ...] = ("k", "a", ("b", "c"))
            for charge in [*others, *(Charge("n", limit, key, 1) for key in keys)]:
                expect(store.advance([charge]).allowed, f"the first hit of {charge} passes")
            expect(store.clear("n", limit) >= 3, "it says how many keys there were")
            for key in keys:
                expect(hit(store, limit, key=key).allowed, f"{key!r} is as if unused")
            for charge in others:
                expect(not store.advance([charge]).allowed, f"{charge} was not cleared")
            store.reset(others)

    def test_a_line_clears_when_the_core_says(self) -> None:
        """``clears_after`` is the time until so many units have all passed, on an unused and on a used key, and writes nothing."""
        for limit in self.limits:
            for used in (0, 1, limit.quota.burst):
                with self._opened() as (store, clock):
                    state, _ = limit.rule.decide(None, clock.now, used)
                    hit(store, limit, cost=used)
                    for units in (0, 1, 3, 12):
                        clock.advance(ns=SECOND // 4)
                        got, now = store.clears_after(Charge("n", limit, "k", units))
                        agree(now, clock.now // self.grid_ns * self.grid_ns, f"{limit.name}: the store's clock")
                        right = limit.rule.clears_after(state, now, units)
                        expect(
                            right <= got <= right + (self.grid_ns - 1) * units,
                            f"{limit.name}, {used} used: {units} units clear after {got} ns, expected {right}",
                        )

    def _has(self, algorithm: Algorithm) -> bool:
        return any(limit.algorithm is algorithm for limit in self.limits)

    def _holding_five(self) -> list[Limit]:
        """Limits that hold five units and count each on its own."""
        return [
            limit for limit in self.limits if limit.quota.burst == 5 and limit.algorithm is not Algorithm.CONCURRENCY
        ]

    def _scalable(self) -> list[Limit]:
        """Limits whose quota can be another; those with a grid only where every time is a whole unit of it."""
        return [
            limit
            for limit in self.limits
            if limit.quota.count
            and (self.grid_ns == 1 or limit.quota.period_ns % (limit.quota.count * self.grid_ns) == 0)
        ]


class _History:
    """One random history, played on a store and on the core; time goes forward."""

    def __init__(self, suite: Promises, store: Store, clock: ManualClock, limits: list[Limit], random: Random) -> None:
        self.suite, self.store, self.clock, self.limits, self.random = suite, store, clock, limits, random
        self.states: dict[tuple[str, Key], State] = {}
        self.made: list[_Made] = []
        self.hint = self.number = 0
        self.kinds: list[Callable[[], None]] = [self.advance] * 6 + [self.change] * 4 + [self.clears_after, self.reset]

    @property
    def where(self) -> str:
        names = ", ".join(f"{limit.name} ({limit.quota})" for limit in self.limits)
        return f"{names}: step {self.number} at {self.clock.now} ns"

    def step(self) -> None:
        """One call, after a move of the clock."""
        random, grid = self.random, self.suite.grid_ns
        self.number += 1
        if self.hint and random.random() < 0.4:
            self.clock.advance(ns=-(-self.hint // grid) * grid - random.choice([0, grid]))
        else:
            self.clock.advance(ns=random.choice([0, 0, grid, SECOND // 3, SECOND, 2 * SECOND, 11 * SECOND]))
        random.choice(self.kinds)()

    def advance(self) -> None:
        random = self.random
        key, commit, flexible = random.choice(["a", "b"]), random.random() < 0.9, random.random() < 0.2
        lease = None
        if random.random() < 0.5:
            lease = Lease(random.randrange(1, 2**63), random.choice([SECOND, 5 * SECOND, DAY]))
        charges = [
            Charge("n", limit, key, random.choice([1, 1, 2, 3, 5]), lease, flexible and random.random() < 0.8)
            for limit in self.limits
        ]
        before = [self.state(charge) for charge in charges]
        answer = self.store.advance(charges, commit=commit)
        exact, costs = settled_bill(charges, before, answer.now)
        where = f"{self.where}: {'hit' if commit else 'look'} {[charge.cost for charge in charges]}"
        agree((answer.allowed, answer.costs), (exact.allowed, costs), f"{where}: admitted, for which costs")
        for limit, got, right in zip(self.limits, answer.outcomes, exact.outcomes, strict=True):
            self.suite._same(got, right, f"{where}: {limit.name}")
        waits = [outcome.retry_after for outcome in exact.outcomes if isinstance(outcome, Refused)]
        self.hint = max((wait for wait in waits if wait < 400 * DAY), default=0)  # a debt may last for a century
        for index, state in exact.writes if commit else ():
            self.states[charges[index].limit.name, key] = state
        if commit and exact.allowed:
            ours = Answer(True, answer.now, exact.outcomes, costs)
            self.made += [
                _Made(charge, receipt(answer, index, lease), receipt(ours, index, lease))
                for index, charge in enumerate(charges)
                if isinstance(exact.outcomes[index], Admitted)
            ]

    def change(self) -> None:
        random = self.random
        if not self.made:
            return
        index = random.randrange(len(self.made))
        made = self.made[index] if random.random() < 0.2 else self.made.pop(index)
        cost = made.receipt.cost
        back, take = random.choice([cost, cost, 1, 0, cost + 3]), random.choice([0, 0, 1, 7, 100])
        renew = random.random() < 0.2
        change = Change(made.charge, made.receipt, back, take, renew)
        before = self.state(made.charge)
        state, in_time = Change(made.charge, made.exact, back, take, renew).applied(before, self.now)
        self.states[made.charge.limit.name, made.charge.key] = state
        agree(self.store.change([change]), (in_time,), f"{self.where}: in time, {change}")

    def clears_after(self) -> None:
        charge = Charge("n", self.random.choice(self.limits), "a", self.random.choice([1, 4, 13]))
        right = charge.limit.rule.clears_after(self.state(charge), self.now, charge.cost)
        got, _ = self.store.clears_after(charge)
        most = right + (self.suite.grid_ns - 1) * charge.cost
        expect(right <= got <= most, f"{self.where}: {charge.limit.name} clears after {got} ns, expected {right}")

    def reset(self) -> None:
        charge = Charge("n", self.random.choice(self.limits), self.random.choice(["a", "b"]), 0)
        self.store.reset([charge])
        self.states.pop((charge.limit.name, charge.key), None)

    @property
    def now(self) -> int:
        return self.clock.now // self.suite.grid_ns * self.suite.grid_ns

    def state(self, charge: Charge) -> State | None:
        return self.states.get((charge.limit.name, charge.key))


def _give_back(
    store: Store, limit: Limit, answer: Answer, units: int, lease: Lease | None = None, take: int = 0
) -> tuple[bool, ...]:
    charge = Charge("n", limit, "k", answer.costs[0], lease)
    return store.change([Change(charge, receipt(answer, 0, lease), give_back=units, take=take)])


def _remaining(store: Store, limit: Limit) -> int:
    return hit(store, limit, cost=0).outcomes[0].remaining
