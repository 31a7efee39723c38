"""Connections and pools that somebody brings: their factories and their transactions stay as they are.

A decision in somebody's transaction is made between a savepoint and its release, all of it sent at once: one that fails
leaves the transaction as it was before. It waits for a key no longer than one on a connection of ours does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from headway.stores.postgres.base import lock_ms
from headway.stores.postgres.connections import until
from headway.stores.postgres.failures import alone

__all__ = ["asked", "asked_later", "in_time", "in_time_later"]

_SAVEPOINT: Final = "SAVEPOINT headway"
_RELEASE: Final = "RELEASE SAVEPOINT headway"
_UNDO: Final = ("ROLLBACK TO SAVEPOINT headway", _RELEASE)

_KEPT: Final = "set_config('headway.lock_timeout', current_setting('lock_timeout'), true)"
_WAITS: Final = (
    "CASE WHEN current_setting('lock_timeout')::interval BETWEEN '1 us' AND '{ms} ms' THEN NULL "
    "ELSE set_config('lock_timeout', '{ms}', true) END"
)
"""Its own time-out counts where it is shorter."""
_WAITED: Final = "set_config('lock_timeout', current_setting('headway.lock_timeout'), true)"


def _cursor(connection: Any) -> Any:
    """A cursor of the plain kind, whatever the connection's factories make."""
    return psycopg.Cursor(connection, row_factory=tuple_row)


def _cursor_later(connection: Any) -> Any:
    """``cursor`` for asyncio."""
    return psycopg.AsyncCursor(connection, row_factory=tuple_row)


def asked(connection: Any, text: str, values: Sequence[object], seconds: float) -> list[tuple[Any, ...]]:
    """What a statement says; waits for keys about as long as ``seconds``, and leaves no failed transaction behind.

    Raises:
        psycopg.Error: the server said no, or nothing.
    """
    own = alone(connection)
    before, text, after, ours = _around(text, own, seconds)
    if not (before or after) or not psycopg.Pipeline.is_supported() or _has_failed(connection):
        found = _cursor(connection).execute(text, values).fetchall()
        return [row[ours] for row in found]
    asking = _cursor(connection)
    try:
        with connection.pipeline():
            for statement in before:
                _cursor(connection).execute(statement, prepare=False)
            asking.execute(text, values, prepare=False)
            for statement in after:
                _cursor(connection).execute(statement, prepare=False)
    except psycopg.Error:
        if _has_failed(connection):
            for statement in _UNDO:
                _cursor(connection).execute(statement)
        raise
    return [row[ours] for row in asking.fetchall()]


async def asked_later(connection: Any, text: str, values: Sequence[object], seconds: float) -> list[tuple[Any, ...]]:
    """``asked`` for asyncio.

    Raises:
        psycopg.Error: see ``asked``.
    """
    own = alone(connection)
    before, text, after, ours = _around(text, own, seconds)
    if not (before or after) or not psycopg.Pipeline.is_supported() or _has_failed(connection):
        found = await (await _cursor_later(connection).execute(text, values)).fetchall()
        return [row[ours] for row in found]
    asking = _cursor_later(connection)
    try:
        async with connection.pipeline():
            for statement in before:
                await _cursor_later(connection).execute(statement, prepare=False)
            await asking.execute(text, values, prepare=False)
            for statement in after:
                await _cursor_later(connection).execute(statement, prepare=False)
    except psycopg.Error:
        if _has_failed(connection):
            for statement in _UNDO:
                await _cursor_later(connection).execute(statement)
        raise
    return [row[ours] for row in await asking.fetchall()]


def _around(text: str, own: bool, seconds: float) -> tuple[list[str], str, list[str], slice]:
    """What is sent before a statement, the statement, what is sent after it, and which of its columns are asked for.

    In a transaction of its own a setting for the transaction ends with it. A list of results is worked out from left to
    right, so the time-out travels with a decision; where rows come of a function, it is a statement beside it.
    """
    waits = _WAITS.format(ms=lock_ms(seconds))
    if ".hit(" in text or ".advance(" in text:
        asked_for = text.removeprefix("SELECT ")
        if own:
            return [], f"SELECT {waits}, {asked_for}", [], slice(1, None)
        return [_SAVEPOINT], f"SELECT {_KEPT}, {waits}, {asked_for}, {_WAITED}", [_RELEASE], slice(2, -1)
    if own:
        return [f"SELECT {waits}"], text, [], slice(None)
    return [_SAVEPOINT, f"SELECT {_KEPT}, {waits}"], text, [f"SELECT {_WAITED}", _RELEASE], slice(None)


def _has_failed(connection: Any) -> bool:
    """Whether the transaction that is open there can do nothing any more."""
    return bool(connection.info.transaction_status == TransactionStatus.INERROR)


@contextmanager
def in_time(borrowed: Any, end: float) -> Iterator[Any]:
    """A connection that a pool has lent, to be given up at ``borrowed.end``: it is closed then, and the pool replaces it."""

    def wait(gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:  # psycopg's own
        try:
            return until(gen, borrowed.end, borrowed.pgconn.socket)
        except TimeoutError:
            borrowed.pgconn.finish()
            raise

    before = borrowed.autocommit
    borrowed.end, borrowed.wait = end, wait
    try:
        borrowed.autocommit = True
        yield borrowed
    finally:
        del borrowed.wait, borrowed.end
        if _is_idle(borrowed):
            borrowed.autocommit = before


@asynccontextmanager
async def in_time_later(borrowed: Any) -> AsyncIterator[Any]:
    """``in_time`` for asyncio, where whoever gives up is cancelled: it leaves at once, and the pool replaces the connection."""

    async def wait(gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # psycopg's own
        try:
            return await psycopg.waiting.wait_async(gen, borrowed.pgconn.socket, interval=interval)
        except asyncio.CancelledError:
            borrowed.pgconn.finish()
            raise

    before = borrowed.autocommit
    borrowed.wait = wait
    try:
        await borrowed.set_autocommit(True)
        yield borrowed
    finally:
        del borrowed.wait
        if _is_idle(borrowed):
            await borrowed.set_autocommit(before)


def _is_idle(connection: Any) -> bool:
    return bool(not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE)
