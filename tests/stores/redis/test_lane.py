"""The short way of a limiter over Redis: refusals that stand are answered here, and only those."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import Any

import pytest
import redis as redis_py

from headway import AsyncLimiter, Limit, Limiter
from headway.stores.redis import RedisStore
from servers import Server

YEARLY = (Limit("a", "10 per 365 days", by="id"), Limit("b", "10 per 365 days", by="id"))


class Either:
    """One of the two limiters, called from a test."""

    def __init__(self, kind: str, url: str, *limits: Limit) -> None:
        self.loop = asyncio.new_event_loop() if kind == "async" else None
        self.limiter: Any = (Limiter if kind == "sync" else AsyncLimiter)(*limits, store=url)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.limiter, name)
        if self.loop is None:
            return method
        loop = self.loop
        return lambda *arguments, **named: loop.run_until_complete(method(*arguments, **named))

    def shut(self) -> None:
        self.close()
        if self.loop is not None:
            self.loop.close()


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


def script_calls(server: Server) -> int:
    told = redis_py.Redis(port=server.port).info("commandstats")
    return int(told.get("cmdstat_evalsha", {}).get("calls", 0)) + int(told.get("cmdstat_eval", {}).get("calls", 0))


@KINDS
def test_a_refused_caller_who_never_stops_costs_the_server_nearly_nothing(kind: str, redis: Server) -> None:
    """Thousands of refusals within some seconds: about one call a second reaches the server, for one limit or four."""
    limits = [Limit(f"l{number}", "1 per 365 days", by="id") for number in range(4)]
    for some in (limits[:1], limits):
        redis.flush()
        limiter = Either(kind, redis.url, *some)
        assert limiter.hit(id="hot").allowed
        before, begin, refused = script_calls(redis), time.monotonic(), 0
        while time.monotonic() - begin < 1.5 or refused < 2000:
            refused += not limiter.hit(id="hot").allowed
        assert script_calls(redis) - before <= 2 + (time.monotonic() - begin) * 1.2
        limiter.shut()


@KINDS
@pytest.mark.parametrize("other", ["sync", "async"])
@pytest.mark.parametrize("options", ["", "&refusal_cache=0"])
@pytest.mark.parametrize("how", ["reset", "refund", "change_quota"])
def test_what_another_limiter_of_the_process_gives_back_is_not_refused(
    kind: str, other: str, options: str, how: str, redis: Server
) -> None:
    """Whichever limiter refused, and whichever resets the key, refunds, or begins anew: who asks again is admitted."""
    refusing, giving = Either(kind, redis.url, *YEARLY), Either(other, redis.url + options, *YEARLY)
    made = giving.hit(id="k", cost=10)
    assert not refusing.hit(id="k").allowed
    before = script_calls(redis)
    assert not refusing.hit(id="k").allowed
    assert script_calls(redis) == before
    if how == "reset":
        giving.reset(id="k")
    elif how == "refund":
        assert giving.refund(made)
    else:
        for name in ("a", "b"):
            giving.change_quota(name, "10 per 364 days", keep="reset")
    assert refusing.hit(id="k").allowed
    refusing.shut()
    giving.shut()


@KINDS
def test_a_refusal_for_some_costs_says_nothing_of_others(kind: str, redis: Server) -> None:
    """Refused for ten units of b, one unit of each passes; refused for one, ten are refused here."""
    limiter = Either(kind, redis.url, *YEARLY)
    assert limiter.hit(id="k").allowed
    for _ in range(3):
        assert not limiter.hit(id="k", cost={"a": 1, "b": 10}).allowed
    assert limiter.hit(id="k").allowed
    assert limiter.hit(id="k", cost=8).allowed
    assert not limiter.hit(id="k").allowed
    before = script_calls(redis)
    assert not limiter.hit(id="k", cost={"a": 2, "b": 10}).allowed
    assert not limiter.hit(id="k").allowed
    assert script_calls(redis) == before
    limiter.shut()


@KINDS
def test_what_others_give_back_is_seen_within_the_cap(kind: str, redis: Server) -> None:
    """A reset by another process is seen after ``refusal_cache`` at the latest, one's own at once; 0 asks each time."""
    limiter = Either(kind, redis.url + "&refusal_cache=300ms", *YEARLY)
    other = Limiter(*YEARLY, store=redis.url)
    assert limiter.hit(id="k", cost=10).allowed
    assert not limiter.hit(id="k").allowed
    other.reset(id="k")
    begin = time.monotonic()
    while not limiter.hit(id="k").allowed:
        assert time.monotonic() - begin < 10
    assert limiter.hit(id="k", cost=9).allowed
    assert not limiter.hit(id="k").allowed
    limiter.reset(id="k")
    assert limiter.hit(id="k").allowed
    always = Either(kind, redis.url + "&refusal_cache=0", *YEARLY)
    assert always.hit(id="k", cost=9).allowed
    assert not always.hit(id="k").allowed
    other.reset(id="k")
    assert always.hit(id="k").allowed
    other.close()
    limiter.shut()
    always.shut()


def test_a_flood_of_refused_keys_is_remembered_within_bounds(redis: Server) -> None:
    """However many callers are refused, ten thousand refusals are remembered in this process, the latest of them."""
    store = RedisStore(redis.url, refusal_cache=60)
    limiter = Limiter(Limit("none", "0 per 1s", by="id"), store=store)
    for number in range(10_200):
        assert not limiter.hit(id=f"k{number}").allowed
    assert len(store.refusals) == 10_000
    before = script_calls(redis)
    assert not limiter.hit(id="k10199").allowed
    assert script_calls(redis) == before
    assert not limiter.hit(id="k0").allowed
    assert script_calls(redis) == before + 1
    store.close()


@KINDS
def test_long_keys_are_refused_here_without_being_kept(kind: str, redis: Server) -> None:
    """Callers choose their keys: a thousand refusals of long ones are remembered by their digests alone."""
    for limits in ([YEARLY[0]], list(YEARLY)):
        limiter = Either(kind, redis.url, *limits)
        for number in range(20):
            assert limiter.hit({"id": f"{len(limits)} {number} {'x' * 100_000}"}, cost=10).allowed
        tracemalloc.start()
        for number in range(20):
            for _ in range(3):
                assert not limiter.hit({"id": f"{len(limits)} {number} {'x' * 100_000}"}).allowed
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept < 500_000
        before = script_calls(redis)
        assert not limiter.hit({"id": f"{len(limits)} 19 {'x' * 100_000}"}).allowed
        assert script_calls(redis) <= before + 1
        limiter.shut()
