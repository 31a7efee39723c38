"""What services' documentation asks for where their responses say nothing.

Only used when a refusal states no wait; a stated one always counts.
"""

from __future__ import annotations

import re
from typing import Final

from headway.client.rejection import Rejection

__all__ = ["documented_wait"]

_ADVICE: Final = (
    (re.compile(r"secondary rate limit|abuse detection mechanism", re.IGNORECASE), 60.0),  # GitHub: at least one minute
    (re.compile(r"airtable", re.IGNORECASE), 30.0),  # Airtable: 30 seconds
)
_READ: Final = 4096


def documented_wait(rejection: Rejection) -> float | None:
    """Seconds that the documentation of the service asks for, or None where it is not known."""
    body = rejection.body
    if isinstance(body, bytes | bytearray):
        body = bytes(body[:_READ]).decode("utf-8", "replace")
    text = str(body)[:_READ] if body is not None else ""
    return next((seconds for pattern, seconds in _ADVICE if pattern.search(text)), None)
