"""Both limiters over one server, on the same random histories: whatever way a call takes, the same is told and charged."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headway import AsyncLimiter, Decision, Limit, Limiter, Quota, TieredLimit, When
from headway.core.limit import Algorithm
from headway.core.quota import DAY, SECOND
from headway.policy.choice import Choice
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.testing.clock import ManualClock
from servers import Server
from stores.redis.test_differential import a_limit

VALUES = ["a", "a", "b", "b", "c", "k" * 5000, "é", "", 42, "42", b"b", uuid.UUID(int=5), ("t", "u")]
BY = [("id",), ("id",), ("ip",), (), ("id", "ip"), ("ip", "id", "n")]
SECRET = b"0123456789abcdef0123456789abcdef"


def a_part(random: Random, name: str) -> Limit | Choice:
    chance = random.random()
    if chance < 0.05:
        return Limit(name, "0 per 10s", by="id")
    if chance < 0.15:
        return TieredLimit(name, {"free": "2 per 10s", "pro": "7 per 10s"}, by="id", tier="plan")
    limit = replace(a_limit(random, name, random.choice(["gcra", "gcra", "gcra", None])), by=random.choice(BY))
    if limit.by and random.random() < 0.15:
        limit = replace(limit, secret=frozenset(limit.by[:1]))
    if limit.algorithm is not Algorithm.CONCURRENCY and random.random() < 0.15:
        limit = replace(limit, cost=random.choice([1, 2, 3, 10**6]))
    return When({"plan": "pro"}, limit) if random.random() < 0.1 else limit


def told(answer: object) -> Any:
    """All that a caller can see."""
    if not isinstance(answer, Decision):
        return type(answer), str(answer)
    at = answer.decided_at if answer.outcomes else None  # where nothing was asked it is this process's clock
    return answer.to_dict(), answer.headers(), answer.sentence(), at, answer.granted


class Pair:
    """One policy twice on one server, each in its namespace: with threads and with asyncio."""

    def __init__(self, seed: int, url: str) -> None:
        random = self.random = Random(seed)
        self.clock = ManualClock()
        self.parts = [a_part(random, f"l{i}") for i in range(random.choice([0, 1, 1, 2, 3, 5, 8]))]
        self.stores = (
            AsyncRedisStore(url, clock=self.clock, refusal_cache=0),
            RedisStore(url, clock=self.clock, refusal_cache=0),
        )
        options: dict[str, Any] = {"secret_key": SECRET}
        if random.random() < 0.2:
            options["exempt"] = lambda facts: facts.get("id") == "c"
        self.later = AsyncLimiter(*self.parts, store=self.stores[0], namespace="later", **options)
        self.now = Limiter(*self.parts, store=self.stores[1], namespace="now", **options)
        self.made: list[tuple[Any, Any]] = []

    def call(self) -> tuple[str, dict[str, object], dict[str, Any]]:
        random = self.random
        facts: dict[str, object] = {name: random.choice(VALUES) for name in ("id", "ip", "n")}
        facts["plan"] = random.choice(["free", "pro"])
        if random.random() < 0.03:
            del facts[random.choice(list(facts))]
        if random.random() < 0.1:
            return "hit", facts, {"up_to": random.choice([1, 5, 10**30])}
        priced = [part.name for part in self.parts if isinstance(part, Limit) and part.cost is None]
        by_name = {random.choice(priced): random.choice([0, 1, 2, 9])} if priced else 1
        cost: int | float | Mapping[str, int] = random.choice([1, 1, 1, 2, 5, 0, 10**30, True, -1, 1.0, by_name])
        return random.choice(["hit"] * 5 + ["peek"]), facts, {"cost": cost}

    async def step(self) -> None:
        random = self.random
        period = random.choice(self.later.limits).quota.period_ns if self.parts else SECOND
        self.clock.advance(ns=random.choice([0, 0, 1000, SECOND, period // 7, period, -SECOND, -30 * SECOND]))
        self.clock.now = min(max(self.clock.now // 1000 * 1000, 10**18), 24 * 10**17)
        calls = [self.call() for _ in range(random.choice([1, 1, 3, 7]))]
        asked = [getattr(self.later, method)(facts, **how) for method, facts, how in calls]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for (method, facts, how), ours in zip(calls, answers, strict=True):
            twin = answered(getattr(self.now, method), facts, how)
            assert told(ours) == told(twin), (method, facts, how, self.parts)
            if method == "hit" and isinstance(ours, Decision):
                self.made.append((ours, twin))
        if self.made and random.random() < 0.3:
            ours, twin = self.made.pop(random.randrange(len(self.made)))
            assert await self.later.refund(ours) == self.now.refund(twin)
        changeable = [part.name for part in self.parts if isinstance(part, Limit) and part.quota.count]
        changeable = [name for name in changeable if self.later.plan.by_name[name].algorithm is Algorithm.GCRA]
        if changeable and random.random() < 0.05:
            name, quota = random.choice(changeable), Quota(random.choice([1, 3, 50]), random.choice([SECOND, DAY]))
            keep = random.choice(["as-is", "proportional", "reset"])
            await self.later.change_quota(name, quota, keep=keep)
            self.now.change_quota(name, quota, keep=keep)

    async def play(self, steps: int) -> None:
        try:
            for _ in range(steps):
                await self.step()
        finally:
            await self.stores[0].close()
            self.stores[1].close()


def answered(method: Any, facts: dict[str, object], how: dict[str, Any]) -> object:
    try:
        return method(facts, **how)
    except Exception as error:
        return error


@pytest.mark.parametrize("block", range(3))
def test_asyncio_is_told_and_charged_what_threads_are(redis: Server, block: int) -> None:
    """Tiers, conditions, secrets, exemptions, costs of all kinds, wrong ones too, refunds and changed quotas: nothing differs."""
    for seed in range(block * 12, block * 12 + 12):
        redis.flush()
        try:
            asyncio.run(Pair(seed, redis.url).play(20))
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
