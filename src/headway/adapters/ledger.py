"""``Ledger``: everything that was decided about one request, and the one answer that is made of it.

A request may pass several guards (a middleware's, a decorator's). Whoever opens the ledger writes the answer's fields and
settles at the end; the guards within only add their decisions. So there is one writer, and a limiter is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headway.adapters.cors import ALLOWS, EXPOSES, ORIGIN
from headway.adapters.drive import Asking
from headway.core.verdict import Verdict
from headway.errors import RateLimited
from headway.limiter.base import BaseLimiter
from headway.limiter.decision import Decision
from headway.limiter.reservation import AsyncReservation, Reservation
from headway.policy.request import RequestFacts
from headway.presentation.fields import DEFAULT_DIALECTS, Fields, expose, fields
from headway.presentation.response import Response, respond

if TYPE_CHECKING:
    from headway.adapters.guard import Guard

__all__ = ["LEDGER", "Entry", "Ledger", "ResponseFacts", "exposed", "failed", "merged_fields"]

LEDGER: Final = "headway"
"""Where a request's ledger is kept: in an ASGI scope, a WSGI environ, Django's ``request.META``."""


@dataclass(frozen=True, slots=True)
class ResponseFacts:
    """What is known of the application's answer once it has been sent.

    Attributes:
        status: the HTTP status; of a WebSocket 101 or 403; 500 where the application raised and nothing was sent.
        headers: (name, value) as sent.
        size: bytes of the body that were sent.
        error: what the application raised, or None.
    """

    status: int
    headers: Fields = ()
    size: int = 0
    error: BaseException | None = None

    def header(self, name: str) -> str | None:
        """The first value of that field, or None; names are compared without regard to case."""
        wanted = name.lower()
        return next((value for given, value in self.headers if given.lower() == wanted), None)


def failed(response: ResponseFacts) -> bool:
    """The request failed: a status of 400 or above, or an exception. For ``charge_if``."""
    return response.status >= 400 or response.error is not None


@dataclass(slots=True)
class Entry:
    """One guard's decision about a request.

    Attributes:
        guard: who asked.
        limiter: what it asked.
        decision: the answer.
        attributes: whose limits they are.
        reservation: what is to be settled at the end, or None.
        open: something is left to do when the response has been sent.
        standing: how the limits stand since the charge was given back, or None.
    """

    guard: Guard
    limiter: BaseLimiter
    decision: Decision
    attributes: Mapping[str, object]
    reservation: Reservation | AsyncReservation | None = None
    open: bool = False
    standing: Verdict | None = None


class Ledger:
    """The decisions about one request, in the order in which they were made.

    Attributes:
        entries: one a guard that asked.
        refusal: the verdict that refused the request, or None.
        refused_by: who refused; None for the application itself.
    """

    __slots__ = ("entries", "refusal", "refused_by")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.refusal: Verdict | None = None
        self.refused_by: Guard | None = None

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What the limiters answered, for the application."""
        return tuple(entry.decision for entry in self.entries)

    @property
    def unsettled(self) -> bool:
        """Something is left to do when the response has been sent."""
        for entry in self.entries:  # noqa: SIM110  # quicker than any(), and every part of a body asks
            if entry.open:
                return True
        return False

    def asked(self, limiter: BaseLimiter) -> bool:
        """That limiter has decided about this request: it is not asked again."""
        return any(entry.limiter is limiter for entry in self.entries)

    def fields(self) -> Fields:
        """The fields of an answer that the application gives."""
        entries = self.entries
        if not entries:
            return ()
        verdict = self.refusal or self._admitted()
        return () if verdict is None else fields(verdict, (self.refused_by or entries[0].guard).dialects)

    def refuse(self, verdict: Verdict, guard: Guard | None = None) -> Verdict:
        """Note a refusal, with how the limits stand that admitted the request before."""
        self.refused_by = guard
        before = [entry.standing or entry.decision.verdict for entry in self.entries if entry.decision.allowed]
        self.refusal = _merged([*(one for one in before if one.degraded is None), verdict])
        return self.refusal

    def answer(self, facts: RequestFacts) -> Response:
        """The whole answer to the refused request."""
        assert self.refusal is not None  # noqa: S101  # the caller's branch
        guard = self.refused_by or (self.entries[0].guard if self.entries else None)
        return respond(
            self.refusal,
            accept=", ".join(facts.lines("accept")) or None,
            accept_language=", ".join(facts.lines("accept-language")) or None,
            method=facts.method,
            dialects=guard.dialects if guard else DEFAULT_DIALECTS,
            cors=bool(facts.lines(ORIGIN)),
            locale=guard.locale if guard else "en",
        )

    def raised(self, refused: RateLimited) -> Asking[None]:
        """The application, or a guard, raised a refusal: from here on it is the request's."""
        if self.refusal is None:
            yield from self.take_back()
            self.refuse(refused.decision.verdict)

    def take_back(self) -> Asking[None]:
        """Give back what earlier guards charged: a later one refused, and a refused request charges nothing.

        The refusal shows those limits as they stand then.
        """
        for entry in self.entries:
            if entry.decision.allowed and (yield from entry.guard.give_back(entry)):
                found = yield entry.limiter.peek(entry.attributes, cost=0)  # type: ignore[attr-defined]  # both have it
                entry.standing = found.verdict if found.degraded is None else None

    def end(self, response: ResponseFacts) -> Asking[None]:
        """Settle what is left to do: the actual cost, leases."""
        for entry in self.entries:
            if entry.open:
                yield from entry.guard.settle(entry, response)

    def _admitted(self) -> Verdict | None:
        entries = self.entries
        if len(entries) == 1:
            return entries[0].decision.verdict
        known = [entry.decision.verdict for entry in entries if entry.decision.degraded is None]
        return _merged(known) if known else None


def exposed(sent: Fields, headers: Sequence[tuple[str, str]], *, asked: bool) -> Fields:
    """The fields to send, and what lets scripts of other sites read them where the application answers CORS.

    Args:
        sent: from ``Ledger.fields``.
        headers: the application's own, with names in lower case.
        asked: the request comes from another site: whoever answers CORS may add its fields further out.
    """
    if not sent or not (asked or any(name == ALLOWS for name, _ in headers)):
        return sent
    existing = ", ".join(value for name, value in headers if name == EXPOSES)
    return (*sent, expose(sent, existing or None))


def merged_fields(headers: Sequence[tuple[str, str]], ledger: Ledger, *, asked: bool) -> list[tuple[str, str]]:
    """The application's fields, with the ledger's in place of its own of that name; see ``exposed`` for ``asked``."""
    sent = ledger.fields()
    if not sent:
        return list(headers)
    sent = exposed(sent, [(name.lower(), value) for name, value in headers], asked=asked)
    names = {name.lower() for name, _ in sent}
    return [*(pair for pair in headers if pair[0].lower() not in names), *sent]


def _merged(verdicts: Sequence[Verdict]) -> Verdict:
    """Several decisions about one request as one."""
    if len(verdicts) == 1:
        return verdicts[0]
    last = verdicts[-1]
    return Verdict(
        tuple(limit for one in verdicts for limit in one.limits),
        tuple(outcome for one in verdicts for outcome in one.outcomes),
        all(one.allowed for one in verdicts),
        max(one.now for one in verdicts),
        last.degraded,
        tuple(cost for one in verdicts for cost in one.costs),
    )
