"""A store that waits, under asyncio: its calls stand in one line, and none stands there for long."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from headway import AsyncLimiter, Limit
from headway.stores import threaded
from headway.stores.sqlite import SqliteStore
from headway.testing import ManualClock


def test_calls_behind_one_that_waits_do_not_wait_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody holds the file's lock, ten callers are refused in the time of one, and nothing is charged later."""
    monkeypatch.setattr(threaded, "_TURN_WITHIN_S", 0.1)
    monkeypatch.setattr("headway.stores.sqlite.LOCK_WAIT_S", 0.3)
    path = tmp_path / "limits.db"

    async def ask() -> tuple[list[str], float, float]:
        limiter = AsyncLimiter(Limit("l", "20 per day"), store=SqliteStore(path, clock=ManualClock()))
        loop = asyncio.get_running_loop()
        await limiter.hit()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = loop.time()
        decisions = await asyncio.gather(*(limiter.hit() for _ in range(10)))
        took = loop.time() - began
        other.execute("ROLLBACK")
        other.close()
        after = await limiter.hit()
        assert after.degraded is None
        assert after.remaining is not None
        await limiter.close()
        return [str(decision.degraded) for decision in decisions], took, after.remaining

    reasons, took, remaining = asyncio.run(ask())
    assert "database is locked" in reasons[0]
    assert all("no turn" in reason for reason in reasons[1:])
    assert took < 2
    assert remaining == 18


def test_closing_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late that comes: a store that is not closed would keep its file open."""
    monkeypatch.setattr(threaded, "_TURN_WITHIN_S", -1.0)
    store = SqliteStore(tmp_path / "limits.db")
    asyncio.run(threaded.ThreadedStore(store).close())
    assert store._connection is None
