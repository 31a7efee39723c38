"""Lines of waiting callers, first come first served per key. Only the first of a line looks at the store.

So a line has one timer and one wake-up a slot, however long it is; a caller that leaves (admitted, timed out,
cancelled) wakes just the next one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

__all__ = ["Lines", "Ticket"]


class Ticket:
    """A place in a line.

    Args:
        costs: what its caller asks each limit for.
        wake: called, from any thread, when the ticket becomes the first or should look again.
        calm: takes a wake back, before looking.
        event: what ``wake`` sets.
    """

    __slots__ = ("calm", "costs", "event", "first", "line", "wake")

    def __init__(
        self, costs: Sequence[int], wake: Callable[[], object], calm: Callable[[], object], event: Any = None
    ) -> None:
        self.costs = tuple(costs)
        self.wake = wake
        self.calm = calm
        self.event = event
        self.first = False
        self.line: Hashable = None


class Lines:
    """All lines of a limiter. Bounded by the callers that wait: an empty line is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[Hashable, OrderedDict[Ticket, None]] = {}

    def join(self, line: Hashable, ticket: Ticket) -> tuple[int, ...]:
        """Stand at the end of a line; the units that those ahead ask each limit for."""
        with self._lock:
            waiting = self._lines.setdefault(line, OrderedDict())
            ahead = [sum(costs) for costs in zip(*(other.costs for other in waiting), strict=True)]
            waiting[ticket] = None
            ticket.line = line
            ticket.first = len(waiting) == 1
            return tuple(ahead) or (0,) * len(ticket.costs)

    def leave(self, ticket: Ticket) -> None:
        """Give the place up, wherever it is; the next becomes the first."""
        with self._lock:
            waiting = self._lines.get(ticket.line)
            if waiting is None or ticket not in waiting:
                return
            del waiting[ticket]
            following = next(iter(waiting), None)
            if following is None:
                del self._lines[ticket.line]
            elif ticket.first:
                following.first = True
        if following is not None and ticket.first:
            following.wake()

    def look_again(self) -> None:
        """Wake the first of every line: something was given back."""
        with self._lock:
            firsts = [next(iter(waiting)) for waiting in self._lines.values()]
        for ticket in firsts:
            ticket.wake()

    def __len__(self) -> int:
        """How many callers wait."""
        with self._lock:
            return sum(map(len, self._lines.values()))

    def __reduce__(self) -> tuple[type[Lines], tuple[()]]:
        """Nobody waits in a copy."""
        return (Lines, ())
