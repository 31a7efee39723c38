"""Rounding for people and for the wire: always up, so that nobody who waits what is said comes too early."""

from __future__ import annotations

from typing import Final

__all__ = ["milliseconds_up", "seconds_up"]

_SECOND: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000


def seconds_up(nanoseconds: int) -> int:
    """Whole seconds, rounded up."""
    return -(-nanoseconds // _SECOND)


def milliseconds_up(nanoseconds: int) -> int:
    """Whole milliseconds, rounded up."""
    return -(-nanoseconds // _MILLISECOND)
