"""The published vectors and the tables of ``tests/cases`` on Redis: times floored to its microseconds, by both limiters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import floor
from typing import Any

import pytest

from exact_gcra import ExactGcra
from headway import AsyncLimiter, Limiter
from headway.core.limit import Limit
from headway.core.outcome import Never, Refused
from headway.core.quota import SECOND
from headway.core.verdict import Verdict
from headway.stores.memory import MemoryStore
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.testing.clock import ManualClock
from servers import Server
from stores.test_cases import CASES, nanoseconds
from stores.test_store_vectors import EPOCH, VECTORS, _compare, quota_of
from ways import Ask, bare, through_async_limiter, through_limiter

WAYS = ("bare", "limiter", "async")


@contextmanager
def opened(way: str, url: str, clock: ManualClock, *limits: Limit) -> Iterator[Ask]:
    """One way through the server, which decides by the test's clock."""
    if way == "async":
        loop = asyncio.new_event_loop()
        later = AsyncRedisStore(url, clock=clock, deadline=5, refusal_cache=0)
        try:
            yield through_async_limiter(AsyncLimiter(*limits, store=later), loop)
        finally:
            loop.run_until_complete(later.close())
            loop.close()
        return
    store = RedisStore(url, clock=clock, deadline=5, refusal_cache=0)
    try:
        yield bare(store, *limits) if way == "bare" else through_limiter(Limiter(*limits, store=store))
    finally:
        store.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("company", [0, 1], ids=["alone", "with another limit"])
def test_redis_answers_the_vectors(company: int, way: str, server: Server, clock: ManualClock) -> None:
    """Every field of every step is the exact one at the microsecond that Redis counts, whatever way it is asked."""
    for vector in VECTORS:
        server.flush()
        model = ExactGcra(vector["emission_interval"], vector["burst"], Fraction(10))
        limits = [Limit("l", quota_of(vector), by="id"), *[Limit("loose", "1000000000/s", by="id")] * company]
        with opened(way, server.url, clock, *limits) as ask:
            for number, step in enumerate(vector["steps"]):
                clock.now = EPOCH * SECOND + floor(step["t"] * 1_000_000) * 1000
                expected = model.decide(Fraction(clock.now, SECOND), step["cost"])
                peeked = ask(step["cost"], commit=False)
                allowed, outcomes = ask(step["cost"])
                where = f"{vector['id']} step {number}"
                assert peeked == (allowed, outcomes), where
                assert allowed is expected.allowed, where
                _compare(outcomes["l"], expected, where)


@pytest.mark.parametrize("way", WAYS)
def test_redis_keeps_the_tables(way: str, server: Server, clock: ManualClock) -> None:
    """Each step of each table is answered as the memory store does at that microsecond, and as the table says on the grid."""
    start = clock.now
    for table, case in CASES:
        on_grid = all(Fraction(step["at"]) * 10**6 % 1 == 0 for step in case["steps"])
        server.flush()
        described = case.get("limits") or [{"name": "l", **case["limit"]}]
        limits = tuple(
            Limit(one.get("name", "l"), one["quota"], by="id", algorithm=one.get("algorithm")) for one in described
        )
        clock.now = start
        model = bare(MemoryStore(clock=clock), *limits)
        with opened(way, server.url, clock, *limits) as ask:
            for number, step in enumerate(case["steps"]):
                clock.now = (start + nanoseconds(step["at"])) // 1000 * 1000
                looked = ask(step.get("cost", 1), commit=False)
                allowed, outcomes = ask(step.get("cost", 1))
                where = f"{table}: {case['title']}: step {number}: {step}"
                assert looked == (allowed, outcomes), where
                assert (allowed, outcomes) == model(step.get("cost", 1)), where
                if on_grid:
                    check(Verdict(limits, tuple(outcomes.values()), allowed, clock.now), step, where)


def check(verdict: Verdict, step: dict[str, Any], where: str) -> None:
    bound = verdict.binding
    assert bound is not None
    kind = "admitted" if verdict.allowed else "never" if isinstance(bound, Never) else "refused"
    assert kind == step["is"], where
    assert bound.remaining == step.get("left", bound.remaining), where
    if "wait" in step:
        assert isinstance(bound, Refused)
        assert bound.retry_after == nanoseconds(step["wait"]), where
    if "reset" in step:
        assert bound.reset_after == nanoseconds(step["reset"]), where
    if "by" in step:
        assert verdict.limit is not None
        assert verdict.limit.name == step["by"], where
