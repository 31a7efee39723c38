"""Marks for the four properties of a legible refusal, 0 to 5 each, with the evidence that gave them.

1. *status*: a status that means a limit, and nothing else;
2. *reason*: a reason that a program can branch on;
3. *wait*: exactly when to come back;
4. *limits*: limits that can be found without running into them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headway.analysis.lint.checks.reason import names_limit
from headway.analysis.lint.checks.wait import TOO_LONG, early_by
from headway.analysis.lint.facts import CAPACITY, PERMISSION, Facts
from headway.analysis.lint.hints import Form, weekday

__all__ = ["BEST", "PROPERTIES", "Mark", "grade", "percent"]

BEST: Final = 5
PROPERTIES: Final = ("status", "reason", "wait", "limits")
_PRIVATE: Final = frozenset({418, 420, 430, 509, 529})
_QUOTA: Final = re.compile(r"[0-9]+ ?(?:/|per )")
_TELLING: Final = frozenset({401, 402, 403, 404, 422, 451})


@dataclass(frozen=True, slots=True)
class Mark:
    """One property of one answer.

    Attributes:
        property: its name, of ``PROPERTIES``.
        points: 0 to 5; None where it does not apply, or nothing is known.
        evidence: what was seen.
    """

    property: str
    points: int | None
    evidence: str


def percent(marks: Iterable[Mark]) -> int | None:
    """The points as a share of what could be had, rounded down; None where no property applies."""
    points = [mark.points for mark in marks if mark.points is not None]
    return sum(points) * 100 // (BEST * len(points)) if points else None


def grade(facts: Facts) -> tuple[Mark, ...]:
    """The four marks of one refusal."""
    if facts.grpc:
        return _grpc(facts)
    return (
        Mark("status", *_status(facts)),
        Mark("reason", *_reason(facts)),
        Mark("wait", *_wait(facts)),
        Mark("limits", *_limits(facts)),
    )


def _status(facts: Facts) -> tuple[int, str]:
    status, kind = facts.status, facts.kind
    said = f"{status} for {(kind or 'no refusal').replace('_', ' ')}"
    if status < 400:
        return 0, f"{said}: nobody sees a refusal"
    if facts.limited:
        if status == 429 or (status == 402 and kind == "quota_exhausted"):
            return BEST, said
        if status == 503 or status in _PRIVATE:
            return 2, said
        shown = facts.coded or facts.spent
        return (2, f"{said}, told apart by a code or a field") if status == 403 and shown else (1, said)
    if kind in CAPACITY:
        if status == 503 and facts.kind == "transient" and not (facts.coded or facts.explained or facts.hints):
            return 3, f"{said}, unexplained"
        return (BEST, said) if status == 503 else (3, said) if status >= 500 or status == 429 else (1, said)
    if kind in PERMISSION:
        if status not in _TELLING:
            return 1, said
        words = (4, f"{said}, in words") if facts.explained else (2, f"{said}, unexplained")
        return (BEST, said) if facts.coded else words
    return (BEST, said) if status == 429 else (2, f"{said}: two causes under one status")


def _reason(facts: Facts) -> tuple[int, str]:
    body = facts.body
    if body.problem_type:
        within = " inside the page" if body.embedded else ""
        if facts.kind in CAPACITY or facts.kind in PERMISSION or facts.violated:
            names = f", limit {', '.join(facts.violated)}" if facts.violated else ""
            return BEST, f"problem type {body.problem_type}{within}{names}"
        return 4, f"problem type {body.problem_type}{within}, without the limit's name"
    if names_limit(facts):
        return 4, "RateLimit names the spent limit"
    if body.codes:
        return 3, f"{body.codes[0][0]}: {body.codes[0][1]}"
    if facts.code_field:
        return 3, facts.code_field
    if facts.spent and facts.violated:
        return 3, f"{facts.violated[0]} is spent, by its numbers"
    if facts.spent:
        return 2, "a limit that is spent, by its numbers"
    if isinstance(body.json, dict | list) and any(body.sentences):
        return 2, "a sentence in JSON"
    if body.html:
        return 0, "an HTML page"
    return (1, "words") if any(body.sentences) else (0, "nothing")


def _wait(facts: Facts) -> tuple[int | None, str]:
    hints = facts.hints
    if facts.kind in PERMISSION or (facts.status == 402 and not hints):
        if hints:
            return 1, f"Retry-After: {hints[0].text}, where no wait helps"
        return (BEST, "no wait helps, and none is told") if facts.coded else (None, "no wait helps")
    heard = facts.heard
    if len(hints) > 1:
        return 2, "several values of Retry-After"
    if hints:
        points, what = _told(facts)
        if points:
            return points, f"Retry-After: {what}"
    if facts.replenish is not None:
        return 3, f"t={facts.replenish:g} of RateLimit"
    if heard is None or heard.retry_after is None:
        return 0, f"Retry-After: {hints[0].text}" if hints else "nothing"
    if heard.source == "body text":
        return 1, f"{heard.retry_after:g} s in a sentence"
    return (3 if heard.source.endswith("-ms") else 2), f"{heard.retry_after:g} s by {heard.source}"


def _told(facts: Facts) -> tuple[int, str]:
    """The mark of a single Retry-After; 0 where it is no use."""
    hint = facts.hints[0]
    late = early_by(facts)
    if late:
        return 2, f"{hint.text}, {late:.3g} s too early"
    match hint.form:
        case Form.SECONDS | Form.IMF_DATE if hint.seconds is not None and hint.seconds <= 0:
            return 1, f"{hint.text}, which is now or past"
        case Form.SECONDS | Form.IMF_DATE if hint.seconds is not None and hint.seconds > TOO_LONG:
            return 2, f"{hint.text}, more than ten years"
        case Form.SECONDS:
            return BEST, hint.text
        case Form.IMF_DATE if weekday(hint.text) is not None:
            return 3, f"{hint.text}, with a wrong weekday"
        case Form.IMF_DATE:
            return (4, f"{hint.text}, with a Date") if facts.date is not None else (3, f"{hint.text}, without a Date")
        case Form.OLD_DATE:
            return 3, hint.text
        case Form.FRACTION | Form.ISO_DATE | Form.DURATION:
            return 2, f"{hint.text}, {hint.form.value}"
        case Form.EPOCH | Form.EPOCH_MS:
            return 1, f"{hint.text}, {hint.form.value}"
        case _:
            return 0, hint.text


def _limits(facts: Facts) -> tuple[int | None, str]:
    if facts.kind in PERMISSION:
        return None, "no limit of the caller's"
    standard = facts.standard
    if facts.kind in CAPACITY and not facts.body.violated:
        return None, "about the server, no limit of the caller's"
    heard = facts.heard
    violated = bool(standard.shown) and (bool(facts.body.violated) or any(one.remaining == 0 for one in standard.shown))
    if violated:
        if standard.quotas or any(one.limit is not None for one in standard.shown):
            return BEST, "RateLimit and RateLimit-Policy" if standard.quotas else "RateLimit with its limit"
        return 4, "RateLimit without RateLimit-Policy"
    if standard.shown:
        return 2, "RateLimit, with room left in all that it shows"
    trios = sorted(
        facts.trios, key=lambda one: -sum(part is not None for part in (one.limit, one.remaining, one.reset))
    )
    for one in trios:
        sound = one.most is not None and one.left is not None
        if one.complete and sound and (one.left == 0 or facts.body.violated):
            return BEST, f"{one.prefix}Limit, Remaining and Reset"
    if heard is not None and heard.limit is not None and heard.remaining is not None:
        return (4, "limit, remaining and reset in fields of its own") if heard.reset_at else (3, "limit and remaining")
    if trios or standard.quotas:
        return 2, "a part of a limit, or another limit's"
    if heard is not None and (heard.limit, heard.remaining) != (None, None):
        return 2, "a part of a limit"
    if heard is not None and heard.limit_name and _QUOTA.match(heard.limit_name):
        return 1, f"{heard.limit_name!r} in words"
    return 0, "nothing"


def _grpc(facts: Facts) -> tuple[Mark, ...]:
    """A gRPC refusal: the status is ``grpc-status``, the rest stands in its details, as far as the reader found it."""
    code = facts.field("grpc-status") or ""
    heard = facts.heard
    waits = heard is not None and heard.retry_after is not None
    source = heard.source.removeprefix("body: ") if heard is not None else ""
    pushback = facts.field("grpc-retry-pushback-ms") or ""
    exact = waits and (pushback.isdigit() or source in ("grpc-retry-pushback-ms", "RetryInfo"))
    named = heard is not None and heard.limit_name is not None
    return (
        Mark("status", BEST if code == "8" else 3 if code == "14" else 1, f"grpc-status {code}"),
        Mark(
            "reason",
            BEST if named else 1,
            f"{heard.limit_name} in its details" if heard and named else "the status alone",
        ),
        Mark(
            "wait",
            BEST if exact else 2 if waits else 0,
            (f"{pushback} ms of pushback" if pushback else source) if waits else "nothing",
        ),
        Mark(
            "limits",
            BEST if heard and heard.limit is not None else 2 if named else 0,
            "QuotaFailure" if named else "nothing",
        ),
    )
