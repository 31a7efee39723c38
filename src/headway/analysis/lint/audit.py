"""``audit``: the rules over answers, marks for each refusal, and one report of all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from headway.analysis.figures import counted
from headway.analysis.lint.answer import Answer, Place
from headway.analysis.lint.checks import cache, limits, reason, series, status, wait
from headway.analysis.lint.facts import Facts
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.marks import Mark, grade, percent
from headway.analysis.lint.rules import LEVELS, rules

__all__ = ["Graded", "Report", "audit"]

_CHECKS: Final[tuple[Callable[[Facts], Iterator[tuple[str, str]]], ...]] = (
    status.check,
    reason.check,
    wait.check,
    cache.check,
    limits.check,
)


@dataclass(frozen=True, slots=True)
class Graded:
    """What was judged as one thing: a refusal, an API document, a log.

    Attributes:
        place: where it is.
        kind: what kind of refusal it is, as ``headway read`` says it; or ``openapi`` or ``log``.
        status: the HTTP status; None for a document or a log.
        marks: one for each property.
    """

    place: Place
    kind: str
    status: int | None
    marks: tuple[Mark, ...]

    @property
    def score(self) -> int | None:
        """Percent, rounded down; None where no property could be judged."""
        return percent(self.marks)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole audit.

    Attributes:
        target: what was audited, as it was given.
        looked_at: what that was, in words, such as ``3 responses``.
        graded: each refusal with its marks.
        findings: everything that was found, by the order of places.
        servers: servers that the answers name, of ``rules.SERVERS``; empty where they name none.
        stopped: somebody stopped before all was read.
    """

    target: str
    looked_at: str
    graded: tuple[Graded, ...] = ()
    findings: tuple[Finding, ...] = ()
    servers: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def score(self) -> int | None:
        """The lowest score, since that is the refusal that a client meets on a bad day; None where none was judged."""
        return min((one.score for one in self.graded if one.score is not None), default=None)

    def without(self, ignored: Collection[str]) -> Report:
        """The same without the findings of some rules."""
        return replace(self, findings=tuple(one for one in self.findings if one.rule not in ignored))

    def worst(self) -> str | None:
        """The most serious level of all findings, or None."""
        levels = {rules()[one.rule].level for one in self.findings}
        return next((level for level in LEVELS if level in levels), None)


def audit(target: str, answers: Iterable[Answer]) -> Report:
    """Audit captured answers; those that are no refusal are checked for their limit fields only.

    Args:
        target: what to call them.
        answers: in the order in which they came.
    """
    findings: list[Finding] = []
    graded: list[Graded] = []
    servers: dict[str, None] = {}
    seen: list[Facts] = []
    for answer in answers:
        facts = Facts(answer)
        seen.append(facts)
        for check in _CHECKS:
            findings += [Finding(rule, message, answer.place) for rule, message in check(facts)]
        if facts.kind is not None:
            graded.append(Graded(answer.place, facts.kind, answer.status, grade(facts)))
        servers |= dict.fromkeys(_servers(facts))
    findings += series.check(seen)
    unique = tuple(dict.fromkeys(findings))
    count = f"{counted(len(seen), 'response')}, {counted(len(graded), 'refusal')}"
    return Report(target, count, tuple(graded), unique, tuple(servers))


_MARKS_OF: Final = {
    "nginx": "nginx",
    "openresty": "nginx",
    "envoy": "envoy",
    "istio": "envoy",
    "kong": "kong",
    "express": "express",
    "werkzeug": "flask",
    "wsgiserver": "django",
    "uvicorn": "fastapi",
}


def _servers(facts: Facts) -> Iterator[str]:
    told = " ".join(facts.field(name) or "" for name in ("server", "via", "x-powered-by")).lower()
    for word, server in _MARKS_OF.items():
        if word in told:
            yield server
