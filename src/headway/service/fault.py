"""``Fault``: a request that the service cannot decide, as a problem document that says what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

__all__ = ["Fault"]

_TITLES: Final = {
    "urn:headway:not-json": "Not JSON",
    "urn:headway:invalid-request": "Invalid Request",
    "urn:headway:missing-attribute": "Missing Attribute",
    "urn:headway:unknown-policy": "Unknown Policy",
    "urn:headway:too-large": "Too Large",
    "urn:headway:encoded": "Encoded Body",
    "urn:headway:not-ready": "Not Ready",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a request (RFC 9457).

    Args:
        status: the HTTP status.
        detail: one sentence: what was given, and what is wrong with it.
        type: a URI; ``about:blank`` says no more than the status.
        expected: what would have been accepted.
        pointer: where in the request's JSON (RFC 6901), or None.
        headers: fields that belong to the status, such as ``Allow``.
    """

    status: int
    detail: str
    type: str = "about:blank"
    expected: str | None = None
    pointer: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, object]:
        """The JSON object."""
        optional = {"expected": self.expected, "pointer": self.pointer}
        return {
            "type": self.type,
            "title": _TITLES.get(self.type) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **{name: value for name, value in optional.items() if value is not None},
        }
