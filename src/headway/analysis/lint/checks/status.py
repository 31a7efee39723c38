"""Whether the status says that it is a limit, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headway.analysis.lint.facts import CAPACITY, PERMISSION, Facts

__all__ = ["check"]

_PRIVATE: Final = frozenset({418, 420, 430, 509, 529})


def check(facts: Facts) -> Iterator[tuple[str, str]]:
    """(rule, message) of what is wrong with the status."""
    status, kind = facts.status, facts.kind
    if kind is None or facts.grpc:
        return
    said = kind.replace("_", " ")
    if status < 400:
        yield "success-with-error", f"status {status}, and the body says that it is {said}"
    elif facts.limited:
        yield from _limited(facts, said)
    elif status == 429 and kind in CAPACITY:
        yield "too-many-for-other", f"status 429, and the refusal is {said}: about the server, so 503"
    elif status == 429 and kind in PERMISSION:
        yield "too-many-for-other", f"status 429, and the refusal is {said}: no wait lifts it, so 403"
    elif kind in CAPACITY and status in _PRIVATE:
        yield "unusual-status", f"status {status} is in no registry; the server's own capacity is 503"


def _limited(facts: Facts, said: str) -> Iterator[tuple[str, str]]:
    match facts.status:
        case 429:
            heard = facts.heard
            if facts.kind == "quota_exhausted" and heard is not None and heard.retry_after is None:
                yield (
                    "too-many-for-other",
                    "status 429 tells to wait, and nothing says that waiting helps: a quota is spent",
                )
        case 403:
            yield "forbidden-for-limit", f"status 403, and the refusal is {said} ({_evidence(facts)})"
        case 503:
            yield "unavailable-for-limit", f"status 503, and the refusal is {said} ({_evidence(facts)})"
        case 402 if facts.kind == "quota_exhausted":
            return
        case status:
            what = "is in no registry" if status in _PRIVATE else "is no limit's"
            yield "unusual-status", f"status {status} {what}, and the refusal is {said} ({_evidence(facts)})"


def _evidence(facts: Facts) -> str:
    """What shows that it is a limit."""
    if facts.body.codes:
        key, code = facts.body.codes[0]
        return f"{key}: {code}"
    for one in facts.trios:
        if one.left == 0:
            return f"{one.prefix}Remaining: 0"
    if facts.body.sentences and facts.body.sentences[0]:
        text = facts.body.sentences[0]
        return f"the body says {text[:60] + '…' if len(text) > 60 else text!r}"
    return "by its fields"
