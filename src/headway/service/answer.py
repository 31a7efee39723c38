"""``Answer``: what the service says to one request, as status, fields and body; and how it stands in a batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from headway.core.change import Change
from headway.core.outcome import Admitted, Outcome, Refused
from headway.limiter.decision import Decision
from headway.presentation.fields import Fields
from headway.presentation.response import respond
from headway.presentation.rounding import milliseconds_up
from headway.service.fault import Fault
from headway.service.lease import lease_text

__all__ = ["Answer", "decided", "decision_document", "failed"]

_LIMIT_FIELDS: Final = frozenset({"RateLimit", "RateLimit-Policy", "Retry-After"})


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer of the service.

    Attributes:
        status: the HTTP status.
        headers: (name, value), each name once, with ``Content-Type``.
        body: JSON in UTF-8.
    """

    status: int
    headers: Fields
    body: bytes

    @classmethod
    def of(cls, status: int, document: object, *, headers: Fields = (), media_type: str = "application/json") -> Answer:
        """An answer whose body is ``document``."""
        body = f"{json.dumps(document, ensure_ascii=False)}\n".encode("utf-8", "replace")
        return cls(status, (*headers, ("Content-Type", media_type), ("Cache-Control", "no-store")), body)

    def in_batch(self, member: str) -> dict[str, object]:
        """The same answer as one element of a batch's array, its body as ``member`` where it is no problem."""
        fields = {name: value for name, value in self.headers if name in _LIMIT_FIELDS}
        named = member if self.status == 200 else "problem"
        return {"status": self.status, **({"headers": fields} if fields else {}), named: json.loads(self.body)}


def decided(decision: Decision, policy: str, *, accept_language: str | None = None) -> Answer:
    """The answer to a request that was decided: 200, 429, 422 (never), 403 (blocked) or 503 (the store was away)."""
    response = respond(decision.verdict, accept_language=accept_language)
    if decision.allowed:
        held = decision.changes(give_back=True, holds_only=True)
        document = {**decision_document(decision), **(_lease_document(policy, held) if held else {})}
        return Answer.of(200, document, headers=response.headers)
    return Answer(response.status, response.headers, response.body)


def failed(fault: Fault) -> Answer:
    """The answer to a request that could not be decided."""
    return Answer.of(fault.status, fault.document(), headers=fault.headers, media_type="application/problem+json")


def decision_document(decision: Decision) -> dict[str, Any]:
    """A decision as a JSON object; times in whole ms, rounded up, null when no wait helps."""
    wait = decision.retry_after_ns
    return {
        "allowed": decision.allowed,
        "limit": decision.limit,
        "remaining": decision.remaining,
        "retry_after_ms": None if wait is None else milliseconds_up(wait),
        **({"degraded": True} if decision.degraded is not None else {}),
        **({"shadowed": list(decision.shadowed)} if decision.shadowed else {}),
        "outcomes": {name: _outcome_document(outcome) for name, outcome in decision.outcomes.items()},
    }


def _lease_document(policy: str, held: tuple[Change, ...]) -> dict[str, Any]:
    """What gives the units back that are held, and when the first of them are free by themselves."""
    lasts = min(change.charge.limit.quota.period_ns for change in held)
    return {"lease": lease_text(policy, held), "lease_ms": lasts // 1_000_000}


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Admitted(delay=delay):
            wait: int | None = 0
        case Refused(retry_after=wait):
            delay = 0
        case _:
            wait, delay = None, 0
    return {
        "outcome": type(outcome).__name__.lower(),
        "remaining": outcome.remaining,
        "retry_after_ms": None if wait is None else milliseconds_up(wait),
        "replenish_after_ms": milliseconds_up(outcome.replenish_after),
        "reset_after_ms": milliseconds_up(outcome.reset_after),
        **({"delay_ms": milliseconds_up(delay)} if delay else {}),
    }
