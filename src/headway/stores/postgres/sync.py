"""``PostgresStore``: state in PostgreSQL, for threads. Its twin is ``AsyncPostgresStore``."""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import generators
from psycopg.waiting import Ready, Wait

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

__all__ = ["PostgresStore"]

_INSTALL_S = 30.0
_INSTALL_LOCK = 0x68647779
_MOST_CONNECTIONS = 16

T = TypeVar("T")


class PostgresStore(BasePostgresStore):
    """One PostgreSQL database.

    Args:
        where: ``postgresql://user:password@host:port/database``, a psycopg ``Connection`` or a psycopg_pool
            ``ConnectionPool``. On a connection that does not commit by itself a decision is part of the transaction that
            is open there: the charge is undone if that is rolled back, and its keys are held until it ends.
        deadline: seconds that a decision takes at most, connecting included (default 0.1); with a connection or a pool
            that somebody brings, its own time-outs count.
        schema: where the table and the functions are; default "headway".
        unlogged: make the table without a write-ahead log: quicker, and empty after a crash of the server.
        install: put schema and functions in place on first use; False for a role that may only call them.
        clock: for tests only: ns since 1970, to decide by instead of the server's clock.

    Raises:
        ConfigError: a URL or an option that cannot be right.
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
        if not isinstance(self.where, str | psycopg.Connection) and not hasattr(self.where, "connection"):
            raise ConfigError(f"a {type(where).__name__} is no PostgreSQL URL, psycopg Connection or ConnectionPool")
        self._idle: list[_Connection] = []
        self._places = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._owner = os.getpid()
        weakref.finalize(self, _finish, self._idle, self._owner)

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy connects for itself."""
        if not isinstance(self.where, str):
            raise TypeError("a PostgresStore on somebody's connection cannot be pickled; give it a URL")
        return (_restore, (self.where, self.deadline, self.schema, self.unlogged, self.install, self.clock))

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        answer = self._run(
            flows.advance(
                self.schema, charges, commit, time.time_ns() if self.clock is None else self.clock(), self._at()
            )
        )
        if commit and isinstance(self.where, str) and self._time_to_clean():
            self._cleaned_to = self._run(flows.clean(self.schema, self._cleaned_to, self._at()))
        return answer

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        return self._run(flows.change(self.schema, changes, self._at()))

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``. A page of keys at a time, while decisions go on."""
        return self._run(flows.requota(self.schema, namespace, old, new, self._at()))

    def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        return self._run(flows.clear(self.schema, namespace, limit))

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return self._run(flows.clears_after(self.schema, charge, self._at()))

    def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        self._run(flows.reset(self.schema, charges))

    def init(self) -> None:
        """Put schema and functions in place, or bring them up to date; safe beside others that do the same.

        Raises:
            StoreUnusable: the role may not, or the schema is newer than this headway.
            StoreUnavailable: the server could not be reached.
        """
        try:
            with self._connection(_INSTALL_S) as connection:
                self._install(connection)
        except psycopg.Error as error:
            raise self._unavailable(error) from error

    def close(self) -> None:
        """Close the connections this store opened. A later decision opens new ones."""
        with self._lock:
            if self._owner == os.getpid():
                _finish(self._idle, self._owner)

    def _run(self, flow: Flow[T]) -> T:
        """Drive a flow on one connection."""
        self.breaker.enter()
        try:
            with self._connection(self.deadline) as connection:
                if not self._ready:
                    self._check(connection)
                result = self._drive(connection, flow)
        except (psycopg.Error, OSError) as error:
            self.breaker.failed(error)
            raise self._unavailable(error) from error
        except StoreError as error:
            self.breaker.failed(error)
            raise
        self.breaker.succeeded()
        return result

    def _drive(self, connection: Any, flow: Flow[T]) -> T:
        """Perform a flow's trips; on a connection that does not commit by itself, in the transaction that is open."""
        own = connection.autocommit
        opened = False
        try:
            trip = next(flow)
            while True:
                before, after = self._around(trip, opened=opened) if own else ((), ())
                rows = _perform(connection, (*before, *trip.statements, *after))
                opened = not trip.ends
                trip = flow.send(rows[len(before) : len(before) + len(trip.statements)])
        except StopIteration as stop:
            result: T = stop.value
            return result
        except BaseException:
            if own and not connection.closed and connection.info.transaction_status:
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _connection(self, seconds: float) -> Iterator[Any]:
        """A connection that nobody else uses meanwhile."""
        if isinstance(self.where, psycopg.Connection):
            yield self.where
            return
        if not isinstance(self.where, str):
            with self.where.connection(timeout=seconds) as borrowed:  # type: ignore[attr-defined]  # a ConnectionPool
                before = borrowed.autocommit
                borrowed.autocommit = True
                try:
                    yield borrowed
                finally:
                    if not borrowed.closed:
                        borrowed.autocommit = before
            return
        end = time.monotonic() + seconds
        if not self._places.acquire(timeout=seconds):
            raise StoreUnavailable(f"PostgreSQL {shown(self.where)}: all {_MOST_CONNECTIONS} connections are in use")
        connection = None
        try:
            connection = self._take() or _Connection.open(self.where, end)
            connection.end = end
            yield connection
            with self._lock:
                self._idle.append(connection)
            connection = None
        finally:
            self._places.release()
            if connection is not None:
                connection.drop()

    def _take(self) -> _Connection | None:
        with self._lock:
            if self._owner != os.getpid():  # a fork: the sockets are the parent's
                _left_to_the_parent.extend(self._idle)
                self._idle.clear()
                self._owner = os.getpid()
                weakref.finalize(self, _finish, self._idle, self._owner)
            return self._idle.pop() if self._idle else None

    def _check(self, connection: Any) -> None:
        """See that the schema is there and ours, once; put it in place where that is allowed."""
        version = self._version(connection)
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
            if isinstance(connection, _Connection):
                connection.end = time.monotonic() + _INSTALL_S
            self._install(connection)
            if isinstance(connection, _Connection):
                connection.end = time.monotonic() + self.deadline
        self._ready = True

    def _version(self, connection: Any) -> int | None:
        own = connection.autocommit
        there = connection.execute(
            "SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
            "WHERE n.nspname = %s AND p.proname = 'schema_version')",
            (self.schema,),
        ).fetchone()[0]
        found = connection.execute(f"SELECT {self.schema}.schema_version()").fetchone()[0] if there else None
        assert own == connection.autocommit  # noqa: S101  # nothing here changes it
        return None if found is None else int(found)

    def _install(self, connection: Any) -> None:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_INSTALL_LOCK,))
                version = self._version(connection)
                if version is None or version < SCHEMA_VERSION:
                    connection.execute(schema_sql(self.schema, unlogged=self.unlogged))
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnusable(
                f"PostgreSQL {shown(self.where)}: this role may not create schema {self.schema} ({str(error).strip()}); "
                "let one that may run `headway store init URL`"
            ) from error

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        text = (str(error) or type(error).__name__).strip().splitlines()[0]
        return StoreUnavailable(f"PostgreSQL {shown(self.where)}: {text}")


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of ours: commits by itself, and gives up at ``end`` (``time.monotonic``)."""

    end: float = 0.0

    @classmethod
    def open(cls, url: str, end: float) -> _Connection:
        """Connect by ``end``."""
        connection = cls(_until(generators.connect(url), end))
        connection.end = end
        connection.autocommit = True
        return connection

    def wait(self, gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:  # psycopg's own
        """Drive psycopg's generator, but not beyond ``end``."""
        return _until(gen, self.end, self.pgconn.socket)

    def drop(self) -> None:
        """Close without waiting for anything."""
        self.pgconn.finish()


def _until(gen: Any, end: float, socket: int | None = None) -> Any:
    """Drive one of psycopg's generators with ``poll``, but not beyond ``end``."""
    try:
        wanted = next(gen)
        while True:
            descriptor, state = (socket, wanted) if socket is not None else wanted
            poll = select.poll()
            poll.register(
                descriptor,
                (select.POLLIN if state & Wait.R else 0) | (select.POLLOUT if state & Wait.W else 0),
            )
            left = end - time.monotonic()
            events = poll.poll(max(0.0, left) * 1000) if left > 0 else []
            if not events:
                raise StoreUnavailable("PostgreSQL did not answer in time")
            flags = events[0][1]
            ready = (Ready.R if flags & ~select.POLLOUT else 0) | (Ready.W if flags & select.POLLOUT else 0)
            wanted = gen.send(Ready(ready))
    except StopIteration as stop:
        return stop.value


def _perform(connection: Any, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Send statements together; the rows of each."""
    if len(statements) == 1:
        return [_rows(connection.execute(*statements[0]))]
    if not statements:
        return []
    with connection.pipeline():
        cursors = [connection.execute(text, values) for text, values in statements]
    return [_rows(cursor) for cursor in cursors]


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    return cursor.fetchall() if cursor.description else []


_left_to_the_parent: list[_Connection] = []


def _finish(idle: list[_Connection], owner: int) -> None:
    """Close connections, but not those of a parent process."""
    while owner == os.getpid() and idle:
        idle.pop().drop()


def _restore(
    where: str, deadline: float, schema: str, unlogged: bool, install: bool, clock: Clock | None
) -> PostgresStore:
    return PostgresStore(where, deadline=deadline, schema=schema, unlogged=unlogged, install=install, clock=clock)
