"""The connections of this process to the servers of one store, for threads; shared by all stores with the same settings."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Final
from weakref import WeakSet

from headway.errors import StoreError, StoreUnavailable
from headway.stores.breaker import Breaker
from headway.stores.redis.handshake import LOOK, judge, reason_of, warn_of_eviction
from headway.stores.redis.resp import Reply, Unreadable
from headway.stores.redis.settings import Node, Settings
from headway.stores.redis.topology import INSISTS_SHARE, LEAST_SHARE, Heard, Send
from headway.stores.redis.wire import Wire

__all__ = ["Server", "Servers"]

_MOST_IDLE: Final = 64


class Server:
    """One server: its breaker and its idle connections."""

    __slots__ = ("_idle", "_looked", "breaker", "deadline", "node", "settings")

    def __init__(self, settings: Settings, node: Node, deadline: float) -> None:
        self.settings = settings
        self.node = node
        self.deadline = deadline
        self.breaker = Breaker(f"Redis store {node}")
        self._idle: list[Wire] = []
        self._looked = settings.mode == "sentinel" and node in settings.nodes

    def ask(self, packed: bytes) -> Reply:
        """The reply to one command.

        Raises:
            StoreError: as ``start`` and ``finish``.
        """
        wire, until = self.start(packed)
        return self.finish(wire, 1, until)[0]

    def start(self, packed: bytes, until: float | None = None) -> tuple[Wire, float]:
        """Send commands; the connection they went out on, and by when their replies have to be here.

        Args:
            packed: the commands.
            until: ``time.monotonic()`` by which the caller wants the replies; None: a whole deadline from now.

        Raises:
            StoreError: they could not be sent.
        """
        now = time.monotonic()
        if until is None:
            until = now + self.deadline
        elif until - now < self.deadline * LEAST_SHARE:  # others have used it up: no fault of this server
            raise StoreUnavailable(f"Redis store {self.node}: {reason_of(TimeoutError(), self.deadline)}")
        self.breaker.enter()
        wire = None
        try:
            wire = self._wire(until)
            wire.send(packed, until)
        except OSError as error:
            raise self.lost(wire, error) from error
        except StoreError as error:
            self.breaker.failed(error)
            raise
        return wire, until

    def finish(self, wire: Wire, count: int, until: float) -> list[Reply]:
        """Their replies.

        Raises:
            StoreUnavailable: they did not come in time; what became of the commands is not known.
        """
        try:
            replies = wire.receive(count, until)
        except OSError as error:
            raise self.lost(wire, error) from error
        except BaseException:
            wire.close()
            raise
        last = replies[-1]
        if last.__class__ is bytes:
            self.breaker.succeeded()
        else:
            judge(self.breaker, self.node, replies)
        if isinstance(last, Unreadable):
            wire.close()
        elif len(self._idle) < _MOST_IDLE:
            self._idle.append(wire)
        else:
            wire.close()
        return replies

    def lost(self, wire: Wire | None, error: OSError) -> StoreUnavailable:
        """Close the connection; what to tell the caller."""
        if wire is not None:
            wire.close()
        problem = StoreUnavailable(f"Redis store {self.node}: {reason_of(error, self.deadline)}")
        self.breaker.failed(problem)
        return problem

    def _wire(self, until: float) -> Wire:
        while True:
            try:
                wire = self._idle.pop()
            except IndexError:
                return self._opened(until)
            if not wire.stale():
                return wire
            wire.close()

    def _opened(self, until: float) -> Wire:
        wire = Wire(self.settings, self.node, until)
        if not self._looked:
            self._looked = True
            try:
                warn_of_eviction(self.node, wire.trip(LOOK, 1, until)[0])
            except BaseException:
                wire.close()
                raise
        return wire

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()


class Servers:
    """All servers of one store.

    Args:
        settings: how to reach them.
        deadline: seconds for a trip, connecting included.
    """

    def __init__(self, settings: Settings, deadline: float) -> None:
        self.settings = settings
        self.deadline = deadline
        self._servers: dict[tuple[Node, bool], Server] = {}
        self._lock = threading.Lock()
        self._users = 0
        _alive.add(self)

    def server(self, node: Node, *, sentinel: bool = False) -> Server:
        """The server at that place."""
        server = self._servers.get((node, sentinel))
        if server is None:
            settings = self.settings.for_sentinels() if sentinel else self.settings
            with self._lock:
                server = self._servers.setdefault((node, sentinel), Server(settings, node, self.deadline))
        return server

    def exchange(self, sends: Sequence[Send], until: float | None = None) -> list[Heard]:
        """Send everything, to all servers at once, and read what each says; ``until`` as in ``Server.start``."""
        if until is not None:
            until = self._prepared(sends, until)
        if len(sends) == 1:
            send = sends[0]
            server = self.server(send.node, sentinel=send.to_sentinel)
            try:
                wire, end = server.start(send.packed, until)
                return [server.finish(wire, send.commands, end)[-1]]
            except StoreError as error:
                return [error]
        return self._exchange(sends, until)

    def _prepared(self, sends: Sequence[Send], until: float) -> float:
        """Wait, if one of them asks for it; by when the replies have to be here."""
        pause = max(send.pause for send in sends)
        if pause:
            time.sleep(max(0.0, min(pause, until - time.monotonic())))
        if any(send.insists for send in sends):
            return max(until, time.monotonic() + self.deadline * INSISTS_SHARE)
        return until

    def _exchange(self, sends: Sequence[Send], until: float | None) -> list[Heard]:
        heard: list[Heard] = [None] * len(sends)
        places: dict[Server, list[int]] = {}
        for index, send in enumerate(sends):
            places.setdefault(self.server(send.node, sentinel=send.to_sentinel), []).append(index)
        started: list[tuple[Server, list[int], Wire, float]] = []
        for server, indexes in places.items():
            try:
                wire, end = server.start(b"".join(sends[index].packed for index in indexes), until)
            except StoreError as error:
                for index in indexes:
                    heard[index] = error
            else:
                started.append((server, indexes, wire, end))
        for server, indexes, wire, end in started:
            wire.hurry(end)
            try:
                replies = iter(server.finish(wire, sum(sends[index].commands for index in indexes), end))
            except StoreError as error:
                for index in indexes:
                    heard[index] = error
                continue
            for index in indexes:
                for _ in range(sends[index].commands):
                    heard[index] = next(replies)
        return heard

    def breakers(self) -> list[Breaker]:
        """Of the servers that were ever asked."""
        return [server.breaker for server in self._servers.values()]

    def use(self) -> None:
        """One more store works with these connections."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """One store less."""
        with self._lock:
            self._users -= 1
        self.tidy()

    def tidy(self) -> None:
        """Close what is idle, if no store works with it any more."""
        if self._users <= 0:
            for server in list(self._servers.values()):
                server.close()

    def after_fork(self) -> None:
        """In the child: close our copies of the parent's sockets, which leaves its connections as they are."""
        self._lock = threading.Lock()
        for server in self._servers.values():
            server.close()
            server.breaker.after_fork()


_alive: WeakSet[Servers] = WeakSet()


def _after_fork_in_child() -> None:
    for servers in list(_alive):
        servers.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
