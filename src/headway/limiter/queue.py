"""Lines of waiting callers, first come first served per key. Only the first of a line looks at the store.

So a line has one timer and one wake-up a slot, however long it is; a caller that leaves (admitted, timed out,
cancelled) wakes just the next one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import takewhile
from typing import Any

__all__ = ["Lines", "Ticket"]


class Ticket:
    """A place in a line.

    Args:
        costs: what its caller asks each limit for.
        wake: called, from any thread, when the ticket becomes the first or should look again.
        calm: takes a wake back, before looking.
        event: what ``wake`` sets.
        gone: whether its caller can never look again (its event loop was closed under it).
    """

    __slots__ = ("calm", "costs", "event", "first", "gone", "line", "wake")

    def __init__(
        self,
        costs: Sequence[int],
        wake: Callable[[], object],
        calm: Callable[[], object],
        event: Any = None,
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.costs = tuple(costs)
        self.wake = wake
        self.calm = calm
        self.event = event
        self.gone = gone
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
            waiting[ticket] = None
            ticket.line = line
            following = self._tidy(line)
            ahead = self._ahead(ticket)
        if following is not None and following is not ticket:
            following.wake()
        return ahead

    def ahead(self, ticket: Ticket) -> tuple[int, ...]:
        """The units that those ahead of a ticket in line ask each limit for."""
        with self._lock:
            return self._ahead(ticket)

    def is_first(self, ticket: Ticket) -> bool:
        """Whether nobody is ahead any more, after a look whether those ahead are still there."""
        with self._lock:
            following = self._tidy(ticket.line)
        if following is not None and following is not ticket:
            following.wake()
        return ticket.first

    def leave(self, ticket: Ticket) -> None:
        """Give the place up, wherever it is; the next becomes the first."""
        with self._lock:
            waiting = self._lines.get(ticket.line)
            if waiting is None or ticket not in waiting:
                return
            del waiting[ticket]
            following = self._tidy(ticket.line)
        if following is not None:
            following.wake()

    def look_again(self) -> None:
        """Wake the first of every line: something was given back."""
        with self._lock:
            firsts = [next(iter(waiting)) for waiting in self._lines.values()]
        for ticket in firsts:
            ticket.wake()

    def _tidy(self, line: Hashable) -> Ticket | None:
        """Let those at the head of a line go who are gone; the next in line if it has become the first by this."""
        waiting = self._lines[line]
        while waiting:
            ticket = next(iter(waiting))
            if not ticket.gone():
                became, ticket.first = not ticket.first, True
                return ticket if became else None
            del waiting[ticket]
        del self._lines[line]
        return None

    def _ahead(self, ticket: Ticket) -> tuple[int, ...]:
        before = takewhile(lambda other: other is not ticket, self._lines[ticket.line])
        return tuple(map(sum, zip(*(other.costs for other in before), strict=True))) or (0,) * len(ticket.costs)

    def __len__(self) -> int:
        """How many callers wait."""
        with self._lock:
            return sum(map(len, self._lines.values()))

    def __reduce__(self) -> tuple[type[Lines], tuple[()]]:
        """Nobody waits in a copy."""
        return (Lines, ())
