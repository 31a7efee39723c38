"""What the CORS protocol (Fetch Standard §3.3) asks of who answers in an application's place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

__all__ = ["ALLOWS", "EXPOSES", "ORIGIN", "is_preflight"]

ORIGIN: Final = "origin"
"""The request field that says a browser asks from another site."""

ALLOWS: Final = "access-control-allow-origin"
"""The response field that says the application answers it."""

EXPOSES: Final = "access-control-expose-headers"
"""The response field that names what scripts may read."""

_ASKS: Final = "access-control-request-method"


def is_preflight(names: Collection[str]) -> bool:
    """An OPTIONS with these fields (in lower case) only asks for leave: a browser made it, so nobody counts it."""
    return ORIGIN in names and _ASKS in names
