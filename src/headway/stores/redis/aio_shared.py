"""The lines of this process: one an event loop for all asynchronous stores with the same settings, however many."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
import weakref
from typing import Final

from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.redis.aio_servers import AsyncServers
from headway.stores.redis.base import BaseRedisStore
from headway.stores.redis.line import Line
from headway.stores.redis.settings import Node

__all__ = ["Lines", "lines_of"]

_Loop = asyncio.AbstractEventLoop


class Lines:
    """The lines to one place, by event loop; each is closed when the last store that used it there has left.

    Args:
        store: whose settings these are.
    """

    def __init__(self, store: BaseRedisStore) -> None:
        self._settings = store.settings
        self._deadline = store.deadline
        self._breakers: dict[tuple[Node, bool], Breaker] = {}
        self._lines: dict[_Loop, Line] = {}
        self._users: dict[_Loop, int] = {}
        self._lock = threading.Lock()
        _alive.add(self)

    def join(self, loop: _Loop, store: BaseRedisStore, now: Clock, clock: bool) -> Line:
        """The line of the running loop; one more store uses it."""
        with self._lock:
            for ended in [one for one in self._lines if one.is_closed()]:
                self._users.pop(ended, None)
                _drop(self._lines.pop(ended))
            line = self._lines.get(loop)
            if line is None:
                servers = AsyncServers(self._settings, self._deadline, self._breakers)
                line = self._lines[loop] = Line(store.new_topology(), servers, now, clock)
            self._users[loop] = self._users.get(loop, 0) + 1
        return line

    def leave(self, loop: _Loop) -> Line | None:
        """One store less; the line, if it was the last one's."""
        with self._lock:
            if loop not in self._users:
                return None
            self._users[loop] -= 1
            if self._users[loop] > 0:
                return None
            del self._users[loop]
            return self._lines.pop(loop, None)

    def leave_all(self, loops: dict[_Loop, Line]) -> None:
        """A store that was not closed is gone."""
        while loops:
            line = self.leave(loops.popitem()[0])
            if line is not None:
                _drop(line)

    def breakers(self) -> list[Breaker]:
        """Of the servers that were ever asked; the loops share them."""
        return list(self._breakers.values())

    def after_fork(self) -> None:
        """In the child: the parent's loops do not run here; close our copies of their sockets."""
        self._lock = threading.Lock()
        for line in self._lines.values():
            line.servers.after_fork()
        self._lines.clear()
        self._users.clear()
        self._breakers.clear()


def lines_of(store: BaseRedisStore, *, shared: bool) -> Lines:
    """Those of all stores with the same settings and deadline, or of this store alone."""
    if not shared:
        return Lines(store)
    place = (store.settings, store.deadline)
    with _lock:
        lines = _all.get(place)
        if lines is None:
            lines = _all[place] = Lines(store)
        return lines


def _drop(line: Line) -> None:
    """Close what an ended loop left open: it cannot be asked to, so the sockets go when nothing refers to them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        line.drop()
        del line


_lock: Final = threading.Lock()
_all: weakref.WeakValueDictionary[object, Lines] = weakref.WeakValueDictionary()
_alive: weakref.WeakSet[Lines] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for lines in list(_alive):
        lines.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
