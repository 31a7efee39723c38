"""A sentence read back: the moment it tells a person to try again, in every language that is shipped."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from headway.core.zone import zone_of
from headway.presentation.language import language, resolve
from headway.presentation.wait import ABSOLUTE, MONTHS, RELATIVE

__all__ = ["hear"]

_SECOND: Final = 1_000_000_000
_GROUPS: Final = {
    "count": r"(?<![0-9])(?P<count>[0-9]{1,18}+)",
    "time": r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})",
    "zone": r"(?P<zone>[A-Za-z][A-Za-z0-9_+/\-]*)(?:, UTC(?P<offset>[+-][0-9]{2}:[0-9]{2}))?",
    "day": r"(?P<day>[0-9]{1,2})[a-z]*",
    "year": r"(?P<year>[0-9]{4})",
}


def hear(text: str, now: int, locale: str = "en") -> int | None:
    """When the sentence says to try again, in ns since 1970; None where it names no time.

    Args:
        text: what ``sentence`` wrote, or a text that contains its ``{wait}``; the last time in it counts.
        now: the moment it was said, ns since 1970: what "today" and "in 4 minutes" start from.
        locale: the language it was said in.

    Raises:
        ValueError: a day, a time of day or a zone that there is not; ``sentence`` writes none.
    """
    best: tuple[int, int, re.Match[str], int] | None = None
    for rank, (pattern, unit) in enumerate(_patterns(resolve(locale) or "en")):
        for found in pattern.finditer(text):
            if best is None or (found.end(), -rank) > best[:2]:
                best = (found.end(), -rank, found, unit)
    if best is None:
        return None
    _, _, found, unit = best
    if unit:
        return now + int(found["count"]) * unit
    return _moment(found, now, resolve(locale) or "en")


@cache
def _patterns(locale: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """(pattern, ns a unit; 0 for a time of day), the more telling first."""
    words = language(locale)
    phrases = [(words.gettext(phrase), 0) for phrase in reversed(ABSOLUTE)]
    for (one, many), unit in RELATIVE.items():
        forms = {words.ngettext(one, many, count) for count in (0, 1, 2, 1_000_000)}
        phrases += [(form.strip(), unit) for form in sorted(forms, key=len, reverse=True)]
    months = sorted((words.gettext(month) for month in MONTHS), key=len, reverse=True)
    groups = {**_GROUPS, "month": f"(?P<month>{'|'.join(map(re.escape, months))})"}
    return tuple((re.compile(_pattern(phrase, groups)), unit) for phrase, unit in phrases)


def _pattern(phrase: str, groups: dict[str, str]) -> str:
    parts = re.split(r"\{(\w+)\}", phrase)
    return "".join(groups[part] if index % 2 else re.escape(part) for index, part in enumerate(parts))


def _moment(found: re.Match[str], now: int, locale: str) -> int:
    said = {"day": None, "month": None, "year": None, **found.groupdict()}
    zone = zone_of(str(said["zone"]))
    day = datetime.fromtimestamp(now // _SECOND, zone).date()
    if said["day"] is not None:
        words = language(locale)
        month = next(number for number, name in enumerate(MONTHS, 1) if words.gettext(name) == said["month"])
        day = day.replace(int(said["year"] or day.year), month, int(said["day"]))
    elif found.re.pattern == _pattern(language(locale).gettext(ABSOLUTE[1]), _GROUPS):
        day += timedelta(days=1)
    moment = datetime(day.year, day.month, day.day, int(str(said["hour"])), int(str(said["minute"])), tzinfo=zone)
    offset = f"{moment:%z}"
    if said["offset"] not in (None, f"{offset[:3]}:{offset[3:5]}"):
        moment = moment.replace(fold=1)
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * _SECOND
