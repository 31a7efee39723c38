"""A report as one page of HTML that needs nothing else: read on a telephone or a desk, by light or dark, seen or heard.

Everything that varies is escaped. The page's own policy lets nothing run and nothing load but its one style sheet. Each
chart is there twice, for a narrow and for a wide page, and its numbers stand in a table behind it.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

from headway.analysis.figures import Cell, Chart, Report, Section, Table, say_number
from headway.analysis.pictures.palette import INK, LINES, MARK, PAPER, SOFT, dark_style
from headway.analysis.pictures.svg import restyled

__all__ = ["html_page"]

_STYLE: Final = f"""
:root{{color-scheme:light dark;--ink:{INK[0]};--paper:{PAPER[0]};--soft:{SOFT[0]};--line:{LINES[0]};--mark:{MARK[0]};--shade:#f4f4f7}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;-webkit-text-size-adjust:100%;text-size-adjust:100%}}
main{{max-width:49rem;margin:0 auto;padding:1rem}}
h1,h2,h3,p,summary,figcaption,caption{{overflow-wrap:anywhere}}
h1{{font-size:1.5rem;line-height:1.25;margin:.5rem 0 1rem}}
h2{{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}}
h3{{font-size:1rem;margin:0 0 .25rem}}
p{{margin:.5rem 0;max-width:42rem}}
.partial{{border-left:.25rem solid var(--mark);padding:.5rem .75rem;background:var(--shade)}}
figure{{margin:1.5rem 0}}
figure svg{{display:block;width:100%;height:auto}}
figure .wide{{display:none}}
@media (min-width:44rem){{figure .wide{{display:block}}figure .narrow{{display:none}}}}
figcaption,.note,footer{{color:var(--soft);font-size:.875rem}}
details{{margin:.25rem 0}}
summary{{cursor:pointer;color:var(--soft);font-size:.875rem;padding:.5rem 0}}
.scroll{{overflow-x:auto;margin:1rem 0 .5rem;border:1px solid var(--line);border-radius:.375rem}}
.scroll:focus-visible,summary:focus-visible{{outline:2px solid var(--ink);outline-offset:2px}}
table{{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;width:max-content;min-width:100%}}
caption{{text-align:left;font-weight:600;padding:.5rem .75rem}}
th,td{{padding:.375rem .75rem;text-align:left;vertical-align:top;border-top:1px solid var(--line);font-weight:400;max-width:22rem;overflow-wrap:break-word}}
thead th{{font-weight:600;background:var(--shade);vertical-align:bottom;overflow-wrap:normal}}
@media (max-width:44rem){{th,td{{max-width:14rem}}}}
.n{{text-align:right;white-space:nowrap}}
footer{{margin:3rem 0 1rem;padding-top:.75rem;border-top:1px solid var(--line);overflow-wrap:anywhere}}
@media (prefers-color-scheme:dark){{
:root{{--ink:{INK[1]};--paper:{PAPER[1]};--soft:{SOFT[1]};--line:{LINES[1]};--mark:{MARK[1]};--shade:#212127}}
{dark_style()}
}}
@media print{{details{{display:none}}}}
"""
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)


def html_page(report: Report) -> str:
    """The page. Charts need Matplotlib.

    Raises:
        ModuleNotFoundError: the report has charts, and Matplotlib is not installed.
    """
    names = _Names()
    partial = (
        f'<p class="partial" role="note"><strong>This is not the whole:</strong> {escape(report.partial)}</p>\n'
        if report.partial
        else ""
    )
    sections = "".join(_section(section, names) for section in report.sections)
    made_by = f"Made by {escape(report.made_by)}. " if report.made_by else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>{escape(report.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(report.title)}</h1>
{partial}{_paragraphs(report.paragraphs)}{sections}<footer>{made_by}This page loads nothing from anywhere.</footer>
</main>
</body>
</html>
"""


class _Names:
    """Ids, each once a page."""

    def __init__(self) -> None:
        self._count = 0

    def next(self, kind: str) -> str:
        """Such as "chart-3"."""
        self._count += 1
        return f"{kind}-{self._count}"


def _section(section: Section, names: _Names) -> str:
    heading = f"<h2>{escape(section.title)}</h2>\n" if section.title else ""
    charts = "".join(_chart(chart, names) for chart in section.charts)
    return (
        heading + _paragraphs(section.paragraphs) + charts + "".join(_table(table, names) for table in section.tables)
    )


def _paragraphs(paragraphs: tuple[str, ...]) -> str:
    return "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in paragraphs)


def _chart(chart: Chart, names: _Names) -> str:
    heading = f"<h3>{escape(chart.title)}</h3>\n"
    caption = f"<figcaption>{escape(chart.description)}</figcaption>\n" if chart.description else ""
    if chart.empty:
        return f'<figure>\n{heading}<p class="note">There is nothing to draw.</p>\n{caption}</figure>\n'
    from headway.analysis.pictures.matplotlib import NARROW, WIDE, draw_svg  # half a second, and only for charts

    pictures = "".join(
        f'<div class="{width}">'
        + restyled(
            draw_svg([chart], size, titled=False),
            title=chart.title,
            description=chart.description,
            name=names.next("chart"),
        )
        + "</div>\n"
        for width, size in (("narrow", NARROW), ("wide", WIDE))
    )
    behind = f"<details><summary>The numbers behind it</summary>\n{_table(chart.table(), names)}</details>\n"
    return f"<figure>\n{heading}{pictures}{caption}{behind}</figure>\n"


def _table(table: Table, names: _Names) -> str:
    name = names.next("table")
    numeric = [
        all(isinstance(row[at], int | float | None) for row in table.rows) and bool(table.rows)
        for at in range(len(table.columns))
    ]
    head = "".join(
        f'<th scope="col"{" class=n" if right else ""}>{escape(column)}</th>'
        for column, right in zip(table.columns, numeric, strict=True)
    )
    rows = "".join(f"<tr>{_row(row)}</tr>\n" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>\n' if table.note else ""
    return (
        f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">\n<table>\n'
        f'<caption id="{name}">{escape(table.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n{note}"
    )


def _row(cells: tuple[Cell, ...]) -> str:
    written = []
    for at, cell in enumerate(cells):
        tag, scope = ("th", ' scope="row"') if at == 0 else ("td", "")
        right = "" if isinstance(cell, str) else " class=n"
        written.append(f"<{tag}{scope}{right}>{_said(cell)}</{tag}>")
    return "".join(written)


def _said(cell: Cell) -> str:
    if cell is None:
        return "–"
    return escape(cell) if isinstance(cell, str) else say_number(cell)
