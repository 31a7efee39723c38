"""A report as text of a given width: headings, wrapped paragraphs, tables in columns, and plots if they are asked for."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable
from typing import Final

from headway.analysis.figures import Cell, Chart, Report, Section, Table, say_number, shorten

__all__ = ["columns", "fitted", "report_text", "table_text"]

_LONGEST_CELL: Final = 60
_GAP: Final = "  "


def report_text(
    report: Report, width: int = 80, plot: Callable[[Chart, int], str] | None = None, room: int | None = None
) -> str:
    """The report in lines.

    Args:
        report: see ``Report``.
        width: columns that paragraphs and plots keep to.
        plot: draws a chart so many columns wide; None leaves charts out.
        room: columns that tables keep to, see ``table_text``; None lets them be as wide as they have to be.
    """
    parts = [report.title]
    if report.partial:
        parts.append(_wrapped(f"This is not the whole: {report.partial}", width))
    parts += [_wrapped(paragraph, width) for paragraph in report.paragraphs]
    for section in report.sections:
        parts += _section(section, width, plot, room)
    return "\n\n".join(part for part in parts if part)


def _section(section: Section, width: int, plot: Callable[[Chart, int], str] | None, room: int | None) -> list[str]:
    charts = [plot(chart, width) for chart in section.charts if not chart.empty] if plot else []
    body = [
        *(_wrapped(paragraph, width) for paragraph in section.paragraphs),
        *charts,
        *(table_text(table, room=room) for table in section.tables),
    ]
    if not body:
        return []
    heading = f"{section.title}\n{'─' * min(width, len(section.title))}" if section.title else ""
    return [heading, *body]


def table_text(table: Table, width: int = 80, room: int | None = None) -> str:
    """The table in columns: numbers at the right, long cells shortened. Its note keeps to ``width``, the rest to itself.

    Where it is wider than ``room``, it comes in parts below each other, each with as many columns as fit beside the first.
    """
    rows = [table.columns, *([_said(cell) for cell in row] for row in table.rows)]
    right = [
        bool(table.rows) and all(isinstance(row[at], int | float | None) for row in table.rows)
        for at in range(len(table.columns))
    ]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    parts = [
        "\n".join(_GAP.join(fitted(row[at], widths[at], right=right[at]) for at in shown).rstrip() for row in rows)
        for shown in _parts(widths, room)
    ]
    note = [_wrapped(table.note, width if room is None else min(width, room))] if table.note else []
    return "\n".join([*([table.caption] if table.caption else []), "\n\n".join(parts), *note])


def _parts(widths: list[int], room: int | None) -> list[list[int]]:
    """Which columns stand beside each other: all, or the first with as many of the others as there is room for."""
    if room is None:
        return [[*range(len(widths))]]
    parts: list[list[int]] = [[0]]
    taken = widths[0]
    for at, width in enumerate(widths[1:], 1):
        if len(parts[-1]) > 1 and taken + len(_GAP) + width > room:
            parts.append([0])
            taken = widths[0]
        parts[-1].append(at)
        taken += len(_GAP) + width
    return parts


def columns(text: str) -> int:
    """How many columns of a terminal a printable text takes: letters of East Asia take two, marks above others none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """The text with spaces after it, or before it if ``right``, so that it takes ``width`` columns."""
    spaces = " " * (width - columns(text))
    return spaces + text if right else text + spaces


def _said(cell: Cell) -> str:
    if cell is None:
        return "–"
    return shorten(cell, _LONGEST_CELL) if isinstance(cell, str) else say_number(cell)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, max(20, width), break_on_hyphens=False)
