"""The problem document of a refusal."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import DAY, HOUR, SECOND
from headway.core.verdict import Verdict
from headway.presentation.problem import Problem, problem, status_of

from .verdicts import NOW, one_refusal

PHONE = Limit("per-phone", "5 per day in Asia/Shanghai", by="phone")
IP = Limit("per-ip", "20 per hour", by="ip")
REGISTRY = "https://iana.org/assignments/http-problem-types#"


def test_a_refusal_is_a_whole_document() -> None:
    """A refusal's document has every member, rounded up, with the moment in the limit's zone."""
    verdict = Verdict((PHONE, IP), (Refused(0, 4 * HOUR - 1, 1, 1), Refused(1, SECOND, 1, 1)), False, NOW + 12 * HOUR)
    assert problem(verdict) == {
        "type": f"{REGISTRY}quota-exceeded",
        "title": "Quota Exceeded",
        "status": 429,
        "detail": "Too many requests for this phone. Try again tomorrow at 00:00 (Asia/Shanghai).",
        "violated-policies": ["per-phone", "per-ip"],
        "limit": "per-phone",
        "retry_after_ms": 14_400_000,
        "retry_at": "2026-12-02T00:00:00.000+08:00",
    }


@pytest.mark.parametrize(
    ("limit", "outcome", "status", "kind"),
    [
        (IP, Refused(0, 1, 1, 1), 429, f"{REGISTRY}quota-exceeded"),
        (IP, Never(20, 20, 0, 0), 422, "urn:headway:never-admissible"),
        (IP, Never(0, 0, 0, 0), 403, "urn:headway:blocked"),
        (IP, None, 503, f"{REGISTRY}temporary-reduced-capacity"),
    ],
)
def test_status_and_type_go_together(limit: Limit, outcome: Refused | Never | None, status: int, kind: str) -> None:
    """429, 422, 403 and 503 each have their own problem type; never where no wait helps, and only there."""
    degraded = "secret: connection to 10.0.0.1 refused" if outcome is None else None
    verdict = Verdict((limit,), (outcome,), False, NOW, degraded, (50,))
    document = problem(verdict)
    assert (document["status"], document["type"], status_of(verdict)) == (status, kind, status)
    assert document.get("never", False) is (status in (422, 403))
    assert (document["retry_after_ms"] is None) is (status in (422, 403))
    assert (document["retry_at"] is None) is (status in (422, 403))
    assert document["limit"] == "per-ip"
    assert document["violated-policies"] == ([] if outcome is None else ["per-ip"])
    assert "10.0.0.1" not in json.dumps(document)


def test_a_local_refusal_is_an_ordinary_one() -> None:
    """A refusal that a local limiter decided while the store was away is a 429 like any other."""
    verdict = Verdict((IP,), (Refused(0, SECOND, 1, 1),), False, NOW, "away")
    assert status_of(verdict) == 429
    assert status_of(Verdict((IP, PHONE), (Admitted(1, 1, 1), None), False, NOW, "away")) == 503


@pytest.mark.parametrize(
    ("wait", "milliseconds"), [(1, 1), (1_000_000, 1), (1_000_001, 2), (41 * SECOND + 199_999_999, 41_200)]
)
def test_milliseconds_are_rounded_up(wait: int, milliseconds: int) -> None:
    """retry_after_ms and retry_at are never before the exact wait, and less than a millisecond after it."""
    found = Problem.of(one_refusal(wait))
    assert found.retry_after_ms == milliseconds
    assert found.retry_at is not None
    assert found.retry_at == datetime.fromisoformat("2026-12-01T00:00:00+00:00") + timedelta(milliseconds=milliseconds)


def test_a_moment_beyond_the_calendar_is_null() -> None:
    """A wait that no date can hold has its milliseconds and no date."""
    found = Problem.of(one_refusal(9000 * 365 * DAY))
    assert found.retry_at is None
    assert found.retry_after_ms == 9000 * 365 * 86_400_000
    assert Problem.read(found.document()) == found


def test_an_admitted_request_has_no_problem() -> None:
    """There is no problem document of an admitted request; asking for one is an error that says so."""
    with pytest.raises(ValueError, match="admitted request has no problem"):
        problem(Verdict((IP,), (Admitted(1, 1, 1),), True, NOW))


def test_the_detail_is_translated_and_the_title_is_not() -> None:
    """The sentence follows the reader's language; type and title are constants."""
    verdict = one_refusal(42 * SECOND)
    assert problem(verdict, "de")["detail"] == (
        "Zu viele Anfragen für diese Telefonnummer. Versuchen Sie es in 42 Sekunden erneut."
    )
    assert problem(verdict, "de")["title"] == problem(verdict)["title"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("type", None), ("title", 3), ("status", "429"), ("status", True), ("detail", None),
        ("violated-policies", "per-ip"), ("violated-policies", [1]), ("limit", 3), ("retry_after_ms", "1"),
        ("retry_after_ms", 1.5), ("retry_after_ms", True), ("retry_at", 3), ("retry_at", "tomorrow"),
    ],
)  # fmt: skip
def test_a_member_of_the_wrong_type_is_named(member: str, value: object) -> None:
    """Reading a document whose member is missing or of the wrong type names the member."""
    with pytest.raises(ValueError, match=member):
        Problem.read({**problem(one_refusal(SECOND)), member: value})
