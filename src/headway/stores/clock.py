"""Clocks a store in the process can own. A clock is a callable: nanoseconds since 1970, an int."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["AnchoredClock", "Clock", "wall_clock"]

Clock = Callable[[], int]

_DRIFT_NS = 1_000_000_000
_CHECK_EVERY_NS = 1_000_000_000

wall_clock: Clock = time.time_ns
"""The host's wall clock: what processes that share a SQLite file agree on."""


class AnchoredClock:
    """The monotonic clock, anchored to the wall: never steps with small adjustments, follows a step above one second.

    Args:
        monotonic: nanoseconds that never go back.
        wall: nanoseconds since 1970; read about once a second.

    Attributes:
        offset: what turns a monotonic reading into ns since 1970.
        check_at: the monotonic reading from which on the clock has to be called, not added up.
    """

    __slots__ = ("_monotonic", "_wall", "check_at", "offset")

    def __init__(self, monotonic: Clock = time.monotonic_ns, wall: Clock = time.time_ns) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self.offset = wall() - monotonic()
        self.check_at = 0

    def __call__(self) -> int:
        """Nanoseconds since 1970."""
        ticks = self._monotonic()
        if ticks >= self.check_at:
            self.check_at = ticks + _CHECK_EVERY_NS
            offset = self._wall() - ticks
            if abs(offset - self.offset) > _DRIFT_NS:
                self.offset = offset
        return ticks + self.offset

    @classmethod
    def parts(cls, clock: Clock) -> tuple[Clock, AnchoredClock]:
        """A clock taken apart for a hot path: ``ticks() + anchor.offset`` while ``ticks() < anchor.check_at``.

        Any other clock comes as itself with an anchor that adds nothing and never has to be checked.
        """
        if isinstance(clock, cls):
            return clock._monotonic, clock
        still = cls(lambda: 0, lambda: 0)
        still.check_at = 2**200
        return clock, still
