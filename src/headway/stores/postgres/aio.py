"""``AsyncPostgresStore``: ``PostgresStore`` with ``await``. Usable from several event loops; each has its connections."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import ConfigError, StoreError, kind_of
from headway.stores.base import Answer, undoing
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.postgres import flows
from headway.stores.postgres.aio_connections import LoopConnection, LoopConnections, leave, shared_by_loops
from headway.stores.postgres.base import (
    HURRIED,
    INSTALL_LOCK,
    INSTALL_S,
    MOST_TRIES,
    PATIENT_S,
    PERSISTENCE,
    UNHURRIED,
    VERSION,
    BasePostgresStore,
    is_pool,
    shown,
)
from headway.stores.postgres.borrowed import asked_later, in_time_later
from headway.stores.postgres.connections import breaker_of
from headway.stores.postgres.failures import again, alone, is_in_order
from headway.stores.postgres.flows import Flow, Rows, Trip
from headway.stores.postgres.schema import functions, grant_sql, schema_sql

__all__ = ["AsyncPostgresStore"]

T = TypeVar("T")


class AsyncPostgresStore(BasePostgresStore):
    """The twin of ``PostgresStore``; takes a URL, a psycopg ``AsyncConnection`` or an ``AsyncConnectionPool``.

    Of a caller that is cancelled while its decision is under way the units are given back.

    Args:
        where: see ``PostgresStore``.
        deadline: see ``PostgresStore``.
        schema: see ``PostgresStore``.
        unlogged: see ``PostgresStore``.
        install: see ``PostgresStore``.
        share: see ``PostgresStore``.
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
        share: Fraction | float | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(where, deadline, schema, unlogged, install, share, clock)
        self._connections: LoopConnections | None = None
        self._timed = not isinstance(self.where, psycopg.AsyncConnection)
        self._undoing: set[asyncio.Task[Any]] = set()
        if isinstance(self.where, str):
            self._connections = shared_by_loops(self.where, self.deadline)
            self._connections.stores += 1
            self._leave = weakref.finalize(self, leave, self._connections)
            self.breaker = breaker_of(self.where)
        elif isinstance(self.where, psycopg.AsyncConnection) or is_pool(self.where, "__aenter__"):
            self.breaker = Breaker(f"PostgreSQL {shown(where)}")
        else:
            raise ConfigError(f"{kind_of(where)} is no PostgreSQL URL, psycopg AsyncConnection or AsyncConnectionPool")

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        deciding = self._run(self._advancing(charges, commit))
        if isinstance(self.where, psycopg.AsyncConnection):  # the transaction's owner decides what becomes of it
            answer, reached = await deciding
            self._cleaned_to = self._cleaned_to if reached is None else reached
            return answer
        task = asyncio.ensure_future(deciding)
        try:
            answer, reached = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._undoing.add(task)
            task.add_done_callback(lambda done: self._undo(charges if commit else (), done))
            raise
        if reached is not None:
            self._cleaned_to = reached
        return answer

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        now, at = self._now(), self._at()
        return await self._run(lambda: flows.change(self.inside, changes, now, at))

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``. A page of keys at a time, while decisions go on."""
        return await self._run(lambda: flows.requota(self.inside, namespace, old, new, self._at()), patient=True)

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``. A page of keys at a time, while decisions go on."""
        return await self._run(lambda: flows.clear(self.inside, namespace, limit), patient=True)

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return await self._run(lambda: flows.clears_after(self.inside, charge, self._at()))

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        await self._run(lambda: flows.reset(self.inside, charges))

    async def init(self, *, unlogged: bool | None = None, roles: Sequence[str] = ()) -> list[str]:
        """See ``PostgresStore.init``."""
        try:
            async with self._connection(INSTALL_S) as connection:
                made = await self._install(connection, unlogged)
                [found] = await _rows(connection, PERSISTENCE, (f"{self.inside}.state",))
                for role in roles:
                    await connection.execute(grant_sql(self.schema, role))
        except (psycopg.Error, OSError) as error:
            raise self._error(error) from error
        return self._done(made, found[0], unlogged, roles)

    async def close(self) -> None:
        """Close the connections, on every event loop, if no other store uses them. A later decision opens new ones."""
        if self._connections is not None and self._leave.detach():
            leave(self._connections)

    def _undo(self, charges: Sequence[Charge], done: asyncio.Task[flows.Advanced]) -> None:
        """Give back what nobody was told that they have. Where the store is away it stays charged: never too little."""
        self._undoing.discard(done)
        if done.cancelled() or done.exception() is not None or not charges:
            return
        changes = undoing(charges, done.result().answer)
        if changes:
            now, at = self._now(), self._at()
            task = asyncio.ensure_future(self._run(lambda: flows.change(self.inside, changes, now, at, undo=True)))
            self._undoing.add(task)
            task.add_done_callback(self._undone)

    def _undone(self, task: asyncio.Task[tuple[bool, ...]]) -> None:
        self._undoing.discard(task)
        if not task.cancelled():
            task.exception()  # it was looked at

    async def _run(self, begin: Callable[[], Flow[T]], *, patient: bool = False) -> T:
        """Drive a flow on one connection; one that only others kept from its end is begun again."""
        breaker = self.breaker
        breaker.enter()
        clock = asyncio.get_running_loop().time
        end = clock() + self.deadline
        try:
            async with self._connection(self.deadline) as connection:
                if not self._ready and await self._check(connection, end):
                    end = clock() + self.deadline
                value = await self._begin(connection, begin, None if patient else end)
        except (psycopg.Error, OSError, StoreError) as error:  # TimeoutError is an OSError
            raise self.failed(error) from error
        breaker.succeeded()
        return value

    async def _begin(self, connection: Any, begin: Callable[[], Flow[T]], end: float | None) -> T:
        """Drive the flow, by ``end`` (the loop's time) unless the connection is the caller's; None: each trip has its own time."""
        async with asyncio.timeout_at(end if self._timed else None):
            for tries_left in range(MOST_TRIES, -1, -1):
                try:
                    return await self._drive(connection, begin(), end is None)
                except psycopg.Error as error:
                    if not (tries_left and alone(connection) and again(error)):
                        raise
        raise AssertionError  # the last try returns or raises

    async def _drive(self, connection: Any, flow: Flow[T], patient: bool) -> T:
        """Perform a flow's trips; where somebody else's transaction is open, in that one."""
        own = alone(connection)
        opened = False
        try:
            trip = next(flow)
            while True:
                if own and not opened and not trip.ends:
                    await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                    opened = True
                async with asyncio.timeout(PATIENT_S if patient else None):
                    rows = await self._asked(connection, trip, patient)
                if opened and trip.ends:
                    await connection.execute("COMMIT")
                    opened = False
                trip = flow.send(rows)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except psycopg.Error:
            if opened and not connection.closed:
                await connection.execute("ROLLBACK")
            raise

    async def _asked(self, connection: Any, trip: Trip, patient: bool) -> Rows:
        if isinstance(connection, LoopConnection):
            return await _rows(connection, trip.text, trip.values)
        return await asked_later(connection, trip.text, trip.values, PATIENT_S if patient else self.deadline)

    @asynccontextmanager
    async def _connection(self, seconds: float) -> AsyncIterator[Any]:
        """A connection that nobody else uses meanwhile."""
        connections = self._connections
        if connections is None:
            if isinstance(self.where, psycopg.AsyncConnection):
                yield self.where
                return
            async with (
                self.where.connection(timeout=seconds) as borrowed,  # type: ignore[attr-defined]  # an AsyncConnectionPool
                in_time_later(borrowed),
            ):
                yield borrowed
            return
        if not self._leave.alive:  # it was closed and is used again
            connections.stores += 1
            self._leave = weakref.finalize(self, leave, connections)
        idle = connections.here()
        connection = await idle.take(str(self.where), seconds, self.deadline)
        try:
            yield connection
        except BaseException as error:
            if is_in_order(connection, error):
                idle.put_back(connection)  # the server said no, and is there
            else:
                idle.drop(connection)
            raise
        if connections.stores > 0:
            idle.put_back(connection)
        else:
            idle.drop(connection)

    async def _check(self, connection: Any, end: float) -> bool:
        """See that the schema is there and ours, once; put it in place where that is allowed: True then."""
        self._judge_encoding(connection.info.encoding)
        own, begun = alone(connection), connection.info.transaction_status
        async with asyncio.timeout_at(end if self._timed else None):
            right = self._judge_version(await self._version(connection))
        if not right:
            async with asyncio.timeout(INSTALL_S if self._timed else None):
                await self._install(connection)
        self._seen(right, own, bool(begun))
        return not right

    async def _version(self, connection: Any) -> int | None:
        known = {"schema": self.schema, "functions": functions()}
        [(there, whole)] = await _rows(connection, VERSION, known)
        if not there:
            return None
        [(number,)] = await _rows(connection, f"SELECT {self.inside}.schema_version()")
        return self._version_of(number, whole)

    async def _install(self, connection: Any, unlogged: bool | None = None) -> bool:
        async with connection.transaction():
            await _rows(connection, UNHURRIED)
            await _rows(connection, "SELECT pg_advisory_xact_lock(%s)", (INSTALL_LOCK,))
            version = await self._version(connection)
            made = not self._judge_version(version, installing=True)
            if made:
                text = schema_sql(self.schema, unlogged=self.unlogged if unlogged is None else unlogged)
                await connection.execute(text, prepare=False)
            await _rows(connection, HURRIED)
            return made


async def _rows(connection: Any, text: str, values: Sequence[object] | dict[str, Any] = ()) -> Rows:
    """What a statement answers, whatever kind of rows and cursors the connection's owner likes."""
    cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
    await cursor.execute(text, values)
    return await cursor.fetchall()
