"""Answers for the tests of linting: a refusal without a fault, and ways to spoil it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from headway.analysis.lint.answer import Answer, Place
from headway.analysis.lint.audit import Report, audit
from headway.client import read

NOW = datetime(2026, 8, 1, tzinfo=UTC)
REGISTRY = "https://iana.org/assignments/http-problem-types#"
GOOD: Mapping[str, str | None] = {
    "Date": "Sat, 01 Aug 2026 00:00:00 GMT",
    "Content-Type": "application/problem+json",
    "Cache-Control": "no-store",
    "Retry-After": "12",
    "RateLimit": '"per-ip";r=0;t=12',
    "RateLimit-Policy": '"per-ip";q=10;w=60',
}
PROBLEM: Mapping[str, object] = {
    "type": f"{REGISTRY}quota-exceeded",
    "title": "Quota Exceeded",
    "status": 429,
    "violated-policies": ["per-ip"],
}


def answer(
    status: int = 429,
    headers: Mapping[str, str | None] | None = None,
    body: object = PROBLEM,
    *,
    received_at: datetime | None = NOW,
    asked: str | None = "GET /items",
    wants_html: bool = False,
    assume_limit: bool = False,
) -> Answer:
    r"""The good refusal with some fields changed, or left out where they are None; several lines of one field by "\n"."""
    fields = tuple(
        (name, line)
        for name, value in {**GOOD, **(headers or {})}.items()
        if value is not None
        for line in value.split("\n")
    )
    text = body if isinstance(body, str) else json.dumps(body)
    heard = read(status, fields, text, received_at=received_at or NOW)
    return Answer(
        status, fields, text, Place("api.har", None, "entry 0"), heard, received_at, asked, wants_html, assume_limit
    )


def report(*answers: Answer) -> Report:
    """The audit of some answers."""
    return audit("api.har", answers)


def found(*answers: Answer) -> set[str]:
    """The ids of all rules that some answers break."""
    return {one.rule for one in report(*answers).findings}
