"""One connection to one server, for asyncio: trips follow each other without waiting, each bounded by one deadline."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

from headway.errors import StoreUnavailable
from headway.stores.lookup import find_addresses
from headway.stores.redis.handshake import context_of, greeting, no_name, problem_of
from headway.stores.redis.resp import Failed, Reply, Unreadable, parse
from headway.stores.redis.settings import Node, Settings

__all__ = ["AsyncWire"]


@dataclass(slots=True)
class _Trip:
    count: int
    done: asyncio.Future[list[Reply]]
    replies: list[Reply] = field(default_factory=list)


class AsyncWire(asyncio.Protocol):
    """An open connection; made by ``open``."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._trips: deque[_Trip] = deque()

    @classmethod
    async def open(cls, settings: Settings, node: Node, until: float) -> AsyncWire:
        """Connect and log in.

        Args:
            settings: how to.
            node: the server.
            until: on the loop's clock.

        Raises:
            OSError: no connection in time.
            StoreError: the server refuses to serve us.
        """
        loop = asyncio.get_running_loop()
        wire: AsyncWire | None = None
        try:
            async with asyncio.timeout_at(until):
                if node.path:
                    _, wire = await loop.create_unix_connection(cls, node.path)
                else:
                    wire = await cls._reached(settings, node, until)
                commands = greeting(settings, await _credentials(settings, node))
                for reply in await wire.trip(b"".join(commands), len(commands), until) if commands else ():
                    if isinstance(reply, Failed | Unreadable):
                        raise problem_of(node, reply)
        except BaseException as error:
            if wire is not None:
                wire.close()
            if wire is None and isinstance(error, ValueError) and not isinstance(error, OSError):
                raise no_name(node, error) from error
            raise
        return wire

    @classmethod
    async def _reached(cls, settings: Settings, node: Node, until: float) -> AsyncWire:
        """To the first of the host's addresses that answers; one that says nothing leaves the others their part of the time."""
        loop = asyncio.get_running_loop()
        secure: dict[str, Any] = {}
        if settings.tls is not None:
            secure = {"ssl": context_of(settings.tls), "server_hostname": node.host}
        problem = OSError("the host has no address")
        places = await find_addresses(node.host, node.port)
        for left, (*_, address) in zip(range(len(places), 0, -1), places, strict=True):
            now = loop.time()
            try:
                async with asyncio.timeout_at(now + (until - now) / left):
                    return (await loop.create_connection(cls, *address[:2], **secure))[1]
            except OSError as error:
                problem = error
        raise problem

    async def trip(self, packed: bytes, count: int, until: float) -> list[Reply]:
        """Send commands and wait for as many replies.

        Raises:
            OSError: not in time, or the connection broke; what became of the commands is not known.
        """
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the connection was closed")
        trip = _Trip(count, self._loop.create_future())
        self._trips.append(trip)
        self.transport.write(packed)
        late = self._loop.call_at(until, self._late)
        try:
            return await trip.done
        finally:
            late.cancel()

    @property
    def closed(self) -> bool:
        """Nothing can be sent any more."""
        return self.transport is None or self.transport.is_closing()

    def close(self) -> None:
        """Close at once; who waits is told so."""
        self._fail(ConnectionResetError("the connection was closed"))
        if self.transport is not None and not self._loop.is_closed():
            self.transport.abort()
        self.transport = None

    def after_fork(self) -> None:
        """In the child: close our copy of the parent's socket; what has its number now is no socket, and harms nobody."""
        raw = None if self.transport is None else self.transport.get_extra_info("socket")
        self.transport = None
        if raw is not None and raw.fileno() >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, raw.fileno(), inheritable=False)
            os.close(nothing)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self.transport = cast("asyncio.Transport", transport)  # a stream's; uvloop's is none by its class
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        buffer = self._received
        buffer += data
        at = 0
        while self._trips:
            found = parse(buffer, at)
            if found is None:
                break
            reply, at = found
            trip = self._trips[0]
            trip.replies.append(reply)
            if isinstance(reply, Unreadable) or len(trip.replies) == trip.count:
                self._trips.popleft()
                if not trip.done.done():
                    trip.done.set_result(trip.replies)
            if isinstance(reply, Unreadable):
                self.close()
                return
        del buffer[:at]
        if buffer and not self._trips:
            self.close()  # it said more than it was asked

    def connection_lost(self, error: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self.transport = None
        self._fail(error if isinstance(error, OSError) else ConnectionResetError("the connection was closed"))

    def _late(self) -> None:
        self._fail(TimeoutError("the deadline has passed"))
        self.close()

    def _fail(self, error: OSError) -> None:
        while self._trips:
            trip = self._trips.popleft()
            if not trip.done.done():
                trip.done.set_exception(error)


async def _credentials(settings: Settings, node: Node) -> Any:
    if settings.credentials is None:
        return None
    try:
        given = settings.credentials()
        return await given if inspect.isawaitable(given) else given
    except Exception as error:
        raise StoreUnavailable(f"Redis store {node}: its credentials are not to be had: {error!r}") from error
