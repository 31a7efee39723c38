"""Keys of ours that hold what somebody else wrote: an error that names the key, for its own decisions and nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis as redis_py

from headway import AsyncLimiter, Limit, Limiter
from headway.core.charge import Charge
from headway.errors import StoreUnusable
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.stores.redis.keys import stored_key
from headway.testing import blocking
from servers import Server

LIMITS = [
    Limit("bucket", "5 per day", by="id"),
    Limit("thirds", "7 per 3s", by="id"),
    Limit("window", "5 per day", by="id", algorithm="fixed-window"),
    Limit("calendar", "5 per day in Europe/Paris", by="id"),
    Limit("sliding", "5 per day", by="id", algorithm="sliding-window"),
    Limit("log", "5 per day", by="id", algorithm="sliding-log"),
    Limit("waits", "1 per 30s", by="id", algorithm="growing-wait"),
]
HELD = [
    b"",
    b"hello: world",
    b"hello:world",
    b"nan",
    b"x" * 24,
    b"1 1 - 1 -",
    b"9" * 400,
    b"r1:2:3",
    b" 5",
    b"0x10",
    b"1e15",
    None,
]
"""None: a list."""


def spoilt(server: Server, limit: Limit, key: str, held: bytes | None) -> None:
    client = redis_py.Redis(port=server.port)
    stored = stored_key(Charge("default", limit, key, 1))
    client.delete(stored)
    if held is None:
        client.rpush(stored, "x")
    else:
        client.set(stored, held)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_the_error_names_the_key_and_a_reset_mends_it(limit: Limit, server: Server) -> None:
    """Alone and beside another limit, asked by a limiter or as a store: the decision is degraded and says which key it is."""
    other = Limit("other", "5 per day", by="id", algorithm="fixed-window")
    name = stored_key(Charge("default", limit, "k", 1)).decode()
    for held in HELD:
        for limits in ([limit], [limit, other]):
            limiter = Limiter(*limits, store=server.url)
            spoilt(server, limit, "k", held)
            for _ in range(2):
                degraded = limiter.hit(id="k").degraded
                assert degraded is not None, held
                assert name in degraded
                assert "headway store reset" in degraded
                assert str(server.port) in degraded
            assert limiter.peek(id="k").degraded
            limiter.reset(id="k")
            assert limiter.hit(id="k").degraded is None
            limiter.reset(id="k")
            limiter.close()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_who_travels_with_it_is_decided_as_ever(limit: Limit, server: Server) -> None:
    """Of decisions that go in one script call only the one about the spoilt key fails; the others are told the truth."""

    async def main(held: bytes | None) -> None:
        async with AsyncLimiter(limit, store=server.url) as limiter:
            await limiter.hit(id="first")
            waiting = [asyncio.ensure_future(limiter.hit(id=name)) for name in ("sent", "a", "spoilt", "b")]
            _, before, failed, after = await asyncio.gather(*waiting)
            assert failed.degraded is not None, held
            for decision in (before, after):
                assert (decision.allowed, decision.degraded) == (True, None)
                assert decision.remaining == limit.quota.burst - 1
            await limiter.reset(id="a")
            await limiter.reset(id="b")

    for held in HELD:
        spoilt(server, limit, "spoilt", held)
        asyncio.run(main(held))


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("company", ["gcra", "fixed-window"])
def test_nothing_of_its_bill_is_charged(company: Any, at: int, server: Server) -> None:
    """Wherever it stands among the limits, the others are as if nobody had asked, and what it holds stays as it is."""
    limits = [Limit(f"l{i}", "5 per day", by="id", algorithm="gcra" if i == at else company) for i in range(3)]
    client = redis_py.Redis(port=server.port)

    async def main(held: bytes | None) -> None:
        async with AsyncLimiter(*limits, store=server.url + "&refusal_cache=0") as limiter:
            await limiter.hit(id="first")
            asked = [limiter.hit(id=name) for name in ("sent", "spoilt", "spoilt")]
            assert [decision.degraded is None for decision in await asyncio.gather(*asked)] == [True, False, False]

    for held in HELD:
        spoilt(server, limits[at], "spoilt", held)
        keys = [stored_key(Charge("default", limit, "spoilt", 1)) for limit in limits]
        before = client.dump(keys[at])
        asyncio.run(main(held))
        assert Limiter(*limits, store=server.url).hit(id="spoilt").degraded
        assert [client.dump(key) for key in keys] == [before if i == at else None for i in range(3)], held


@pytest.mark.parametrize("kind", [RedisStore, AsyncRedisStore])
def test_what_is_given_back_to_it_is_refused_by_name(kind: Any, redis: Server) -> None:
    """A refund to a spoilt key is an error that names it; one to another key, in the same trip, is made."""
    limit = LIMITS[2]
    store = RedisStore(redis.url) if kind is RedisStore else blocking(AsyncRedisStore(redis.url))
    limiter = Limiter(limit, store=store)
    first, second = limiter.hit(id="k"), limiter.hit(id="other")
    for held in [b"", b"hello:world", b"nan", b"x" * 24, b"r1:2:3", b"5", b"1:2:3", None]:
        spoilt(redis, limit, "k", held)
        with pytest.raises(StoreUnusable, match="headway did not write"):
            limiter.refund(first)
        assert redis_py.Redis(port=redis.port).exists(stored_key(Charge("default", limit, "k", 1)))
    limiter.refund(second)
    assert limiter.peek(id="other", cost=0).remaining == limit.quota.burst
    store.close()


def test_a_changed_quota_leaves_it_as_it_is(redis: Server) -> None:
    """Bringing all keys to a new quota does not end at one that is none of ours."""
    limit = LIMITS[0]
    store = RedisStore(redis.url)
    limiter = Limiter(limit, store=store)
    limiter.hit(id="good")
    spoilt(redis, limit, "list", None)
    spoilt(redis, limit, "text", b"hello")
    assert store.requota("default", limit, Limit("bucket", "50 per day", by="id")) == 1
    store.close()
