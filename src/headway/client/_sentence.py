"""The words of a rejection, in one place, so that they can be translated.

Waits are rounded up, in the unit a person would choose; beyond an hour an absolute time with its zone is said.
"""

import math
from datetime import datetime, timedelta

_WHAT = {
    "rate_limited": "This service's {period}request limit is reached.",
    "quota_exhausted": "This service's {period}limit is used up.",
    "overloaded": "This service is overloaded.",
    "transient": "This service is temporarily unavailable.",
    "forbidden": "This service refuses this request. Waiting will not help.",
    "misconfigured": "This service rejects how it is being called. Waiting will not help; check the set-up.",
    "ambiguous": "This service refused the request and did not say clearly why.",
}
_PERIODS = {1: "per-second ", 60: "per-minute ", 3600: "hourly ", 86_400: "daily ", 604_800: "weekly "}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH_SECONDS = (28 * 86_400, 31 * 86_400)
_LAST_MINUTE = datetime(9999, 12, 31, 23, 59)  # noqa: DTZ001 - the zone is put in where it is compared
_YEAR_SECONDS = 365 * 86_400


def sentence(kind: str, retry_after: float | None, retry_at: datetime | None, window: float | None) -> str:
    """Say what happened and when to try again.

    Args:
        kind: A `RejectionKind` value.
        retry_after: Seconds to wait, or None.
        retry_at: The instant that wait ends, in the zone to be shown, or None.
        window: The violated limit's period in seconds, or None.
    """
    what = _WHAT[kind].format(period=_period(window))
    if kind in ("forbidden", "misconfigured"):
        return what
    return f"{what} {_when(kind, retry_after, retry_at)}"


def _period(window: float | None) -> str:
    """Name a period as an adjective with a space after it; empty when it has no usual name."""
    if window is None or window > _YEAR_SECONDS:
        return ""
    if _MONTH_SECONDS[0] <= window <= _MONTH_SECONDS[1]:
        return "monthly "
    return _PERIODS.get(round(window), "") if window == round(window) else ""


def _when(kind: str, retry_after: float | None, retry_at: datetime | None) -> str:
    """Say when to try again."""
    if retry_after is None:
        if kind == "quota_exhausted":
            return "It did not say when it will be available again."
        return "It did not say how long to wait."
    if retry_after == 0:
        return "You can try again now."
    if retry_after <= 3600:
        return f"Try again in {_short_wait(retry_after)}."
    if retry_at is None:
        return f"Try again in {math.ceil(retry_after / _YEAR_SECONDS):,} years."
    minute = retry_at.replace(second=0, microsecond=0)
    if minute < retry_at < _LAST_MINUTE.replace(tzinfo=retry_at.tzinfo):
        minute += timedelta(minutes=1)
    zone = minute.tzname() or "UTC"
    return f"Try again at {minute:%H:%M} {zone} on {minute.day} {_MONTHS[minute.month - 1]} {minute.year}."


def _short_wait(seconds: float) -> str:
    """Say a wait of up to an hour, rounded up."""
    whole = math.ceil(seconds)
    if whole < 120:
        return "1 second" if whole == 1 else f"{whole} seconds"
    minutes = math.ceil(whole / 60)
    return f"{minutes} minutes"
