"""Whether a program can tell why it was refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headway.analysis.lint.facts import Facts

__all__ = ["check", "names_limit"]

_PROBLEM: Final = "application/problem+json"


def check(facts: Facts) -> Iterator[tuple[str, str]]:
    """(rule, message) of what is wrong with the reason."""
    if facts.kind is None or facts.grpc:
        return
    body = facts.body
    named = names_limit(facts) or (facts.spent and bool(facts.violated))
    if not facts.coded and facts.kind == "forbidden":
        yield "forbidden-unexplained", f"status {facts.status}, and neither a code in the body nor a field says why"
    elif facts.kind == "transient" and not facts.coded and not facts.explained and not facts.hints:
        yield "unavailable-unexplained", f"status {facts.status}, and nothing says why or for how long"
    elif not facts.coded and not named:
        yield "no-machine-reason", _without_reason(facts)
    if body.html and not facts.answer.wants_html and not body.embedded:
        yield "html-for-api", f"the body is an HTML page ({facts.content_type or 'without a Content-Type'})"
    yield from _document(facts)


def _without_reason(facts: Facts) -> str:
    text = next((one for one in facts.body.sentences if one), "")
    if not text:
        return "the body is empty, and no field gives a reason"
    return f"all that is said is {text[:70] + '…' if len(text) > 70 else text!r}"


def names_limit(facts: Facts) -> bool:
    """Whether fields alone say which limit refused: one that is spent, by name."""
    return any(one.name and one.remaining == 0 for one in facts.standard.shown)


def _document(facts: Facts) -> Iterator[tuple[str, str]]:
    body, media = facts.body, facts.content_type
    if media == _PROBLEM:
        if not isinstance(body.json, dict):
            yield "problem-malformed", "the body is no JSON object"
            return
        if body.problem_type is None:
            yield (
                "problem-malformed",
                f"type is {body.json.get('type')!r}; expected a URI that says which problem it is",
            )
        status = body.json.get("status")
        if status is not None and status != facts.status:
            yield "problem-malformed", f"status is {status!r} in the document and {facts.status} in the response"
        return
    if body.json is None or body.embedded:
        return
    if media and "json" not in media and "javascript" not in media:
        yield "content-type-wrong", f"the body is JSON, and Content-Type is {media}"
    if body.problem_type is None or media:
        yield "no-problem-document", f"the body is {media or 'JSON without a Content-Type'}, not {_PROBLEM}"
