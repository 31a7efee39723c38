"""A report as text for a terminal: marks, then findings by rule, the most serious first, each with what mends it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from headway.analysis.lint.audit import Graded, Report
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.marks import BEST, PROPERTIES
from headway.analysis.lint.rules import LEVELS, SERVERS, rules

__all__ = ["shown_servers", "text"]

_PLACES: Final = 5
_ROWS: Final = 40
_NAMES: Final = {
    "status": "a status of its own",
    "reason": "a reason for programs",
    "wait": "when to retry",
    "limits": "limits to be found",
}
_TITLES: Final = {
    "nginx": "nginx", "envoy": "Envoy", "kong": "Kong", "express": "express", "flask": "Flask", "django": "Django",
    "fastapi": "FastAPI",
}  # fmt: skip


def shown_servers(report: Report, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The servers whose fixes are shown: the wanted ones, else those that the answers name, else all."""
    if wanted is not None:
        return tuple(wanted)
    return report.servers or SERVERS


def text(report: Report, servers: Sequence[str], width: int = 100) -> str:
    """The report.

    Args:
        report: it.
        servers: whose fixes to show, of ``rules.SERVERS``; none shows none.
        width: columns.
    """
    lines = [f"{_clean(report.target)}: {report.looked_at}"]
    if len(report.graded) == 1:
        lines += ["", *_marks(report.graded[0])]
    elif report.graded:
        lines += ["", *_table(report.graded)]
    else:
        lines += ["", "no refusal was seen, so nothing is scored"]
    shown: dict[str, str] = {}
    for rule, found in _by_rule(report.findings):
        lines += ["", *_rule(rule, found, servers, width, shown)]
    lines += ["", _sum(report)]
    return "\n".join(lines)


def _marks(graded: Graded) -> Iterator[str]:
    title = f"{graded.status} {graded.kind}" if graded.status is not None else graded.kind
    score = "not scored" if graded.score is None else f"{graded.score} %"
    yield f"{title}: {score}"
    for mark in graded.marks:
        points = "–" if mark.points is None else f"{mark.points}/{BEST}"
        yield f"  {points:<4} {_NAMES[mark.property]:<22} {_clean(mark.evidence)}"


def _table(graded: Sequence[Graded]) -> Iterator[str]:
    worst = sorted(graded, key=lambda one: (one.score is None, one.score))
    yield f"{'score':>5}  {'  '.join(f'{name:>6}' for name in PROPERTIES)}  response"
    for one in worst[:_ROWS]:
        points = "  ".join(f"{'–' if mark.points is None else mark.points:>6}" for mark in one.marks)
        score = "–" if one.score is None else str(one.score)
        yield f"{score:>5}  {points}  {one.status or ''} {one.kind}  {_clean(str(one.place))}"
    if len(worst) > _ROWS:
        yield f"       and {len(worst) - _ROWS} more, none worse"


def _by_rule(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    known = rules()
    found: dict[str, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.rule, []).append(one)
    return sorted(found.items(), key=lambda item: LEVELS.index(known[item[0]].level))


def _rule(
    name: str, found: Sequence[Finding], servers: Sequence[str], width: int, shown: dict[str, str]
) -> Iterator[str]:
    """One rule with its findings; ``shown`` holds the fixes that stand above, by their text."""
    rule = rules()[name]
    yield f"{rule.level}: {rule.what} [{name}]"
    for one in found[:_PLACES]:
        yield f"  {_clean(str(one.place))}: {_clean(one.message)}"
    if len(found) > _PLACES:
        yield f"  and {len(found) - _PLACES} more"
    yield from textwrap.wrap(
        f"{rule.why} ({rule.source})", width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    for server in servers:
        first = shown.setdefault(f"{server} {rule.fixes[server]}", name)
        if first != name:
            yield f"  fix in {_TITLES[server]}: see above, {first}"
            continue
        yield f"  fix in {_TITLES[server]}:"
        yield textwrap.indent(rule.fixes[server], "    ")


def _sum(report: Report) -> str:
    known = rules()
    counts = {level: sum(known[one.rule].level == level for one in report.findings) for level in LEVELS}
    parts = [f"{count} {level}{'s' if count != 1 else ''}" for level, count in counts.items() if count]
    score = "not scored" if report.score is None else f"score {report.score} %"
    return f"{score}; {', '.join(parts) or 'no findings'}"


def _clean(words: str) -> str:
    """What strangers sent, without what a terminal would obey."""
    return "".join(char if char.isprintable() else "·" for char in words)
