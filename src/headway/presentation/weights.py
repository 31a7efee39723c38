"""Weighted lists, as ``Accept`` and ``Accept-Language`` have them (RFC 9110 §12.4.2)."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["weights"]

_WEIGHT: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_LONGEST: Final = 4096
"""Characters that are looked at: a longer field says nothing a person configured."""


def weights(text: str) -> list[tuple[str, float]]:
    """(value, weight 0 to 1) in the field's order, without other parameters; what cannot be read is left out."""
    found: list[tuple[str, float]] = []
    for member in text[:_LONGEST].split(","):
        value, *parameters = (part.strip() for part in member.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, written = parameter.partition("=")
            if name.strip().lower() == "q":
                weight = float(written.strip()) if _WEIGHT.fullmatch(written.strip()) else -1.0
                break
        if value and weight >= 0:
            found.append((value, weight))
    return found
