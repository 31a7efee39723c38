"""A refusal as an ``application/problem+json`` document (RFC 9457), rendered and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from headway.core.verdict import Verdict
from headway.core.zone import zone_of
from headway.presentation.moments import instant
from headway.presentation.rounding import milliseconds_up
from headway.presentation.sentence import sentence

__all__ = ["MEDIA_TYPE", "Problem", "problem", "status_of"]

MEDIA_TYPE: Final = "application/problem+json"

_Value = TypeVar("_Value")
_REGISTRY: Final = "https://iana.org/assignments/http-problem-types#"
_KINDS: Final = {
    429: (f"{_REGISTRY}quota-exceeded", "Quota Exceeded"),
    503: (f"{_REGISTRY}temporary-reduced-capacity", "Temporary Reduced Capacity"),
    422: ("urn:headway:never-admissible", "Never Admissible"),
    403: ("urn:headway:blocked", "Blocked"),
}


def status_of(verdict: Verdict) -> int:
    """200 admitted; 429 refused; 403 blocked; 422 a cost that can never fit; 503 refused because the store was away."""
    if verdict.allowed:
        return 200
    if verdict.binding is None:
        return 503
    if verdict.blocked:
        return 403
    return 422 if verdict.never else 429


@dataclass(frozen=True, slots=True)
class Problem:
    """What the document says; the members' names are those of the JSON, ``-`` as ``_``.

    Attributes:
        type: a URI; the two of draft -11's registry, or ``urn:headway:never-admissible`` or ``urn:headway:blocked``.
        title: one a type, in English.
        status: the HTTP status.
        detail: the sentence.
        violated_policies: names of the limits that refused, in the policy's order.
        limit: the binding limit's name, or None.
        retry_after_ms: whole milliseconds, rounded up; None when no wait helps.
        retry_at: that moment on the deciding clock, in the limit's zone or UTC; None when no wait helps or no date
            can hold it.
        never: no wait helps.
    """

    type: str
    title: str
    status: int
    detail: str
    violated_policies: tuple[str, ...] = ()
    limit: str | None = None
    retry_after_ms: int | None = None
    retry_at: datetime | None = None
    never: bool = False

    @classmethod
    def of(cls, verdict: Verdict, locale: str = "en", *, zone: str | None = None) -> Problem:
        """The problem of a refusal.

        Raises:
            ValueError: the verdict is no refusal.
        """
        if verdict.allowed:
            raise ValueError("an admitted request has no problem document; expected a refused verdict")
        status, limit, wait = status_of(verdict), verdict.limit, verdict.retry_after
        named = zone or (limit.quota.zone if limit else None)
        return cls(
            *_KINDS[status],
            status,
            sentence(verdict, locale, zone=zone),
            tuple(one.name for one in verdict.violated),
            limit.name if limit else None,
            milliseconds_up(wait) if wait is not None else None,
            instant(verdict.now + wait, zone_of(named) if named else None) if wait is not None else None,
            wait is None,
        )

    def document(self) -> dict[str, object]:
        """The JSON object, in a fixed order; ``never`` only where it is true."""
        return {
            "type": self.type,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "violated-policies": list(self.violated_policies),
            "limit": self.limit,
            "retry_after_ms": self.retry_after_ms,
            "retry_at": self.retry_at.isoformat(timespec="milliseconds") if self.retry_at else None,
            **({"never": True} if self.never else {}),
        }

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Problem:
        """Read a document that ``document`` wrote.

        Raises:
            ValueError: names the member that is missing or of the wrong type.
        """

        def member(name: str, kind: type[_Value], expected: str) -> _Value:
            value = document.get(name)
            if isinstance(value, kind) and not isinstance(value, bool):
                return value
            raise ValueError(f"problem document: {name} is {value!r}; expected {expected}")

        names = member("violated-policies", list, "an array of strings")
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"problem document: violated-policies is {names!r}; expected an array of strings")
        at = None if document.get("retry_at") is None else member("retry_at", str, "an RFC 3339 date-time or null")
        try:
            moment = None if at is None else datetime.fromisoformat(at)
        except ValueError as error:
            raise ValueError(f"problem document: retry_at is {at!r}; expected an RFC 3339 date-time") from error
        wait = document.get("retry_after_ms")
        limit = document.get("limit")
        return cls(
            member("type", str, "a URI"),
            member("title", str, "a string"),
            member("status", int, "an HTTP status"),
            member("detail", str, "a string"),
            tuple(names),
            None if limit is None else member("limit", str, "a limit's name or null"),
            None if wait is None else member("retry_after_ms", int, "whole milliseconds or null"),
            moment,
            document.get("never") is True,
        )


def problem(verdict: Verdict, locale: str = "en", *, zone: str | None = None) -> dict[str, object]:
    """The problem document of a refusal, ready for ``json.dumps``; see ``Problem``.

    Raises:
        ValueError: the verdict is no refusal.
    """
    return Problem.of(verdict, locale, zone=zone).document()
