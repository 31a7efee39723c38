"""``PostgresStore``: state in PostgreSQL, for threads. Its twin is ``AsyncPostgresStore``."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import ConfigError, StoreError, kind_of
from headway.stores.base import Answer
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.postgres import flows
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
from headway.stores.postgres.borrowed import asked, in_time
from headway.stores.postgres.connections import Connection, Connections, leave, shared_connections
from headway.stores.postgres.failures import again, alone
from headway.stores.postgres.flows import Flow, Rows, Trip
from headway.stores.postgres.lane import Short, shortened
from headway.stores.postgres.schema import functions, grant_sql, schema_sql

__all__ = ["PostgresStore"]

T = TypeVar("T")


class PostgresStore(BasePostgresStore):
    """One PostgreSQL database.

    Args:
        where: ``postgresql://user:password@host:port/database``, a psycopg ``Connection`` or a psycopg_pool
            ``ConnectionPool``. On a connection that does not commit by itself a decision is part of the transaction that
            is open there: the charge is undone if that is rolled back, and its keys are held until it ends.
        deadline: seconds that a decision takes at most, connecting included, at least 0.001 (default 0.1). On a
            connection that somebody brings it bounds the wait for a key; a server that answers nothing holds that up as
            long as psycopg does.
        schema: where the table and the functions are; default "headway".
        unlogged: make the table without a write-ahead log: quicker, and empty after a crash of the server.
        install: put schema and functions in place on first use; False for a role that may only call them.
        share: what part of each limit this process admits by itself while the server is away (``on_store_failure``
            "local"): 1/N for N processes; above 0, up to 1 (the default).
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
        share: Fraction | float | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(where, deadline, schema, unlogged, install, share, clock)
        self._connections: Connections | None = None
        if isinstance(self.where, str):
            self._connections = shared_connections(self.where, self.deadline)
            self._connections.stores += 1
            self._leave = weakref.finalize(self, leave, self._connections)
            self.breaker = self._connections.breaker
        elif isinstance(self.where, psycopg.Connection) or is_pool(self.where, "__enter__"):
            self.breaker = Breaker(f"PostgreSQL {shown(where)}")
        else:
            raise ConfigError(f"{kind_of(where)} is no PostgreSQL URL, psycopg Connection or ConnectionPool")

    def short(self, namespace: str, limits: Sequence[Limit]) -> Short | None:
        """A limiter's short way: from one key and one cost above 0 per limit to a decision; None: take the long one."""
        if self._connections is None or self.clock is not None or any(len(limit.by) > 1 for limit in limits):
            return None
        return shortened(self, namespace, limits)

    def ask(self, text: bytes, values: list[bytes | None], formats: list[int], charges: int) -> str | None:
        """What a statement of the short way says; None where the long way has to be taken.

        Args:
            text: see ``Connection.ask``.
            values: see ``Connection.ask``.
            formats: see ``Connection.ask``.
            charges: how many it makes.

        Raises:
            StoreError: the server did not decide.
        """
        connections, self._until_clean = self._connections, self._until_clean - charges
        if connections is None or self._until_clean <= 0 or not self._ready or not self._leave.alive:
            return None
        self.breaker.enter()
        try:
            with connections.taken(time.monotonic() + self.deadline) as connection:
                answer = connection.ask(text, values, formats)
        except (psycopg.Error, OSError, StoreError) as error:
            if again(error):
                return None
            raise self.failed(error) from error
        self.breaker.succeeded()
        return (answer or b"").decode()

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        answer, reached = self._run(self._advancing(charges, commit))
        if reached is not None:
            self._cleaned_to = reached
        return answer

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        now, at = self._now(), self._at()
        return self._run(lambda: flows.change(self.inside, changes, now, at))

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``. A page of keys at a time, while decisions go on."""
        return self._run(lambda: flows.requota(self.inside, namespace, old, new, self._at()), patient=True)

    def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``. A page of keys at a time, while decisions go on."""
        return self._run(lambda: flows.clear(self.inside, namespace, limit), patient=True)

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return self._run(lambda: flows.clears_after(self.inside, charge, self._at()))

    def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        self._run(lambda: flows.reset(self.inside, charges))

    def init(self, *, unlogged: bool | None = None, roles: Sequence[str] = ()) -> list[str]:
        """Put schema and functions in place, or bring them up to date; safe beside others that do the same.

        Args:
            unlogged: instead of the store's own choice.
            roles: that may call the functions from now on, and nothing else.

        Returns:
            What was done, a line each.

        Raises:
            StoreUnusable: the role may not, the schema has other things in it, or is newer than this headway.
            StoreUnavailable: the server could not be reached.
        """
        try:
            with self._connection(time.monotonic() + INSTALL_S) as connection:
                made = self._install(connection, unlogged)
                [found] = _rows(connection, PERSISTENCE, (f"{self.inside}.state",))
                for role in roles:
                    connection.execute(grant_sql(self.schema, role))
        except (psycopg.Error, OSError) as error:
            raise self._error(error) from error
        return self._done(made, found[0], unlogged, roles)

    def close(self) -> None:
        """Close the connections this store opened, if no other store uses them. A later decision opens new ones."""
        if self._connections is not None and self._leave.detach():
            leave(self._connections)

    def _run(self, begin: Callable[[], Flow[T]], *, patient: bool = False) -> T:
        """Drive a flow on one connection; one that only others kept from its end is begun again."""
        breaker = self.breaker
        breaker.enter()
        try:
            with self._connection(time.monotonic() + self.deadline) as connection:
                if not self._ready:
                    self._check(connection)
                value = self._begin(connection, begin, patient)
        except (psycopg.Error, OSError, StoreError) as error:
            raise self.failed(error) from error
        breaker.succeeded()
        return value

    def _begin(self, connection: Any, begin: Callable[[], Flow[T]], patient: bool) -> T:
        for tries_left in range(MOST_TRIES, -1, -1):
            try:
                return self._drive(connection, begin(), patient)
            except psycopg.Error as error:
                if not (tries_left and alone(connection) and again(error)):
                    raise
        raise AssertionError  # the last try returns or raises

    def _drive(self, connection: Any, flow: Flow[T], patient: bool) -> T:
        """Perform a flow's trips; where somebody else's transaction is open, in that one."""
        own = alone(connection)
        opened = False
        try:
            trip = next(flow)
            while True:
                if patient and hasattr(connection, "end"):
                    connection.end = time.monotonic() + PATIENT_S
                if own and not opened and not trip.ends:
                    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                    opened = True
                rows = self._asked(connection, trip, patient)
                if opened and trip.ends:
                    connection.execute("COMMIT")
                    opened = False
                trip = flow.send(rows)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except psycopg.Error:
            if opened and not connection.closed:
                connection.execute("ROLLBACK")
            raise

    def _asked(self, connection: Any, trip: Trip, patient: bool) -> Rows:
        if isinstance(connection, Connection):
            return _rows(connection, trip.text, trip.values)
        return asked(connection, trip.text, trip.values, PATIENT_S if patient else self.deadline)

    @contextmanager
    def _connection(self, end: float) -> Iterator[Any]:
        """A connection that nobody else uses meanwhile."""
        connections = self._connections
        if connections is None:
            if isinstance(self.where, psycopg.Connection):
                yield self.where
                return
            left = end - time.monotonic()
            with (
                self.where.connection(timeout=left) as borrowed,  # type: ignore[attr-defined]  # a ConnectionPool
                in_time(borrowed, end),
            ):
                yield borrowed
            return
        if not self._leave.alive:  # it was closed and is used again
            connections.stores += 1
            self._leave = weakref.finalize(self, leave, connections)
        with connections.taken(end) as connection:
            yield connection

    def _check(self, connection: Any) -> None:
        """See that the schema is there and ours, once; put it in place where that is allowed."""
        self._judge_encoding(connection.info.encoding)
        own, begun = alone(connection), connection.info.transaction_status
        right = self._judge_version(self._version(connection))
        if not right:
            if hasattr(connection, "end"):
                connection.end = time.monotonic() + INSTALL_S
            self._install(connection)
            if hasattr(connection, "end"):
                connection.end = time.monotonic() + self.deadline
        self._seen(right, own, bool(begun))

    def _version(self, connection: Any) -> int | None:
        known = {"schema": self.schema, "functions": functions()}
        [(there, whole)] = _rows(connection, VERSION, known)
        if not there:
            return None
        [(number,)] = _rows(connection, f"SELECT {self.inside}.schema_version()")
        return self._version_of(number, whole)

    def _install(self, connection: Any, unlogged: bool | None = None) -> bool:
        with connection.transaction():
            _rows(connection, UNHURRIED)
            _rows(connection, "SELECT pg_advisory_xact_lock(%s)", (INSTALL_LOCK,))
            version = self._version(connection)
            made = not self._judge_version(version, installing=True)
            if made:
                text = schema_sql(self.schema, unlogged=self.unlogged if unlogged is None else unlogged)
                connection.execute(text, prepare=False)
            _rows(connection, HURRIED)
            return made


def _rows(connection: Any, text: str, values: Sequence[object] | dict[str, Any] = ()) -> Rows:
    """What a statement answers, whatever kind of rows and cursors the connection's owner likes."""
    cursor = psycopg.Cursor(connection, row_factory=tuple_row)
    cursor.execute(text, values)
    return cursor.fetchall()
