"""The connections of this process to one server, for asyncio: each event loop has its own. The twin of ``connections``."""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import Any

import psycopg
from psycopg import waiting

from headway.errors import StoreUnavailable
from headway.stores.lookup import find_addresses
from headway.stores.postgres.base import MOST_CONNECTIONS, REGAIN_S, session, shown
from headway.stores.postgres.connections import has_ended, sockets
from headway.stores.postgres.failures import reason
from headway.stores.postgres.places import NO_ADDRESS, at_addresses, hosts_of, name_in, no_address

__all__ = ["LoopConnection", "LoopConnections", "leave", "shared_by_loops"]


class LoopConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection of ours. Whoever gives up on it drops it, so nothing is waited for then."""

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # psycopg's own
        """Drive psycopg's generator; when cancelled, leave at once instead of asking the server to stop."""
        named = {} if timeout is None else {"timeout": timeout}  # psycopg 3.2 has none
        return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, **named)

    def __del__(self, _warn: object = None, /) -> None:
        self.pgconn.finish()  # one whose event loop has ended cannot be closed there any more


class Idle:
    """One event loop's connections that nobody uses, and how many more may be used."""

    def __init__(self) -> None:
        self.connections: list[LoopConnection] = []
        self.places = asyncio.Semaphore(MOST_CONNECTIONS)
        self._out = 0
        self._withheld = 0

    async def take(self, url: str, seconds: float, deadline: float) -> LoopConnection:
        """A connection that nobody else uses until it is put back or dropped.

        Raises:
            StoreUnavailable: all were in use: the server, or we, allow no more.
            TimeoutError: there was none within ``seconds``.
            psycopg.Error: the server did not let us in.
        """
        end = asyncio.get_running_loop().time() + seconds
        said = f"all {MOST_CONNECTIONS} connections are in use"
        while True:
            try:
                async with asyncio.timeout_at(end):
                    await self.places.acquire()
            except TimeoutError as error:
                raise StoreUnavailable(f"PostgreSQL {shown(url)}: {said}") from error
            try:
                async with asyncio.timeout_at(end):
                    connection = self._unused() or await _opened(url, end, deadline)
            except TimeoutError as error:
                self.places.release()
                raise TimeoutError(f"no connection within {seconds:g} s") from error
            except BaseException as error:
                if not isinstance(error, psycopg.OperationalError) or not self._withhold():
                    self.places.release()
                    raise
                said = f"{reason(error)}; this event loop has {self._out} connections, all in use"
            else:
                self._out += 1
                return connection

    def _unused(self) -> LoopConnection | None:
        """One that is open, and that nobody uses."""
        while self.connections:
            connection = self.connections.pop()
            if not has_ended(connection):
                return connection
            connection.pgconn.finish()
        return None

    def _withhold(self) -> bool:
        """See ``Connections``."""
        if not (self._out or self.connections):
            return False
        self._withheld += 1
        if self._withheld == 1:
            asyncio.get_running_loop().call_later(REGAIN_S, self._regain)
        return True

    def _regain(self) -> None:
        for _ in range(self._withheld):
            self.places.release()
        self._withheld = 0

    def _leave(self) -> None:
        self._out -= 1
        self.places.release()

    def put_back(self, connection: LoopConnection) -> None:
        """It is in order, and somebody else may have it."""
        self.connections.append(connection)
        self._leave()

    def drop(self, connection: LoopConnection) -> None:
        """It is in no order that somebody could rely on."""
        connection.pgconn.finish()
        self._leave()


class LoopConnections:
    """The connections of all stores with the same URL and deadline, by event loop.

    Attributes:
        stores: how many stores use these.
    """

    def __init__(self) -> None:
        self.stores = 0
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Idle] = weakref.WeakKeyDictionary()
        self._owner = os.getpid()
        weakref.finalize(self, _finish, self._loops, self._owner)

    def here(self) -> Idle:
        """Those of the running event loop."""
        if self._owner != os.getpid():  # a child: the connections are the parent's
            self._loops, self._owner = weakref.WeakKeyDictionary(), os.getpid()
            weakref.finalize(self, _finish, self._loops, self._owner)
        loop = asyncio.get_running_loop()
        idle = self._loops.get(loop)
        if idle is None:
            idle = self._loops[loop] = Idle()
        return idle

    def close(self) -> None:
        """Close those that nobody uses."""
        _finish(self._loops, self._owner)


def shared_by_loops(url: str, deadline: float) -> LoopConnections:
    """The connections of this process to that server."""
    found = _open.get((url, deadline))
    return _open.setdefault((url, deadline), LoopConnections()) if found is None else found


_open: weakref.WeakValueDictionary[tuple[str, float], LoopConnections] = weakref.WeakValueDictionary()


def leave(connections: LoopConnections) -> None:
    """A store does not use them any more."""
    connections.stores -= 1
    if connections.stores <= 0:
        connections.close()


async def _connected(url: str, end: float) -> LoopConnection:
    """The first of the URL's hosts that lets us in; one that says nothing leaves the others their part of the time."""
    places = hosts_of(url)
    clock = asyncio.get_running_loop().time
    for left in range(len(places), 0, -1):
        now = clock()
        try:
            return await _reached(places[-left], now + (end - now) / left)
        except (psycopg.Error, OSError):
            if left == 1:
                raise
    raise AssertionError  # there is a last one


async def _reached(host: str, end: float) -> LoopConnection:
    """The same of one host's addresses."""
    name = name_in(host)
    try:
        async with asyncio.timeout_at(end):
            places = at_addresses(host, None if name is None else await find_addresses(*name))
    except NO_ADDRESS as error:
        raise no_address(host, error) from error
    clock = asyncio.get_running_loop().time
    for left in range(len(places), 0, -1):
        now = clock()
        try:
            async with asyncio.timeout_at(now + (end - now) / left):
                return await LoopConnection.connect(places[-left], autocommit=True)
        except (psycopg.Error, TimeoutError):
            if left == 1:
                raise
    raise AssertionError  # there is a last one


async def _opened(url: str, end: float, deadline: float) -> LoopConnection:
    connection = await _connected(url, end)
    sockets.add(connection)
    try:
        first = session(connection.info.backend_pid, deadline)
        try:
            cursor = await connection.execute(first)
        except psycopg.errors.QueryCanceled:  # as in connections.py
            cursor = await connection.execute(first)
        if await cursor.fetchone() == (None,):
            connection.prepare_threshold = None
    except BaseException:
        connection.pgconn.finish()
        raise
    return connection


def _finish(loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Idle], owner: int) -> None:
    """Close connections, but not those of a parent process."""
    for idle in list(loops.values()) if owner == os.getpid() else ():
        while idle.connections:
            idle.connections.pop().pgconn.finish()
