"""``wait``: first come first served, one timer a line, deadlines that refuse at once, and callers that vanish."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from headway import AsyncLimiter, Decision, Limit, Limiter, MemoryStore, StoreUnavailable
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.quota import SECOND
from headway.limiter.queue import Ticket
from headway.limiter.timer import REAL_TIME
from headway.stores.base import Answer
from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing.clock import ManualClock
from ways import STORES

from .timers import Late, Stepped, Woken

PACE = Limit("pace", "1 per 10 s", by="id")


def twins(*limits: Limit, clock: ManualClock) -> list[Callable[..., Decision]]:
    """``wait`` of a Limiter and of an AsyncLimiter, each over its own memory; both are called alike."""
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    twin = AsyncLimiter(*limits, store=MemoryStore(clock=clock))
    return [limiter.wait, lambda **call: asyncio.run(twin.wait(**call))]


KINDS: list[type[Limiter] | type[AsyncLimiter]] = [Limiter, AsyncLimiter]


def run(answer: Any) -> Any:
    """The answer of a Limiter as it is, an AsyncLimiter's awaited."""
    return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer


def in_line(limiter: Limiter | AsyncLimiter, callers: int) -> None:
    """Return once so many callers wait."""
    while len(limiter._lines) < callers:
        threading.Event().wait(0.0005)


async def settled(rounds: int = 10) -> None:
    """Let every task go as far as it can without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", [0, 1])
def test_it_waits_exactly_as_long_as_it_was_told(clock: ManualClock, kind: int) -> None:
    """The first passes at once, each further one exactly one emission interval after the one before."""
    wait, start = twins(PACE, clock=clock)[kind], clock.now
    for number in range(5):
        decision = wait(id="k", deadline=10)
        assert decision.allowed
        assert clock.now - start == number * 10 * SECOND


@pytest.mark.parametrize("kind", [0, 1])
def test_a_wait_that_cannot_end_before_the_deadline_refuses_at_once(clock: ManualClock, kind: int) -> None:
    """No time passes, and the refusal says how long it would have taken; a nanosecond more is enough."""
    wait = twins(PACE, clock=clock)[kind]
    wait(id="k")
    before = clock.now
    refused = wait(id="k", deadline=9.999999999)
    assert not refused.allowed
    assert refused.retry_after == 10
    assert clock.now == before
    assert wait(id="k", deadline=10).allowed


@pytest.mark.parametrize("kind", [0, 1])
def test_what_can_never_pass_is_not_waited_for(clock: ManualClock, kind: int) -> None:
    """A cost above the burst, and a limit of zero, answer at once even without a deadline."""
    assert twins(PACE, clock=clock)[kind](id="k", cost=2).never
    assert twins(Limit("ban", "0/day"), clock=clock)[kind]().blocked


@pytest.mark.parametrize("kind", [0, 1])
def test_several_limits_are_waited_for_together(clock: ManualClock, kind: int) -> None:
    """The longest of their waits, with a cost for each by its name."""
    limits = (Limit("tokens", "100 per 10 s", by="id"), Limit("requests", "2 per 30 s", by="id"))
    wait, start = twins(*limits, clock=clock)[kind], clock.now
    for _ in range(2):
        assert wait(id="k", cost={"tokens": 50, "requests": 1}).allowed
    assert clock.now == start
    decision = wait(id="k", cost={"tokens": 50, "requests": 1})
    assert decision.costs == {"tokens": 50, "requests": 1}
    assert clock.now - start == 15 * SECOND


def test_threads_pass_in_the_order_in_which_they_came(clock: ManualClock) -> None:
    """Ten threads on one key: one pass a slot, in order, and only the first of the line has a timer."""
    timer = Stepped(clock)
    limiter = Limiter(PACE, store=MemoryStore(clock=clock), timer=timer)
    limiter.hit(id="k")
    passed: list[int] = []

    def caller(number: int) -> None:
        assert limiter.wait(id="k").allowed
        passed.append(number)

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(10)]
    for number, thread in enumerate(threads, start=1):
        thread.start()
        in_line(limiter, number)
    for slot in range(1, 11):
        while len(timer.pauses) < slot:
            threading.Event().wait(0.0005)
        assert len(passed) == slot - 1
        clock.advance(10)
        threads[slot - 1].join(10)
    assert passed == list(range(10))
    assert len(timer.pauses) == 10
    assert len(limiter._lines) == 0


def test_a_thousand_waiters_do_not_all_wake(clock: ManualClock) -> None:
    """A thousand tasks on one key: one timer and one wake a slot, first come first served, each at its exact slot."""

    async def run() -> None:
        timer = Woken(clock)
        limiter = AsyncLimiter(PACE, store=MemoryStore(clock=clock), timer=timer)
        begun, order = clock.now, []

        async def caller(number: int) -> None:
            decision = await limiter.wait(id="k")
            assert decision.allowed
            assert clock.now == begun + number * 10 * SECOND
            order.append(number)

        await asyncio.gather(*(caller(number) for number in range(1000)))
        assert order == list(range(1000))
        assert timer.wakes == timer.turns <= 999
        assert timer.pauses == [10 * SECOND] * 999

    asyncio.run(run())


FAST = Limit("pace", "200/s burst 1", by="id")
LATE = 4_000_000
"""ns by which each timer rings too late: nearly a slot of ``FAST``."""


@pytest.mark.parametrize("store", [MemoryStore, SqliteStore], ids=["memory", "sqlite"])
def test_timers_that_ring_late_do_not_make_a_line_slower(store: Any, clock: ManualClock, tmp_path: Path) -> None:
    """200 tasks at 200/s with timers 4 ms late: 1 s and those 4 ms, in order, each decided at its exact slot."""
    timer = Late(clock, LATE)
    inner = store(clock=clock) if store is MemoryStore else ThreadedStore(store(tmp_path / "l.db", clock=clock))
    limiter = AsyncLimiter(FAST, store=inner, timer=timer)
    passed: list[tuple[int, int]] = []

    async def caller(number: int) -> None:
        decision = await limiter.wait(id="k")
        assert decision.allowed
        passed.append((number, decision.verdict.now))

    async def main() -> None:
        await limiter.hit(id="k")
        await asyncio.gather(*(caller(number) for number in range(200)))
        await inner.close() if store is SqliteStore else None

    start = clock.now
    asyncio.run(main())
    assert passed == [(number, start + (number + 1) * 5_000_000) for number in range(200)]
    assert clock.now <= start + SECOND + LATE


def test_late_threads_do_not_make_a_line_slower(clock: ManualClock) -> None:
    """The same for fifty threads: the fiftieth slot, and one timer's lateness."""
    timer, start = Late(clock, LATE), clock.now
    limiter = Limiter(FAST, store=MemoryStore(clock=clock), timer=timer)
    limiter.hit(id="k")
    threads = [threading.Thread(target=limiter.wait, kwargs={"id": "k"}) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert start + 50 * 5_000_000 <= clock.now <= start + 50 * 5_000_000 + LATE


def test_a_line_that_was_held_up_for_long_is_not_let_through_at_once(clock: ManualClock) -> None:
    """After a stall of a minute no more pass at that moment than in the last 50 ms; the others wait for their slots."""
    timer = Stepped(clock)
    limiter = AsyncLimiter(FAST, store=MemoryStore(clock=clock), timer=timer)
    passed: list[int] = []

    async def caller() -> None:
        assert (await limiter.wait(id="k")).allowed
        passed.append(clock.now)

    async def main() -> None:
        await limiter.hit(id="k")
        tasks = [asyncio.create_task(caller()) for _ in range(100)]
        await settled()
        clock.advance(60)
        await settled(1_000)
        assert len(passed) == 1 + 50 // 5
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_who_does_not_stand_in_line_is_decided_now(clock: ManualClock) -> None:
    """A hit never counts from earlier; and what it took meanwhile is not given to one that was late."""
    store = MemoryStore(clock=clock)
    limiter = Limiter(FAST, store=store)
    limiter.hit(id="k")
    came = clock.now
    clock.advance(ns=9_000_000)
    assert limiter.hit(id="k").verdict.now == clock.now
    clock.advance(ns=4_000_000)
    bill = limiter.plan.charges(["k"], (1,))
    late = store.advance_late(bill, came)
    assert not late.allowed
    assert late.now == clock.now
    assert late.outcomes[0].retry_after == 1_000_000  # type: ignore[union-attr]  # refused


def test_a_late_turn_of_other_rules_is_decided_now(clock: ManualClock) -> None:
    """A window's count belongs to the window in which it is made."""
    store = MemoryStore(clock=clock)
    limiter = Limiter(FAST, Limit("w", "1 per 1s", algorithm="fixed-window"), store=store)
    limiter.hit(id="k")
    came = clock.now
    clock.advance(ns=1_001_000_000)
    answer = store.advance_late(limiter.plan.charges(["k", ()], (1, 1)), came)
    assert answer.allowed
    assert answer.now == clock.now


def test_callers_with_keys_of_their_own_wait_in_line_for_a_limit_that_they_share(clock: ManualClock) -> None:
    """Three hundred users and one limit for everyone: one timer and one wake a slot, first come first served."""

    async def run() -> None:
        timer = Woken(clock)
        limits = (Limit("everyone", "1 per 10 s"), Limit("per-user", "5 per 10 s", by="user"))
        limiter = AsyncLimiter(*limits, store=MemoryStore(clock=clock), timer=timer)
        begun, order = clock.now, []

        async def caller(number: int) -> None:
            assert (await limiter.wait(user=number)).allowed
            assert clock.now == begun + number * 10 * SECOND
            order.append(number)

        await asyncio.gather(*(caller(number) for number in range(300)))
        assert order == list(range(300))
        assert timer.wakes <= 299
        assert timer.pauses == [10 * SECOND] * 299

    asyncio.run(run())


def test_who_is_held_back_by_a_limit_of_its_own_does_not_hold_up_the_others(clock: ManualClock) -> None:
    """It waits in its own line; those that came later pass the limit they share, until it comes and has its place again."""

    async def run() -> None:
        limits = (Limit("everyone", "1 per 10 s burst 2"), Limit("per-user", "1 per 25 s", by="user"))
        limiter = AsyncLimiter(*limits, store=MemoryStore(clock=clock), timer=Stepped(clock))
        order: list[str] = []

        async def caller(user: str, name: str) -> None:
            assert (await limiter.wait(user=user)).allowed
            order.append(name)

        await limiter.hit(user="a")
        tasks = [asyncio.create_task(caller("a", "a2"))]
        await settled()
        tasks += [asyncio.create_task(caller(user, user)) for user in "bcdefg"]
        await settled()
        assert order == ["b"]
        for seconds, passed in ((10, "b c"), (10, "b c d"), (5, "b c d"), (5, "b c d a2"), (10, "b c d a2 e")):
            clock.advance(seconds)
            await settled()
            assert order == passed.split()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(limiter._lines) == 0

    asyncio.run(run())


def test_other_keys_do_not_wait_in_that_line(clock: ManualClock) -> None:
    """A long line for one key holds nobody else up."""

    async def run() -> None:
        limiter = AsyncLimiter(PACE, store=MemoryStore(clock=clock), timer=Stepped(clock))
        await limiter.hit(id="k")
        line = [asyncio.create_task(limiter.wait(id="k")) for _ in range(5)]
        await settled()
        assert (await limiter.wait(id="other")).allowed
        for task in line:
            task.cancel()
        await asyncio.gather(*line, return_exceptions=True)
        assert len(limiter._lines) == 0

    asyncio.run(run())


def test_a_caller_at_the_end_of_a_line_is_told_its_own_time(clock: ManualClock) -> None:
    """Behind three others the wait is that of four: refused at once where the deadline is before it."""

    async def run() -> None:
        limiter = AsyncLimiter(PACE, store=MemoryStore(clock=clock), timer=Stepped(clock))
        await limiter.hit(id="k")
        line = [asyncio.create_task(limiter.wait(id="k")) for _ in range(3)]
        await settled()
        refused = await limiter.wait(id="k", deadline=39.9)
        assert not refused.allowed
        assert refused.retry_after == 40
        last = asyncio.create_task(limiter.wait(id="k", deadline=40))
        for slot in range(4):
            await settled()
            assert sum(task.done() for task in (*line, last)) == slot
            clock.advance(10)
        assert (await last).allowed
        await asyncio.gather(*line)

    asyncio.run(run())


@pytest.mark.parametrize("leaving", [0, 1, 2])
def test_a_cancelled_waiter_gives_its_place_to_the_next(clock: ManualClock, leaving: int) -> None:
    """Whoever leaves, first, middle or last, is charged nothing, and the others pass one slot earlier."""

    async def run() -> None:
        limiter = AsyncLimiter(PACE, store=MemoryStore(clock=clock), timer=Stepped(clock))
        await limiter.hit(id="k")
        line = [asyncio.create_task(limiter.wait(id="k")) for _ in range(3)]
        await settled()
        line.pop(leaving).cancel()
        await settled()
        for task in line:
            clock.advance(10)
            await settled()
            assert (await task).allowed
        assert len(limiter._lines) == 0
        clock.advance(10)
        assert (await limiter.peek(id="k", cost=0)).remaining == 1

    asyncio.run(run())


STEPS = 14


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("limit", [PACE, Limit("queue", "6/min burst 3", by="id", algorithm="leaky-bucket-queue")])
def test_cancelled_at_any_await_it_leaves_nothing_behind(
    clock: ManualClock, tmp_path: Path, store: str, limit: Limit
) -> None:
    """At each step of a wait, in line, at the store, in the delay: either admitted and charged, or neither."""

    async def run(steps: int) -> None:
        opened = MemoryStore(clock=clock) if store == "memory" else SqliteStore(tmp_path / f"{steps}.db", clock=clock)
        limiter = AsyncLimiter(limit, store=opened, timer=Stepped(clock))
        ahead = asyncio.create_task(limiter.wait(id="k"))
        task = asyncio.create_task(limiter.wait(id="k"))
        await settled(steps)
        task.cancel()
        assert (await ahead).allowed
        await asyncio.wait([task])
        admitted = 1 if task.cancelled() else 2
        for _ in range(2):  # one turn of the store's worker for what is given back, one to look
            standing = await limiter.peek(id="k", cost=0)
        assert standing.remaining == limit.quota.burst - admitted
        assert len(limiter._lines) == 0
        await limiter.store.close()

    for steps in range(STEPS):
        asyncio.run(run(steps))


class Held(MemoryStore):
    """A memory store whose charging takes until the test lets it go on."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        if commit:
            self.begun.set()
            assert self.go_on.wait(10)
        return super().advance(charges, commit=commit)


@pytest.mark.parametrize("call", ["hit", "wait"])
def test_cancelled_while_the_store_decides_it_is_given_back(clock: ManualClock, call: str) -> None:
    """A worker thread cannot be stopped: what it charges after the caller was cancelled is given back by itself."""

    async def run() -> None:
        store = Held(clock)
        limiter = AsyncLimiter(PACE, store=ThreadedStore(store))
        task = asyncio.create_task(getattr(limiter, call)(id="k"))
        queued = asyncio.create_task(getattr(limiter, call)(id="other"))
        await asyncio.to_thread(store.begun.wait, 10)
        task.cancel()
        queued.cancel()
        await asyncio.wait([task, queued])
        assert task.cancelled()
        store.go_on.set()
        for _ in range(2):  # one turn of the worker for what is given back, one to look
            standing = [await limiter.peek(id=key, cost=0) for key in ("k", "other")]
        assert [decision.remaining for decision in standing] == [1, 1]
        await limiter.store.close()

    asyncio.run(run())


def test_cancelled_in_its_delay_a_caller_gives_its_units_back(clock: ManualClock) -> None:
    """A queue's admission that nobody goes on with is not charged, and its place is free again."""

    async def run() -> None:
        limit = Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue")
        limiter = AsyncLimiter(limit, store=MemoryStore(clock=clock), timer=Stepped(clock))
        assert (await limiter.wait(id="k")).allowed
        waiting = [asyncio.create_task(limiter.wait(id="k")) for _ in range(2)]
        await settled()
        assert (await limiter.peek(id="k", cost=0)).remaining == 0
        waiting[1].cancel()
        await settled()
        assert (await limiter.peek(id="k", cost=0)).remaining == 1
        clock.advance(10)
        assert (await waiting[0]).delay == 10

    asyncio.run(run())


def test_a_queue_s_delay_is_waited_for_too(clock: ManualClock) -> None:
    """``wait`` returns when the caller may go on, and refuses at once where the delay ends after the deadline."""
    limit = Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue")
    for wait in twins(limit, clock=clock):
        start = clock.now
        assert wait(id="k").allowed
        refused = wait(id="k", deadline=9)
        assert not refused.allowed
        assert refused.retry_after == 10
        assert wait(id="k", deadline=10).allowed
        assert clock.now - start == 10 * SECOND


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("beside", [(), (Limit("other", "100 per hour", by="id"),)])
@pytest.mark.parametrize("store", STORES)
def test_nobody_waits_for_a_place_in_a_queue_to_be_told_that_its_delay_is_too_long(
    clock: ManualClock, tmp_path: Path, kind: int, beside: tuple[Limit, ...], store: str
) -> None:
    """A full queue: 10 s until there is a place, 20 s of delay in it; what cannot end in time is refused at once."""
    limits = (Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue"), *beside)
    limiter = KINDS[kind](*limits, store=STORES[store](clock, tmp_path))
    begun = clock.now
    for _ in range(3):
        run(limiter.hit(id="k"))
    for deadline in (0, 5, 10, 29.9):
        refused = run(limiter.wait(id="k", deadline=deadline))
        assert (refused.allowed, refused.retry_after, refused.limit) == (False, 30, "queue")
        assert clock.now == begun
    assert run(limiter.wait(id="k", deadline=30)).delay == 20
    assert clock.now == begun + 30 * SECOND
    run(limiter.store.close())


@pytest.mark.parametrize("kind", [0, 1])
def test_nobody_waits_for_a_lease_to_be_told_that_a_queue_s_delay_is_too_long(clock: ManualClock, kind: int) -> None:
    """However early the lease is given back: place and delay together take at least as long as the delay does now."""
    queue = Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue")
    limiter = KINDS[kind](queue, Limit("slots", "2 at once for 1 hour", by="id"), store=MemoryStore(clock=clock))
    begun = clock.now
    for _ in range(2):
        run(limiter.hit(id="k"))
    refused = run(limiter.wait(id="k", deadline=19))
    assert (refused.allowed, clock.now) == (False, begun)
    assert refused.outcomes["queue"].retry_after == 20 * SECOND
    assert not run(limiter.wait(id="k", deadline=21)).allowed
    assert clock.now == begun + 21 * SECOND, "it might have been given back in time"


@pytest.mark.parametrize("kind", [0, 1])
def test_a_queue_beside_what_never_passes_has_not_refused(clock: ManualClock, kind: int) -> None:
    """No time is told that no waiting would help, and only the limit that never admits is named."""
    queue = Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue")
    limiter = KINDS[kind](queue, Limit("small", "1 per 10 s", by="id"), store=MemoryStore(clock=clock))
    run(limiter.hit(id="k"))
    refused = run(limiter.wait(id="k", cost=2, deadline=60))
    assert refused.never
    assert [limit.name for limit in refused.verdict.violated] == ["small"]


@pytest.mark.parametrize("kind", [0, 1])
def test_another_limit_s_wait_lets_a_queue_leak_meanwhile(clock: ManualClock, kind: int) -> None:
    """Whoever waits 60 s for one limit finds the other's queue empty by then, so 60 s is all that it takes."""
    queue = Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue")
    limiter = KINDS[kind](
        queue, Limit("few", "3 per 60 s", by="id", algorithm="sliding-log"), store=MemoryStore(clock=clock)
    )
    for _ in range(3):
        run(limiter.hit(id="k"))
    refused = run(limiter.wait(id="k", deadline=59))
    assert (refused.limit, refused.retry_after) == ("few", 60)
    assert run(limiter.wait(id="k", deadline=60)).delay == 0


def test_a_lease_given_back_lets_the_next_one_in_at_once(clock: ManualClock) -> None:
    """The bound that is told is only a bound: with a deadline before it a caller still waits, and a release wakes it."""

    async def run() -> None:
        limiter = AsyncLimiter(
            Limit("slots", "1 at once for 60 s"), store=MemoryStore(clock=clock), timer=Stepped(clock)
        )
        holder = await limiter.hit()
        waiting = [asyncio.create_task(limiter.wait(deadline=5)) for _ in range(2)]
        await settled()
        assert not any(task.done() for task in waiting)
        await limiter.release(holder)
        await settled()
        first, second = waiting
        assert (await first).allowed
        assert not second.done()
        clock.advance(5)
        refused = await second
        assert not refused.allowed
        assert refused.retry_after > 0

    asyncio.run(run())


def test_a_refund_and_a_reset_wake_who_waits(clock: ManualClock) -> None:
    """What is given back is had at once by the first in line, not when its timer ends."""

    async def run() -> None:
        limiter = AsyncLimiter(Limit("day", "1/day", by="id"), store=MemoryStore(clock=clock), timer=Stepped(clock))
        charged = await limiter.hit(id="k")
        waiting = asyncio.create_task(limiter.wait(id="k"))
        await settled()
        assert await limiter.refund(charged)
        assert (await waiting).allowed
        waiting = asyncio.create_task(limiter.wait(id="k"))
        await settled()
        await limiter.reset(id="k")
        assert (await waiting).allowed

    asyncio.run(run())


def test_a_quota_changed_while_somebody_waits_counts_from_then_on(clock: ManualClock) -> None:
    """Raised, it admits who waits as soon as it says; lowered, it makes them wait longer."""

    async def run() -> None:
        limiter = AsyncLimiter(Limit("l", "1 per 100 s", by="id"), store=MemoryStore(clock=clock), timer=Stepped(clock))
        await limiter.hit(id="k")
        waiting = asyncio.create_task(limiter.wait(id="k"))
        await settled()
        await limiter.change_quota("l", "10 per 1000 s")
        await settled()
        assert (await waiting).allowed
        assert (await limiter.peek(id="k", cost=0)).remaining == 8

    asyncio.run(run())


def test_at_its_deadline_nobody_is_admitted_uncharged(clock: ManualClock) -> None:
    """With others ahead who have not asked yet there is room for all: the units are taken, or the caller is refused."""
    limiter = Limiter(Limit("l", "3 per 10 s", by="id"), store=MemoryStore(clock=clock))
    ahead = Ticket(lambda: None, lambda: None)
    limiter._lines.join(("l", "k"), ahead, 1)
    decision = limiter.wait(id="k", deadline=0)
    assert decision.allowed
    assert limiter.peek(id="k", cost=0).remaining == 2
    for _ in range(2):
        limiter.hit(id="k")
    refused = limiter.wait(id="k", deadline=0)
    assert not refused.allowed
    assert refused.retry_after > 0
    limiter._lines.leave(ahead)
    assert len(limiter._lines) == 0


class Faulty(MemoryStore):
    """A memory store whose call of a certain number fails: the plug is pulled for one moment."""

    def __init__(self, clock: ManualClock, fails: int) -> None:
        super().__init__(clock=clock)
        self.fails = fails
        self.calls = 0

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.fails:
            raise StoreUnavailable("pulled the plug")

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        self._call()
        return super().advance(charges, commit=commit)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        self._call()
        return super().change(changes)

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        self._call()
        return super().clears_after(charge)


@pytest.mark.parametrize("algorithm", ["gcra", "leaky-bucket-queue"])
def test_a_store_that_fails_in_the_middle_is_a_decision_and_blocks_nobody(algorithm: str) -> None:
    """At whichever call: no StoreError comes out, a denial says that it is degraded, and everybody leaves the line."""

    async def run(fails: int) -> int:
        clock = ManualClock()
        store = Faulty(clock, fails)
        limiter = AsyncLimiter(
            Limit("l", "1 per 10 s burst 2", by="id", algorithm=algorithm), store=store, timer=Woken(clock)
        )
        waiting = [asyncio.create_task(limiter.wait(id="k", deadline=35)) for _ in range(4)]
        decisions = await asyncio.gather(*waiting)
        for decision in decisions:
            assert decision.allowed or decision.degraded or decision.retry_after > 0
        assert sum(bool(decision.degraded) for decision in decisions) <= 1
        assert len(limiter._lines) == 0
        return store.calls

    calls = asyncio.run(run(10**9))
    assert calls > 6
    for fails in range(1, calls + 1):
        asyncio.run(run(fails))


def test_a_store_that_is_away_when_units_are_given_back_does_not_hide_the_cancellation(clock: ManualClock) -> None:
    """The task is cancelled, not failed; the units stay charged, never too few."""

    async def run() -> None:
        store = Faulty(clock, 3)
        limit = Limit("queue", "1 per 10 s burst 3", by="id", algorithm="leaky-bucket-queue")
        limiter = AsyncLimiter(limit, store=store, timer=Stepped(clock))
        await limiter.wait(id="k")
        waiting = asyncio.create_task(limiter.wait(id="k"))
        await settled()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert store.calls == 3
        assert (await limiter.peek(id="k", cost=0)).remaining == 1

    asyncio.run(run())


def test_one_limiter_serves_two_event_loops_at_once(clock: ManualClock) -> None:
    """Two threads, each with a loop of its own, get the budget once: a line goes from one loop to the other."""
    limiter = AsyncLimiter(Limit("l", "20 per 1000 s", by="id"), store=MemoryStore(clock=clock), timer=Stepped(clock))
    granted: list[bool] = []
    both = threading.Barrier(2)

    def loop() -> None:
        async def run() -> None:
            both.wait(10)
            decisions = await asyncio.gather(*(limiter.wait(id="k", deadline=10) for _ in range(15)))
            granted.extend(decision.allowed for decision in decisions)

        asyncio.run(run())

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(granted) == 20
    assert len(granted) == 30
    assert len(limiter._lines) == 0


def abandoned(limiter: AsyncLimiter) -> tuple[asyncio.AbstractEventLoop, asyncio.Task[Decision]]:
    """A caller that waits in an event loop that is closed under it: it never runs again, and never says so."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(limiter.wait(id="k"))
    loop.run_until_complete(settled())
    loop.close()
    return loop, task


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_waiter_whose_event_loop_died_blocks_nobody(clock: ManualClock) -> None:
    """First in line or behind, a caller that can never run again is passed over by those that came after it."""
    limiter = AsyncLimiter(PACE, store=MemoryStore(clock=clock), timer=Stepped(clock))

    async def first() -> None:
        await limiter.hit(id="k")

    asyncio.run(first())
    dead = [abandoned(limiter)]

    async def run() -> None:
        waiting = asyncio.create_task(limiter.wait(id="k"))
        await settled()
        dead.extend(await asyncio.to_thread(lambda: [abandoned(limiter)]))
        last = asyncio.create_task(limiter.wait(id="k"))
        for task in (waiting, last):
            await settled()
            clock.advance(10)
            await settled(50)
            assert (await task).allowed
        assert len(limiter._lines) == 0

    asyncio.run(run())
    for _, task in dead:
        task.get_coro().close()  # type: ignore[union-attr]  # it has one
    gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is what is tested
def test_a_forked_child_does_not_stand_behind_those_who_wait_in_its_parent(clock: ManualClock) -> None:
    """They will never look again in the child, so its own caller is the first there; in the parent they go on waiting."""
    limiter = Limiter(PACE, store=MemoryStore(clock=clock), timer=Woken(clock))
    limiter.hit(id="k")
    waiting = threading.Thread(target=limiter.wait, kwargs={"id": "k"})
    waiting.start()
    in_line(limiter, 1)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        limiter.reset(id="k")
        os._exit(int(len(limiter._lines) == 0 and limiter.wait(id="k", deadline=5).allowed))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert len(limiter._lines) == 1
    limiter.reset(id="k")
    waiting.join(20)
    assert not waiting.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_first_that_dies_while_others_wait_is_noticed(clock: ManualClock) -> None:
    """A second after its time the next one looks whether those before it are still there."""
    limiter = AsyncLimiter(PACE, store=MemoryStore(clock=clock), timer=Stepped(clock))
    dying = asyncio.new_event_loop()
    dying.run_until_complete(limiter.hit(id="k"))
    task = dying.create_task(limiter.wait(id="k"))
    dying.run_until_complete(settled())

    async def run() -> None:
        waiting = asyncio.create_task(limiter.wait(id="k"))
        await settled()
        dying.close()
        clock.advance(20)
        await settled()
        assert not waiting.done()
        clock.advance(1)
        await settled()
        assert (await waiting).allowed

    asyncio.run(run())
    task.get_coro().close()  # type: ignore[union-attr]  # it has one
    assert len(limiter._lines) == 0


@pytest.mark.parametrize(
    ("deadline", "error"), [(-1, ValueError), ("5", TypeError), (True, TypeError), (float("nan"), ValueError)]
)
def test_a_deadline_that_is_none_is_an_error(deadline: Any, error: type[Exception], clock: ManualClock) -> None:
    """The message names it and what is accepted."""
    with pytest.raises(error, match=r"deadline is .*; expected seconds"):
        Limiter(PACE, store=MemoryStore(clock=clock)).wait(id="k", deadline=deadline)


def test_real_time_waits_until_it_is_over_or_somebody_wakes() -> None:
    """The default timer: not a nanosecond early, and at once when the event is set. Two short bounded waits."""
    event = threading.Event()
    begun = REAL_TIME.ticks()
    REAL_TIME.pause(event, 3_000_000)
    assert REAL_TIME.ticks() - begun >= 3_000_000
    event.set()
    begun = REAL_TIME.ticks()
    REAL_TIME.pause(event, 3600 * SECOND)
    REAL_TIME.turn(event, 3600 * SECOND)

    async def run() -> None:
        woken = asyncio.Event()
        begun = REAL_TIME.ticks()
        await REAL_TIME.pause_async(woken, 3_000_000)
        assert REAL_TIME.ticks() - begun >= 3_000_000
        woken.set()
        await REAL_TIME.pause_async(woken, 3600 * SECOND)
        await REAL_TIME.turn_async(woken, 3600 * SECOND)

    asyncio.run(run())
    assert REAL_TIME.ticks() - begun < 60 * SECOND
