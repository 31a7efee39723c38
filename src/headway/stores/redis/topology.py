"""Which server to ask: one, the master that Sentinels name, or the node of a cluster that holds a slot.

Written as flows: a generator yields the commands it needs and is sent their replies, so the same lines serve threads and
asyncio.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from headway.errors import StoreError, StoreUnavailable
from headway.stores.redis.handshake import STRANGE, unlike
from headway.stores.redis.resp import Failed, Reply, Unreadable, command
from headway.stores.redis.settings import Node, Settings

__all__ = ["INSISTS_SHARE", "LEAST_SHARE", "Flow", "Heard", "Send", "Topology"]

_Value = TypeVar("_Value")

SLOTS: Final = 16384
_ASK_AGAIN_S: Final = 0.25
"""How long an answer about who is master, or which node has what, is not asked for again, however wrong it looks."""


LEAST_SHARE: Final = 0.05
"""Of the deadline: with less time left than that no server is asked any more."""

INSISTS_SHARE: Final = 0.25
"""Of the deadline: so long undoing may take if the time is up."""

_DOUBLE: Final = struct.Struct("<d")
_NO_INSTANT: Final = _DOUBLE.pack(0)


class Send(NamedTuple):
    """Commands for one server.

    Attributes:
        node: the server.
        packed: the commands.
        commands: how many they are; the last one's reply is the answer.
        to_sentinel: log in as to a Sentinel.
        pause: seconds to wait before it is sent.
        insists: sent also where the time of the call is nearly up: it undoes what the call has done.
    """

    node: Node
    packed: bytes
    commands: int = 1
    to_sentinel: bool = False
    pause: float = 0.0
    insists: bool = False


Heard: TypeAlias = "Reply | StoreError"
"""A reply, or why there is none."""

Flow: TypeAlias = "Generator[list[Send], list[Heard], _Value]"


class Topology:
    """Knows, and learns, where things are.

    Args:
        settings: the mode and the first nodes.
        ticks: seconds that never go back.
        deadline: seconds that a call waits for its answer; None (a test's clock): no server is told so.

    Attributes:
        clustered: keys live in slots.
    """

    def __init__(self, settings: Settings, ticks: Callable[[], float], deadline: float | None) -> None:
        self.settings = settings
        self._deadline = deadline
        self._ahead: dict[Node, float] = {}
        self.clustered = settings.mode == "cluster"
        self._ticks = ticks
        self._only = settings.nodes[0] if settings.mode == "single" else None
        self._master: Node | None = None
        self._slots: list[Node | None] = []
        self._doubtful = False
        self._asked = float("-inf")

    def where(self, slot: int | None) -> Flow[Node]:
        """The server that holds a slot (None: all keys).

        Raises:
            StoreError: nobody could say.
        """
        if self._only is not None:
            return self._only
        if slot is None:
            if self._master is None or (self._doubtful and self._ticks() - self._asked >= _ASK_AGAIN_S):
                yield from self._ask_sentinels()
            assert self._master is not None  # noqa: S101  # else _ask_sentinels has raised
            return self._master
        if not self._slots or (self._doubtful and self._ticks() - self._asked >= _ASK_AGAIN_S):
            yield from self._ask_cluster()
        node = self._slots[slot]
        if node is None:
            self._doubtful = True
            raise StoreUnavailable(f"Redis store {self.settings}: no node serves slot {slot}")
        return node

    def masters(self) -> Flow[tuple[Node, ...]]:
        """All servers that hold keys."""
        if not self.clustered:
            return ((yield from self.where(None)),)
        if not self._slots or self._doubtful:
            yield from self._ask_cluster()
        return tuple(dict.fromkeys(node for node in self._slots if node is not None))

    def awaited(self, node: Node) -> bytes:
        """The instant on a server's clock until which an answer to a call made now is waited for, for its script.

        A server that was stopped, or is slow, finds calls in its queue that have been given up; what they ask for must
        not be done then. Nothing is said before the server's clock is known.
        """
        ahead = self._ahead.get(node)
        if ahead is None or self._deadline is None:
            return _NO_INSTANT
        return _DOUBLE.pack((self._ticks() + self._deadline) * 1e6 + ahead)

    def heard(self, node: Node, sent: float, now_us: int) -> None:
        """What a server's clock said to a call that was sent at ``sent`` and is answered now.

        The clock was read in between, so it is ahead of ours by something within two bounds. What is kept is never more
        than that, so no call is done after its caller has gone; what was known before stays while it agrees with them.
        """
        most, least = now_us - sent * 1e6, now_us - self._ticks() * 1e6
        self._ahead[node] = min(most, max(least, self._ahead.get(node, least)))

    def ticks(self) -> float:
        """The clock, in seconds."""
        return self._ticks()

    def doubt(self) -> None:
        """A server failed or says it is not the one: ask again before long."""
        self._doubtful = True

    def moved(self, slot: int, node: Node) -> None:
        """A server says that another one holds the slot."""
        if self._slots:
            self._slots[slot] = node
        self._doubtful = True

    def _ask_sentinels(self) -> Flow[None]:
        ask = command(b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self.settings.service.encode())
        self._asked = self._ticks()
        said = ""
        for node in self.settings.nodes:
            (heard,) = yield [Send(node, ask, to_sentinel=True)]
            if isinstance(heard, list) and len(heard) == 2 and isinstance(heard[0], bytes):
                try:
                    self._master = Node(heard[0].decode(), int(heard[1]))  # type: ignore[arg-type]  # a decimal number
                except ValueError:
                    said = str(unlike(node, heard))
                    continue
                self._doubtful = False
                return
            said = f"{node} does not know {self.settings.service!r}" if heard is None else _said(heard)
        if self._master is None:
            raise StoreUnavailable(f"Redis store {self.settings}: no Sentinel names a master ({said})")

    def _ask_cluster(self) -> Flow[None]:
        ask = command(b"CLUSTER", b"SLOTS")
        self._asked = self._ticks()
        known = [node for node in dict.fromkeys(self._slots) if node is not None]
        said = ""
        for node in dict.fromkeys([*known, *self.settings.nodes]):
            (heard,) = yield [Send(node, ask)]
            if isinstance(heard, list) and heard:
                try:
                    self._slots, self._doubtful = _slots(heard, node, self.settings), False
                except STRANGE:
                    said = str(unlike(node, heard))
                    continue
                return
            said = "it has no slots" if isinstance(heard, list) else _said(heard)
        if not self._slots:
            raise StoreUnavailable(f"Redis store {self.settings}: no node tells the cluster's slots ({said})")


def _slots(ranges: Any, asked: Node, settings: Settings) -> list[Node | None]:
    """Who holds each slot, from the reply to CLUSTER SLOTS."""
    slots: list[Node | None] = [None] * SLOTS
    for first, last, master, *_ in ranges:
        if not 0 <= first <= last < SLOTS:
            raise ValueError(f"slots {first} to {last}")
        host = master[0].decode() if master[0] else ""
        slots[first : last + 1] = [settings.named(host, master[1], asked)] * (last + 1 - first)
    return slots


def _said(heard: Heard) -> str:
    if isinstance(heard, Failed):
        return heard.text
    return repr(heard.head) if isinstance(heard, Unreadable) else str(heard)
