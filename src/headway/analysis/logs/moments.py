"""Times as logs write them: Apache's stamp, ISO 8601, and counts since 1970 in seconds or smaller units."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final

from headway.analysis.access_log import instant
from headway.core.quota import SECOND

__all__ = ["LAST", "moment", "moments", "seconds", "stamps"]

_ISO: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,18}))? ?"
    r"(Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_STAMP: Final = re.compile(r"\[?([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4})\]?")
_NUMBER: Final = re.compile(r"[0-9]{1,19}(?:\.[0-9]{0,18})?(?:[eE]\+?[0-9]{1,2})?")
_UNITS: Final = ((10**11, SECOND), (10**14, 10**6), (10**17, 10**3))
"""Below this number a count is of that many ns: seconds until the year 5138, ms from March 1973, µs, else ns."""
LAST: Final = 9_214_646_400 * SECOND
"""The end of 2261: nanoseconds since 1970 fit 64 bits until then."""
_LONGEST: Final = 64


def moment(value: object) -> int | None:
    """A time in ns since 1970; None for one that cannot be read, that no clock shows, or outside 1970 to 2261.

    Args:
        value: ``25/Oct/2015:04:11:25 +0100`` (in brackets or not), ISO 8601 (without a zone: UTC; fractions down to ns, cut
            below), or a count since 1970 as a number or its text: below 10¹¹ in seconds, below 10¹⁴ in ms, below 10¹⁷ in µs,
            else in ns.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST:
            return None
        found = _ISO.fullmatch(text)
        if found:
            return _iso(*found.groups())
        found = _STAMP.fullmatch(text)
        if found:
            return instant(found[1].encode())
        if not _NUMBER.fullmatch(text):
            return None
        number: int | Decimal = Decimal(text)
    elif isinstance(value, datetime):
        return moment(value.isoformat())
    elif isinstance(value, float):
        try:
            number = Decimal(repr(value))
        except InvalidOperation:  # pragma: no cover - repr of a float is always a number
            return None
        if not number.is_finite():
            return None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return None
    if number < 0:
        return None
    scale = next((unit for bound, unit in _UNITS if number < bound), 1)
    ns = int(number * scale)
    return ns if ns < LAST else None


def moments(values: Iterable[object]) -> list[int | None]:
    """The times of many values, neighbours of which are often the same."""
    found: list[int | None] = []
    previous: object = None
    known: int | None = None
    for value in values:
        if value != previous or type(value) is not type(previous):
            previous, known = value, moment(value)
        found.append(known)
    return found


def stamps(values: Iterable[str]) -> list[int | None]:
    """The times of Apache's stamps, ``25/Oct/2015:04:11:25 +0100``, or of empty texts, which have none."""
    found: list[int | None] = []
    previous: str | None = None
    known: int | None = None
    for value in values:
        if value != previous:
            previous, known = value, instant(value.encode()) if value else None
        found.append(known)
    return found


def seconds(value: object, unit: int = SECOND) -> int | None:
    """A duration in ns, cut below; None for what is none.

    Args:
        value: a number at least 0, or its text.
        unit: ns in one of it.
    """
    if isinstance(value, float):
        value = repr(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value * unit if 0 <= value < 10**18 else None
    if isinstance(value, str) and len(value) <= _LONGEST and _NUMBER.fullmatch(value):
        number = Decimal(value) * unit
        return int(number) if number < 10**18 else None
    return None


def _iso(day: str, minute: str, second: str, fraction: str | None, zone: str | None) -> int | None:
    start = _minute(day, minute, zone or "Z")
    whole = int(second)
    if start is None or whole > 60:
        return None
    ns = (start + whole) * SECOND + int((fraction or "")[:9].ljust(9, "0"))
    return ns if 0 <= ns < LAST else None


@lru_cache(maxsize=4096)  # a log's lines share their minutes
def _minute(day: str, minute: str, zone: str) -> int | None:
    """Seconds since 1970 at the start of a minute; a leap second's 60 is the next minute's first."""
    try:
        local = datetime.fromisoformat(f"{day}T{minute}:00+00:00").astimezone(UTC)
    except ValueError:
        return None
    ahead = 0
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        hours, minutes = int(digits[:2]), int(digits[2:])
        if hours > 23 or minutes > 59:
            return None
        ahead = (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)
    return int(local.timestamp()) - ahead
