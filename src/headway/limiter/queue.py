"""Lines of waiting callers, first come first served per key of a limit. Only the first of a line looks at the store.

So a line has one timer and one wake-up a slot, however long it is; a caller that leaves (admitted, timed out,
cancelled) wakes just the next one. A caller of several limits stands in the line of the one that holds it back, and
when that is another one, goes there to the place that its coming gives it.
"""

from __future__ import annotations

import os
import threading
from bisect import insort
from collections.abc import Callable, Hashable, Sequence
from itertools import count, takewhile
from typing import Any
from weakref import WeakSet

__all__ = ["Lines", "Ticket"]


class Ticket:
    """A caller that waits.

    Args:
        wake: called, from any thread, when the ticket becomes the first or should look again.
        calm: takes a wake back, before looking.
        event: what ``wake`` sets.
        gone: whether its caller can never look again (its event loop was closed under it).

    Attributes:
        number: in the order of coming; 0 before it stands in a line.
        line: the one it stands in, or None.
        units: what it asks of that line's limit.
        first: nobody is ahead of it there.
    """

    __slots__ = ("calm", "event", "first", "gone", "line", "number", "units", "wake")

    def __init__(
        self,
        wake: Callable[[], object],
        calm: Callable[[], object],
        event: Any = None,
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.wake = wake
        self.calm = calm
        self.event = event
        self.gone = gone
        self.number = 0
        self.line: Hashable | None = None
        self.units = 0
        self.first = False


class Lines:
    """All lines of a limiter. Bounded by the callers that wait: an empty line is forgotten."""

    def __init__(self) -> None:
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[Hashable, list[Ticket]] = {}
        self._numbers = count(1)

    def busy(self, lines: Sequence[Hashable]) -> int | None:
        """The index of the first of these lines in which somebody waits."""
        with self._lock:
            return next((index for index, line in enumerate(lines) if line in self._lines), None)

    def join(self, line: Hashable, ticket: Ticket, units: int) -> int:
        """Stand in a line, in none but it: at its end, or before those that came later. The units that those ahead ask for."""
        if ticket.line != line:
            self.leave(ticket)
        with self._lock:
            ticket.number = ticket.number or next(self._numbers)
            if ticket.line is None:
                insort(self._lines.setdefault(line, []), ticket, key=lambda other: other.number)
            ticket.line, ticket.units = line, units
            following = self._tidy(line)
            ahead = self._ahead(ticket)
        if following is not None and following is not ticket:
            following.wake()
        return ahead

    def ahead(self, ticket: Ticket) -> int:
        """The units that those ahead of a ticket ask for."""
        with self._lock:
            return self._ahead(ticket)

    def is_first(self, ticket: Ticket) -> bool:
        """Whether nobody is ahead, after a look whether those ahead are still there."""
        with self._lock:
            following = self._tidy(ticket.line)
        if following is not None and following is not ticket:
            following.wake()
        return ticket.first

    def leave(self, ticket: Ticket) -> None:
        """Give the place up, wherever it is; the next becomes the first."""
        with self._lock:
            line, ticket.line, ticket.first = ticket.line, None, False
            waiting = self._lines.get(line)
            if waiting is None or ticket not in waiting:
                return
            waiting.remove(ticket)
            following = self._tidy(line)
        if following is not None:
            following.wake()

    def look_again(self) -> None:
        """Wake the first of every line: something was given back."""
        with self._lock:
            firsts = [waiting[0] for waiting in self._lines.values()]
        for ticket in firsts:
            ticket.wake()

    def _tidy(self, line: Hashable) -> Ticket | None:
        """Let those at the head of a line go who are gone; the one who has become the first by this, if somebody has."""
        waiting = self._lines[line]
        while waiting and waiting[0].gone():
            del waiting[0]
        if not waiting:
            del self._lines[line]
            return None
        for ticket in waiting[1:2]:
            ticket.first = False  # somebody who came earlier has come from another line
        became, waiting[0].first = not waiting[0].first, True
        return waiting[0] if became else None

    def _ahead(self, ticket: Ticket) -> int:
        return sum(other.units for other in takewhile(lambda other: other is not ticket, self._lines[ticket.line]))

    def __len__(self) -> int:
        """How many callers stand in a line."""
        with self._lock:
            return sum(map(len, self._lines.values()))

    def __reduce__(self) -> tuple[type[Lines], tuple[()]]:
        """Nobody waits in a copy."""
        return (Lines, ())


_alive: WeakSet[Lines] = WeakSet()


def _after_fork_in_child() -> None:
    """Those who waited at the moment of the fork wait in the parent: in the child they would never look again."""
    for lines in _alive:
        lines._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
