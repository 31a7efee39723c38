"""``ManualClock``: time that moves only when told."""

from __future__ import annotations

import threading
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

__all__ = ["ManualClock"]

_SECOND = 1_000_000_000


class ManualClock:
    """A clock for tests: pass it to a store as ``clock=``. A limiter on such a store waits by moving it.

    Args:
        start: seconds since 1970; an int, a Fraction, or a float (taken as exactly the number it is).

    Attributes:
        now: ns since 1970; may be set, backwards too.
    """

    def __init__(self, start: Rational | float = 1_800_000_000) -> None:
        self.now = _nanoseconds(start)
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """Ns since 1970."""
        return self.now

    def advance(self, seconds: Rational | float = 0, *, ns: int = 0) -> int:
        """Move by that much (negative: a step back); the new time in ns. Parts of a nanosecond are dropped."""
        with self._lock:
            self.now += _nanoseconds(seconds) + ns
            return self.now

    def set(self, seconds: Rational | float) -> None:
        """Go to that many seconds since 1970."""
        self.now = _nanoseconds(seconds)

    def ticks(self) -> int:
        """The clock as a waiting caller's timer: the same nanoseconds."""
        return self.now

    def pause(self, event: threading.Event, ns: int) -> None:
        """Waiting is moving the clock on; at once, unless the event is set already."""
        if not event.is_set():
            self.advance(ns=ns)

    def turn(self, event: threading.Event, ns: int) -> None:
        """Wait, in real time, until the event is set or somebody else has moved the clock on that far."""
        end = self.now + ns
        while self.now < end and not event.wait(0.001):
            pass

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        """``pause`` for an event loop; lets other tasks run first."""
        import asyncio

        await asyncio.sleep(0)
        if not event.is_set():
            self.advance(ns=ns)

    async def turn_async(self, event: asyncio.Event, ns: int) -> None:
        """``turn`` for an event loop."""
        import asyncio

        end = self.now + ns
        while self.now < end and not event.is_set():  # noqa: ASYNC110  # somebody else moves the clock; no event says so
            await asyncio.sleep(0)


def _nanoseconds(seconds: Rational | float) -> int:
    return int(Fraction(seconds) * _SECOND)
