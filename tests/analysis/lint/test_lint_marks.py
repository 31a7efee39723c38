"""Marks: each step of each property, as the reference lists them."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.lint.answers import PROBLEM, REGISTRY, answer, report
from headway.analysis.lint.marks import PROPERTIES, Mark, percent

JSON = {"Content-Type": "application/json"}
BARE = {"RateLimit": None, "RateLimit-Policy": None}
TRIO = {**BARE, "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}
NAMELESS = {key: value for key, value in PROBLEM.items() if key != "violated-policies"}
LATE = "Sat, 01 Aug 2026 00:02:00 GMT"

STATUS: list[tuple[int, dict[str, Any]]] = [
    (5, {}),
    (5, {"headers": {**JSON, **BARE, "Retry-After": None}, "body": {"code": "quota_exceeded"}}),
    (5, {"status": 402, "headers": {**JSON, **BARE, "Retry-After": None}, "body": {"code": "insufficient_credits"}}),
    (5, {"status": 503, "headers": BARE, "body": {"type": f"{REGISTRY}temporary-reduced-capacity", "title": "x", "status": 503}}),
    (5, {"status": 403, "headers": {**JSON, **BARE, "Retry-After": None}, "body": {"code": "insufficient_permissions"}}),
    (4, {"status": 403, "headers": {**JSON, **BARE, "Retry-After": None}, "body": {"message": "You have no permission for this."}}),
    (3, {"status": 503, "headers": {**BARE, "Retry-After": None}, "body": ""}),
    (2, {"status": 503, "headers": JSON, "body": {"error": "rate_limit_exceeded"}}),
    (2, {"status": 403, "headers": JSON, "body": {"error": "rate_limit_exceeded"}}),
    (2, {"status": 403, "headers": {**BARE, "Retry-After": None}, "body": "403 Forbidden"}),
    (1, {"status": 403, "headers": {**JSON, **BARE}, "body": {"message": "API rate limit exceeded"}}),
    (1, {"status": 400, "headers": JSON, "body": {"error": "rate_limit_exceeded"}}),
    (0, {"status": 200, "headers": JSON, "body": {"error": "rate_limit_exceeded"}}),
]  # fmt: skip
REASON: list[tuple[int, dict[str, Any]]] = [
    (5, {}),
    (4, {"headers": BARE, "body": NAMELESS}),
    (4, {"headers": JSON, "body": {"code": "rate_limited"}}),
    (3, {"headers": {**JSON, **BARE}, "body": {"code": "rate_limited"}}),
    (2, {"headers": {**TRIO, "Content-Type": None}, "body": ""}),
    (2, {"headers": {**JSON, **BARE}, "body": {"message": "slow down"}}),
    (1, {"headers": {**BARE, "Content-Type": "text/plain"}, "body": "slow down"}),
    (0, {"headers": {**BARE, "Content-Type": "text/html"}, "body": "<html>Too many requests</html>"}),
    (0, {"headers": {**BARE, "Content-Type": None}, "body": ""}),
]
WAIT: list[tuple[int | None, dict[str, Any]]] = [
    (5, {}),
    (4, {"headers": {"Retry-After": LATE}}),
    (3, {"headers": {"Retry-After": LATE, "Date": None}}),
    (3, {"headers": {"Retry-After": "Saturday, 01-Aug-26 00:02:00 GMT"}}),
    (3, {"headers": {"Retry-After": None}}),
    (3, {"headers": {**BARE, "Retry-After": None, "retry-after-ms": "12000"}}),
    (2, {"headers": {"Retry-After": "11"}}),
    (2, {"headers": {"Retry-After": "12.5"}}),
    (2, {"headers": {"Retry-After": "12, 13"}}),
    (2, {"headers": {"Retry-After": "9999999999"}}),
    (2, {"headers": {**TRIO, "Retry-After": None}}),
    (1, {"headers": {"Retry-After": "0"}}),
    (1, {"headers": {"Retry-After": "1785542460"}}),
    (1, {"headers": {**BARE, "Retry-After": None}, "body": {**PROBLEM, "detail": "Try again in 20 seconds."}}),
    (0, {"headers": {**BARE, "Retry-After": None}}),
    (0, {"headers": {**BARE, "Retry-After": "soon"}}),
    (None, {"status": 403, "headers": {**BARE, "Retry-After": None}, "body": "403 Forbidden"}),
    (1, {"status": 403, "headers": BARE, "body": {"type": "urn:headway:blocked", "title": "Blocked", "status": 403}}),
]  # fmt: skip
LIMITS: list[tuple[int | None, dict[str, Any]]] = [
    (5, {}),
    (5, {"headers": TRIO}),
    (4, {"headers": {"RateLimit-Policy": None}}),
    (4, {"headers": {**BARE, "X-Acme-RateLimit-Limit": "5", "X-Acme-RateLimit-Remaining": "0", "X-Acme-RateLimit-Reset": "30"}}),
    (3, {"headers": {**BARE, "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0"}}),
    (2, {"headers": {**BARE, "X-RateLimit-Remaining": "0"}}),
    (2, {"headers": {**JSON, "RateLimit": '"a";r=5', "RateLimit-Policy": None}, "body": {"code": "rate_limited"}}),
    (1, {"headers": {**JSON, **BARE}, "body": {"error": "Rate limit exceeded: 5 per 1 minute"}}),
    (0, {"headers": BARE}),
    (0, {"headers": {"RateLimit": "nonsense;;", "RateLimit-Policy": "nonsense;;"}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "points", "changes"),
    [
        (name, *one)
        for name, table in zip(PROPERTIES, (STATUS, REASON, WAIT, LIMITS), strict=True)
        for one in table  # type: ignore[attr-defined]
    ],
)
def test_each_step(name: str, points: int | None, changes: dict[str, Any]) -> None:
    """What an answer has decides its points, and the evidence is told in one line."""
    (graded,) = report(answer(**changes)).graded
    mark = next(mark for mark in graded.marks if mark.property == name)
    assert mark.points == points, mark.evidence
    assert mark.evidence
    assert "\n" not in mark.evidence


def test_a_score_is_the_share_of_what_could_be_had() -> None:
    """Percent, rounded down, of the properties that apply; none where none does."""
    marks = [Mark("status", 5, ""), Mark("reason", 3, ""), Mark("wait", None, "")]
    assert percent(marks) == 80
    assert percent([Mark("status", 5, ""), Mark("reason", 3, ""), Mark("wait", 5, "")]) == 86
    assert percent([Mark("wait", None, "")]) is None
    worst = report(answer(), answer(headers={"Retry-After": "0"}))
    assert [one.score for one in worst.graded] == [100, 80]
    assert worst.score == 80
