"""The connections of this process to one server, for threads; shared by all stores with the same URL and deadline.

A child that is forked has no part in them: its copies of their sockets are closed at once.
"""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import generators
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from headway.errors import StoreUnavailable
from headway.stores.breaker import Breaker
from headway.stores.lookup import addresses_of
from headway.stores.postgres.base import MOST_CONNECTIONS, REGAIN_S, session, shown
from headway.stores.postgres.failures import is_in_order, reason
from headway.stores.postgres.places import NO_ADDRESS, at_addresses, hosts_of, name_in, no_address

__all__ = [
    "Connection",
    "Connections",
    "breaker_of",
    "has_ended",
    "leave",
    "shared_connections",
    "sockets",
    "until",
]


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of ours: commits by itself, and gives up at ``end`` (``time.monotonic``)."""

    end: float = 0.0
    _names: dict[bytes, bytes]

    @classmethod
    def open(cls, url: str, end: float, deadline: float) -> Connection:
        """Connect by ``end``."""
        connection = cls(_connected(url, end))
        connection._names = {}
        sockets.add(connection)
        _connecting.discard(connection.pgconn.socket)
        try:
            connection.end = end
            connection.autocommit = True
            first = session(connection.info.backend_pid, deadline)
            try:
                own = connection.execute(first).fetchone()
            except psycopg.errors.QueryCanceled:  # by the role's own time-out; what it had to load is there now
                own = connection.execute(first).fetchone()
            if own == (None,):
                connection.prepare_threshold = None
        except BaseException:
            connection.drop()
            raise
        return connection

    def wait(self, gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:  # psycopg's own
        """Drive psycopg's generator, but not beyond ``end``."""
        return until(gen, self.end, self.pgconn.socket)

    def ask(self, text: bytes, values: list[bytes | None], formats: list[int]) -> bytes | None:
        """The one value of a statement's one row, without a cursor: half of psycopg's time.

        Args:
            text: with $1 for each value; prepared when it is first asked, where that is possible.
            values: as PostgreSQL reads them, None for NULL.
            formats: of each value, 0 for text, 1 for bytes.

        Raises:
            psycopg.Error: what the server answered instead.
            TimeoutError: nothing, by ``end``.
        """
        pgconn = self.pgconn
        if self.prepare_threshold is None:
            pgconn.send_query_params(text, values, None, formats)
        else:
            name = self._names.get(text)
            if name is None:
                name = b"_headway_%d" % len(self._names)
                pgconn.send_prepare(name, text)
                self._answer()
                self._names[text] = name
            pgconn.send_query_prepared(name, values, formats)
        value: bytes | None = self._answer().get_value(0, 0)
        return value

    def _answer(self) -> Any:
        answer = until(generators.execute(self.pgconn), self.end, self.pgconn.socket)[-1]
        if answer.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise psycopg.errors.error_from_result(answer, self.info.encoding)
        return answer

    def drop(self) -> None:
        """Close without waiting for anything."""
        self.pgconn.finish()

    def __del__(self, _warn: object = None, /) -> None:
        self.pgconn.finish()


class Connections:
    """A bounded number of them, for any number of threads.

    Args:
        url: for libpq.
        deadline: seconds; see ``PostgresStore``.

    Attributes:
        breaker: the server's.
        stores: how many stores use these.
    """

    def __init__(self, url: str, deadline: float) -> None:
        self.url = url
        self.deadline = deadline
        self.breaker = breaker_of(url)
        self.stores = 0
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._out = 0
        self._withheld = 0
        self._regained_at = 0.0
        self._owner = os.getpid()
        weakref.finalize(self, _finish, self._idle, self._owner)

    def take(self, end: float) -> Connection:
        """A connection that nobody else uses until it is put back or dropped.

        Raises:
            StoreUnavailable: there was none by ``end`` (``time.monotonic``): the server, or we, allow no more.
            psycopg.Error: the server did not let us in.
        """
        if self._owner != os.getpid():
            self._forked()
        self._regain()
        said = f"all {MOST_CONNECTIONS} connections are in use"
        while self._places.acquire(timeout=max(0.0, end - time.monotonic())):
            try:
                connection = self._unused() or Connection.open(self.url, end, self.deadline)
            except BaseException as error:
                if not isinstance(error, psycopg.OperationalError) or not self._withhold():
                    self._places.release()
                    raise
                said = f"{reason(error)}; this process has {self._out} connections, all in use"
            else:
                connection.end = end
                with self._lock:
                    self._out += 1
                return connection
        raise StoreUnavailable(f"PostgreSQL {shown(self.url)}: {said}")

    def _unused(self) -> Connection | None:
        """One that is open, and that nobody uses."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or not has_ended(connection):
                return connection
            connection.drop()

    def _withhold(self) -> bool:
        """The server let no more in: whether there are others of ours, so that one of them can be waited for.

        The place is nobody's for a while: as many are left as there are connections.
        """
        with self._lock:
            if not (self._out or self._idle):
                return False
            self._withheld += 1
            self._regained_at = time.monotonic() + REGAIN_S
        return True

    def _regain(self) -> None:
        """Give back the places that were withheld a while ago."""
        if not self._withheld:
            return
        with self._lock:
            due = self._withheld if time.monotonic() >= self._regained_at else 0
            self._withheld -= due
        for _ in range(due):
            self._places.release()

    def _leave(self) -> None:
        """One that was taken is not in use any more."""
        with self._lock:
            self._out -= 1
        self._places.release()

    @contextmanager
    def taken(self, end: float) -> Iterator[Connection]:
        """``take``; afterwards somebody else may have it, unless it is in no order that one could rely on.

        Raises:
            What ``take`` raises.
        """
        connection = self.take(end)
        try:
            yield connection
        except BaseException as error:
            if is_in_order(connection, error):
                self.put_back(connection)  # the server said no, and is there
            else:
                connection.drop()
                self._leave()
            raise
        self.put_back(connection)

    def put_back(self, connection: Connection) -> None:
        """It is in order, and somebody else may have it."""
        with self._lock:
            kept = self.stores > 0 and self._owner == os.getpid()
            if kept:
                self._idle.append(connection)
        if not kept:
            connection.drop()
        self._leave()

    def close(self) -> None:
        """Close those that nobody uses."""
        if self._owner == os.getpid():  # a child has none before it takes one, and the lock may be a parent's thread's
            with self._lock:
                _finish(self._idle, self._owner)

    def _forked(self) -> None:
        """This is a child: what is idle is the parent's, and nobody here holds a lock."""
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._idle = []
        self._out = self._withheld = 0
        self._owner = os.getpid()
        weakref.finalize(self, _finish, self._idle, self._owner)


def _connected(url: str, end: float) -> PGconn:
    """The first of the URL's hosts that lets us in; one that says nothing leaves the others their part of the time."""
    places = hosts_of(url)
    for left in range(len(places), 0, -1):
        now = time.monotonic()
        try:
            return _reached(places[-left], now + (end - now) / left)
        except (psycopg.Error, OSError):
            if left == 1:
                raise
    raise AssertionError  # there is a last one


def _reached(host: str, end: float) -> PGconn:
    """The same of one host's addresses."""
    name = name_in(host)
    try:
        places = at_addresses(host, None if name is None else addresses_of(*name, end))
    except NO_ADDRESS as error:
        raise no_address(host, error) from error
    for left in range(len(places), 0, -1):
        now = time.monotonic()
        try:
            return until(_known(generators.connect(places[-left])), now + (end - now) / left)  # type: ignore[no-any-return]  # a generator's
        except (psycopg.Error, TimeoutError):
            if left == 1:
                raise
    raise AssertionError  # there is a last one


def has_ended(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether the server has closed an idle connection: then there is something to read, though nothing was asked."""
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def shared_connections(url: str, deadline: float) -> Connections:
    """The connections of this process to that server."""
    with _opening:
        found = _open.get((url, deadline))
        if found is None:
            found = _open[url, deadline] = Connections(url, deadline)
        return found


def leave(connections: Connections) -> None:
    """A store does not use them any more."""
    connections.stores -= 1
    if connections.stores <= 0:
        connections.close()


def breaker_of(url: str) -> Breaker:
    """The breaker of this process for that server."""
    found = _breakers.get(url)
    if found is None:
        found = _breakers.setdefault(url, Breaker(f"PostgreSQL {shown(url)}"))
    return found


_open: weakref.WeakValueDictionary[tuple[str, float], Connections] = weakref.WeakValueDictionary()
_breakers: weakref.WeakValueDictionary[str, Breaker] = weakref.WeakValueDictionary()
_opening = threading.Lock()

sockets: weakref.WeakSet[psycopg.Connection[Any] | psycopg.AsyncConnection[Any]] = weakref.WeakSet()
"""All connections of ours in this process."""


def _after_fork() -> None:
    """In a child: let go of the parent's sockets without a word to the server."""
    global _opening, _stepping
    _opening, _stepping = threading.Lock(), threading.RLock()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for connection in list(sockets):
        if not connection.closed:
            os.dup2(nowhere, connection.pgconn.socket)
            _left_to_the_parent.append(connection)
    for descriptor in filter(None, _connecting):
        os.dup2(nowhere, descriptor)
    _connecting.clear()
    os.close(nowhere)


_left_to_the_parent: list[object] = []
_connecting: set[int | None] = set()
"""Sockets on which threads wait for a connection to be made."""
_stepping = threading.RLock()
"""Held where sockets come and go that are not among these yet: nothing forks meanwhile."""


def _known(gen: Any) -> Any:
    """The steps of a connection that is made, its socket known between any two of them."""
    with _stepping:
        descriptor, wanted = next(gen)
        _connecting.add(descriptor)
    try:
        while True:
            ready = yield descriptor, wanted
            with _stepping:
                _connecting.discard(descriptor)
                try:
                    descriptor, wanted = gen.send(ready)
                except StopIteration as stop:
                    _connecting.add(stop.value.socket)
                    return stop.value
                _connecting.add(descriptor)
    except BaseException:
        _connecting.discard(descriptor)
        raise


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _stepping.acquire(), after_in_parent=lambda: _stepping.release(), after_in_child=_after_fork
    )


def _finish(idle: list[Connection], owner: int) -> None:
    """Close connections, but not those of a parent process."""
    while owner == os.getpid() and idle:
        idle.pop().drop()


_LONGEST_S: Final = 86_400.0  # more is no number for poll


def until(gen: Any, end: float, socket: int | None = None) -> Any:
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
            events = poll.poll(min(left, _LONGEST_S) * 1000) if left > 0 else []
            if not events:
                raise TimeoutError
            flags = events[0][1]
            ready = (Ready.R if flags & ~select.POLLOUT else 0) | (Ready.W if flags & select.POLLOUT else 0)
            wanted = gen.send(Ready(ready))
    except StopIteration as stop:
        return stop.value
