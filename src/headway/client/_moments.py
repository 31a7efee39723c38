"""What one written time means, in seconds from the server's now.

Nothing here reads a clock: `now` is the server's time in seconds since 1970. A negative answer is an instant in the
past. None means malformed: such a hint is ignored, not believed.

The rules: digits are seconds unless they are an instant near now in seconds, ms, µs or ns since 1970; a date without
a zone is UTC; a day without a time of day, or a bare "tomorrow", ends at the latest midnight anywhere on Earth.
"""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

FAR = 1.7976931348623157e308
"""What stands for digits too large for a float: still a hint, and never infinite."""

_DAY = 86_400.0
_AHEAD = 400 * _DAY  # a yearly allowance and some slack: further ahead no reset is plausible
_BEHIND = 7 * _DAY
_ABSURD = 1e9  # as a delta: 31 years; as an instant: 2001

_LONGEST = 80  # characters of a written time, digits apart

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_MONTH_NAMES = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_MONTHS = {name: place for place, name in enumerate(_MONTH_NAMES.split("|"), 1)}
_MONTH = f"({_MONTH_NAMES})[a-z]*"
_CLOCK = r"(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?"
_ZONE = r"(?:\s*(Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d)(?:\s+UTC\b)?)?"
HTTP_DATE = rf"(?:[a-z]{{3,9}},?\s+)?(\d{{1,2}})[ -]{_MONTH}[ -](\d{{4}}|\d{{2}})\s+{_CLOCK}{_ZONE}"
ASCTIME = rf"(?:[a-z]{{3}}\s+)?{_MONTH}\s+(\d{{1,2}})\s+{_CLOCK}\s+(\d{{4}})"
JS_DATE = rf"(?:[a-z]{{3}}\s+)?{_MONTH}\s+(\d{{1,2}})\s+(\d{{4}})\s+{_CLOCK}\s*(?:GMT)?([+-]\d{{4}})?"
ISO_DATE = rf"(\d{{4}})[-/](\d\d|{_MONTH})[-/](\d\d)(?:[T ]\s?{_CLOCK}{_ZONE})?"
_HTTP_DATE = re.compile(HTTP_DATE, re.I | re.A)
_ASCTIME = re.compile(ASCTIME, re.I | re.A)
_ISO_DATE = re.compile(ISO_DATE, re.I | re.A)
_JS_DATE = re.compile(JS_DATE, re.I | re.A)
DATE = f"{HTTP_DATE}|{ASCTIME}|{JS_DATE}|{ISO_DATE}"
"""Any written date, for use inside other patterns; its groups are positional."""
_ANY_DATE = re.compile(DATE, re.I | re.A)

_COUNTS: dict[str, float] = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty-five": 45,
    "sixty": 60,
    "half an": 0.5,
}
_UNITS = {
    **dict.fromkeys(["ns", "nanosecond"], 1e-9),
    **dict.fromkeys(["us", "µs", "microsecond"], 1e-6),
    **dict.fromkeys(["ms", "msec", "millisecond", "milli"], 1e-3),
    **dict.fromkeys(["s", "sec", "second"], 1.0),
    **dict.fromkeys(["m", "min", "minute"], 60.0),
    **dict.fromkeys(["h", "hr", "hour"], 3600.0),
    **dict.fromkeys(["d", "day"], _DAY),
    **dict.fromkeys(["w", "wk", "week"], 7 * _DAY),
}
UNIT = "|".join(sorted((re.escape(unit) for unit in _UNITS), key=len, reverse=True))
_NUMERAL = r"\d{1,15}(?:\.\d{1,12})?|\.\d{1,12}"
_WORDED = "|".join(sorted(_COUNTS, key=len, reverse=True))
_TERM = rf"(?:(?:{_NUMERAL})[\s-]*|\b(?:{_WORDED})[\s-]+)(?:{UNIT})(?:s|\(s\))?(?![a-z])"
DURATION = rf"(?<![\w.])(?:\d{{1,9}}\s*(?:-|–|to)\s*)?{_TERM}(?:(?:\s*,?\s*(?:and\s+)?|\s*:\s*){_TERM}){{0,5}}"
_DURATION = re.compile(DURATION, re.I)
_ONE_TERM = re.compile(rf"(?:({_NUMERAL})[\s-]*|\b({_WORDED})[\s-]+)({UNIT})(?:s|\(s\))?(?![a-z])", re.I)
_GO_TERM = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)", re.A)
_GO = re.compile(rf"(?:{_GO_TERM.pattern})+", re.A)
_ISO_PERIOD = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.I | re.A
)
_TIME_SPAN = re.compile(r"(?:(\d+)\.)?(\d{1,3}):(\d\d):(\d\d(?:\.\d+)?)", re.A)

# Offsets from UTC in use anywhere (tz database, 2026), in quarters of an hour, daylight saving time included.
_OFFSETS = (
    *(-48, -44, -40, -38, -36, -32, -28, -24, -20, -16, -14, -12, -10, -8, -4, 0, 4, 8, 12, 14, 16, 18, 20),
    *(22, 23, 24, 26, 28, 32, 35, 36, 38, 40, 42, 44, 48, 51, 52, 55, 56),
)


def number(text: str) -> float | None:
    """Return a plain non-negative decimal number, or None; digits too many for a float give `FAR`."""
    found = _NUMBER.fullmatch(text)
    if found is None or not text.isascii():
        return None
    if len(text) > _LONGEST:
        text = "0" + text.lstrip("0")[:400]  # 310 digits are more than a float holds
    return min(float(text), FAR)


def offset(text: str, now: float, *, unit: float = 1.0, reset: bool = False) -> float | None:
    """Return how far from now one written time is.

    Args:
        text: Digits, a decimal, a duration, or a date in any of the usual forms.
        now: The server's time, seconds since 1970.
        unit: What a bare number counts: 1.0 for seconds, 0.001 for milliseconds.
        reset: The field names an instant by its nature, so that digits that make an absurd wait are an instant even
            long ago; otherwise they are one only within days of now.

    Returns:
        Seconds from now, negative for the past; None when malformed.
    """
    text = text.strip().strip('"').strip()
    value = number(text)
    if value is not None:
        return from_number(value, now, unit=unit, reset=reset)
    if len(text) > _LONGEST:
        return None
    at = instant(text)
    if at is not None:
        return round(at - now, 6)
    return duration(text)


def from_number(value: float, now: float, *, unit: float = 1.0, reset: bool = False) -> float | None:
    """Return how far from now a bare number is; see `offset`."""
    if not value >= 0 or value == math.inf:
        return None
    if value >= _ABSURD:
        for scale in (1.0, 1e-3, 1e-6, 1e-9):
            at = value * scale
            if (_ABSURD if reset else now - _BEHIND) <= at <= now + _AHEAD:
                return round(at - now, 6)
    return value if unit == 1.0 else round(value * unit, 9)


@lru_cache(maxsize=256)
def instant(text: str) -> float | None:
    """Return a date in one of HTTP's three forms or in ISO 8601 as seconds since 1970, or None.

    The weekday carries no information and is ignored; no zone means UTC (RFC 9110 §5.6.7).
    """
    for pattern, read in _FORMS_BY_START["0" <= text[:1] <= "9"]:
        found = pattern.fullmatch(text)
        if found is not None:
            try:
                return read(found.groups())
            except (ValueError, OverflowError):
                return None
    return None


def instants(text: str) -> list[tuple[str, float]]:
    """Return every date written in a text, with the words that wrote it."""
    found = []
    for match in _ANY_DATE.finditer(text):
        at = instant(match.group())
        if at is not None:
            found.append((match.group(), at))
    return found


def duration(text: str) -> float | None:
    """Return the seconds of `7m12s`, `2 hours and 3 minutes`, `PT30S`, `00:01:30`; None when it is none of these."""
    if _GO.fullmatch(text):
        return _total([(count, unit) for count, unit in _GO_TERM.findall(text)])
    if _DURATION.fullmatch(text):
        return _total([(count or word, unit) for count, word, unit in _ONE_TERM.findall(text.lower())])
    found = _ISO_PERIOD.fullmatch(text)
    if found is not None and any(found.groups()):
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return weeks * 7 * _DAY + days * _DAY + hours * 3600 + minutes * 60 + seconds
    found = _TIME_SPAN.fullmatch(text)
    if found is not None:
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return days * _DAY + hours * 3600 + minutes * 60 + seconds
    return None


def next_midnight(now: float, zone: tzinfo | None) -> float:
    """Return when tomorrow begins, seconds since 1970.

    Args:
        now: The server's time.
        zone: Whose tomorrow; None for the latest midnight anywhere: the moment at which every place on Earth has
            passed the midnight that was its next one.
    """
    if zone is not None:
        with suppress(ValueError, OverflowError):  # a zone's calendar knows the years 1 to 9999; a server says any
            day = datetime.fromtimestamp(now, zone).date() + timedelta(days=1)
            return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()
    return max(now + _DAY - (now + quarter * 900) % _DAY for quarter in _OFFSETS)


def next_clock(now: float, hour: int, minute: int, zone: tzinfo | None) -> float:
    """Return when a clock next shows a time, seconds since 1970; without a zone, the latest clock on Earth."""
    if zone is not None:
        with suppress(ValueError, OverflowError):  # as above
            local = datetime.fromtimestamp(now, zone)
            for days in (0, 1):
                day = local.date() + timedelta(days=days)
                at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).timestamp()
                if at > now:
                    return at
            return now + _DAY
    wanted = hour * 3600 + minute * 60
    return max(now + (wanted - now - quarter * 900) % _DAY for quarter in _OFFSETS)


def to_datetime(at: float, zone: tzinfo = UTC) -> datetime | None:
    """Return an instant as an aware datetime; None outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(round(at, 6), zone)
    except (ValueError, OverflowError, OSError):
        return None


def _total(terms: list[tuple[str, str]]) -> float:
    """Add up (count, unit) pairs."""
    seconds = 0.0
    for count, unit in terms:
        amount = _COUNTS.get(count)
        seconds += min(float(count) if amount is None else amount, FAR) * _UNITS[unit]
    return min(round(seconds, 9), FAR) if seconds < 1e15 else min(seconds, FAR)


def _from_iso(parts: tuple[str | None, ...]) -> float:
    """Read the groups of `ISO_DATE`."""
    year, month, month_name, day, hour, minute, second, fraction, zone = parts
    which = _MONTHS[month_name.lower()] if month_name else int(month or 0)
    if hour is None:
        # A day without a time of day: the latest midnight that starts it, in UTC−12.
        return datetime(int(year or 0), which, int(day or 0), 12, tzinfo=UTC).timestamp()
    return _at(year, which, day, hour, minute, second, fraction, zone)


def _from_http(parts: tuple[str | None, ...]) -> float:
    """Read the groups of `HTTP_DATE`."""
    day, month, year, hour, minute, second, fraction, zone = parts
    return _at(year, _MONTHS[(month or "").lower()], day, hour, minute, second, fraction, zone)


def _from_asctime(parts: tuple[str | None, ...]) -> float:
    """Read the groups of `ASCTIME`."""
    month, day, hour, minute, second, fraction, year = parts
    return _at(year, _MONTHS[(month or "").lower()], day, hour, minute, second, fraction, None)


def _from_js(parts: tuple[str | None, ...]) -> float:
    """Read the groups of `JS_DATE`, which is how JavaScript prints a date."""
    month, day, year, hour, minute, second, fraction, zone = parts
    return _at(year, _MONTHS[(month or "").lower()], day, hour, minute, second, fraction, zone)


def _at(
    year: str | None,
    month: int,
    day: str | None,
    hour: str | None,
    minute: str | None,
    second: str | None,
    fraction: str | None,
    zone: str | None,
) -> float:
    """Return the instant of written parts; a two-digit year is within 50 years of 2026 (RFC 9110 §5.6.7)."""
    full_year = int(year or 0)
    if year is not None and len(year) == 2:
        full_year += 2000 if full_year < 77 else 1900
    offset_from_utc = UTC if zone is None or zone[0] not in "+-" else _fixed(zone)
    seconds = int(second or 0)
    leap = seconds == 60  # the second after 59, as POSIX time has it
    moment = datetime(
        full_year, month, int(day or 0), int(hour or 0), int(minute or 0), seconds - leap, tzinfo=offset_from_utc
    )
    return round(moment.timestamp() + leap + float(f"0.{fraction or 0}"), 6)


_FORMS_BY_START = (
    ((_HTTP_DATE, _from_http), (_ASCTIME, _from_asctime), (_JS_DATE, _from_js)),
    ((_ISO_DATE, _from_iso), (_HTTP_DATE, _from_http)),
)


def _fixed(zone: str) -> timezone:
    """Return the zone of `+02:00` or `-0730`."""
    digits = zone[1:].replace(":", "")
    delta = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-delta if zone[0] == "-" else delta)
