"""Each rule finds its mistake, and the refusal without a fault has none."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.lint.answers import NOW, PROBLEM, REGISTRY, answer, found, report
from headway.analysis.lint.answer import Answer, Place
from headway.analysis.lint.audit import audit
from headway.analysis.lint.rules import LEVELS, SERVERS, rules
from headway.client import read

JSON = {"Content-Type": "application/json"}
BARE = {"RateLimit": None, "RateLimit-Policy": None}
TRIO = {**BARE, "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}


def trio(prefix: str = "X-RateLimit-", **values: str | None) -> dict[str, str | None]:
    given = {"Limit": "10", "Remaining": "0", "Reset": "30"} | {name.title(): value for name, value in values.items()}
    return {**BARE, **{f"{prefix}{name}": value for name, value in given.items()}}


MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("forbidden-for-limit", {"status": 403, "body": {**PROBLEM, "status": 403}}),
    ("forbidden-for-limit", {"status": 403, "headers": {**JSON, **TRIO}, "body": {"message": "API rate limit exceeded"}}),
    ("unavailable-for-limit", {"status": 503, "headers": JSON, "body": {"error": "rate_limit_exceeded"}}),
    ("unavailable-for-limit", {"status": 503, "headers": {**JSON, **TRIO}, "body": ""}),
    ("success-with-error", {"status": 200, "headers": JSON, "body": {"error": "rate_limited"}}),
    ("unusual-status", {"status": 400, "headers": JSON, "body": {"error": "too_many_requests"}}),
    ("unusual-status", {"status": 420, "headers": JSON, "body": {"error": "too_many_requests"}}),
    ("unusual-status", {"status": 529, "headers": {**JSON, **BARE}, "body": {"error": "overloaded"}}),
    ("too-many-for-other", {"headers": {**JSON, **BARE}, "body": {"error": "server_overloaded"}}),
    (
        "too-many-for-other",
        {"headers": {**JSON, **BARE, "Retry-After": None}, "body": {"error": "insufficient_quota", "message": "check billing"}},
    ),
    ("forbidden-unexplained", {"status": 403, "headers": {**BARE, "Retry-After": None, **JSON}, "body": "403 Forbidden"}),
    ("unavailable-unexplained", {"status": 503, "headers": {**BARE, "Retry-After": None}, "body": ""}),
    ("no-machine-reason", {"headers": {**BARE, "Content-Type": "text/plain"}, "body": "Slow down."}),
    ("no-machine-reason", {"headers": {**BARE, "Content-Type": None}, "body": ""}),
    ("html-for-api", {"headers": {"Content-Type": "text/html"}, "body": "<html><h1>Too Many Requests</h1></html>"}),
    ("no-problem-document", {"headers": JSON, "body": {"code": "rate_limited"}}),
    ("problem-malformed", {"body": "[]"}),
    ("problem-malformed", {"body": {**PROBLEM, "type": "about:blank"}}),
    ("problem-malformed", {"body": {**PROBLEM, "status": 503}}),
    ("content-type-wrong", {"headers": {"Content-Type": "text/html"}, "body": PROBLEM}),
    ("retry-after-missing", {"headers": {"Retry-After": None}}),
    ("retry-after-malformed", {"headers": {"Retry-After": "soon"}}),
    ("retry-after-malformed", {"headers": {"Retry-After": ""}}),
    ("retry-after-malformed", {"headers": {"Retry-After": "-5"}}),
    ("retry-after-malformed", {"headers": {"Retry-After": "NaN"}}),
    ("retry-after-malformed", {"headers": {"Retry-After": "1m30s"}}),
    ("retry-after-malformed", {"headers": {"Retry-After": "2026-08-01T00:02:00Z"}}),
    ("retry-after-malformed", {"headers": {"Retry-After": "\u0661\u0662"}}),
    ("retry-after-fractional", {"headers": {"Retry-After": "12.5"}}),
    ("retry-after-fractional", {"headers": {"Retry-After": "20.0"}}),
    ("retry-after-epoch", {"headers": {"Retry-After": "1785542460"}}),
    ("retry-after-epoch", {"headers": {"Retry-After": "1785542460000"}}),
    ("retry-after-epoch", {"headers": {"Retry-After": "1785542460", "Date": None}, "received_at": None}),
    ("retry-after-now", {"headers": {"Retry-After": "0"}}),
    ("retry-after-now", {"headers": {"Retry-After": "Fri, 31 Jul 2026 23:59:00 GMT"}}),
    ("retry-after-early", {"body": {**PROBLEM, "retry_after_ms": 12_400}}),
    ("retry-after-early", {"headers": {"retry-after-ms": "12900"}}),
    ("retry-after-early", {"body": {**PROBLEM, "detail": "Try again in 20 seconds."}}),
    ("retry-after-before-t", {"headers": {"Retry-After": "11"}}),
    ("retry-after-several", {"headers": {"Retry-After": "12, 120"}}),
    ("retry-after-several", {"headers": {"Retry-After": "12\n120"}}),
    ("retry-after-several", {"headers": {"Retry-After": "12, Sat, 01 Aug 2026 00:02:00 GMT"}}),
    ("retry-after-absurd", {"headers": {"Retry-After": "9999999999"}}),
    ("retry-after-old-date", {"headers": {"Retry-After": "Saturday, 01-Aug-26 00:02:00 GMT"}}),
    ("retry-after-old-date", {"headers": {"Retry-After": "Sat Aug  1 00:02:00 2026"}}),
    ("retry-after-old-date", {"headers": {"Retry-After": "Sat, 1 Aug 2026 00:02:00 GMT"}}),
    ("retry-after-old-date", {"headers": {"Retry-After": "Mon, 01 Aug 2026 00:02:00 GMT"}}),
    ("instant-without-date", {"headers": {"Retry-After": "Sat, 01 Aug 2026 00:02:00 GMT", "Date": None}}),
    ("clock-skew", {"received_at": NOW + timedelta(minutes=3)}),
    ("clock-skew", {"received_at": NOW - timedelta(minutes=3)}),
    ("hints-disagree", {"body": {**PROBLEM, "retry_after": 60}}),
    ("hints-disagree", {"headers": {"retry-after-ms": "3000"}}),
    ("wait-in-words-only", {"headers": {**BARE, "Retry-After": None}, "body": {**PROBLEM, "detail": "Try again in 20 seconds."}}),
    ("tomorrow-without-zone", {"body": {**PROBLEM, "detail": "Try again tomorrow."}}),
    ("tomorrow-without-zone", {"body": {**PROBLEM, "detail": "Your quota resets at midnight."}}),
    ("cacheable-refusal", {"headers": {"Cache-Control": "public"}}),
    ("cacheable-refusal", {"headers": {"Cache-Control": "max-age=1"}}),
    ("cacheable-refusal", {"headers": {"Cache-Control": None, "Expires": "Sat, 01 Aug 2026 01:00:00 GMT"}}),
    ("cacheable-refusal", {"status": 200, "headers": {**JSON, "Cache-Control": None}, "body": {"error": "rate_limited"}}),
    ("no-store-missing", {"headers": {"Cache-Control": None}}),
    ("no-store-missing", {"headers": {"Cache-Control": "no-cache"}}),
    ("cached-refusal", {"headers": {"Age": "30"}}),
    ("cors-not-exposed", {"headers": {"Access-Control-Allow-Origin": "*"}}),
    ("cors-not-exposed", {"headers": {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "RateLimit"}}),
    (
        "cors-not-exposed",
        {
            "headers": {
                "Access-Control-Allow-Origin": "https://a.example",
                "Access-Control-Expose-Headers": "*",
                "Access-Control-Allow-Credentials": "true",
            }
        },
    ),
    ("limits-not-shown", {"headers": BARE}),
    ("limits-incomplete", {"headers": {"RateLimit-Policy": None}}),
    ("limits-incomplete", {"headers": {**BARE, "X-RateLimit-Remaining": "0"}}),
    *(
        ("malformed-field", {"headers": {"RateLimit": value}})
        for value in (
            '"per-ip";r=0;t=1.5', '"per-ip";r=-1', '"per-ip";t=5', '"per-ip";r=0,', '"per-ip";R=0', "per-ip: 0", "",
            '"per-ip";r="0"', '("per-ip");r=0', '"per-ip";r=0;pk="x"', "limit=10, remaining=0", '"für-ip";r=0',
        )
    ),
    *(
        ("malformed-field", {"headers": {"RateLimit-Policy": value}})
        for value in ('"per-ip";w=60', '"per-ip";q=10;w=0', '"per-ip";q=1.5', "10", "-1;w=60", '"fixed window";"api";q=500;w=300')
    ),
    ("malformed-number", {"headers": trio(remaining="0.0")}),
    ("malformed-number", {"headers": trio(limit="ten")}),
    ("malformed-number", {"headers": trio(reset="58.31")}),
    ("malformed-number", {"headers": trio(reset="2026-08-01T00:01:40Z")}),
    ("remaining-above-limit", {"headers": {"RateLimit": '"per-ip";r=11;t=12'}}),
    ("remaining-above-limit", {"headers": {"RateLimit": "limit=10, remaining=11, reset=5", "RateLimit-Policy": None}}),
    ("remaining-above-limit", {"headers": trio(remaining="11")}),
    ("reset-unit-unclear", {"headers": {**trio(), "Retry-After": None}}),
    ("reset-unit-unclear", {"headers": {**trio(reset="1"), "Retry-After": "120"}}),
    ("reset-unit-unclear", {"headers": trio(reset="1785542460000")}),
    ("reset-unit-unclear", {"headers": {"X-RateLimit-Requests-Reset": "1785542460000"}}),
    ("reset-not-delta", {"headers": trio("RateLimit-", reset="1785542460")}),
    ("reset-not-delta", {"headers": trio("RateLimit-", reset="Sat, 01 Aug 2026 00:02:00 GMT")}),
    ("reset-in-past", {"headers": trio(reset="1785542000")}),
    ("violated-limit-not-shown", {"headers": {**JSON, "RateLimit": '"a";r=3;t=1, "b";r=9', "RateLimit-Policy": None}, "body": {"code": "rate_limited"}}),
    ("violated-limit-not-shown", {"headers": {**JSON, **trio(remaining="4")}, "body": {"code": "rate_limited"}}),
    ("limits-indistinct", {"headers": {"RateLimit": '"per-ip";r=0;t=12, "per-ip";r=5'}}),
    ("limits-indistinct", {"headers": {"RateLimit-Policy": '"per-ip";q=10;w=60, "Per-IP";q=5;w=1'}}),
    ("limits-indistinct", {"headers": {**BARE, "X-RateLimit-Limit": "200,2000", "X-RateLimit-Remaining": "0,900"}}),
    ("limit-not-named", {"headers": {**JSON, **trio()}, "body": {"message": "slow down"}}),
    ("policy-unknown", {"headers": {"RateLimit-Policy": '"per-host";q=10;w=60'}}),
    ("policy-unknown", {"body": {**PROBLEM, "violated-policies": ["daily"]}}),
    ("partition-key-readable", {"headers": {"RateLimit": '"per-ip";r=0;t=12;pk=:MjAzLjAuMTEzLjc=:'}}),
    ("partition-key-readable", {"headers": {"RateLimit": '"per-ip";r=0;t=12;pk=:dXNlci00Mg==:'}}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "changes"), MISTAKES)
def test_each_mistake_is_found(rule: str, changes: dict[str, Any]) -> None:
    """The rule's finding is there, with a message of one line."""
    findings = [one for one in report(answer(**changes)).findings if one.rule == rule]
    assert findings, found(answer(**changes))
    assert all(one.message and "\n" not in one.message for one in findings)


def test_a_refusal_without_a_fault_has_no_finding() -> None:
    """The refusal that all mistakes are made from is clean and scores 100."""
    whole = report(answer())
    assert (whole.findings, whole.score) == ((), 100)


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"Retry-After": "Sat, 01 Aug 2026 00:00:12 GMT"}},
        {"headers": {"Retry-After": "13"}},
        {"headers": {"Age": "0"}},
        {"headers": {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*"}},
        {"headers": {"RateLimit": '"per-ip";r=0;t=12\n"daily";r=812;t=87', "RateLimit-Policy": '"per-ip";q=10;w=60, "daily";q=1000;w=86400'}},
        {"headers": {"RateLimit": '"per-ip";r=0;t=12;pk=:8o3ZQ4kB1n0=:'}},
        {"headers": {"RateLimit": '"per-ip";a=0;w=12;c=1'}},
        {"headers": trio("RateLimit-")},
        {"headers": trio()},
        {"headers": trio(reset="1785542430")},
        {"headers": trio(reset="0", remaining="3")},
        {"headers": trio(reset="5")},
        {"headers": {"RateLimit": "limit=10, remaining=0, reset=30", "RateLimit-Policy": "10;w=60"}},
        {"body": {**PROBLEM, "retry_after_ms": 11_400, "detail": "Try again in 12 seconds."}},
        {"body": {**PROBLEM, "detail": "Try again tomorrow at 00:00 (UTC)."}},
        {"body": {**PROBLEM, "detail": "Try again in 2 minutes."}},
        {"headers": {"Cache-Control": "private, no-store"}},
        {"received_at": NOW + timedelta(seconds=4)},
        {"received_at": None},
        {"headers": {"Content-Type": "application/problem+json; charset=utf-8"}},
        {"headers": {"RateLimit-Policy": '"per-ip";q=10;w=60;headway-burst=30', "RateLimit": '"per-ip";r=0;t=12, "big";r=25', }, "body": PROBLEM},
    ],
)  # fmt: skip
def test_what_is_right_is_not_blamed(changes: dict[str, Any]) -> None:
    """Other right ways to say the same are not found fault with, but for names that no policy knows."""
    assert found(answer(**changes)) <= {"policy-unknown"}


def test_an_honest_503_is_no_limit() -> None:
    """A server that is short of capacity and says so is right with 503; no limit is missed."""
    body = {"type": f"{REGISTRY}temporary-reduced-capacity", "title": "Temporary Reduced Capacity", "status": 503}
    whole = report(answer(503, {"RateLimit": None, "RateLimit-Policy": None}, body))
    assert (whole.findings, whole.score) == ((), 100)


def test_a_permission_is_no_limit() -> None:
    """A 403 that says by a code that no wait helps is right, and is not asked for Retry-After."""
    headers = {**JSON, **BARE, "Retry-After": None}
    whole = report(answer(403, headers, {"code": "insufficient_permissions", "message": "Access denied."}))
    assert {one.rule for one in whole.findings} == {"no-problem-document"}


def test_money_is_402_without_a_wait() -> None:
    """A spent balance under 402 is asked neither for 429 nor for Retry-After."""
    headers = {**JSON, **BARE, "Retry-After": None}
    rules_found = found(answer(402, headers, {"code": "insufficient_credits"}))
    assert not rules_found & {"unusual-status", "retry-after-missing", "too-many-for-other"}


def test_a_page_for_a_browser_is_right() -> None:
    """HTML is no mistake where the request asked for it."""
    page = {"headers": {"Content-Type": "text/html"}, "body": "<html><h1>Too Many Requests</h1></html>"}
    assert "html-for-api" not in found(answer(**page, wants_html=True))


def test_what_somebody_knows_to_be_a_limit() -> None:
    """A bare 403 is no limit's by itself, and is one where whoever captured it says so."""
    bare: dict[str, Any] = {
        "status": 403,
        "headers": {**BARE, "Content-Type": "text/html"},
        "body": "<h1>403 Forbidden</h1>",
    }
    assert "forbidden-for-limit" not in found(answer(**bare | {"headers": {**bare["headers"], "Retry-After": None}}))
    assert "forbidden-for-limit" in found(answer(**bare, assume_limit=True))


def test_an_allowed_answer_is_checked_for_its_fields_only() -> None:
    """A 200 with a malformed field is found out; nothing is asked of it that a refusal owes."""
    allowed = answer(200, {"Retry-After": None, "Cache-Control": None, "RateLimit": '"per-ip";r=1.5'}, {"items": []})
    whole = report(allowed)
    assert {one.rule for one in whole.findings} == {"malformed-field"}
    assert (whole.graded, whole.score) == ((), None)


def test_a_kept_wait_that_did_not_help_was_early() -> None:
    """Who comes back when told, and is refused for the same, was told too early; not who comes later, or elsewhere."""

    def at(seconds: float, asked: str = "GET /items") -> Answer:
        date = (NOW + timedelta(seconds=seconds)).strftime("%a, %d %b %Y %H:%M:%S GMT")
        return answer(headers={"Date": date}, received_at=NOW + timedelta(seconds=seconds), asked=asked)

    assert "retry-after-early" in found(at(0), at(12))
    assert "retry-after-early" in found(at(0), at(12.4))
    assert "retry-after-early" not in found(at(0), at(11.5))
    assert "retry-after-early" not in found(at(0), at(60))
    assert "retry-after-early" not in found(at(0), at(12.4, "GET /other"))
    between = answer(200, {"Retry-After": None, "RateLimit": None}, {}, received_at=NOW + timedelta(seconds=12))
    assert "retry-after-early" not in found(at(0), between, at(12.9))


def test_every_rule_has_a_mistake_here_or_elsewhere() -> None:
    """No rule is without a test: those of documents and logs are in their own modules."""
    tried = {rule for rule, _ in MISTAKES}
    elsewhere = {name for name in rules() if name.startswith(("openapi-", "log-"))}
    assert set(rules()) - elsewhere == tried


def test_every_rule_says_all_that_it_must() -> None:
    """A stable id, a level, a property, what, why, its source, and a fix for each of the seven servers."""
    for name, rule in rules().items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert rule.level in LEVELS
        assert rule.property in ("status", "reason", "wait", "limits")
        assert rule.why.endswith(".")
        assert not rule.what.endswith(".")
        assert rule.source
        assert list(rule.fixes) == list(SERVERS)
        assert all(rule.fixes.values())


FIELD_NAMES = st.sampled_from(
    [
        "Date",
        "Retry-After",
        "RateLimit",
        "RateLimit-Policy",
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
        "RateLimit-Reset",
        "Cache-Control",
        "Content-Type",
        "Expires",
        "Age",
        "Server",
        "Access-Control-Allow-Origin",
        "grpc-status",
        "retry-after-ms",
        "X-Reset",
    ]
)
VALUES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(['"a";r=0;t=1', "limit=1, remaining=0, reset=1", "1e309", "9" * 400, "-1", "0", "1785542460", "application/json",
                     "Sat, 01 Aug 2026 00:00:00 GMT", "Sat, 99 Aug 2026 00:00:00 GMT", "text/html", "12, 13", "a" * 5000]),
)  # fmt: skip
BODIES = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["[" * 5000, '{"a":' * 3000, "<html><script>{", '{"retry_after": 1e400}', '{"retry_after": "999999999999s"}', "null", '{"violated-policies": [1]}']),
)  # fmt: skip


@given(st.integers(100, 599), st.lists(st.tuples(FIELD_NAMES, VALUES), max_size=8), BODIES)
def test_nothing_that_a_server_sends_raises(status: int, headers: list[tuple[str, str]], body: str) -> None:
    """Whatever the fields and the body are, there is a report, with marks from 0 to 5."""
    heard = read(status, headers, body, received_at=NOW)
    whole = audit("x", [Answer(status, tuple(headers), body, Place("x"), heard, NOW, "x")])
    for graded in whole.graded:
        assert all(mark.points is None or 0 <= mark.points <= 5 for mark in graded.marks)
    assert all(one.rule in rules() for one in whole.findings)


def test_times_outside_the_calendar_are_no_error() -> None:
    """A Date in the year 9999 and an arrival in 1970 are a skew, not a crash."""
    assert "clock-skew" in found(
        answer(headers={"Date": "Fri, 31 Dec 9999 23:59:59 GMT"}, received_at=datetime(1970, 1, 2, tzinfo=UTC))
    )
