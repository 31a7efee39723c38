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
    """

    __slots__ = ("_check_at", "_monotonic", "_offset", "_wall")

    def __init__(self, monotonic: Clock = time.monotonic_ns, wall: Clock = time.time_ns) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._offset = wall() - monotonic()
        self._check_at = 0

    def __call__(self) -> int:
        """Nanoseconds since 1970."""
        ticks = self._monotonic()
        if ticks >= self._check_at:
            self._check_at = ticks + _CHECK_EVERY_NS
            offset = self._wall() - ticks
            if abs(offset - self._offset) > _DRIFT_NS:
                self._offset = offset
        return ticks + self._offset
