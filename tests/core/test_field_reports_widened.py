"""Field reports that the later algorithms and waiting callers touch, each named for what must not happen."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime
from pathlib import Path

import pytest

from headway import AsyncLimiter, Limit, Limiter, MemoryStore
from headway.core.limit import Algorithm
from headway.core.outcome import Admitted, Refused
from headway.core.quota import DAY, SECOND
from headway.stores.sqlite import SqliteStore
from headway.testing.clock import ManualClock
from ways import STORES


class Standing(ManualClock):
    """A clock that waiting callers do not move: they wait until the test does."""

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        await self.turn_async(event, ns)


@pytest.mark.parametrize("store", STORES)
def test_a_limiter_of_the_module_does_not_die_with_its_first_event_loop(store: str, tmp_path: Path) -> None:
    """FS-19 (mjpieters/aiolimiter#292): 40 waits, cancelled when ``main`` returns; the next loop goes on where it stood."""
    clock = Standing()
    limiter = AsyncLimiter(Limit("l", "20/s"), store=STORES[store](clock, tmp_path), timer=clock)

    async def main() -> int:
        waiting = [asyncio.create_task(limiter.wait()) for _ in range(40)]
        while sum(task.done() for task in waiting) < 20:  # noqa: ASYNC110  # bounded: each goes as far as it can
            await asyncio.sleep(0)
        return sum(task.done() for task in waiting)  # the others are cancelled as the loop ends

    async def main2() -> list[bool]:
        now = [(await limiter.hit()).allowed for _ in range(5)]
        clock.advance(0.25)
        return now + [(await limiter.wait(deadline=0)).allowed for _ in range(6)]

    assert asyncio.run(main()) == 20
    assert len(limiter._lines) == 0
    assert asyncio.run(main2()) == [False] * 5 + [True] * 5 + [False]
    asyncio.run(limiter.store.close())


def test_two_threads_with_a_loop_each_do_not_get_the_limit_twice() -> None:
    """FS-19: one limiter, two loops at once: 20 grants in the first second in all."""
    clock = Standing()
    limiter = AsyncLimiter(Limit("l", "20/s"), store=MemoryStore(clock=clock), timer=clock)
    granted: list[bool] = []

    def run() -> None:
        async def main() -> None:
            decisions = await asyncio.gather(*(limiter.wait(deadline=0) for _ in range(20)))
            granted.extend(decision.allowed for decision in decisions)

        asyncio.run(main())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(granted) == 20


LONG = {
    Algorithm.GCRA: "6 per 3650 days",
    Algorithm.SLIDING_WINDOW: "6 per 3650 days",
    Algorithm.SLIDING_LOG: "6 per 3650 days",
    Algorithm.FIXED_WINDOW: "6 per 3650 days",
    Algorithm.ANCHORED_WINDOW: "6 per 3650 days",
    Algorithm.LEAKY_BUCKET_QUEUE: "6 per 3650 days",
    Algorithm.CONCURRENCY: "6 at once for 3650 days",
}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("algorithm", LONG)
def test_ten_years_overflow_nothing(algorithm: Algorithm, store: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-21 (animir/node-rate-limiter-flexible#71, bucket4j/bucket4j#51): held for the whole period, whole after a century."""
    limiter = Limiter(Limit("l", LONG[algorithm], by="id", algorithm=algorithm), store=STORES[store](clock, tmp_path))
    assert limiter.hit(id="k", cost=6).allowed
    refused = limiter.hit(id="k", cost=6)
    assert refused.retry_after_ns is not None
    assert DAY < refused.retry_after_ns <= 2 * 3650 * DAY
    clock.advance(ns=refused.retry_after_ns - 1)
    assert not limiter.hit(id="k", cost=6).allowed
    clock.advance(ns=1)
    assert limiter.hit(id="k", cost=6).allowed
    clock.advance(ns=100 * 365 * DAY)
    assert limiter.peek(id="k", cost=0).remaining == 6
    limiter.store.close()


def test_a_month_is_a_month_and_not_thirty_days() -> None:
    """FS-21: six a month hold until the first of the next, through a 31-day month and over a change of the clocks."""
    clock = ManualClock()
    clock.now = int(datetime.fromisoformat("2026-10-01T00:00+02:00").timestamp()) * SECOND
    limiter = Limiter(Limit("l", "6/month in Europe/Berlin"), store=MemoryStore(clock=clock))
    assert limiter.hit(cost=6).allowed
    refused = limiter.hit()
    assert refused.retry_at == datetime.fromisoformat("2026-11-01T00:00+01:00")
    assert refused.retry_after == 31 * 86_400 + 3600


def test_a_token_bucket_by_its_name_keeps_part_units_earned() -> None:
    """FS-24 (mailgun/gubernator#77): capacity 10, 10 per 30 s, a hit each second: the reported balances, all admitted."""
    clock = ManualClock()
    limiter = Limiter(Limit.token_bucket("l", capacity=10, refill="10 per 30 s"), store=MemoryStore(clock=clock))
    balances = []
    for _ in range(11):
        decision = limiter.hit()
        assert decision.allowed
        balances.append(decision.remaining)
        clock.advance(1)
    assert balances == [9, 8, 7, 7, 6, 5, 5, 4, 3, 3, 2]


def test_a_minimum_interval_is_not_pushed_back_by_refused_hits() -> None:
    """FS-24: one per second by its name, hit at 0, 0.2, 0.999 and 1 s."""
    rule = Limit.minimum_interval("l", "1 s").rule
    state, waits = None, []
    for at in (0, 200_000_000, 999_000_000, SECOND):
        state, outcome = rule.decide(state, at, 1)
        waits.append(outcome.retry_after if isinstance(outcome, Refused) else None)
    assert waits == [None, 800_000_000, 1_000_000, None]


@pytest.mark.parametrize(
    "limit",
    [
        Limit("l", "5/s", algorithm="sliding-window"),
        Limit("l", "5 at once for 1 s"),
        Limit("l", "5/s", algorithm="leaky-bucket-queue"),
        Limit("l", "5/s", algorithm="growing-wait", longest="1 s", forgiven_after="1 s"),
        Limit("l", "5/day in UTC"),
    ],
    ids=lambda limit: limit.algorithm.value,
)
@pytest.mark.parametrize("back", [1, 9, 3600, 30 * 86_400])
def test_hosts_whose_clocks_disagree_do_not_refill_each_other(limit: Limit, back: int) -> None:
    """FS-25 (spring-cloud/spring-cloud-gateway#2412): spent, then the clock goes back: no unit more, and no endless wait."""
    rule, now = limit.rule, 1_800_000_000 * SECOND
    state, outcome = rule.decide(None, now, 5)
    assert isinstance(outcome, Admitted)
    state, outcome = rule.decide(state, now - back * SECOND, 1)
    assert isinstance(outcome, Refused)
    most = DAY if limit.algorithm is Algorithm.CALENDAR_WINDOW else 2 * SECOND
    assert outcome.retry_after <= most + 10 * SECOND
    assert isinstance(rule.decide(state, now - back * SECOND + outcome.retry_after, 1)[1], Admitted)


@pytest.mark.parametrize("objects", ["one", "one a thread", "one a call"])
@pytest.mark.parametrize("store", STORES)
def test_twenty_threads_do_not_send_more_than_five_in_any_second(store: str, objects: str, tmp_path: Path) -> None:
    """FS-37 (JWCook/requests-ratelimiter#90, vutran1710/PyrateLimiter#172): 100 sends take 19 s, whoever holds the limiter."""
    clock = ManualClock()
    opened = STORES[store](clock, tmp_path)
    limit = Limit("pace", "5/s", algorithm="sliding-log")
    shared = Limiter(limit, store=opened)
    begun, sent, lock = clock.now, [], threading.Lock()

    def send() -> None:
        mine = Limiter(limit, store=opened) if objects == "one a thread" else shared
        for _ in range(5):
            limiter = Limiter(limit, store=opened) if objects == "one a call" else mine
            decision = limiter.wait()
            assert decision.allowed
            with lock:
                sent.append(int((decision.decided_at.timestamp() - begun / SECOND) * 1000 + 0.5))

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(sent) == 100, "every thread finishes"
    sent.sort()
    assert all(later - earlier >= 1000 for earlier, later in zip(sent, sent[5:], strict=False))
    if objects == "one":
        assert sent[-1] == 19_000
    opened.close()


def test_a_queue_paces_and_is_not_taken_for_a_refusal() -> None:
    """FS-38 (traefik/traefik#8330): 120 a minute with a burst of 20 and delay: 5 at once wait 0, 0.5, 1, 1.5 and 2 s."""
    clock = ManualClock()
    limit = Limit("req", "120/min burst 21", algorithm="leaky-bucket-queue")
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    assert [limiter.hit().delay for _ in range(5)] == [0, 0.5, 1, 1.5, 2]
    paced = Limiter(limit, store=MemoryStore(clock=clock))
    begun = clock.now
    for _ in range(5):
        assert paced.wait().allowed
    assert clock.now - begun == 2 * SECOND


def test_nodelay_admits_the_burst_and_one_and_refuses_the_next() -> None:
    """FS-38: rate=60r/m burst=20 nodelay, 22 at once: 21 admitted without delay, one refused."""
    limit = Limit("req", "60/min burst 21", algorithm="leaky-bucket-queue", undelayed=21)
    limiter = Limiter(limit, store=MemoryStore(clock=ManualClock()))
    decisions = [limiter.hit() for _ in range(22)]
    assert [decision.allowed for decision in decisions] == [True] * 21 + [False]
    assert not any(decision.delay for decision in decisions)


def test_a_crashed_worker_does_not_keep_its_slot(tmp_path: Path) -> None:
    """A process that died holding a slot frees it by itself: another one, on the same file, gets it a lease later."""
    clock = ManualClock()
    died, other = (SqliteStore(tmp_path / "slots.db", clock=clock) for _ in range(2))
    assert Limiter(Limit("slots", "1 at once for 30 s"), store=died).hit().allowed
    died.close()
    limiter = Limiter(Limit("slots", "1 at once for 30 s"), store=other)
    assert not limiter.hit().allowed
    assert limiter.wait(deadline=30).allowed
    other.close()
