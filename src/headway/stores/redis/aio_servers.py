"""The connections of one event loop to the servers of one store: one a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headway.errors import StoreError, StoreUnavailable
from headway.stores.breaker import Breaker
from headway.stores.redis.aio_wire import AsyncWire
from headway.stores.redis.handshake import LOOK, judge, reason_of, warn_of_eviction
from headway.stores.redis.resp import Reply
from headway.stores.redis.settings import Node, Settings
from headway.stores.redis.topology import INSISTS_SHARE, LEAST_SHARE, Heard, Send

__all__ = ["AsyncServer", "AsyncServers"]


class AsyncServer:
    """One server: its breaker and its connection."""

    def __init__(self, settings: Settings, node: Node, deadline: float, breaker: Breaker) -> None:
        self.settings = settings
        self.node = node
        self.deadline = deadline
        self.breaker = breaker
        self._wire: AsyncWire | None = None
        self._connecting = asyncio.Lock()
        self._looked = settings.mode == "sentinel" and node in settings.nodes

    async def trip(self, packed: bytes, count: int, until: float | None = None) -> list[Reply]:
        """Send commands and read as many replies.

        Args:
            packed: the commands.
            count: how many they are.
            until: on the loop's clock, by when the caller wants the replies; None: a whole deadline from now.

        Raises:
            StoreError: no replies in time; what became of the commands is not known.
        """
        now = asyncio.get_running_loop().time()
        if until is None:
            until = now + self.deadline
        elif until - now < self.deadline * LEAST_SHARE:  # others have used it up: no fault of this server
            raise StoreUnavailable(f"Redis store {self.node}: {reason_of(TimeoutError(), self.deadline)}")
        self.breaker.enter()
        try:
            wire = self._wire
            if wire is None or wire.closed:
                wire = await self._connected(until)
            replies = await wire.trip(packed, count, until)
        except OSError as error:
            problem = StoreUnavailable(f"Redis store {self.node}: {reason_of(error, self.deadline)}")
            self.breaker.failed(problem)
            raise problem from error
        except StoreError as error:
            self.breaker.failed(error)
            raise
        return replies

    async def _connected(self, until: float) -> AsyncWire:
        async with self._connecting:
            if self._wire is None or self._wire.closed:
                self._wire = await AsyncWire.open(self.settings, self.node, until)
                if not self._looked:
                    self._looked = True
                    warn_of_eviction(self.node, (await self._wire.trip(LOOK, 1, until))[0])
            return self._wire

    def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def after_fork(self) -> None:
        """In the child: the connection is the parent's."""
        if self._wire is not None:
            self._wire.after_fork()
            self._wire = None


class AsyncServers:
    """All servers of one store, for one event loop.

    Args:
        settings: how to reach them.
        deadline: seconds for a trip, connecting included.
        breakers: by server; shared by the loops.
    """

    def __init__(self, settings: Settings, deadline: float, breakers: dict[tuple[Node, bool], Breaker]) -> None:
        self.settings = settings
        self.deadline = deadline
        self._breakers = breakers
        self._servers: dict[tuple[Node, bool], AsyncServer] = {}

    def server(self, node: Node, *, sentinel: bool = False) -> AsyncServer:
        """The server at that place."""
        server = self._servers.get((node, sentinel))
        if server is None:
            settings = self.settings.for_sentinels() if sentinel else self.settings
            breaker = self._breakers.setdefault((node, sentinel), Breaker(f"Redis store {node}"))
            server = self._servers[node, sentinel] = AsyncServer(settings, node, self.deadline, breaker)
        return server

    async def exchange(self, sends: Sequence[Send], until: float | None = None) -> list[Heard]:
        """Send everything, to all servers at once, and read what each says; ``until`` as in ``AsyncServer.trip``."""
        if until is not None:
            until = await self._prepared(sends, until)
        places: dict[AsyncServer, list[int]] = {}
        for index, send in enumerate(sends):
            places.setdefault(self.server(send.node, sentinel=send.to_sentinel), []).append(index)
        heard: list[Heard] = [None] * len(sends)

        async def one(server: AsyncServer, indexes: list[int]) -> None:
            try:
                packed = b"".join([sends[index].packed for index in indexes])
                replies = iter(await server.trip(packed, sum(sends[index].commands for index in indexes), until))
            except StoreError as error:
                for index in indexes:
                    heard[index] = error
                return
            for index in indexes:
                for _ in range(sends[index].commands):
                    heard[index] = next(replies, None)
            judge(server.breaker, server.node, [heard[index] for index in indexes])

        if len(places) == 1:
            await one(*next(iter(places.items())))
        else:
            await asyncio.gather(*(one(server, indexes) for server, indexes in places.items()))
        return heard

    async def _prepared(self, sends: Sequence[Send], until: float) -> float:
        """Wait, if one of them asks for it; by when the replies have to be here."""
        time = asyncio.get_running_loop().time
        pause = max(send.pause for send in sends)
        if pause:
            await asyncio.sleep(max(0.0, min(pause, until - time())))
        if any(send.insists for send in sends):
            return max(until, time() + self.deadline * INSISTS_SHARE)
        return until

    def after_fork(self) -> None:
        """In the child: the connections are the parent's."""
        for server in self._servers.values():
            server.after_fork()

    def close(self) -> None:
        """Close all connections."""
        for server in self._servers.values():
            server.close()
