"""Stateful machines: whatever callers do and in whatever order, what the quota's words promise holds after every step."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from headway import Decision, Limit, Limiter
from headway.core.quota import SECOND, Quota
from headway.limiter.queue import Lines, Ticket
from headway.limiter.reservation import Reservation
from headway.stores.base import Store
from headway.testing.clock import ManualClock
from ways import STORES

moves = st.one_of(
    st.just(0), st.integers(1, 3 * SECOND), st.integers(1, 10).map(SECOND.__mul__), st.integers(0, 40 * SECOND)
)
costs = st.sampled_from([1, 1, 2, 3])
MANY = settings.default.max_examples if settings.default else 100
few = settings(max_examples=MANY, stateful_step_count=20)


class OnAStore(RuleBasedStateMachine):
    """A limiter on a fresh store and a manual clock; memory and SQLite in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.folder = tempfile.TemporaryDirectory()
        self.store: Store | None = None

    def later(self, move: int) -> None:
        self.clock.advance(ns=move)

    def open(self, store: str, *limits: Limit) -> Limiter:
        self.store = STORES[store](self.clock, Path(self.folder.name))
        return Limiter(*limits, store=self.store)

    @property
    def now(self) -> int:
        return self.clock.now

    def teardown(self) -> None:
        if self.store is not None:
            self.store.close()
        self.folder.cleanup()


class Settling(OnAStore):
    """Hits, reservations, refunds, commits and cancels on one key of a GCRA limit.

    ``net`` is what callers got in the end: charged and not given back. It never breaks the quota, in any window, even
    if somebody took all that is left: so no refund makes a burst, and nobody is ever above the quota.
    """

    open_hits = Bundle("open_hits")
    open_reservations = Bundle("open_reservations")

    @initialize(
        store=st.sampled_from(["memory", "memory", "memory", "memory", "sqlite"]),
        count=st.integers(1, 5),
        period=st.sampled_from([3, 7, 10]),
        burst=st.integers(2, 4),
    )
    def begin(self, store: str, count: int, period: int, burst: int) -> None:
        self.quota = Quota(count, period * SECOND, burst)
        self.limiter = self.open(store, Limit("l", self.quota, by="id"))
        self.net: list[list[int]] = []
        self.places: dict[int, list[int]] = {}

    def charged(self, made: Decision | Reservation, units: int) -> None:
        self.places[id(made)] = [self.now, units]
        self.net.append(self.places[id(made)])

    @rule(move=moves, target=open_hits, cost=costs)
    def hit(self, move: int, cost: int) -> Decision:
        self.later(move)
        decision = self.limiter.hit(id="k", cost=cost)
        self.charged(decision, cost if decision.allowed else 0)
        return decision

    @rule(move=moves, target=open_hits, most=costs)
    def hit_what_fits(self, move: int, most: int) -> Decision:
        self.later(move)
        fits = self.limiter.peek(id="k", cost=0).remaining
        decision = self.limiter.hit(id="k", up_to=most)
        assert fits is not None
        assert decision.granted == min(most, fits)
        assert decision.allowed is (fits > 0)
        self.charged(decision, decision.granted)
        return decision

    @rule(move=moves, target=open_reservations, cost=costs, ttl=st.sampled_from([5.0, 1e6, 1e6]))
    def reserve(self, move: int, cost: int, ttl: float) -> Reservation:
        self.later(move)
        made = self.limiter.reserve(id="k", cost=cost, ttl=ttl, debt=False)
        self.charged(made, cost if made.allowed else 0)
        return made

    @rule(move=moves, made=consumes(open_hits))
    def refund(self, move: int, made: Decision) -> None:
        self.later(move)
        before = self.left()
        refunded = self.limiter.refund(made)
        assert refunded is made.allowed
        assert not self.limiter.refund(made)
        self.places[id(made)][1] = 0
        assert self.left() >= before

    @rule(move=moves, made=consumes(open_reservations), actual=st.integers(0, 5))
    def commit(self, move: int, made: Reservation, actual: int) -> None:
        self.later(move)
        self.settled(made, made.commit(actual), actual)
        assert not made.commit(actual)
        assert not made.cancel()

    @rule(move=moves, made=consumes(open_reservations))
    def cancel(self, move: int, made: Reservation) -> None:
        self.later(move)
        self.settled(made, made.cancel(), 0)
        assert not made.cancel()

    def settled(self, made: Reservation, in_time: bool, actual: int) -> None:
        assert made.allowed or not in_time
        if in_time:
            place = self.places[id(made)]
            place[1] = min(place[1], actual)

    def left(self) -> int:
        left = self.limiter.peek(id="k", cost=0).remaining
        assert left is not None
        return left

    @invariant()
    def nobody_ever_got_more_than_the_quota(self) -> None:
        if self.store is not None:
            assert_within(self.quota, [*self.net, [self.now, self.left()]])

    @invariant()
    def what_is_left_is_within_the_burst_and_comes_when_told(self) -> None:
        if self.store is None:
            return
        standing = self.limiter.peek(id="k", cost=self.quota.burst)
        assert 0 <= self.left() <= self.quota.burst
        wait = standing.retry_after_ns
        assert wait is not None
        assert wait <= self.quota.recovery_ns


def assert_within(quota: Quota, net: Iterable[list[int]]) -> None:
    """In no window between two arrivals more than burst + window · count / period."""
    arrivals = [place for place in net if place[1]]
    for first, (begun, _) in enumerate(arrivals):
        got = 0
        for at, units in arrivals[first:]:
            got += units
            assert got <= quota.most_in(at - begun), "more than burst + window · count / period"


class Holding(OnAStore):
    """Leases: taken, released, renewed, or left behind by holders that crashed."""

    holders = Bundle("holders")
    TTL = 10 * SECOND

    @initialize(store=st.sampled_from(list(STORES)), count=st.integers(1, 4))
    def begin(self, store: str, count: int) -> None:
        self.count = count
        self.limiter = self.open(store, Limit("slots", Quota(count, self.TTL, concurrent=True), by="id"))
        self.held: dict[int, list[int]] = {}

    def live(self) -> int:
        return sum(units for expires, units in self.held.values() if expires > self.now)

    @rule(move=moves, target=holders, cost=st.integers(1, 3))
    def take(self, move: int, cost: int) -> Decision:
        self.later(move)
        decision = self.limiter.hit(id="k", cost=cost)
        assert decision.allowed is (self.live() + cost <= self.count)
        if decision.allowed:
            self.held[id(decision)] = [self.now + self.TTL, cost]
        return decision

    @rule(move=moves, holder=consumes(holders))
    def release(self, move: int, holder: Decision) -> None:
        self.later(move)
        expires, _ = self.held.pop(id(holder), [0, 0])
        assert self.limiter.release(holder) is (expires > self.now)
        assert not self.limiter.release(holder)

    @rule(move=moves, holder=holders)
    def renew(self, move: int, holder: Decision) -> None:
        self.later(move)
        lease = self.held.get(id(holder), [0, 0])
        assert self.limiter.renew(holder) is (lease[0] > self.now)
        if lease[0] > self.now:
            lease[0] = self.now + self.TTL

    @rule(move=moves, holder=consumes(holders))
    def crash(self, move: int, holder: Decision) -> None:
        """Nobody releases it: it frees its place by itself."""
        self.later(move)

    @invariant()
    def as_many_are_free_as_nobody_holds(self) -> None:
        if self.store is None:
            return
        standing = self.limiter.peek(id="k", cost=0)
        assert standing.remaining == self.count - self.live() >= 0
        refusal = self.limiter.peek(id="k", cost=self.count)
        if not refusal.allowed:
            latest = max(expires for expires, _ in self.held.values())
            assert refusal.retry_after_ns == latest - self.now, "all are free once the last lease has expired"


class Standing(RuleBasedStateMachine):
    """Lines of waiting callers: whoever came earlier is ahead, in whatever line; only those who become first are woken."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines()
        self.came: list[Ticket] = []
        self.waiting: dict[str, list[Ticket]] = {name: [] for name in "abc"}
        self.gone: set[int] = set()
        self.woken: list[Ticket] = []

    @rule(target=tickets)
    def begin(self) -> Ticket:
        ticket = Ticket(lambda: self.woken.append(ticket), lambda: None, None, lambda: id(ticket) in self.gone)
        return ticket

    @rule(ticket=tickets, line=st.sampled_from("abc"), units=costs)
    def join(self, ticket: Ticket, line: str, units: int) -> None:
        """The first time at its end; from another line to the place that its first joining gives it."""
        if id(ticket) in self.gone:
            return
        before, left = self.firsts(), str(ticket.line or line)
        for others in self.waiting.values():
            if ticket in others:
                others.remove(ticket)
        if ticket not in self.came:
            self.came.append(ticket)
        self.waiting[line].append(ticket)
        self.waiting[line].sort(key=self.came.index)
        ahead = self.lines.join(line, ticket, units)
        self.forget_gone(left)
        self.forget_gone(line)
        assert ahead == sum(other.units for other in self.waiting[line][: self.waiting[line].index(ticket)])
        self.only_new_firsts_were_woken(before, ticket)

    @rule(ticket=tickets)
    def leave(self, ticket: Ticket) -> None:
        """Also twice, or from nowhere: then nothing happens."""
        before = self.firsts()
        line = next((name for name, others in self.waiting.items() if ticket in others), None)
        if line is not None:
            self.waiting[line].remove(ticket)
        self.lines.leave(ticket)
        if line is not None:
            self.forget_gone(line)
        self.only_new_firsts_were_woken(before, ticket)

    @rule(ticket=tickets)
    def die(self, ticket: Ticket) -> None:
        """Its event loop is closed: from now on it is passed over."""
        self.gone.add(id(ticket))

    @rule(ticket=tickets)
    def look(self, ticket: Ticket) -> None:
        if ticket.line is None or id(ticket) in self.gone:
            return
        before = self.firsts()
        line = str(ticket.line)
        self.forget_gone(line)
        assert self.lines.is_first(ticket) is (self.waiting[line][0] is ticket)
        self.only_new_firsts_were_woken(before, ticket)

    @rule()
    def look_again(self) -> None:
        self.lines.look_again()
        assert set(map(id, self.woken)) == set(map(id, self.firsts()))
        self.woken.clear()

    def firsts(self) -> list[Ticket]:
        return [line[0] for line in self.waiting.values() if line]

    def forget_gone(self, line: str) -> None:
        """Those at its head who are gone."""
        while self.waiting[line] and id(self.waiting[line][0]) in self.gone:
            del self.waiting[line][0]

    def only_new_firsts_were_woken(self, before: list[Ticket], caller: Ticket) -> None:
        new = {id(ticket) for ticket in self.firsts()} - {id(ticket) for ticket in before} - {id(caller)}
        assert {id(ticket) for ticket in self.woken} - {id(caller)} == new
        self.woken.clear()

    @invariant()
    def each_line_is_in_the_order_of_coming(self) -> None:
        assert {name: line for name, line in self.waiting.items() if line} == self.lines._lines
        for line in self.waiting.values():
            assert [ticket.first for ticket in line] == [index == 0 for index in range(len(line))]
        assert len(self.lines) == sum(map(len, self.waiting.values()))
        for name, line in self.waiting.items():
            assert self.lines.busy([name]) == (0 if line else None)


def test_no_order_of_refunds_and_commits_makes_a_burst() -> None:
    """Net of what was given back, no window ever held more than burst + window · count / period."""
    run_state_machine_as_test(Settling, settings=settings(max_examples=3 * MANY, stateful_step_count=14))  # type: ignore[no-untyped-call]  # hypothesis's


def test_no_more_are_held_at_once_than_the_count() -> None:
    """Through releases, renewals, crashes and time, exactly as many places are free as no live lease holds."""
    run_state_machine_as_test(Holding, settings=few)  # type: ignore[no-untyped-call]  # hypothesis's


def test_lines_are_first_come_first_served() -> None:
    """Joining, leaving from anywhere and looking again keep one first a line, and wake nobody else."""
    run_state_machine_as_test(Standing, settings=few)  # type: ignore[no-untyped-call]  # hypothesis's
