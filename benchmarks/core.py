"""In process: one decision beside the floor and the peers; keys, threads, asyncio, limits, bytes a key; SQLite.

Run: ``uv run --group bench python -m benchmarks core [--quick] [--json FILE]``. A peer that is not installed is left out.
The floor is what any correct limiter in Python pays: read a clock, take a lock, get and set a dict, make a small result.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import sqlite3
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Contender, keep, rounds, table
from headway import AsyncLimiter, Limit, Limiter, MemoryStore

Hit = Callable[[str], object]
PLENTY = "1 per 10s burst 100000000"
LASTING = "1 per 1000s burst 1000000"
"""A key owes for longer than it takes to make a million of them, so none is forgotten in between."""
NONE_LEFT = "1 per 1000s"
LOAD_KEYS = 100_000
CPU = time.process_time_ns
"""What is decided in this process waits for nothing, so its processor time is measured; SQLite's is the wall clock's."""


class _Verdict:
    __slots__ = ("allowed", "remaining", "retry_after", "tat")

    def __init__(self, allowed: bool, remaining: int, retry_after: int, tat: int) -> None:
        self.allowed = allowed
        self.remaining = remaining
        self.retry_after = retry_after
        self.tat = tat


class Floor:
    """The least a correct GCRA does: clock, lock, dict get and set, result object."""

    def __init__(self, interval: int, burst: int) -> None:
        self.interval, self.depth = interval, interval * burst
        self.states: dict[str, int] = {}
        self.lock = threading.Lock()

    def hit(self, key: str, cost: int = 1) -> _Verdict:
        with self.lock:
            now = time.monotonic_ns()
            tat = self.states.get(key, 0)
            new = (tat if tat > now else now) + cost * self.interval
            if new - now > self.depth:
                return _Verdict(False, 0, new - now - self.depth, tat)
            self.states[key] = new
            return _Verdict(True, (self.depth - new + now) // self.interval, 0, new)


def headway(quota: str, limits: int = 1) -> Limiter:
    return Limiter(*(Limit(f"limit-{n}", quota, by="key") for n in range(limits)), store=MemoryStore(max_keys=10**7))


def floor(plenty: bool) -> Hit:
    return (Floor(10**10, 10**8) if plenty else Floor(10**12, 1)).hit


def peers(plenty: bool) -> dict[str, Hit]:
    """Each peer's shortest documented way to one decision by key."""
    count = 10**9 if plenty else 1
    found: dict[str, Hit] = {}
    try:
        from limits import RateLimitItemPerHour
        from limits.storage import MemoryStorage
        from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter

        item = RateLimitItemPerHour(count)
        fixed, moving = FixedWindowRateLimiter(MemoryStorage()), MovingWindowRateLimiter(MemoryStorage())
        found["limits fixed window"] = lambda key: fixed.hit(item, key)
        if not plenty:
            found["limits moving window"] = lambda key: moving.hit(item, key)
    except ImportError:
        pass
    try:
        from throttled import RateLimiterType, Throttled, per_hour, store

        throttled = Throttled(
            using=RateLimiterType.GCRA.value,
            quota=per_hour(count),
            store=store.MemoryStore(options={"MAX_SIZE": 10**6}),
        )
        found["throttled gcra"] = throttled.limit
    except ImportError:
        pass
    try:
        import token_bucket

        bucket = token_bucket.Limiter(10**6 if plenty else 1e-3, count, token_bucket.MemoryStorage())
        found["token-bucket (over-admits)"] = bucket.consume
    except ImportError:
        pass
    try:
        from pyrate_limiter import GCRA, Duration, Rate, StateBucket
        from pyrate_limiter import Limiter as Pyrate

        pyrate = Pyrate(StateBucket([Rate(min(count, 10**6), Duration.HOUR)], algorithm=GCRA()))
        found["pyrate gcra (one key)"] = lambda key: pyrate.try_acquire(key, blocking=False)
    except ImportError:
        pass
    return found


def over(contender: Hit | Limiter, keys: list[str]) -> Contender:
    """Hit the keys in turn, each contender the way its users do."""
    turn = itertools.cycle(keys)
    if isinstance(contender, Limiter):
        ours = contender.hit

        def run(calls: int) -> None:
            for key in itertools.islice(turn, calls):
                ours(key=key)

    else:
        theirs = contender

        def run(calls: int) -> None:
            for key in itertools.islice(turn, calls):
                theirs(key)

    return run


def one_key(allowed: bool, calls: int, repeats: int) -> dict[str, object]:
    contenders = {
        "floor": over(floor(allowed), ["key"]),
        "headway": over(headway(PLENTY if allowed else NONE_LEFT), ["key"]),
    }
    contenders |= {name: over(hit, ["key"]) for name, hit in peers(allowed).items()}
    figures = rounds(contenders, calls, repeats, CPU)
    return table(f"one key, {'allowed' if allowed else 'refused'}", figures, "floor")


def limits_together(calls: int, repeats: int) -> dict[str, object]:
    contenders = {f"headway {n} limits": over(headway(PLENTY, n), ["key"]) for n in (1, 2, 4, 8)}
    contenders |= {f"headway {n} limits refused": over(headway(NONE_LEFT, n), ["key"]) for n in (1, 4)}
    return table("several limits, one key", rounds(contenders, calls, repeats, CPU), "headway 1 limits")


def many_keys(sizes: tuple[int, ...], calls: int, repeats: int) -> dict[str, object]:
    contenders: dict[str, Contender] = {}
    for size in sizes:
        keys = [f"key-{n}" for n in range(size)]
        for name, hit in (("floor", floor(True)), ("headway", headway(LASTING))):
            over(hit, keys)(size)
            contenders[f"{name} {size:,} keys"] = over(hit, keys)
    return table("keys in turn, allowed", rounds(contenders, calls, repeats, CPU), f"floor {sizes[0]:,} keys")


def threads(calls: int, repeats: int) -> dict[str, object]:
    def in_threads(contender: Hit | Limiter, count: int) -> Contender:
        runs = [over(contender, ["key"]) for _ in range(count)]

        def run(calls: int) -> None:
            workers = [threading.Thread(target=one, args=(calls // count,)) for one in runs]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        return run

    contenders = {
        f"{name} {count} threads": in_threads(hit, count)
        for count in (1, 2, 8)
        for name, hit in (("floor", floor(True)), ("headway", headway(PLENTY)))
    }
    return table("threads on one key, allowed", rounds(contenders, calls, repeats, CPU), "floor 1 threads")


def tasks(calls: int, repeats: int) -> dict[str, object]:
    limiter = AsyncLimiter(Limit("one", PLENTY, by="key"))

    async def ours(calls: int) -> None:
        for _ in range(calls):
            await limiter.hit(key="key")

    async def nothing() -> None:
        pass

    async def bare(calls: int) -> None:
        for _ in range(calls):
            await nothing()

    contenders: dict[str, Contender] = {
        "an empty coroutine": lambda calls: asyncio.run(bare(calls)),
        "headway asyncio": lambda calls: asyncio.run(ours(calls)),
    }
    try:
        from aiolimiter import AsyncLimiter as Aiolimiter

        async def theirs(calls: int) -> None:
            peer = Aiolimiter(10**9, 1)
            for _ in range(calls):
                await peer.acquire()

        contenders["aiolimiter (one key)"] = lambda calls: asyncio.run(theirs(calls))
    except ImportError:
        pass
    return table("asyncio, allowed", rounds(contenders, calls, repeats, CPU), "headway asyncio")


def bytes_a_key() -> dict[str, object]:
    figures: dict[str, list[float]] = {}
    makers = {
        "floor": lambda: floor(True),
        "headway 5/hour": lambda: headway("5/hour"),
        "headway 7/hour (T not whole ns)": lambda: headway("7/hour"),
        **{name: (lambda name=name: peers(True)[name]) for name in peers(True) if "one key" not in name},
    }
    keys = [f"key-{n:06d}" for n in range(LOAD_KEYS)]
    for name, make in makers.items():
        hit = make()
        run = over(hit, keys)
        tracemalloc.start()
        run(LOAD_KEYS)
        figures[name] = [tracemalloc.get_traced_memory()[0] / LOAD_KEYS]
        tracemalloc.stop()
    return table("bytes a key held (traced, the key's own text not counted)", figures, "floor", "bytes")


def sqlite(calls: int, repeats: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        bare = sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = NORMAL")
        bare.execute("CREATE TABLE hits (key TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID")
        upsert = "INSERT INTO hits VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET count = count + 1 RETURNING count"

        def statement(calls: int) -> None:
            for _ in range(calls):
                bare.execute(upsert, ("key",)).fetchone()

        def ours(quota: str, limits: int, name: str) -> Contender:
            limiter = Limiter(
                *(Limit(f"limit-{n}", quota, by="key") for n in range(limits)), store=f"sqlite:///{folder}/{name}.db"
            )
            return over(limiter, ["key"])

        contenders: dict[str, Contender] = {
            "bare upsert": statement,
            "headway sqlite": ours(PLENTY, 1, "one"),
            "headway sqlite refused": ours(NONE_LEFT, 1, "refused"),
            "headway sqlite 4 limits": ours(PLENTY, 4, "four"),
        }
        return table("SQLite, one process", rounds(contenders, calls, repeats), "bare upsert")


def _sqlite_worker(path: str, seconds: float, ours: bool, done: multiprocessing.Queue[int]) -> None:
    calls, end = 0, time.monotonic() + seconds
    if ours:
        limiter = Limiter(Limit("one", PLENTY, by="key"), store=f"sqlite:///{path}")
        while time.monotonic() < end:
            limiter.hit(key="key")
            calls += 1
    else:
        bare = sqlite3.connect(path, timeout=30, isolation_level=None)
        while time.monotonic() < end:
            bare.execute(
                "INSERT INTO hits VALUES ('key', 1) ON CONFLICT (key) DO UPDATE SET count = count + 1 RETURNING count"
            ).fetchone()
            calls += 1
    done.put(calls)


def sqlite_processes(seconds: float, repeats: int) -> dict[str, object]:
    figures: dict[str, list[float]] = {"bare upsert": [], "headway sqlite": []}
    with tempfile.TemporaryDirectory() as folder:
        with sqlite3.connect(Path(folder, "bare.db")) as bare:
            bare.execute("PRAGMA journal_mode = WAL")
            bare.execute("CREATE TABLE hits (key TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID")
        for _ in range(repeats):
            for name, ours in (("bare upsert", False), ("headway sqlite", True)):
                done: multiprocessing.Queue[int] = multiprocessing.Queue()
                path = str(Path(folder, "ours.db" if ours else "bare.db"))
                workers = [
                    multiprocessing.Process(target=_sqlite_worker, args=(path, seconds, ours, done)) for _ in range(8)
                ]
                for worker in workers:
                    worker.start()
                calls = sum(done.get() for _ in workers)
                for worker in workers:
                    worker.join()
                figures[name].append(seconds * 1e9 / calls)
    return table("SQLite, 8 processes on one file and one key, ns per decision of all", figures, "bare upsert")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks core")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    calls, repeats = (5_000, 5) if options.quick else (30_000, 15)
    sizes = (1, 100_000) if options.quick else (1, 100_000, 1_000_000)
    keep(
        options.json,
        [
            one_key(True, calls, repeats),
            one_key(False, calls, repeats),
            limits_together(calls, repeats),
            many_keys(sizes, calls * 4, repeats),
            threads(calls, repeats),
            tasks(calls, repeats),
            bytes_a_key(),
            sqlite(calls // 10, repeats),
            sqlite_processes(1.0, 3),
        ],
    )
