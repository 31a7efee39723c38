"""Charts, tables and reports as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.analysis.figures import (
    Axis,
    Chart,
    Kind,
    Mark,
    Report,
    Scale,
    Section,
    Series,
    Table,
    printable,
    say_number,
    say_time,
    shorten,
)

X, Y = Axis("time", "s"), Axis("requests")


@given(st.text(st.characters(codec=None)))
def test_every_text_of_a_figure_is_printable(text: str) -> None:
    """Whatever text a figure is given, all that comes out of it can be shown on a terminal and written into XML."""
    chart = Chart(text, Axis(text, text), Y, (Series(text, ((0, 1),), Kind.BARS),), (Mark(1, text),), text, (text,))
    table = Table(text, (text, "n"), ((text, 1), (None, 2)), text)
    report = Report(text, (text,), (Section(text, (text,), (chart,), (table,)),), text, text)
    found = [
        *(chart.title, chart.x.title, chart.series[0].name, chart.marks[0].label, chart.description, *chart.categories),
        *(table.caption, table.columns[0], str(table.rows[0][0]), table.note),
        *(report.title, *report.paragraphs, report.partial, report.made_by, report.sections[0].title),
    ]
    for shown in found:
        assert shown.isprintable()
        shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J", "a\\x1b[2J"),
        ("\u202eabc", "\\u202eabc"),
        ("a\u00a0b\tc", "a b c"),
        ("é 日", "é 日"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_is_not_printable_becomes_an_escape(text: str, shown: str) -> None:
    """Escapes, changes of direction and halves of characters are shown by their codes; spaces of all kinds as spaces."""
    assert printable(text) == shown


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_is_not_drawn(number: float) -> None:
    """A point or a mark that is not finite is refused, with the name of the series."""
    with pytest.raises(ValueError, match=r"'s'.*not finite"):
        Series("s", ((0, 1), (1, number)))
    with pytest.raises(ValueError, match=r"'m'.*finite"):
        Mark(number, "m")


def test_points_keep_their_order() -> None:
    """A series whose x goes back is refused; equal ones are a jump."""
    with pytest.raises(ValueError, match=r"x goes back from 2 to 1"):
        Series("s", ((2, 0), (1, 0)))
    assert Series("s", ((1, 0), (1, 5))).step == 1


def test_more_series_than_can_be_told_apart_are_refused() -> None:
    """A chart takes at most twelve series."""
    one = Series("s", ((0, 1),))
    Chart("c", X, Y, (one,) * 12)
    with pytest.raises(ValueError, match="13 series; at most 12"):
        Chart("c", X, Y, (one,) * 13)


@pytest.mark.parametrize(
    "series", [Series("s", ((2, 1),), Kind.BARS), Series("s", ((0.5, 1),), Kind.BARS), Series("s", ((0, 1),))]
)
def test_categories_are_for_bars_at_their_indices(series: Series) -> None:
    """With categories, a line, or a bar where no category is, is refused."""
    with pytest.raises(ValueError, match="expected bars at whole numbers from 0"):
        Chart("c", X, Y, (series,), categories=("a", "b"))


def test_rows_have_a_cell_for_each_column() -> None:
    """A row that is too long or too short is refused."""
    with pytest.raises(ValueError, match="a row of 1 cells under 2 columns"):
        Table("t", ("a", "b"), (("only",),))


def test_the_numbers_behind_a_chart() -> None:
    """A chart's table has a row for each x and a column for each series; what one lacks is empty."""
    chart = Chart("c", X, Y, (Series("a", ((0, 1), (1, 2))), Series("b", ((1, 5), (2, 6)))))
    table = chart.table()
    assert table.columns == ("time (s)", "a", "b")
    assert table.rows == ((0, 1, None), (1, 2, 5), (2, None, 6))
    assert not table.note


def test_many_numbers_are_thinned_and_it_is_said() -> None:
    """At most so many rows are kept, evenly, and the note says which."""
    table = Chart("c", X, Y, (Series("a", tuple((n, n) for n in range(1000))),)).table(most=200)
    assert [row[0] for row in table.rows] == list(range(0, 1000, 5))
    assert table.note == "Every 5th of 1,000 rows."


def test_times_and_names_stand_in_the_table_as_people_read_them() -> None:
    """An axis of times gives times, categories give names."""
    times = Chart("c", Axis("time", scale=Scale.TIME), Y, (Series("a", ((1_445_731_200, 1),)),))
    assert times.table().rows == (("2015-10-25 00:00:00 UTC", 1),)
    names = Chart("c", X, Y, (Series("a", ((0, 1), (1, 2)), Kind.BARS),), categories=("x", "y"))
    assert names.table().rows == (("x", 1), ("y", 2))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        *((0, "0"), (12345, "12,345"), (12345.0, "12,345"), (0.25, "0.25"), (1 / 3, "0.3333"), (-2.5, "-2.5")),
        *((1.5e-7, "1.5e-07"), (123456.7, "123,457"), (1e15 + 0.5, "1e+15"), (2**70, f"{2**70:,}")),
    ],
)
def test_numbers_as_people_read_them(number: float, said: str) -> None:
    """Whole numbers are exact with commas, others have four significant digits."""
    assert say_number(number) == said


def test_times_that_no_calendar_holds_are_numbers() -> None:
    """Seconds beyond the calendar are shown as they are."""
    assert say_time(0) == "1970-01-01 00:00:00 UTC"
    assert say_time(1e18) == "1e+18"


def test_shortened_texts_say_so() -> None:
    """A text that is too long ends in an ellipsis and has just the length that was asked for."""
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
