"""Which wall clock goes with a timer: its own where it is a clock too (a ``ManualClock``), else the host's."""

from __future__ import annotations

from headway.stores.clock import Clock, wall_clock

__all__ = ["clock_of"]


def clock_of(timer: object) -> Clock:
    """Nanoseconds since 1970, on the clock that ``timer`` waits on as far as it has one."""
    return timer if callable(timer) else wall_clock
