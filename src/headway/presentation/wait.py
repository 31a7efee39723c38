"""How long, in words: "in 42 seconds", "in 4 minutes", "tomorrow at 00:00 (Asia/Shanghai)". Never early."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from headway.core.zone import zone_of
from headway.presentation.language import Language, mark
from headway.presentation.rounding import instant, seconds_up, whole_minute

__all__ = ["MONTHS", "say_wait"]

MONTHS: Final = (
    mark("January"), mark("February"), mark("March"), mark("April"), mark("May"), mark("June"),
    mark("July"), mark("August"), mark("September"), mark("October"), mark("November"), mark("December"),
)  # fmt: skip

_HOUR: Final = 3_600_000_000_000
_DAY: Final = 24 * _HOUR


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
    seconds = max(1, seconds_up(nanoseconds))
    if seconds < 120:
        return language.ngettext("in {count} second", "in {count} seconds", seconds).format(count=seconds)
    if nanoseconds <= _HOUR:
        minutes = -(-seconds // 60)
        return language.ngettext("in {count} minute", "in {count} minutes", minutes).format(count=minutes)
    place = zone_of(zone or "UTC")
    moment, today = instant(now + nanoseconds, place), instant(now, place)
    moment = whole_minute(moment) if moment is not None else None
    if moment is None or today is None:
        days = -(-nanoseconds // _DAY)
        return language.ngettext("in {count} day", "in {count} days", days).format(count=days)
    return _say_moment(moment, today, _say_zone(moment, place), language)


def _say_moment(moment: datetime, today: datetime, zone: str, language: Language) -> str:
    time = f"{moment:%H:%M}"
    if moment.date() == today.date():
        return language.gettext("today at {time} ({zone})").format(time=time, zone=zone)
    if moment.date() == today.date() + timedelta(days=1):
        return language.gettext("tomorrow at {time} ({zone})").format(time=time, zone=zone)
    day = str(moment.day) if moment.day != 1 else language.gettext("1")
    month = language.gettext(MONTHS[moment.month - 1])
    if moment.year == today.year:
        return language.gettext("on {day} {month} at {time} ({zone})").format(
            day=day, month=month, time=time, zone=zone
        )
    return language.gettext("on {day} {month} {year} at {time} ({zone})").format(
        day=day, month=month, year=f"{moment.year:04d}", time=time, zone=zone
    )


def _say_zone(moment: datetime, zone: ZoneInfo) -> str:
    """The zone's name, with its offset where the clock shows this minute twice."""
    if moment.replace(fold=0).utcoffset() == moment.replace(fold=1).utcoffset():
        return zone.key
    offset = f"{moment:%z}"
    return f"{zone.key}, UTC{offset[:3]}:{offset[3:5]}"
