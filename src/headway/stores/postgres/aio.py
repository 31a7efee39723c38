"""``AsyncPostgresStore``: ``PostgresStore`` with ``await``. Usable from several event loops; each has its connections."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import ConfigError, StoreError, StoreUnavailable, StoreUnusable
from headway.stores.base import Answer
from headway.stores.clock import Clock
from headway.stores.postgres import flows
from headway.stores.postgres.base import BasePostgresStore, Statement, shown
from headway.stores.postgres.flows import Flow
from headway.stores.postgres.schema import SCHEMA_VERSION, schema_sql

__all__ = ["AsyncPostgresStore"]

_INSTALL_S = 30.0
_INSTALL_LOCK = 0x68647779
_MOST_CONNECTIONS = 16

T = TypeVar("T")


class AsyncPostgresStore(BasePostgresStore):
    """The twin of ``PostgresStore``; takes a URL, a psycopg ``AsyncConnection`` or an ``AsyncConnectionPool``.

    A caller that is cancelled while its decision is under way may have been charged or not; its connection is dropped.

    Args:
        where: see ``PostgresStore``.
        deadline: see ``PostgresStore``.
        schema: see ``PostgresStore``.
        unlogged: see ``PostgresStore``.
        install: see ``PostgresStore``.
        clock: see ``PostgresStore``.

    Raises:
        ConfigError: see ``PostgresStore``.
    """

    def __init__(
        self,
        where: object,
        *,
        deadline: float | None = None,
        schema: str | None = None,
        unlogged: bool | None = None,
        install: bool | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(where, deadline, schema, unlogged, install, clock)
        if not isinstance(self.where, str | psycopg.AsyncConnection) and not hasattr(self.where, "connection"):
            raise ConfigError(
                f"a {type(where).__name__} is no PostgreSQL URL, psycopg AsyncConnection or AsyncConnectionPool"
            )
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle] = weakref.WeakKeyDictionary()
        self._owner = os.getpid()
        weakref.finalize(self, _finish, self._loops, self._owner)

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy connects for itself."""
        if not isinstance(self.where, str):
            raise TypeError("an AsyncPostgresStore on somebody's connection cannot be pickled; give it a URL")
        return (_restore, (self.where, self.deadline, self.schema, self.unlogged, self.install, self.clock))

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        answer = await self._run(
            flows.advance(
                self.schema, charges, commit, time.time_ns() if self.clock is None else self.clock(), self._at()
            )
        )
        if commit and isinstance(self.where, str) and self._time_to_clean():
            self._cleaned_to = await self._run(flows.clean(self.schema, self._cleaned_to, self._at()))
        return answer

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        return await self._run(flows.change(self.schema, changes, self._at()))

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``. A page of keys at a time, while decisions go on."""
        return await self._run(flows.requota(self.schema, namespace, old, new, self._at()))

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        return await self._run(flows.clear(self.schema, namespace, limit))

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return await self._run(flows.clears_after(self.schema, charge, self._at()))

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        await self._run(flows.reset(self.schema, charges))

    async def init(self) -> None:
        """See ``PostgresStore.init``."""
        try:
            async with self._connection(_INSTALL_S) as connection:
                await self._install(connection)
        except psycopg.Error as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Close the connections this store opened, on every event loop. A later decision opens new ones."""
        _finish(self._loops, self._owner)

    async def _run(self, flow: Flow[T]) -> T:
        """Drive a flow on one connection."""
        self.breaker.enter()
        try:
            async with self._connection(self.deadline) as connection:
                if not self._ready:
                    await self._check(connection)
                async with asyncio.timeout(self.deadline if isinstance(self.where, str) else None):
                    result = await self._drive(connection, flow)
        except (psycopg.Error, OSError) as error:  # TimeoutError is an OSError
            self.breaker.failed(error)
            raise self._unavailable(error) from error
        except StoreError as error:
            self.breaker.failed(error)
            raise
        self.breaker.succeeded()
        return result

    async def _drive(self, connection: Any, flow: Flow[T]) -> T:
        """Perform a flow's trips; on a connection that does not commit by itself, in the transaction that is open."""
        own = connection.autocommit
        opened = False
        try:
            trip = next(flow)
            while True:
                before, after = self._around(trip, opened=opened) if own else ((), ())
                rows = await _perform(connection, (*before, *trip.statements, *after))
                opened = not trip.ends
                trip = flow.send(rows[len(before) : len(before) + len(trip.statements)])
        except StopIteration as stop:
            result: T = stop.value
            return result
        except psycopg.Error:
            if own and not connection.closed and connection.info.transaction_status:
                await connection.execute("ROLLBACK")
            raise

    @asynccontextmanager
    async def _connection(self, seconds: float) -> AsyncIterator[Any]:
        """A connection that nobody else uses meanwhile."""
        if isinstance(self.where, psycopg.AsyncConnection):
            yield self.where
            return
        if not isinstance(self.where, str):
            async with self.where.connection(timeout=seconds) as borrowed:  # type: ignore[attr-defined]  # an AsyncConnectionPool
                before = borrowed.autocommit
                await borrowed.set_autocommit(True)
                try:
                    yield borrowed
                finally:
                    if not borrowed.closed:
                        await borrowed.set_autocommit(before)
            return
        idle = self._here()
        connection = None
        try:
            async with asyncio.timeout(seconds):
                await idle.places.acquire()
                try:
                    if idle.connections:
                        connection = idle.connections.pop()
                    else:
                        connection = await _Connection.connect(self.where, autocommit=True)
                except BaseException:
                    idle.places.release()
                    raise
        except TimeoutError as error:
            raise StoreUnavailable(f"PostgreSQL {shown(self.where)}: no connection within {seconds:g} s") from error
        good = False
        try:
            yield connection
            good = True
        finally:
            if good and not connection.closed:
                idle.connections.append(connection)
            else:
                connection.pgconn.finish()
            idle.places.release()

    def _here(self) -> _Idle:
        if self._owner != os.getpid():  # a fork: the sockets are the parent's
            _left_to_the_parent.append(self._loops)
            self._loops, self._owner = weakref.WeakKeyDictionary(), os.getpid()
            weakref.finalize(self, _finish, self._loops, self._owner)
        loop = asyncio.get_running_loop()
        idle = self._loops.get(loop)
        if idle is None:
            idle = self._loops[loop] = _Idle()
        return idle

    async def _check(self, connection: Any) -> None:
        """See that the schema is there and ours, once; put it in place where that is allowed."""
        version = await self._version(connection)
        if version is not None and version > SCHEMA_VERSION:
            raise StoreUnusable(
                f"PostgreSQL {shown(self.where)}: schema {self.schema} has version {version}, of a newer headway; "
                f"this one knows {SCHEMA_VERSION}"
            )
        if version != SCHEMA_VERSION:
            if not self.install:
                raise StoreUnusable(
                    f"PostgreSQL {shown(self.where)}: schema {self.schema} is not there; put it in place with "
                    "`headway store init URL`"
                )
            await self._install(connection)
        self._ready = True

    async def _version(self, connection: Any) -> int | None:
        cursor = await connection.execute(
            "SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
            "WHERE n.nspname = %s AND p.proname = 'schema_version')",
            (self.schema,),
        )
        if not (await cursor.fetchone())[0]:
            return None
        cursor = await connection.execute(f"SELECT {self.schema}.schema_version()")
        found = (await cursor.fetchone())[0]
        return None if found is None else int(found)

    async def _install(self, connection: Any) -> None:
        try:
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_INSTALL_LOCK,))
                version = await self._version(connection)
                if version is None or version < SCHEMA_VERSION:
                    await connection.execute(schema_sql(self.schema, unlogged=self.unlogged))
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnusable(
                f"PostgreSQL {shown(self.where)}: this role may not create schema {self.schema} ({str(error).strip()}); "
                "let one that may run `headway store init URL`"
            ) from error

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        text = (str(error) or type(error).__name__).strip().splitlines()[0]
        return StoreUnavailable(f"PostgreSQL {shown(self.where)}: {text}")


class _Connection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection of ours. One whose event loop has ended cannot be closed there any more: it is just closed."""

    def __del__(self, _warn: object = None, /) -> None:
        self.pgconn.finish()


class _Idle:
    """One event loop's connections that nobody uses, and how many more may be used."""

    def __init__(self) -> None:
        self.connections: list[_Connection] = []
        self.places = asyncio.Semaphore(_MOST_CONNECTIONS)


async def _perform(connection: Any, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Send statements together; the rows of each."""
    if len(statements) == 1:
        return [await _rows(await connection.execute(*statements[0]))]
    if not statements:
        return []
    async with connection.pipeline():
        cursors = [await connection.execute(text, values) for text, values in statements]
    return [await _rows(cursor) for cursor in cursors]


async def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    return await cursor.fetchall() if cursor.description else []


_left_to_the_parent: list[object] = []


def _finish(loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle], owner: int) -> None:
    """Close connections, but not those of a parent process."""
    for idle in list(loops.values()) if owner == os.getpid() else ():
        while idle.connections:
            idle.connections.pop().pgconn.finish()


def _restore(
    where: str, deadline: float, schema: str, unlogged: bool, install: bool, clock: Clock | None
) -> AsyncPostgresStore:
    return AsyncPostgresStore(where, deadline=deadline, schema=schema, unlogged=unlogged, install=install, clock=clock)
