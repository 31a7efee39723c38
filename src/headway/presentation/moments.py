"""Moments as dates, for people and documents: rounded up, in a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from headway.presentation.rounding import milliseconds_up

__all__ = ["instant", "whole_minute"]


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
