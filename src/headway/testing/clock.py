"""``ManualClock``: time that moves only when told."""

from __future__ import annotations

import threading
from fractions import Fraction
from numbers import Rational

__all__ = ["ManualClock"]

_SECOND = 1_000_000_000


class ManualClock:
    """A clock for tests: pass it to a store as ``clock=``.

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


def _nanoseconds(seconds: Rational | float) -> int:
    return int(Fraction(seconds) * _SECOND)
