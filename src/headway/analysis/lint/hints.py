"""The values of ``Retry-After`` and of reset fields, told apart by their form. Nothing here reads a clock.

RFC 9110 §10.2.3 allows two forms, whole seconds and an HTTP-date; what else servers send is named here for what it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

__all__ = ["Form", "Hint", "http_date", "read_hint", "split_hints", "weekday"]

_DAYS: Final = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MONTHS: Final = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_IMF: Final = re.compile(rf"(?:{_DAYS}), [0-9]{{2}} (?:{_MONTHS}) [0-9]{{4}} {_CLOCK} GMT")
_RFC850: Final = re.compile(rf"[A-Z][a-z]{{5,8}}, [0-9]{{2}}-(?:{_MONTHS})-[0-9]{{2}} {_CLOCK} GMT")
_ASCTIME: Final = re.compile(rf"(?:{_DAYS}) (?:{_MONTHS}) [ 0-9][0-9] {_CLOCK} [0-9]{{4}}")
_LOOSE_DATE: Final = re.compile(
    rf"(?:[A-Za-z]{{3,9}},? +)?[0-9]{{1,2}}[ -](?:{_MONTHS})[ -][0-9]{{2,4}} {_CLOCK}.{{0,8}}"
)
_ISO: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_SECONDS: Final = re.compile(r"[0-9]{1,30}")
_FRACTION: Final = re.compile(r"[0-9]{0,18}\.[0-9]{1,18}|[0-9]{1,18}\.")
_NEGATIVE: Final = re.compile(r"-[0-9]{1,18}(?:\.[0-9]*)?")
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d))+|P(?:T?[0-9]+(?:\.[0-9]+)?[WDHMS])+")
_AN_INSTANT: Final = 1_000_000_000
"""As seconds from now 31 years; as an instant, 2001."""
_AHEAD: Final = 400 * 86_400
_BEHIND: Final = 7 * 86_400
_GUESSED: Final = (1_000_000_000, 4_102_444_800)
"""Instants of 2001 to 2099, where nothing says what time it is."""


class Form(Enum):
    """How a moment is written."""

    SECONDS = "whole seconds"
    FRACTION = "seconds with a fraction"
    NEGATIVE = "a negative number"
    EPOCH = "seconds since 1970"
    EPOCH_MS = "milliseconds since 1970"
    IMF_DATE = "an HTTP-date"
    OLD_DATE = "a date in an obsolete or loose form"
    ISO_DATE = "a date in ISO 8601"
    DURATION = "a duration with units"
    EMPTY = "empty"
    MALFORMED = "no number and no date"


@dataclass(frozen=True, slots=True)
class Hint:
    """One written moment.

    Attributes:
        text: as it was sent.
        form: how it is written.
        seconds: from the server's now, negative for the past; None where it can't be known.
    """

    text: str
    form: Form
    seconds: float | None = None


def http_date(text: str) -> float | None:
    """Seconds since 1970 of any of HTTP's three forms of a date (RFC 9110 §5.6.7), leniently; None where it is none."""
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def weekday(text: str) -> str | None:
    """The right weekday of an HTTP-date that names a wrong one, such as ``Sat``; None where it is right or no date."""
    at = http_date(text)
    if at is None:
        return None
    day = datetime.fromtimestamp(at, UTC).strftime("%a")
    return None if text.startswith(day) else day


def split_hints(line: str) -> list[str]:
    """The values of one field line: those that commas join (RFC 9110 §5.3), while a date's own comma joins nothing."""
    line = line.strip()
    if "," not in line or _is_date(line):
        return [line]
    parts: list[str] = []
    for part in (one.strip() for one in line.split(",")):
        if parts and _is_date(f"{parts[-1]}, {part}"):
            parts[-1] = f"{parts[-1]}, {part}"
        else:
            parts.append(part)
    return parts


def read_hint(text: str, now: float | None) -> Hint:
    """What one value is.

    Args:
        text: the value, without blanks around it.
        now: the server's time in seconds since 1970, or None where nothing says it.
    """
    form = _form(text, now)
    seconds: float | None = None
    match form:
        case Form.SECONDS | Form.FRACTION | Form.NEGATIVE:
            seconds = float(text)
        case Form.EPOCH | Form.EPOCH_MS:
            at = float(text) / (1 if form is Form.EPOCH else 1000)
            seconds = None if now is None else at - now
        case Form.IMF_DATE | Form.OLD_DATE:
            found = http_date(text)
            if found is None:
                form = Form.MALFORMED
            elif now is not None:
                seconds = found - now
        case Form.ISO_DATE:
            form, seconds = _iso(text, now)
        case _:
            pass
    return Hint(text, form, seconds)


def _form(text: str, now: float | None) -> Form:
    if not text:
        return Form.EMPTY
    if not text.isascii() or len(text) > 80:
        return Form.MALFORMED
    if _SECONDS.fullmatch(text) or _FRACTION.fullmatch(text):
        return _number(text, now)
    for pattern, form in (
        (_NEGATIVE, Form.NEGATIVE),
        (_IMF, Form.IMF_DATE),
        (_RFC850, Form.OLD_DATE),
        (_ASCTIME, Form.OLD_DATE),
        (_ISO, Form.ISO_DATE),
        (_LOOSE_DATE, Form.OLD_DATE),
        (_DURATION, Form.DURATION),
    ):
        if pattern.fullmatch(text):
            return form
    return Form.MALFORMED


def _number(text: str, now: float | None) -> Form:
    value = float(text)
    whole = Form.SECONDS if _SECONDS.fullmatch(text) else Form.FRACTION
    if value < _AN_INSTANT:
        return whole
    first, last = _GUESSED if now is None else (now - _BEHIND, now + _AHEAD)
    if first <= value <= last:
        return Form.EPOCH
    return Form.EPOCH_MS if first <= value / 1000 <= last else whole


def _iso(text: str, now: float | None) -> tuple[Form, float | None]:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return Form.MALFORMED, None
    if now is None:
        return Form.ISO_DATE, None
    return Form.ISO_DATE, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now


def _is_date(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in (_IMF, _RFC850, _LOOSE_DATE))
