"""Reports in a terminal."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.analysis.figures import Axis, Chart, Kind, Mark, Report, Scale, Section, Series, Table
from headway.analysis.pictures.plotext import plot_text
from headway.analysis.pictures.terminal import columns, fitted, report_text, table_text

from .examples import BARS, CHARTS, LINES, NAMES, TIMES, report


def test_a_table_in_columns() -> None:
    """Numbers stand at the right of their column, texts at the left, a lacking cell is a dash, the note comes last."""
    table = Table("Keys", ("key", "n"), (("a", 5), ("long one", 12_345), ("c", None)), "A note.")
    assert table_text(table) == (
        "Keys\nkey            n\na              5\nlong one  12,345\nc              –\nA note.".replace("\n", "\n")
    )


def test_wide_letters_take_two_columns() -> None:
    """Columns stay aligned below letters that take two, or none."""
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert fitted("日", 4) == "日  "
    lines = table_text(Table("", ("k", "n"), (("日本", 1), ("abcd", 2)))).splitlines()
    assert lines == ["k     n", "日本  1", "abcd  2"]


def test_a_report_without_a_terminal_has_no_plots() -> None:
    """Without a way to plot, a report is its words and tables."""
    text = report_text(report(), 80)
    assert "The answer." in text
    assert "Who would have been refused" in text
    assert "Admitted and refused" not in text
    assert "not the whole" not in text


def test_a_partial_report_says_so_first() -> None:
    """What is not the whole says so, and why, before anything else."""
    text = report_text(report("stopped by Ctrl-C after 7 lines"), 80)
    assert text.splitlines()[2] == "This is not the whole: stopped by Ctrl-C after 7 lines"


@pytest.mark.parametrize("width", [30, 50, 80, 200])
@pytest.mark.parametrize("chart", CHARTS)
def test_plots_keep_to_their_width(chart: Chart, width: int) -> None:
    """No line of a plot is wider than the terminal, whatever its names are."""
    for line in plot_text(chart, width).splitlines():
        assert columns(line) <= width, line


@pytest.mark.parametrize("chart", CHARTS)
def test_without_colour_there_is_no_escape(chart: Chart) -> None:
    """Without colour a plot holds nothing but printable characters."""
    text = plot_text(chart, 80)
    assert all(line.isprintable() for line in text.split("\n"))


def test_with_colour_there_are_colours_alone() -> None:
    """With colour the only escapes are colours, and without them the same points are there."""
    text = plot_text(BARS, 80, colour=True)
    assert "\x1b[38;5;" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\n", "").isprintable()
    assert "\x1b[48" not in text, "the terminal's own paper stays"


def test_series_can_be_told_apart_without_colour() -> None:
    """Each series has a character of its own, which the legend names."""
    text = plot_text(LINES, 80)
    for symbol, name in (("•", "by address"), ("+", "_hidden"), ("x", "none of a logarithm"), ("│", "proposed")):
        assert f"\n{symbol} {name}" in text
        assert text.count(symbol) > 5


def test_bars_reach_their_height() -> None:
    """A stack is as high as its sum, in the middle of what the axis shows, and a gap is a gap."""
    series = Series("a", ((0, 10), (5, 5)), Kind.BARS, width=1)
    rows = plot_text(Chart("c", Axis("x"), Axis("y"), (series,)), 40).splitlines()[2:12]
    heights = [sum(row[at] == "█" for row in rows) for at in (4, 20, 36)]
    assert heights[0] == 10
    assert heights[1] == 0
    assert 5 <= heights[2] <= 6


def test_bars_stand_on_each_other() -> None:
    """The second series begins where the first one ends, with a character of its own."""
    series = (Series("a", ((0, 6),), Kind.BARS), Series("b", ((0, 4),), Kind.BARS))
    rows = plot_text(Chart("c", Axis("x"), Axis("y"), series), 40).splitlines()[2:12]
    column = [row[20] for row in rows]
    assert column == ["░"] * 4 + ["█"] * 6


def test_a_marks_line_stands_at_its_value() -> None:
    """A horizontal mark crosses the row of its value."""
    chart = Chart("c", Axis("x"), Axis("y"), (Series("a", ((0, 0), (10, 10))),), (Mark(5, "limit"),))
    (row,) = [line for line in plot_text(chart, 60).splitlines() if re.match(r" *5┤", line)]
    assert row.count("─") > 40


def test_two_marks_are_told_apart() -> None:
    """Each mark of an axis has a line of its own, which the legend names."""
    marks = (Mark(3, "low"), Mark(8, "high"), Mark(5, "begin", "x"))
    text = plot_text(Chart("c", Axis("x"), Axis("y"), (Series("a", ((0, 0), (10, 10))),), marks), 60)
    assert text.splitlines()[-3:] == ["─ low", "═ high", "│ begin"]
    assert text.count("═") > 40


def test_a_low_mark_hides_no_bar() -> None:
    """A mark in the lowest row lies beneath the bars, or everything that is low would look refused, or like nothing."""
    series = Series("a", ((0, 1), (1, 100), (2, 1)), Kind.BARS)
    chart = Chart("c", Axis("x"), Axis("y"), (series,), (Mark(2, "limit"),))
    lowest = plot_text(chart, 60).splitlines()[11]
    assert lowest.count("█") > 50


def test_names_lie_beside_their_bars() -> None:
    """With categories each line has a name, a bar in proportion and the sum."""
    lines = plot_text(NAMES, 80).splitlines()
    assert lines[1].startswith("203.0.113.7 ")
    assert lines[1].endswith(" 100")
    assert lines[3].endswith(" 33.33")
    marked = Chart(
        "c", Axis("x"), Axis("y"), NAMES.series, (Mark(7, "a limit"), Mark(9, "9 at most")), "", NAMES.categories
    )
    assert plot_text(marked, 80).splitlines()[-2:] == ["a limit: 7", "9 at most"]
    assert 2.5 < lines[1].count("█") / lines[3].count("█") < 3.5


def test_times_are_shown_as_times() -> None:
    """An axis of times has clock times under it."""
    assert re.search(r"00:00:00 .*09:59:00", plot_text(TIMES, 80))


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12)), max_size=30),
    st.sampled_from(Kind),
    st.sampled_from([Scale.LINEAR, Scale.LOG]),
)
def test_any_points_can_be_plotted(points: list[tuple[float, float]], kind: Kind, scale: Scale) -> None:
    """Any finite points, none, one, all alike, make a plot of the same size."""
    if kind is Kind.BARS:
        points = [(x, abs(y)) for x, y in points]
    chart = Chart("c", Axis("x", scale=scale), Axis("y", scale=scale), (Series("a", tuple(sorted(points)), kind),))
    assert len(plot_text(chart, 60).splitlines()) == 15


def test_a_report_with_plots() -> None:
    """A chart stands between the words and the tables of its section."""
    section = Section("Part", ("Words.",), (BARS,), (Table("Keys", ("k",), (("a",),)),))
    text = report_text(Report("R", (), (section,)), 60, partial(plot_text, colour=False))
    assert text.index("Words.") < text.index("Admitted and refused") < text.index("Keys")


@pytest.mark.parametrize("room", [30, 40, 60, 100])
def test_a_table_wider_than_the_terminal_comes_in_parts(room: int) -> None:
    """No line is wider than there is room; each part begins with the first column, and no column is lost."""
    names = tuple(f"column {number}" for number in range(12))
    table = Table("Wide", names, (tuple(f"{number:09}" for number in range(12)),) * 2, "What it says. " * 8)
    text = table_text(table, room=room)
    assert max(map(len, text.splitlines())) <= room
    parts = text.split("\n\n")
    assert len(parts) == -(-11 // ((room - 9) // 11))
    assert all("column 0" in part for part in parts)
    assert all(name in text for name in names)
    assert table_text(table).count("column 0") == 1


def test_a_column_that_fits_nowhere_is_shown_whole() -> None:
    """A table is never without its columns, however little room there is."""
    table = Table("Narrow", ("a" * 20, "b" * 20), (("x", "y"),))
    assert table_text(table, room=10).splitlines()[1] == f"{'a' * 20}  {'b' * 20}"
