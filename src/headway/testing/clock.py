"""``ManualClock``: time that moves only when told."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import isfinite
from numbers import Rational
from typing import TYPE_CHECKING

from headway.errors import kind_of

if TYPE_CHECKING:
    import asyncio

__all__ = ["ManualClock"]

_SECOND = 1_000_000_000


class ManualClock:
    """A clock for tests: pass it to a store as ``clock=``. A limiter on such a store waits by moving it.

    Args:
        start: seconds since 1970, an int, a Fraction, or a float (taken as exactly the number it is); or a ``datetime``
            with a time zone. Where seconds are expected a ``timedelta`` will do.

    Attributes:
        now: ns since 1970; may be set, backwards too.
    """

    def __init__(self, start: Rational | float | timedelta | datetime = 1_800_000_000) -> None:
        self.now = _instant(start)
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """Ns since 1970."""
        return self.now

    def advance(self, seconds: Rational | float | timedelta = 0, *, ns: int = 0) -> int:
        """Move by that much (negative: a step back); the new time in ns. Parts of a nanosecond are dropped.

        Raises:
            TypeError: what is no number of seconds, or an ``ns`` that is not whole.
            ValueError: NaN or infinity.
        """
        if isinstance(ns, bool) or not isinstance(ns, int):
            raise TypeError(f"ns is {ns!r}, {kind_of(ns)}; expected whole nanoseconds")
        by = _nanoseconds(seconds) + ns
        with self._lock:
            self.now += by
            return self.now

    def set(self, seconds: Rational | float | timedelta | datetime) -> None:
        """Go to that many seconds since 1970, or to a moment with a time zone.

        Raises:
            TypeError: what is neither.
            ValueError: NaN, infinity or a moment without a time zone.
        """
        self.now = _instant(seconds)

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


def _instant(moment: Rational | float | timedelta | datetime) -> int:
    if not isinstance(moment, datetime):
        return _nanoseconds(moment)
    if moment.utcoffset() is None:
        raise ValueError(f"{moment!r} says no time zone; expected one that does, such as datetime(…, tzinfo=UTC)")
    return _nanoseconds(moment - datetime(1970, 1, 1, tzinfo=UTC))


def _nanoseconds(seconds: Rational | float | timedelta) -> int:
    if isinstance(seconds, timedelta):
        return (seconds // timedelta(microseconds=1)) * 1_000
    whole = isinstance(seconds, Rational) and not isinstance(seconds, bool)
    if not whole and not (hasattr(seconds, "as_integer_ratio") and not isinstance(seconds, bool)):
        raise TypeError(f"{seconds!r}, {kind_of(seconds)}, is no time; expected seconds or a timedelta")
    if not whole and not isfinite(seconds):
        raise ValueError(f"{seconds!r} is no time; expected a finite number of seconds")
    return int(Fraction(seconds) * _SECOND)
