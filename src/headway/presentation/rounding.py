"""Rounding for people and for the wire: always up, so that nobody who waits what is said comes too early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

__all__ = ["instant", "milliseconds_up", "seconds_up", "whole_minute"]

_SECOND: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000


def seconds_up(nanoseconds: int) -> int:
    """Whole seconds, rounded up."""
    return -(-nanoseconds // _SECOND)


def milliseconds_up(nanoseconds: int) -> int:
    """Whole milliseconds, rounded up."""
    return -(-nanoseconds // _MILLISECOND)


def instant(nanoseconds: int, zone: ZoneInfo | None = None) -> datetime | None:
    """The moment that many ns since 1970, rounded up to the millisecond, in ``zone`` (None is UTC).

    None where a date cannot hold it (before the year 1 or after 9999).
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds_up(nanoseconds))
        return moment if zone is None else moment.astimezone(zone)
    except OverflowError:
        return None


def whole_minute(moment: datetime) -> datetime | None:
    """The same moment rounded up to what a clock on the wall in its zone shows as a whole minute.

    None where that would be after the year 9999.
    """
    past = moment.second * 1_000_000 + moment.microsecond
    if not past:
        return moment
    try:
        later = moment.astimezone(UTC) + timedelta(microseconds=60_000_000 - past)  # in UTC: no wall-clock arithmetic
        return later.astimezone(moment.tzinfo)
    except OverflowError:
        return None
