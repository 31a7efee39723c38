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


def report_text(report: Report, width: int = 80, plot: Callable[[Chart, int], str] | None = None) -> str:
    """The report in lines.

    Args:
        report: see ``Report``.
        width: columns that paragraphs and plots keep to; tables are as wide as they have to be.
        plot: draws a chart so many columns wide; None leaves charts out.
    """
    parts = [report.title]
    if report.partial:
        parts.append(_wrapped(f"This is not the whole: {report.partial}", width))
    parts += [_wrapped(paragraph, width) for paragraph in report.paragraphs]
    for section in report.sections:
        parts += _section(section, width, plot)
    return "\n\n".join(part for part in parts if part)


def _section(section: Section, width: int, plot: Callable[[Chart, int], str] | None) -> list[str]:
    charts = [plot(chart, width) for chart in section.charts if not chart.empty] if plot else []
    body = [
        *(_wrapped(paragraph, width) for paragraph in section.paragraphs),
        *charts,
        *map(table_text, section.tables),
    ]
    if not body:
        return []
    heading = f"{section.title}\n{'─' * min(width, len(section.title))}" if section.title else ""
    return [heading, *body]


def table_text(table: Table, width: int = 80) -> str:
    """The table in columns: numbers at the right, long cells shortened. Its note keeps to ``width``, the rest to itself."""
    rows = [table.columns, *([_said(cell) for cell in row] for row in table.rows)]
    right = [
        bool(table.rows) and all(isinstance(row[at], int | float | None) for row in table.rows)
        for at in range(len(table.columns))
    ]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    lines = [
        _GAP.join(
            fitted(cell, cell_width, right=at_right)
            for cell, cell_width, at_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join(
        [*([table.caption] if table.caption else []), *lines, *([_wrapped(table.note, width)] if table.note else [])]
    )


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
