"""How an OpenAPI document describes refusals: the responses and the schema of ``presentation.problem.Problem``."""

from __future__ import annotations

from typing import Any, Final

from headway.presentation.accept import PROBLEM

__all__ = ["SCHEMA", "SCHEMA_NAME", "describe"]

SCHEMA_NAME: Final = "RateLimitProblem"

SCHEMA: Final[dict[str, Any]] = {
    "title": SCHEMA_NAME,
    "description": "Why a request was refused, and when to try again (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "violated-policies", "limit", "retry_after_ms", "retry_at"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "One plain sentence for a person."},
        "violated-policies": {"type": "array", "items": {"type": "string"}, "description": "The limits that refused."},
        "limit": {"type": ["string", "null"], "description": "The limit whose wait is longest."},
        "retry_after_ms": {
            "type": ["integer", "null"],
            "description": "Milliseconds, rounded up; null: no wait helps.",
        },
        "retry_at": {"type": ["string", "null"], "format": "date-time"},
        "never": {"type": "boolean", "description": "Present and true where no wait helps."},
    },
}

_WAIT: Final = {"description": "Seconds to wait, rounded up.", "schema": {"type": "integer", "minimum": 1}}
_STANDING: Final = {
    "RateLimit": {"description": "How each limit stands.", "schema": {"type": "string"}},
    "RateLimit-Policy": {"description": "The limits.", "schema": {"type": "string"}},
}
_REFUSALS: Final[dict[str, tuple[str, bool]]] = {
    "429": ("A limit is exceeded; try again after the wait.", True),
    "403": ("Blocked; waiting does not help.", False),
    "422": ("The request costs more than a limit ever admits.", False),
    "503": ("The limits cannot be checked right now.", True),
}


def describe(responses: dict[str, Any]) -> None:
    """Add the refusals to an operation's responses; what is there already stays."""
    for status, (description, wait) in _REFUSALS.items():
        response = responses.setdefault(status, {"description": description})
        for name, header in {**_STANDING, **({"Retry-After": _WAIT} if wait else {})}.items():
            response.setdefault("headers", {}).setdefault(name, header)
        schema = {"schema": {"$ref": f"#/components/schemas/{SCHEMA_NAME}"}}
        response.setdefault("content", {}).setdefault(PROBLEM, schema)
