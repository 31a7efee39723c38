r"""Charts, tables and reports as plain values: what an analysis found, before anybody says how it is drawn.

Nothing here draws, reads or writes. Whatever text a figure is given, from a log as may be, comes out printable: what is not
becomes an escape such as ``\x1b``, so that no renderer has to think of terminals or of bidirectional tricks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from typing import Any, Final

__all__ = [
    "Axis",
    "Cell",
    "Chart",
    "Kind",
    "Mark",
    "Point",
    "Report",
    "Scale",
    "Section",
    "Series",
    "Table",
    "counted",
    "printable",
    "say_number",
    "say_time",
    "shorten",
]

Point = tuple[float, float]
"""(x, y)."""

Cell = str | int | float | None
"""What a table's cell holds; None is shown as a dash. Numbers stand at the right."""

_MOST_SERIES: Final = 12
"""More cannot be told apart."""


class Kind(StrEnum):
    """How a series is drawn."""

    LINE = "line"
    """Straight lines from point to point."""
    STEPS = "steps"
    """Each y holds until the next point's x."""
    BARS = "bars"
    """Each point is a bar that begins at its x; several series of bars in one chart are stacked."""


class Scale(StrEnum):
    """What an axis measures its numbers by."""

    LINEAR = "linear"
    LOG = "log"
    """Powers of ten; values of 0 and below are left out."""
    TIME = "time"
    """Seconds since 1970, shown as UTC times; x axes only."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows.

    Args:
        label: such as "requests".
        unit: such as "s"; empty for a count.
        scale: see ``Scale``.
    """

    label: str
    unit: str = ""
    scale: Scale = Scale.LINEAR

    def __post_init__(self) -> None:
        _clean(self)

    @property
    def title(self) -> str:
        """The label with its unit: "time (s)"."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True)
class Series:
    """A named row of points.

    Args:
        name: what the legend calls it.
        points: in the order of their x.
        kind: see ``Kind``.
        width: bars only: how wide each is, on the x axis; None is the smallest distance between two.

    Raises:
        ValueError: a number that is not finite, or points out of order.
    """

    name: str
    points: tuple[Point, ...]
    kind: Kind = Kind.LINE
    width: float | None = None

    def __post_init__(self) -> None:
        _clean(self)
        object.__setattr__(self, "points", tuple((x, y) for x, y in self.points))
        for x, y in self.points:
            if not (isfinite(x) and isfinite(y)):
                raise ValueError(f"series {self.name!r}: the point ({x}, {y}) is not finite; leave it out")
        for (before, _), (after, _) in pairwise(self.points):
            if after < before:
                raise ValueError(f"series {self.name!r}: x goes back from {before} to {after}; expected rising points")

    @property
    def step(self) -> float:
        """How wide a bar is."""
        if self.width is not None:
            return self.width
        return min((b - a for (a, _), (b, _) in pairwise(self.points) if b > a), default=1.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the chart, such as a limit.

    Args:
        value: where, on ``axis``; finite.
        label: what the legend calls it.
        axis: "y" for a horizontal line, "x" for a vertical one.
    """

    value: float
    label: str
    axis: str = "y"

    def __post_init__(self) -> None:
        _clean(self)
        if self.axis not in ("x", "y") or not isfinite(self.value):
            raise ValueError(
                f"mark {self.label!r}: {self.value} on {self.axis!r}; expected a finite value on 'x' or 'y'"
            )


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture.

    Args:
        title: what it is, in a few words.
        x: the horizontal axis.
        y: the vertical axis.
        series: at most 12, all of bars or none.
        marks: lines across.
        description: what it shows, in a sentence or two, for who cannot see it; also its caption.
        categories: names instead of numbers for x: a point's x is then an index into them, and the bars lie on their side.

    Raises:
        ValueError: too many series, or categories that do not fit them.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    description: str = ""
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _clean(self)
        if len(self.series) > _MOST_SERIES:
            raise ValueError(
                f"chart {self.title!r} has {len(self.series)} series; at most {_MOST_SERIES} can be told apart"
            )
        if self.categories and not all(
            series.kind is Kind.BARS and x in range(len(self.categories))
            for series in self.series
            for x, _ in series.points
        ):
            raise ValueError(f"chart {self.title!r}: with categories, expected bars at whole numbers from 0")

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(series.points for series in self.series)

    def table(self, most: int = 200) -> Table:
        """The numbers behind the picture: a row for each x, evenly thinned to at most ``most`` rows, which its note says."""
        values: dict[float, list[Cell]] = {}
        for index, series in enumerate(self.series):
            for x, y in series.points:
                values.setdefault(x, [None] * len(self.series))[index] = y
        places = sorted(values)
        every = -(-len(places) // most) if places else 1
        rows = tuple((self._named(x), *values[x]) for x in places[::every])
        note = f"Every {every}th of {len(places):,} rows." if every > 1 else ""
        return Table(self.title, (self.x.title, *(series.name for series in self.series)), rows, note)

    def _named(self, x: float) -> Cell:
        if self.categories:
            return self.categories[int(x)]
        if self.x.scale is Scale.TIME:
            return say_time(x)
        return x


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column heads.

    Args:
        caption: what the rows are.
        columns: the heads, with units.
        rows: as many cells each as there are columns; see ``Cell``.
        note: what a reader has to know, below the table.

    Raises:
        ValueError: a row of another length.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        _clean(self)
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.caption!r}: a row of {len(row)} cells under {len(self.columns)} columns")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report under a heading of its own: paragraphs, then charts, then tables."""

    title: str
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        _clean(self)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything an analysis has to say.

    Args:
        title: one line.
        paragraphs: the answer first.
        sections: see ``Section``.
        partial: why it is not the whole, such as "stopped by Ctrl-C after 12,000 lines"; empty for a whole one.
        made_by: what made it, such as the command line.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    partial: str = ""
    made_by: str = ""

    def __post_init__(self) -> None:
        _clean(self)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of all sections."""
        return tuple(chart for section in self.sections for chart in section.charts)


def printable(text: str) -> str:
    """Text that is safe to show anywhere: what is not printable as escapes; spaces of all kinds as spaces."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char in _SPACES else char.encode("unicode_escape").decode()
        for char in text
    )


_SPACES: Final = "\t\n\u00a0\u2007\u2009\u202f"


def shorten(text: str, most: int) -> str:
    """The text, or its first characters and an ellipsis, ``most`` in all."""
    return text if len(text) <= most else text[: most - 1] + "…"


def counted(count: int, thing: str) -> str:
    """``1 line``, ``2,000 lines``; of words whose plural takes an s."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def say_number(value: float) -> str:
    """A number as people read it: "12,345", "0.25", "1.5e-07"; four significant digits where it is not whole."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"


def say_time(seconds: float) -> str:
    """Seconds since 1970 as "2026-11-30 15:46:25 UTC"; as they are where no calendar holds them."""
    from datetime import UTC, datetime

    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return say_number(seconds)


def _clean(value: Any) -> None:
    """Make a value's texts printable, and its lists tuples."""
    for field in fields(value):
        object.__setattr__(value, field.name, _cleaned(getattr(value, field.name)))


def _cleaned(part: Any) -> Any:
    if isinstance(part, str) and not isinstance(part, StrEnum):
        return printable(part)
    if isinstance(part, list | tuple):
        return tuple(map(_cleaned, part))
    return part
