"""How long, in words: "in 42 seconds", "in 4 minutes", "tomorrow at 00:00 (Asia/Shanghai)". Never early."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from headway.core.zone import zone_of
from headway.presentation.language import Language, mark, mark_plural
from headway.presentation.moments import instant, whole_minute
from headway.presentation.rounding import seconds_up

__all__ = ["ABSOLUTE", "MONTHS", "RELATIVE", "say_wait"]

MONTHS: Final = (
    mark("January"), mark("February"), mark("March"), mark("April"), mark("May"), mark("June"),
    mark("July"), mark("August"), mark("September"), mark("October"), mark("November"), mark("December"),
)  # fmt: skip

_SECOND: Final = 1_000_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR

RELATIVE: Final = {
    mark_plural("in {count} second", "in {count} seconds"): _SECOND,
    mark_plural("in {count} minute", "in {count} minutes"): _MINUTE,
    mark_plural("in {count} day", "in {count} days"): _DAY,
}
"""Phrases (singular, plural) and the ns of what they count."""

ABSOLUTE: Final = (
    mark("today at {time} ({zone})"),
    mark("tomorrow at {time} ({zone})"),
    mark("on {day} {month} at {time} ({zone})"),
    mark("on {day} {month} {year} at {time} ({zone})"),
)
"""Phrases for a moment: the same day, the next, the same year, another year."""


def say_wait(nanoseconds: int, now: int, zone: str | None, language: Language) -> str:
    """The wait as the middle of a sentence.

    Seconds below two minutes, minutes up to an hour, then the local time in ``zone`` with its name, rounded up to the
    minute; days where a date cannot hold it. Where a clock shows that minute twice (the end of daylight saving), the
    offset is said too.

    Args:
        nanoseconds: from now, above 0.
        now: the deciding clock, ns since 1970.
        zone: an IANA name; None is UTC.
        language: the reader's.
    """
    if seconds_up(nanoseconds) < 120:
        return _count(nanoseconds, _SECOND, language)
    if nanoseconds <= _HOUR:
        return _count(nanoseconds, _MINUTE, language)
    place = zone_of(zone or "UTC")
    moment, today = instant(now + nanoseconds, place), instant(now, place)
    moment = whole_minute(moment) if moment is not None else None
    if moment is None or today is None:
        return _count(nanoseconds, _DAY, language)
    return _say_moment(moment, today, _say_zone(moment, place), language)


def _count(nanoseconds: int, unit: int, language: Language) -> str:
    """So many of a unit, rounded up, at least one."""
    count = max(1, -(-nanoseconds // unit))
    phrase = next(phrase for phrase, counted in RELATIVE.items() if counted == unit)
    return language.ngettext(*phrase, count).format(count=count)


def _say_moment(moment: datetime, today: datetime, zone: str, language: Language) -> str:
    if moment.date() == today.date():
        phrase = ABSOLUTE[0]
    elif moment.date() == today.date() + timedelta(days=1):
        phrase = ABSOLUTE[1]
    else:
        phrase = ABSOLUTE[2] if moment.year == today.year else ABSOLUTE[3]
    return language.gettext(phrase).format(
        day=language.gettext("1") if moment.day == 1 else moment.day,
        month=language.gettext(MONTHS[moment.month - 1]),
        year=f"{moment.year:04d}",
        time=f"{moment:%H:%M}",
        zone=zone,
    )


def _say_zone(moment: datetime, zone: ZoneInfo) -> str:
    """The zone's name, with its offset where the clock shows this minute twice."""
    if moment.replace(fold=0).utcoffset() == moment.replace(fold=1).utcoffset():
        return zone.key
    offset = f"{moment:%z}"
    return f"{zone.key}, UTC{offset[:3]}:{offset[3:5]}"
