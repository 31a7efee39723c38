"""A report as text for a terminal: marks, then findings by rule, the most serious first, each with what mends it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from headway.analysis.lint.audit import Graded, Report
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.marks import BEST, PROPERTIES
from headway.analysis.lint.rules import LEVELS, SERVERS, rules

__all__ = ["shown_servers", "text"]

_PLACES: Final = 5
_ROWS: Final = 40
_WORDS: Final[Any] = {"break_on_hyphens": False, "break_long_words": False}
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
    lines = _wrapped(f"{_clean(report.target)}: {report.looked_at}", width)
    if len(report.graded) == 1:
        lines += ["", *_marks(report.graded[0], width)]
    elif report.graded:
        lines += ["", *_table(report.graded, width)]
    else:
        lines += ["", "no refusal was seen, so nothing is scored"]
    shown: dict[str, str] = {}
    for rule, found in _by_rule(report.findings):
        lines += ["", *_rule(rule, found, servers, width, shown)]
    lines += ["", _sum(report)]
    return "\n".join(lines)


def _marks(graded: Graded, width: int) -> Iterator[str]:
    title = f"{graded.status} {graded.kind}" if graded.status is not None else graded.kind
    score = "not scored" if graded.score is None else f"{graded.score} %"
    yield f"{title}: {score}"
    for mark in graded.marks:
        points = "–" if mark.points is None else f"{mark.points}/{BEST}"
        yield from _wrapped(_clean(mark.evidence), width, f"  {points:<4} {_NAMES[mark.property]:<22} ")


def _table(graded: Sequence[Graded], width: int) -> Iterator[str]:
    worst = sorted(graded, key=lambda one: (one.score is None, one.score))
    yield f"{'score':>5}  {'  '.join(f'{name:>6}' for name in PROPERTIES)}  response"
    for one in worst[:_ROWS]:
        points = "  ".join(f"{'–' if mark.points is None else mark.points:>6}" for mark in one.marks)
        score = "–" if one.score is None else str(one.score)
        response = f"{one.status or ''} {one.kind}  {_clean(str(one.place))}"
        yield from _wrapped(response, width, f"{score:>5}  {points}  ")
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
    yield from _wrapped(f"{rule.level}: {rule.what} [{name}]", width, then="  ")
    for one in found[:_PLACES]:
        yield from _wrapped(f"{_clean(str(one.place))}: {_clean(one.message)}", width, "  ", "    ")
    if len(found) > _PLACES:
        yield f"  and {len(found) - _PLACES} more"
    yield from _wrapped(f"{rule.why} ({rule.source})", width, "  ")
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


def _wrapped(words: str, width: int, first: str = "", then: str | None = None) -> list[str]:
    """Words in lines of at most so many columns, but for words that are longer, such as addresses: these stay whole.

    Args:
        words: what to say.
        width: columns.
        first: before the first line.
        then: before the others; None indents them as far, or half the width at most.
    """
    indent = " " * min(len(first), width // 2) if then is None else then
    if len(first) > width // 2 and then is None:  # no room beside it
        return [first.rstrip(), *textwrap.wrap(words, width, initial_indent="    ", subsequent_indent="    ", **_WORDS)]
    return textwrap.wrap(words, width, initial_indent=first, subsequent_indent=indent, **_WORDS) or [first.rstrip()]


def _clean(words: str) -> str:
    """What strangers sent, without what a terminal would obey."""
    return "".join(char if char.isprintable() else "·" for char in words)
