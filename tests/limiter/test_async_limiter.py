"""``AsyncLimiter``: the loop never blocks, loops may change, cancelled callers leave nothing behind."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.core.limit import Limit
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing.clock import ManualClock

HUNDRED = Limit("hundred", "100 per 365 days", by="id")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.db"


@pytest.fixture
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection that holds the file's write lock until it commits."""
    SqliteStore(path).close()
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_the_loop_goes_on_while_another_process_holds_the_write_lock(path: Path, locked: sqlite3.Connection) -> None:
    """A hundred turns of another task pass while a decision waits for the lock; then it is decided."""

    async def main() -> tuple[int, Decision]:
        limiter = AsyncLimiter(HUNDRED, store=f"sqlite:///{path}")
        waiting = asyncio.ensure_future(limiter.hit(id="k"))
        turns = 0
        while turns < 100:
            await asyncio.sleep(0.001)
            assert not waiting.done()
            turns += 1
        locked.execute("COMMIT")
        decision = await waiting
        await limiter.close()
        return turns, decision

    turns, decision = asyncio.run(main())
    assert turns == 100
    assert decision.allowed
    assert decision.degraded is None


def test_a_caller_that_is_cancelled_before_its_turn_is_not_charged(path: Path, locked: sqlite3.Connection) -> None:
    """Of ten callers behind a held lock nine give up: at most the one under way is charged, and nothing is stuck."""

    async def main() -> int | None:
        limiter = AsyncLimiter(HUNDRED, store=f"sqlite:///{path}")
        calls = [asyncio.ensure_future(limiter.hit(id="k")) for _ in range(10)]
        await asyncio.sleep(0.01)
        for call in calls[1:]:
            call.cancel()
        await asyncio.gather(*calls[1:], return_exceptions=True)
        locked.execute("COMMIT")
        assert (await calls[0]).allowed
        left = (await limiter.peek(id="k", cost=0)).remaining
        await limiter.close()
        return left

    assert asyncio.run(main()) == 99


def test_a_limiter_outlives_its_event_loop(path: Path) -> None:
    """FS-19 (mjpieters/aiolimiter#292): one made at module level works in loop after loop, and keeps its state."""
    clock = ManualClock()
    for store in (MemoryStore(clock=clock), SqliteStore(path, clock=clock)):
        limiter = AsyncLimiter(Limit("twenty", "20/s"), store=store)

        async def many(limiter: AsyncLimiter = limiter) -> list[bool]:
            calls = [asyncio.ensure_future(limiter.hit()) for _ in range(40)]
            done, pending = await asyncio.wait(calls, timeout=0.5)
            for call in pending:
                call.cancel()
            return [call.result().allowed for call in done]

        async def few(limiter: AsyncLimiter = limiter) -> list[bool]:
            return [(await limiter.hit()).allowed for _ in range(5)]

        assert sum(asyncio.run(many())) == 20
        assert asyncio.run(few()) == [False] * 5
        clock.advance(1)
        assert asyncio.run(few()) == [True] * 5
        asyncio.run(limiter.store.close())


def test_two_loops_in_two_threads_share_the_budget(path: Path) -> None:
    """FS-19: both loops use the limiter at once; together they get the budget and no more."""
    limiter = AsyncLimiter(HUNDRED, store=f"sqlite:///{path}")
    admitted: list[int | None] = []
    start = threading.Barrier(2)

    async def spend() -> None:
        for _ in range(5):
            decisions = await asyncio.gather(*(limiter.hit(id="k") for _ in range(20)))
            admitted.extend(decision.remaining for decision in decisions if decision.allowed)

    def work() -> None:
        start.wait()
        asyncio.run(spend())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(left for left in admitted if left is not None) == list(range(100))
    asyncio.run(limiter.close())


def test_both_limiters_on_one_store_share_the_counters(path: Path) -> None:
    """A Limiter and an AsyncLimiter with the same limits see each other's charges."""
    for store in (MemoryStore(clock=ManualClock()), SqliteStore(path)):
        plain, asynchronous = Limiter(HUNDRED, store=store), AsyncLimiter(HUNDRED, store=store)

        async def main(plain: Limiter = plain, asynchronous: AsyncLimiter = asynchronous) -> None:
            assert plain.hit(id="k", cost=60).remaining == 40
            assert (await asynchronous.hit(id="k", cost=30)).remaining == 10
            assert plain.peek(id="k").remaining == 9
            assert await asynchronous.reset(id="k") == ("hundred",)
            assert plain.peek(id="k", cost=0).remaining == 100
            await asynchronous.store.close()

        asyncio.run(main())


def test_closing_can_be_repeated_and_undone(path: Path) -> None:
    """After ``close`` a decision opens the file again; the async with block closes at its end."""

    async def main() -> None:
        async with AsyncLimiter(HUNDRED, store=f"sqlite:///{path}") as limiter:
            assert (await limiter.hit(id="k")).remaining == 99
        await limiter.close()
        assert (await limiter.hit(id="k")).remaining == 98
        await limiter.close()

    asyncio.run(main())


def test_a_pickled_store_has_a_worker_of_its_own(path: Path) -> None:
    """The copy works, in another loop, on the same file."""
    store = ThreadedStore(SqliteStore(path))
    limiter = AsyncLimiter(HUNDRED, store=store)
    assert asyncio.run(limiter.hit(id="k")).remaining == 99
    twin = AsyncLimiter(HUNDRED, store=pickle.loads(pickle.dumps(store)))
    assert asyncio.run(twin.hit(id="k")).remaining == 98
    asyncio.run(limiter.store.close())
    asyncio.run(twin.store.close())


def test_a_store_failure_is_decided_by_the_limit(path: Path) -> None:
    """As for Limiter: deny, allow, local; the loop sees no exception."""

    def spoil() -> None:
        path.write_bytes(b"no database\n" * 100)

    for mode, expected in {"deny": [False, False], "allow": [True, True], "local": [True, False]}.items():
        path.write_bytes(b"")
        limiter = AsyncLimiter(Limit("one", "1/day", by="id", on_store_failure=mode), store=f"sqlite:///{path}")

        async def main(limiter: AsyncLimiter = limiter) -> list[Decision]:
            await limiter.close()
            spoil()
            decisions = [await limiter.hit(id="k") for _ in range(2)]
            await limiter.close()
            return decisions

        decisions = asyncio.run(main())
        assert [decision.allowed for decision in decisions] == expected
        assert all("no SQLite database" in (decision.degraded or "") for decision in decisions)
        for file in path.parent.glob("limits.db*"):
            file.unlink()
