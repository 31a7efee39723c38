"""Many callers at once: exactly the budget is admitted, and each admitted ``remaining`` is seen exactly once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.core.limit import Limit
from headway.core.quota import SECOND
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore
from headway.testing.clock import ManualClock
from ways import STORES

YEARLY = Limit("yearly", "100 per 365 days", by="id")
LOOSE = Limit("loose", "100000 per 365 days")
WINDOW = Limit("window", "100 per 365 days", by="id", algorithm="fixed-window")
POLICIES = {
    "one": [YEARLY],
    "two": [YEARLY, LOOSE],
    "window": [WINDOW],
    "log": [Limit("log", "100 per 365 days", by="id", algorithm="sliding-log")],
}

CHILD = """
import json, sys
from headway import Limit, Limiter
path, calls, go = sys.argv[1], int(sys.argv[2]), sys.stdin.readline
print("ready", flush=True)
go()
limiter = Limiter(Limit("yearly", "100 per 365 days", by="id"), Limit("loose", "100000 per 365 days"), store=f"sqlite:///{path}")
decisions = [limiter.hit(id="k") for _ in range(calls)]
problems = [decision.degraded for decision in decisions if decision.degraded]
print(json.dumps([[decision.outcomes["yearly"].remaining for decision in decisions if decision.allowed], problems]))
"""


@pytest.fixture
def frantic() -> Iterator[None]:
    """Threads change places every microsecond instead of every five milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def hammer(limiter: Limiter, threads: int, calls: int, key: str = "k") -> list[Decision]:
    """All threads start together; every decision they got."""
    start = threading.Barrier(threads)
    decisions: list[Decision] = []
    errors: list[BaseException] = []

    def work() -> None:
        start.wait()
        try:
            decisions.extend([limiter.hit(id=key) for _ in range(calls)])
        except BaseException as error:  # whatever a thread meets is the test's business
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    return decisions


@pytest.mark.usefixtures("frantic")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("store", STORES)
def test_sixteen_threads_are_admitted_exactly_the_budget(
    store: str, policy: str, clock: ManualClock, tmp_path: Path
) -> None:
    """400 calls of 16 threads on one key: 100 admitted, with each remaining from 99 to 0 once; on any algorithm."""
    limits = POLICIES[policy]
    limiter = Limiter(*limits, store=STORES[store](clock, tmp_path))
    decisions = hammer(limiter, 16, 25)
    name = limits[0].name
    admitted = [decision.outcomes[name].remaining for decision in decisions if decision.allowed]
    assert sorted(admitted) == list(range(100))
    assert len(decisions) == 400
    assert all(decision.remaining == 0 for decision in decisions if not decision.allowed)
    if policy == "two":
        assert limiter.peek(id="k", cost=0).outcomes["loose"].remaining == 100_000 - 100
    limiter.store.close()


@pytest.mark.usefixtures("frantic")
def test_fresh_keys_are_not_admitted_twice() -> None:
    """The first calls of a key race as much as later ones: 200 keys, 8 threads, 5 admitted of each."""
    limiter = Limiter(Limit("five", "5 per 365 days", by="id"), store=MemoryStore(clock=ManualClock()))
    start = threading.Barrier(8)
    admitted: list[str] = []

    def work() -> None:
        start.wait()
        for number in range(200):
            admitted.extend(f"k{number}" for _ in range(2) if limiter.hit(id=f"k{number}").allowed)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {key: admitted.count(key) for key in set(admitted)} == {f"k{number}": 5 for number in range(200)}


@pytest.mark.usefixtures("frantic")
def test_the_turn_of_a_window_admits_no_more_than_the_count() -> None:
    """At each of 100 boundaries 8 threads rush at the fresh window: 5 pass, as in a quiet one."""
    clock = ManualClock()
    limiter = Limiter(Limit("w", "5 per 1s", by="id", algorithm="fixed-window"), store=MemoryStore(clock=clock))
    for _ in range(100):
        decisions = hammer(limiter, 8, 2)
        assert sum(decision.allowed for decision in decisions) == 5
        clock.advance(1)


@pytest.mark.parametrize("store", STORES)
def test_a_hundred_tasks_are_admitted_exactly_the_budget(store: str, clock: ManualClock, tmp_path: Path) -> None:
    """100 asyncio tasks of 3 calls on one key: 100 admitted, each remaining once."""

    async def main() -> list[Decision]:
        limiter = AsyncLimiter(YEARLY, LOOSE, store=STORES[store](clock, tmp_path))

        async def task() -> list[Decision]:
            return [await limiter.hit(id="k") for _ in range(3)]

        answers = await asyncio.gather(*(task() for _ in range(100)))
        await limiter.store.close()
        return [decision for answer in answers for decision in answer]

    decisions = asyncio.run(main())
    assert sorted(d.outcomes["yearly"].remaining for d in decisions if d.allowed) == list(range(100))


def test_eight_processes_on_a_fresh_file_are_admitted_exactly_the_budget(tmp_path: Path) -> None:
    """The file does not exist yet when eight processes start at once: no error, and each remaining once."""
    for round_number in range(3):
        path = tmp_path / f"limits{round_number}.db"
        command = [sys.executable, "-c", CHILD, str(path), "25"]
        children = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(8)
        ]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [child.communicate(timeout=60) for child in children]
        assert [error for _, error in answers if error] == []
        seen = [json.loads(out) for out, _ in answers]
        assert [problem for _, problems in seen for problem in problems] == []
        assert sorted(left for admitted, _ in seen for left in admitted) == list(range(100))


@pytest.mark.usefixtures("frantic")
def test_a_file_in_the_making_is_never_taken_for_another_programs(tmp_path: Path) -> None:
    """Six stores opened on each of forty fresh files at once: whoever comes second sees all of the first one's marks or none."""
    problems: list[BaseException] = []
    start = threading.Barrier(6)

    def work() -> None:
        for number in range(40):
            start.wait()
            try:
                SqliteStore(tmp_path / f"{number}.db").close()
            except Exception as error:
                problems.append(error)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert problems == []


def test_one_slow_thread_holds_up_no_clock(clock: ManualClock) -> None:
    """Time that moves between calls of racing threads grants what it should and no more."""
    limiter = Limiter(Limit("ten", "10/s", by="id"), store=MemoryStore(clock=clock))
    ticking = threading.Event()

    def tick() -> None:
        while not ticking.is_set():
            clock.advance(ns=SECOND // 1000)

    begin = clock.now
    ticker = threading.Thread(target=tick)
    ticker.start()
    decisions = hammer(limiter, 8, 500)
    ticking.set()
    ticker.join()
    most = 10 + (clock.now - begin) * 10 // SECOND
    assert sum(decision.allowed for decision in decisions) <= most
