"""Sentinel: the master is found by its service's name, and again after a failover."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from headway import AsyncLimiter, Limit, Limiter
from headway.core.charge import Charge
from headway.errors import StoreError, StoreUnavailable
from headway.stores.base import Store
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.testing import blocking
from servers import REDIS, Server, free_port, redis_sentinel, redis_server

LIMIT = Limit("l", "1000 per 365 days", by="id")


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server, Server]]:
    """A master, its replica, and the Sentinel that watches them."""
    kind = getattr(request, "param", "redis-6.2")
    with ExitStack() as stack:
        master = stack.enter_context(redis_server(kind, "--repl-diskless-sync-delay", "0"))
        replica = stack.enter_context(redis_server(kind, "--replicaof", "127.0.0.1", str(master.port)))
        _until(lambda: b"master_link_status:up" in replica.ask(b"INFO", b"replication"))
        sentinel = stack.enter_context(redis_sentinel(master))
        _until(lambda: str(replica.port).encode() in sentinel.ask(b"SENTINEL", b"REPLICAS", b"main"))
        yield master, replica, sentinel


def _until(true: object) -> None:
    until = time.monotonic() + 20
    while not true():  # type: ignore[operator]  # a function
        assert time.monotonic() < until
        time.sleep(0.02)


def opened(kind: str, url: str) -> Store:
    return RedisStore(url) if kind == "sync" else blocking(AsyncRedisStore(url))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_after_a_failover_the_new_master_decides(kind: str, service: tuple[Server, Server, Server]) -> None:
    """The old master dies: errors for a moment, then the replica that was promoted decides on what it was told."""
    master, replica, sentinel = service
    dead = free_port()
    store = opened(kind, f"redis+sentinel://127.0.0.1:{dead},127.0.0.1:{sentinel.port}/main?deadline=1s")
    charge = Charge("n", LIMIT, "k", 1)
    for expected in (999, 998, 997):
        assert store.advance([charge]).outcomes[0].remaining == expected
    master.replicated()
    master.kill()
    unknown = 0  # calls whose answer was lost: each may have been charged
    pause = threading.Event()
    for _ in range(400):
        try:
            answer = store.advance([charge])
            break
        except StoreError as error:
            unknown += f":{replica.port}" in str(error) and "no answer" in str(error)
            pause.wait(0.05)
    else:
        raise AssertionError("no failover")
    assert 996 - unknown <= answer.outcomes[0].remaining <= 996
    assert b"role:master" in replica.ask(b"INFO", b"replication")
    store.close()


@pytest.mark.parametrize("service", REDIS, indirect=True)
def test_a_master_that_was_demoted_is_left_for_the_new_one(service: tuple[Server, Server, Server]) -> None:
    """A failover by command: the old master answers READONLY, and the same call is decided by the new one, once."""
    master, replica, sentinel = service
    url = f"redis+sentinel://127.0.0.1:{sentinel.port}/main?deadline=10s"
    stores = [opened(kind, url) for kind in ("sync", "async")]
    limiter, loop = Limiter(LIMIT, store=url, namespace="n"), asyncio.new_event_loop()
    later = AsyncLimiter(LIMIT, store=url, namespace="n")
    charge = Charge("n", LIMIT, "k", 1)

    def told() -> list[object]:
        outcomes = [store.advance([charge]).outcomes[0] for store in stores]
        decisions = [limiter.hit(id="k"), loop.run_until_complete(later.hit(id="k"))]
        return [*(outcome.remaining for outcome in outcomes), *(one.degraded or one.remaining for one in decisions)]

    assert told() == [999, 998, 997, 996]
    master.replicated()
    _until(lambda: sentinel.ask(b"SENTINEL", b"FAILOVER", b"main") == b"+OK\r\n")
    _until(lambda: b"role:master" in replica.ask(b"INFO", b"replication"))
    _until(lambda: str(replica.port).encode() in sentinel.ask(b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"main"))
    assert (
        master.ask(b"REPLICAOF", b"127.0.0.1", b"%d" % replica.port) == b"+OK\r\n"
    )  # as the Sentinel does, 10 s later
    assert told() == [995, 994, 993, 992]
    replica.flush()
    assert told() == [999, 998, 997, 996]  # it was this one that decided
    limiter.close()
    loop.run_until_complete(later.close())
    loop.close()
    for store in stores:
        store.close()


def test_an_unknown_service_is_named(service: tuple[Server, Server, Server]) -> None:
    """The error names the service that no Sentinel knows."""
    store = RedisStore(f"redis+sentinel://127.0.0.1:{service[2].port}/other?deadline=5s")
    with pytest.raises(StoreUnavailable, match="does not know 'other'"):
        store.advance([Charge("n", LIMIT, "k", 1)])
    store.close()


def test_no_sentinel_at_all_costs_little_soon() -> None:
    """Where nobody answers the limit's failure mode decides, and after some calls nobody is asked."""
    limiter = Limiter(
        Limit("l", "1/s", on_store_failure="allow"), store=f"redis+sentinel://127.0.0.1:{free_port()}/main"
    )
    for _ in range(5):
        assert limiter.hit().degraded
    begin = time.process_time()
    for _ in range(200):
        assert limiter.hit().allowed
    assert (time.process_time() - begin) / 200 < 0.002
    limiter.close()
