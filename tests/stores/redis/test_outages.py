"""Load that goes on through an outage: the budget holds, nobody hangs, nothing is half applied, nothing is replayed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import StoreError
from headway.stores.redis import AsyncRedisStore, RedisStore
from servers import proxy, redis_server

LIMITS = tuple(
    Limit(algorithm, "300000 per 365 days", by="id", algorithm=algorithm) for algorithm in ("gcra", "fixed-window")
)
BUDGET = 300_000
CHARGES = [Charge("n", limit, "k", 1) for limit in LIMITS]
DEADLINE_S = 0.4
SLACK_S = 2.0
"""What a busy machine may add."""


class Load:
    """Threads, or tasks, that decide one bill of two limits again and again.

    Attributes:
        admitted: how many were told that they passed.
        failed: how many were told that nobody knows.
        unknown: how many of these got no answer while the server was said to be well; each may have been charged.
        well: no fault is made now.
        longest: seconds that the longest call took.
    """

    def __init__(self) -> None:
        self.admitted = self.failed = self.unknown = 0
        self.well = True
        self.longest = 0.0
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def count(self, took: float, said: str = "") -> None:
        with self._lock:
            self.admitted += not said
            self.failed += bool(said)
            self.unknown += self.well and "is away" not in said and bool(said)
            self.longest = max(self.longest, took)

    def threads(self, store: RedisStore) -> None:
        while not self.stop.is_set():
            begin = time.monotonic()
            said = ""
            try:
                assert store.advance(CHARGES).allowed
            except StoreError as error:
                said = str(error)
            self.count(time.monotonic() - begin, said)
            if said:
                self.stop.wait(0.002)

    async def tasks(self, store: AsyncRedisStore) -> None:
        async def work() -> None:
            loop = asyncio.get_running_loop()
            while not self.stop.is_set():
                begin = loop.time()
                said = ""
                try:
                    assert (await store.advance(CHARGES)).allowed
                except StoreError as error:
                    said = str(error)
                self.count(loop.time() - begin, said)
                if said:
                    await asyncio.sleep(0.002)

        await asyncio.gather(*(work() for _ in range(16)))
        await store.close()


@contextmanager
def loaded(kind: str, port: int) -> Iterator[Load]:
    load = Load()
    url = f"redis://127.0.0.1:{port}"
    if kind == "sync":
        store = RedisStore(url, deadline=DEADLINE_S, refusal_cache=0)
        workers = [threading.Thread(target=load.threads, args=(store,)) for _ in range(4)]
    else:
        later = AsyncRedisStore(url, deadline=DEADLINE_S, refusal_cache=0)
        workers = [threading.Thread(target=lambda: asyncio.run(load.tasks(later)))]
    for worker in workers:
        worker.start()
    try:
        until(lambda: load.admitted > 20)
        yield load
    finally:
        load.stop.set()
        for worker in workers:
            worker.join(30)
    assert not any(worker.is_alive() for worker in workers)
    if kind == "sync":
        store.close()


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def going_on(load: Load) -> None:
    """Wait until calls pass again."""
    admitted = load.admitted
    until(lambda: load.admitted > admitted + 20)


def used(port: int) -> list[int]:
    """How many units each limit counts."""
    store = RedisStore(f"redis://127.0.0.1:{port}", deadline=5)
    looks: list[Any] = [Charge("n", limit, "k", 0) for limit in LIMITS]
    try:
        return [BUDGET - outcome.remaining for outcome in store.advance(looks).outcomes]
    finally:
        store.close()


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


@KINDS
def test_killed_and_restarted_in_mid_load(kind: str) -> None:
    """A server that writes before it answers forgets nothing that was told: no more is admitted than both limits count."""
    with redis_server("redis-6.2", "--appendonly", "yes", "--appendfsync", "always") as server:
        with loaded(kind, server.port) as load:
            for _ in range(2):
                server.kill()
                failed = load.failed
                until(lambda failed=failed: load.failed > failed)  # type: ignore[misc]  # bound at once
                server.start()
                going_on(load)
        counts = used(server.port)
        assert load.failed
        assert load.admitted <= counts[0] <= load.admitted + load.failed
        assert counts[0] == counts[1]
        assert load.longest < DEADLINE_S + SLACK_S


@KINDS
def test_a_server_that_forgets_at_a_crash_admits_the_budget_once_a_life(kind: str) -> None:
    """Without persistence a crash loses all charges; from then on no more is admitted than is counted."""
    with redis_server("redis-6.2") as server:
        with loaded(kind, server.port) as load:
            server.kill()
            failed = load.failed
            until(lambda: load.failed > failed + 200)  # everybody has noticed
            before = load.admitted
            server.start()
            going_on(load)
        counts = used(server.port)
        assert load.admitted - before <= counts[0] <= load.admitted - before + load.failed
        assert counts[0] == counts[1]


@KINDS
def test_stopped_for_three_seconds_in_mid_load(kind: str) -> None:
    """No call waits beyond its deadline; what lay in the queue of the stopped server is not charged when it goes on."""
    with redis_server("redis-6.2") as server:
        with loaded(kind, server.port) as load:
            load.well = False
            server.pause()
            stopped = time.monotonic()
            until(lambda: time.monotonic() - stopped > 3)
            failed = load.failed
            server.resume()
            going_on(load)
            load.well = True
            going_on(load)
        assert failed
        counts = used(server.port)
        under_way = 16  # when it was stopped
        assert load.admitted <= counts[0] <= load.admitted + under_way + load.unknown
        assert counts[0] == counts[1]
        assert load.longest < DEADLINE_S + SLACK_S


@KINDS
def test_a_network_that_cuts_and_delays_in_mid_load(kind: str) -> None:
    """Answers lost, cut in half, late or trickling: never more admitted than counted, both limits counted alike."""
    random = Random(7)
    with redis_server("redis-6.2") as server, proxy(server.port) as between:
        with loaded(kind, between.port) as load:
            for _ in range(12):
                between.mode = random.choice(["cut", "delay", "drip", "drop"])
                time.sleep(random.choice([0.05, 0.15]))
                between.mode = "pass"
                time.sleep(0.05)
            going_on(load)
        counts = used(server.port)
        assert load.failed
        assert load.admitted <= counts[0]
        assert counts[0] == counts[1]
        assert load.longest < DEADLINE_S + SLACK_S
