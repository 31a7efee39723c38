"""Time zones by their IANA names, with one clear error where one is not known."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headway.errors import QuotaError

__all__ = ["zone_of"]


def zone_of(name: str) -> ZoneInfo:
    """The IANA zone of that name.

    Raises:
        QuotaError: no such zone, or no time-zone data on this system; says what to install.
    """
    if name.upper() == "UTC":
        name = "UTC"
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise QuotaError(
            name,
            "no time zone of that name is known here; expected an IANA name such as UTC, Europe/Berlin or Asia/Shanghai "
            "(a system without time-zone data needs `pip install headway[tz]`)",
        ) from error
