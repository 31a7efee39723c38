"""A server that is dead, hangs, is slow, drops and cuts, restarts, is full, loads, is busy: what each call costs and gets."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import redis as redis_py

from headway import AsyncLimiter, Limit, Limiter
from headway.core.charge import Charge
from headway.errors import StoreError, StoreUnavailable, StoreUnusable
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.testing import blocking
from servers import Proxy, Server, free_port, proxy, redis_server

LIMIT = Limit("l", "1000 per 365 days", by="id")
SLACK_S = 3.0
"""What a busy machine may add to a time that is looked at."""


def opened(port: int, kind: str = "sync", **options: Any) -> Any:
    url = f"redis://127.0.0.1:{port}"
    return RedisStore(url, **options) if kind == "sync" else blocking(AsyncRedisStore(url, **options))


def ask(store: Any, key: str = "k", cost: int = 1) -> Any:
    return store.advance([Charge("n", LIMIT, key, cost)])


def left(server: Server, key: str = "k") -> int:
    store = opened(server.port, deadline=5)
    try:
        return int(ask(store, key, 0).outcomes[0].remaining)
    finally:
        store.close()


class Calls:
    """Calls of a store, each of which may have been charged though nobody was told so."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.count = 0

    def one(self) -> None:
        self.count += 1
        ask(self.store)


def eventually(attempt: Callable[[], object], seconds: float = 30) -> None:
    """Until it raises no store error."""
    until = time.monotonic() + seconds
    while True:
        try:
            attempt()
        except StoreError:
            assert time.monotonic() < until
            time.sleep(0.02)
        else:
            return


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def own() -> Iterator[Server]:
    with redis_server("redis-6.2") as server:
        yield server


@pytest.fixture
def between(own: Server) -> Iterator[Proxy]:
    with proxy(own.port) as made:
        yield made


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


@KINDS
def test_a_dead_server_costs_microseconds(kind: str) -> None:
    """Once the breaker is open a call takes well under a millisecond of work and is told what is the matter."""
    store = opened(free_port(), kind, deadline=5)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="refused"):
            ask(store)
    begin, spent = time.monotonic(), time.process_time()
    tried = 0
    for _ in range(300):
        with pytest.raises(StoreUnavailable) as told:
            ask(store)
        tried += "is away" not in str(told.value)
    assert tried <= 1 + time.monotonic() - begin  # a call a second
    assert (time.process_time() - spent) / 300 < 0.002
    store.close()


@pytest.mark.parametrize("kind", [RedisStore, AsyncRedisStore])
def test_an_outage_is_counted(kind: type[RedisStore] | type[AsyncRedisStore]) -> None:
    """Failures, outages and calls that were not tried are there to be read, by server."""
    inner = kind(f"redis://127.0.0.1:{free_port()}")
    store: Any = inner if isinstance(inner, RedisStore) else blocking(inner)
    for _ in range(10):
        with pytest.raises(StoreUnavailable):
            ask(store)
    (breaker,) = inner.breakers
    assert (breaker.open, breaker.outages) == (True, 1)
    assert breaker.failed_count >= 3
    assert breaker.failed_count + breaker.skipped_count == 10
    store.close()


@KINDS
@pytest.mark.parametrize("mode", ["drop", "drip", "delay"])
def test_a_slow_or_silent_server_costs_the_deadline_three_times_and_then_nothing(
    kind: str, mode: str, between: Proxy, own: Server
) -> None:
    """A black hole, a trickle of bytes, an answer that comes late: each call is bounded as a whole, then none is tried."""
    store = opened(between.port, kind, deadline=0.15)
    eventually(lambda: ask(store))
    between.mode = mode
    for _ in range(3):
        begin = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"no answer within 0.15 s"):
            ask(store)
        assert time.monotonic() - begin < 0.15 + SLACK_S
    begin = time.monotonic()
    tried = 0
    for _ in range(100):
        with pytest.raises(StoreUnavailable) as told:
            ask(store)
        tried += "is away" not in str(told.value)
    took = time.monotonic() - begin
    assert tried <= 1 + took  # a call a second
    assert took < 0.15 * tried + SLACK_S
    between.mode = "pass"
    eventually(lambda: ask(store))
    store.close()


@KINDS
def test_an_answer_that_is_cut_off_is_no_answer(kind: str, between: Proxy) -> None:
    """Half an answer is an error, never a decision; the next call has a connection of its own."""
    store = opened(between.port, kind, deadline=5)
    ask(store)
    between.mode = "cut"
    with pytest.raises(StoreUnavailable, match=r"closed|reset"):
        ask(store)
    between.mode = "pass"
    assert ask(store).allowed
    store.close()


@KINDS
def test_a_stopped_server_charges_nobody_who_gave_up(kind: str, own: Server) -> None:
    """Calls that lay in the queue of a stopped server are not done when it goes on: nobody waits for them any more."""
    store = opened(own.port, kind, deadline=0.2)
    eventually(lambda: ask(store))
    before = left(own)
    own.pause()
    try:
        for _ in range(30):
            with pytest.raises(StoreUnavailable):
                ask(store)
    finally:
        own.resume()
    assert left(own) == before
    goes_on = Calls(store)
    eventually(goes_on.one)
    assert before - goes_on.count <= left(own) <= before - 1
    store.close()


@KINDS
def test_a_restart_between_two_calls_is_not_noticed(kind: str, own: Server) -> None:
    """A connection that the server closed while it was idle is replaced, and the script loaded again, within the call."""
    store = opened(own.port, kind, deadline=5)
    ask(store)
    own.kill()
    own.start()
    time.sleep(0.1)
    assert ask(store).allowed
    store.close()


def test_kill_and_restart_in_mid_load(own: Server) -> None:
    """Threads that decide while the server is killed and started again: errors in between, then decisions; nothing hangs."""
    limiter = Limiter(
        Limit("l", "1000000 per 365 days", by="id", on_store_failure="deny"),
        store=f"redis://127.0.0.1:{own.port}?deadline=300ms",
    )
    stop = threading.Event()
    seen: list[Any] = []

    def work() -> None:
        while not stop.is_set():
            seen.append(limiter.hit(id="k"))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(2):
        wait_until(lambda: bool(seen) and seen[-1].degraded is None)
        own.kill()
        wait_until(lambda: seen[-1].degraded is not None)
        own.start()
    wait_until(lambda: seen[-1].degraded is None)
    stop.set()
    for worker in workers:
        worker.join(20)
        assert not worker.is_alive()
    limiter.close()


@pytest.mark.parametrize("mode", ["deny", "allow", "local"])
def test_each_limit_decides_what_an_outage_means(mode: str, own: Server, caplog: pytest.LogCaptureFixture) -> None:
    """FS-20: deny refuses for a second, allow passes, local grants its share here; the shared state rules again afterwards."""
    caplog.set_level(logging.INFO, "headway.stores")
    limit = Limit("l", "8 per 365 days", by="id", on_store_failure=mode)
    limiter = Limiter(limit, store=f"redis://127.0.0.1:{own.port}?deadline=10s&refusal_cache=0&share=1/4")
    for _ in range(2):
        assert limiter.hit(id="k").degraded is None
    own.kill()
    decisions = [limiter.hit(id="k") for _ in range(50)]
    expected = {"deny": 0, "allow": 50, "local": 2}[mode]
    assert sum(decision.allowed for decision in decisions) == expected
    assert all(decision.degraded for decision in decisions)
    assert str(own.port) in str(decisions[-1].degraded)
    own.start()
    wait_until(lambda: limiter.peek(id="k").degraded is None)
    assert [limiter.hit(id="k").degraded for _ in range(10)] == [None] * 10
    assert not limiter.hit(id="k").allowed
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    limiter.close()


def test_an_ordinary_refusal_never_reaches_the_stand_in(own: Server) -> None:
    """While the store is there ``local`` and ``allow`` have no say."""
    for mode in ("local", "allow"):
        limiter = Limiter(Limit(mode, "1 per 365 days", on_store_failure=mode), store=own.url)
        assert [limiter.hit().allowed for _ in range(5)] == [True, False, False, False, False]
        assert limiter.hit().degraded is None
        limiter.close()


def test_no_memory_left_refuses_to_charge_and_still_refuses_the_refused(own: Server) -> None:
    """OOM: what would be written is an error that names it, nothing is half written; a refusal is a refusal still."""
    client = redis_py.Redis(port=own.port)
    store = opened(own.port, deadline=5, refusal_cache=0)
    tight = Limit("tight", "1 per 365 days", by="id")
    assert store.advance([Charge("n", tight, "k", 1)]).allowed
    client.config_set("maxmemory", "1")
    with pytest.raises(StoreUnavailable, match=f"{own.port}.*OOM"):
        store.advance([Charge("n", LIMIT, "k", 1), Charge("n", Limit("m", "5 per 365 days"), (), 1)])
    assert not store.advance([Charge("n", tight, "k", 1), Charge("n", LIMIT, "k", 1)]).allowed
    client.config_set("maxmemory", "0")
    assert client.dbsize() == 1
    assert store.advance([Charge("n", LIMIT, "k", 1)]).allowed
    store.close()


def test_a_full_server_fails_none_that_travels_with_what_it_cannot_write(own: Server) -> None:
    """Of decisions in one script call the refused are refused and the peeks answered; nothing of the others is written."""
    client = redis_py.Redis(port=own.port)
    tight = Limit("tight", "1 per 365 days", by="id")

    async def main() -> list[Any]:
        store = AsyncRedisStore(f"redis://127.0.0.1:{own.port}", deadline=5, refusal_cache=0)
        assert (await store.advance([Charge("n", tight, "k", 1)])).allowed
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        client.config_set("maxmemory", "1")
        found = await asyncio.gather(
            store.advance([Charge("n", LIMIT, "new", 1)]),
            store.advance([Charge("n", tight, "k", 1)]),
            store.advance([Charge("n", LIMIT, "new", 1)], commit=False),
            *[store.advance([Charge("n", LIMIT, f"{number}", 1)]) for number in range(9)],
            return_exceptions=True,
        )
        assert (
            client.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 1 + 12
        )  # together, then each by itself
        client.config_set("maxmemory", "0")
        await store.close()
        return found

    charged, refused, looked, *others = asyncio.run(main())
    assert all(isinstance(one, StoreUnavailable) and "OOM" in str(one) for one in (charged, *others))
    assert (refused.allowed, looked.allowed) == (False, True)
    assert client.dbsize() == 1


@KINDS
def test_a_full_server_that_is_asked_again_and_again_still_refuses_the_refused(
    kind: str, own: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """However many charges it could not write, it is not given up: who was refused is not let in. It is told once."""
    client = redis_py.Redis(port=own.port)
    store = opened(own.port, kind, deadline=5, refusal_cache=0)
    tight = Limit("tight", "1 per 365 days", by="id")
    assert store.advance([Charge("n", tight, "k", 1)]).allowed
    client.config_set("maxmemory", "1")
    for number in range(5):
        with pytest.raises(StoreUnavailable, match="OOM"):
            store.advance([Charge("n", tight, f"new-{number}", 1)])
    assert not store.advance([Charge("n", tight, "k", 1)]).allowed
    client.config_set("maxmemory", "0")
    assert store.advance([Charge("n", tight, "new", 1)]).allowed
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "does not decide: OOM" in caplog.messages[0]
    store.close()


@KINDS
def test_a_missing_right_is_not_only_told_to_who_asks(kind: str, own: Server, caplog: pytest.LogCaptureFixture) -> None:
    """A user that may not run scripts: each decision fails at once, the server is not given up, and the log says why once."""
    client = redis_py.Redis(port=own.port)
    client.acl_setuser("lim", enabled=True, passwords=["+pw"], keys=["*"], commands=["+get", "+info"])
    url = f"redis://lim:pw@127.0.0.1:{own.port}"
    store: Any = RedisStore(url, deadline=5) if kind == "sync" else blocking(AsyncRedisStore(url, deadline=5))
    for _ in range(5):
        with pytest.raises(StoreUnusable, match="NOPERM"):
            ask(store)
    (said,) = caplog.messages
    assert "does not decide: NOPERM" in said
    store.close()


@pytest.mark.parametrize(("policy", "warned"), [("allkeys-lru", True), ("volatile-ttl", True), ("noeviction", False)])
@KINDS
def test_a_server_that_evicts_keys_is_warned_of_once(
    policy: str, warned: bool, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With a bound on its memory and a policy that evicts, a forgotten key is a fresh quota: one warning at the start."""
    with redis_server("redis-6.2", "--maxmemory", "100mb", "--maxmemory-policy", policy) as server:
        store = opened(server.port, kind, deadline=5)
        for _ in range(3):
            ask(store)
        store.close()
    said = [message for message in caplog.messages if "evicts keys" in message]
    assert len(said) == warned
    assert all(policy in message and "noeviction" in message for message in said)


def test_a_busy_server_is_an_error_and_then_left_alone(own: Server) -> None:
    """BUSY: while somebody's script runs on and on, calls fail at once with what the server says."""
    client = redis_py.Redis(port=own.port, socket_timeout=30)
    client.config_set("lua-time-limit", "50")
    store = opened(own.port, deadline=2)
    ask(store)
    endless = threading.Thread(target=lambda: _ignored(lambda: client.eval("while true do end", 0)))
    endless.start()
    killer = redis_py.Redis(port=own.port)
    until = time.monotonic() + 10
    said = ""
    while "BUSY" not in said and time.monotonic() < until:
        try:
            ask(store)
        except StoreUnavailable as error:
            said = str(error)
    for _ in range(100):
        try:
            killer.script_kill()
            break
        except redis_py.ResponseError:
            time.sleep(0.02)
    endless.join(10)
    assert "BUSY" in said
    eventually(lambda: ask(store))
    store.close()


def test_a_replica_does_not_decide(own: Server) -> None:
    """READONLY: a server that is a replica now is an error, and charges nothing."""
    with redis_server("redis-6.2", "--replicaof", "127.0.0.1", str(own.port)) as replica:
        store = opened(replica.port, deadline=5)
        wait_until(lambda: b"master_link_status:up" in replica.ask(b"INFO", b"replication"))
        with pytest.raises(StoreUnavailable, match="READONLY"):
            ask(store)
        assert left(own) == 1000
        store.close()


@KINDS
def test_a_loading_server_is_an_error(kind: str, own: Server) -> None:
    """LOADING: a server that reads its data first does not decide yet, and afterwards knows what was charged before."""
    client = redis_py.Redis(port=own.port)
    client.config_set("rdbcompression", "no")
    client.eval("for i = 1, 2000 do redis.call('SET', 'fill' .. i, string.rep('x', 10000)) end", 0)
    store = opened(own.port, kind, deadline=5)
    ask(store)
    client.save()
    client.config_set("key-load-delay", "500")  # microseconds a key; every 2 MB it looks at its clients
    said = ""
    for _ in range(5):  # it takes a second, which a busy machine may sleep through
        loading = threading.Thread(target=lambda: _ignored(lambda: client.execute_command("DEBUG", "RELOAD", "NOSAVE")))
        loading.start()
        while not said and loading.is_alive():
            try:
                ask(store, cost=0)
            except StoreUnavailable as error:
                said = str(error)
        loading.join(30)
        if said:
            break
    assert f"{own.port}: LOADING" in said
    eventually(lambda: ask(store))
    assert left(own) == 998
    store.close()


def _ignored(call: Callable[[], object]) -> None:
    with suppress(redis_py.RedisError):
        call()


def test_something_else_on_the_port_is_said_to_be_no_redis() -> None:
    """A web server's answer is not waited for, and not taken for one of ours."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        store = opened(port, deadline=5)
        with pytest.raises(StoreError, match="not the Redis protocol"):
            ask(store)
        store.close()


def test_an_outage_of_the_asynchronous_store_ends_too(own: Server) -> None:
    """Fifty tasks meet a dead server: all are told, the loop never blocks, and afterwards all are decided again."""

    async def main() -> tuple[int, int, float]:
        limiter = AsyncLimiter(Limit("l", "100000 per 365 days"), store=f"redis://127.0.0.1:{own.port}?deadline=3s")
        await asyncio.gather(*(limiter.hit() for _ in range(50)))
        own.kill()
        begin = asyncio.get_running_loop().time()
        dead = await asyncio.gather(*(limiter.hit() for _ in range(50)))
        for _ in range(5):
            dead += await asyncio.gather(*(limiter.hit() for _ in range(50)))
        took = asyncio.get_running_loop().time() - begin
        own.start()
        while (await limiter.hit()).degraded:  # noqa: ASYNC110  # nobody tells when a server is back
            await asyncio.sleep(0.02)
        alive = await asyncio.gather(*(limiter.hit() for _ in range(50)))
        await limiter.close()
        return sum(bool(one.degraded) for one in dead), sum(one.allowed for one in alive), took

    degraded, allowed, took = asyncio.run(main())
    assert (degraded, allowed) == (300, 50)
    assert took < 2 + SLACK_S


def test_nothing_runs_on_after_close(own: Server) -> None:
    """Neither kind of store leaves a thread behind."""
    before = set(threading.enumerate())
    store = RedisStore(own.url)
    ask(store)
    store.close()

    async def main() -> None:
        later = AsyncRedisStore(own.url)
        await later.advance([Charge("n", LIMIT, "k", 1)])
        await later.close()

    asyncio.run(main())
    assert set(threading.enumerate()) <= before
