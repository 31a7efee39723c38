"""Time zones by their IANA names, with one clear error where one is not known."""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headway.errors import QuotaError, kind_of

__all__ = ["zone_of"]


_NO_ZONES: Final = re.compile(r"(?:posix|right)/.*|(?:local|posix)\w*|factory", re.IGNORECASE)
"""What stands in a system's folder of zones and is none: this host's own setting, and copies with other rules."""


def zone_of(name: str) -> ZoneInfo:
    """The IANA zone of that name, the same on every host.

    Raises:
        QuotaError: no such zone, or no time-zone data on this system; says what to install.
    """
    if not isinstance(name, str):
        raise QuotaError(str(name), f"a time zone is a name such as Europe/Berlin, not {kind_of(name)}")
    if name.upper() == "UTC":
        name = "UTC"
    try:
        if _NO_ZONES.fullmatch(name):
            raise ZoneInfoNotFoundError(f"{name!r} names no zone but a setting of this host")
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise QuotaError(
            name,
            "no time zone of that name is known here; expected an IANA name such as UTC, Europe/Berlin or Asia/Shanghai "
            "(a system without time-zone data needs `pip install 'headway[tz]'`)",
        ) from error
