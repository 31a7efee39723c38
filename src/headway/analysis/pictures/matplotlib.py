"""Charts drawn by Matplotlib, as PNG or as SVG. Nothing else of the project imports it."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO, StringIO
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headway.analysis.figures import Axis, Chart, Kind, Scale, Series, say_number, shorten
from headway.analysis.pictures.palette import DASHES, INK, LINES, MARK, MARK_DASHES, PAPER, SERIES, SOFT

__all__ = ["NARROW", "WIDE", "draw_png", "draw_svg"]

WIDE: Final = (720, 300)
"""A chart's width and height in pixels on a desk."""
NARROW: Final = (328, 280)
"""The same on a telephone of 360 pixels with margins."""

_DAY_S: Final = 86_400
_TEXT: Final = 12
_LONGEST_LABEL: Final = 44
_WIDTH_OF_A_LETTER: Final = 7.2
_LINE: Final = 1.8
_LEGEND_LINE: Final = 19
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "headway",
    "text.parse_math": False,  # a key may hold any number of dollars
    "axes.unicode_minus": True,
    "font.size": _TEXT,
    "path.simplify_threshold": 0.5,
}


def draw_png(charts: Sequence[Chart], size: tuple[int, int] = WIDE, *, sharpness: int = 2) -> bytes:
    """The charts below each other, each ``size``, on light paper.

    Args:
        charts: at least one.
        size: pixels of one chart; the text keeps its size.
        sharpness: device pixels a pixel.
    """
    with _plain():
        figure = _figure(charts, size, titled=True)
        figure.set_facecolor(PAPER[0])
        canvas = FigureCanvasAgg(figure)
        out = BytesIO()
        canvas.print_figure(out, format="png", dpi=72 * sharpness, metadata={"Software": None}, facecolor=PAPER[0])
    return out.getvalue()


def draw_svg(charts: Sequence[Chart], size: tuple[int, int] = WIDE, *, titled: bool = True) -> str:
    """The charts below each other as Matplotlib writes them; ``svg.restyled`` makes them fit for a page.

    Args:
        charts: at least one.
        size: units of one chart.
        titled: whether the picture says the charts' titles itself.
    """
    with _plain():
        figure = _figure(charts, size, titled=titled)
        canvas = FigureCanvasSVG(figure)
        out = StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.print_figure(out, format="svg", metadata=nothing, facecolor="none")
    return out.getvalue()


@contextmanager
def _plain() -> Iterator[None]:
    """Our settings alone, whatever the user's own say; no warnings about letters that the measuring font lacks."""
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="constrained_layout not applied", category=UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def _figure(charts: Sequence[Chart], size: tuple[int, int], *, titled: bool) -> Figure:
    width, height = size
    heights = [_height(chart, width, height) for chart in charts]
    figure = Figure(figsize=(width / 72, sum(heights) / 72), layout="constrained", facecolor="none")
    parts = figure.subfigures(len(charts), 1, squeeze=False, height_ratios=heights)
    for part, chart in zip(parts[:, 0], charts, strict=True):
        part.set_facecolor("none")
        _draw(part, chart, width, titled=titled)
    return figure


def _draw(part: Any, chart: Chart, width: int, *, titled: bool) -> None:
    axes = part.subplots()
    axes.set_facecolor("none")
    drawn: list[tuple[Any, str]] = []
    if chart.categories:
        _lying_bars(axes, chart, drawn, width)
    else:
        _upright(axes, chart, drawn, width)
    for index, mark in enumerate(chart.marks):
        across = axes.axhline if (mark.axis == "y") != bool(chart.categories) else axes.axvline
        at = _times(chart.x, [mark.value])[0] if mark.axis == "x" else mark.value
        dashes = MARK_DASHES[index % len(MARK_DASHES)]
        line = across(at, color=MARK[0], linewidth=_LINE, dashes=dashes, clip_on=False)
        drawn.append((line, mark.label))
    axes.tick_params(which="both", length=0, labelsize=_TEXT, labelcolor=SOFT[0])
    axes.tick_params(axis="x", pad=6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(SOFT[0])
    axes.set_axisbelow(True)
    if len(drawn) == 1 and not titled:
        return
    title = shorten(chart.title, int(width / _WIDTH_OF_A_LETTER) - 4) if titled else None
    _legend(part, drawn if len(drawn) > 1 else [], title, width)


def _legend(part: Any, drawn: list[tuple[Any, str]], title: str | None, width: int) -> None:
    """Title and names above the chart, out of the way of its lines."""
    labels, columns = _labels([label for _, label in drawn], width)
    legend = part.legend(
        [handle for handle, _ in drawn],
        labels,
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        fontsize=_TEXT,
        labelcolor=INK[0],
        handlelength=1.8,
        columnspacing=1.4,
        borderpad=0.1,
        title=title,
        title_fontproperties={"weight": "bold", "size": _TEXT + 2},
        alignment="left",
    )
    legend.get_title().set_color(INK[0])
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)  # the library hides labels that begin with an underscore


def _labels(names: Sequence[str], width: int) -> tuple[list[str], int]:
    """The legend's texts, and in how many columns they fit."""
    labels = [shorten(name, min(_LONGEST_LABEL, int(width / _WIDTH_OF_A_LETTER) - 8)) for name in names]
    widths = [len(label) * _WIDTH_OF_A_LETTER + 46 for label in labels]
    return labels, max(1, len(labels) if sum(widths) <= width else int(width / max(widths)))


def _height(chart: Chart, width: int, height: int) -> int:
    """A chart's height: more for many names beside it, or many above it."""
    labels, columns = _labels([series.name for series in chart.series] + [mark.label for mark in chart.marks], width)
    above = _LEGEND_LINE * max(0, -(-len(labels) // columns) - 2)
    return (max(height, 90 + 36 * len(chart.categories)) if chart.categories else height) + above


def _upright(axes: Any, chart: Chart, drawn: list[tuple[Any, str]], width: int) -> None:
    lowest: dict[float, float] = {}
    for index, series in enumerate(chart.series):
        colour, dashes = SERIES[index % len(SERIES)][0], DASHES[index % len(DASHES)]
        points = [(x, y) for x, y in series.points if not _hidden(chart, x, y)]
        xs, ys = _times(chart.x, [x for x, _ in points]), [y for _, y in points]
        if series.kind is Kind.BARS:
            handle = _bars(axes, chart.x, series, points, lowest, colour)
        elif series.kind is Kind.STEPS:
            (handle,) = axes.step(xs, ys, where="post", color=colour, linewidth=_LINE, clip_on=False)
        else:
            (handle,) = axes.plot(xs, ys, color=colour, linewidth=_LINE, clip_on=False)
        if dashes and series.kind is not Kind.BARS:
            handle.set_dashes(dashes)
        drawn.append((handle, series.name))
    _limits(axes, chart)
    axes.set_xlabel(chart.x.title, color=SOFT[0])
    axes.set_title(shorten(chart.y.title, int(width / 8)), loc="left", color=SOFT[0], fontsize=_TEXT)
    axes.grid(axis="y", color=LINES[0], linewidth=1)
    _ticks(axes.xaxis, chart.x, max(3, width // 100))
    _ticks(axes.yaxis, chart.y, 5)


def _bars(
    axes: Any, x: Axis, series: Series, points: Sequence[tuple[float, float]], lowest: dict[float, float], colour: str
) -> Any:
    """One polygon for all bars of a series, on top of those before it: thousands of bars cost no more than some."""
    step = series.step
    corners: list[tuple[float, float, float]] = []
    for at, height in points:
        low = lowest.get(at, 0.0)
        lowest[at] = low + height
        if corners and corners[-1][0] < at:
            corners += [(corners[-1][0], 0.0, 0.0), (at, 0.0, 0.0)]
        corners += [(at, low, low + height), (at + step, low, low + height)]
    outline = [(at, high) for at, _, high in corners] + [(at, low) for at, low, _ in reversed(corners)]
    (polygon,) = axes.fill(
        _times(x, [at for at, _ in outline]), [y for _, y in outline], color=colour, linewidth=0, clip_on=False
    )
    return polygon


def _lying_bars(axes: Any, chart: Chart, drawn: list[tuple[Any, str]], width: int) -> None:
    left = dict.fromkeys(range(len(chart.categories)), 0.0)
    for index, series in enumerate(chart.series):
        at, lengths = [int(x) for x, _ in series.points], [y for _, y in series.points]
        starts = [left[place] for place in at]
        handle = axes.barh(at, lengths, left=starts, height=0.7, color=SERIES[index % len(SERIES)][0], clip_on=False)
        for place, length in zip(at, lengths, strict=True):
            left[place] += length
        drawn.append((handle, series.name))
    furthest = max([*left.values(), *(mark.value for mark in chart.marks if mark.axis == "y"), 1e-9])
    axes.set_xlim(0, furthest * 1.18)
    axes.set_ylim(len(chart.categories) - 0.5, -0.5)
    axes.set_yticks(
        range(len(chart.categories)), [_in_two_lines(name, max(16, width // 18)) for name in chart.categories]
    )
    for place, length in left.items():
        axes.annotate(
            say_number(length),
            (length, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            color=INK[0],
            fontsize=_TEXT,
        )
    axes.set_xlabel(chart.y.title, color=SOFT[0])
    axes.grid(axis="x", color=LINES[0], linewidth=1)
    _ticks(axes.xaxis, chart.y, max(3, width // 140))


def _in_two_lines(name: str, width: int) -> str:
    first, *rest = textwrap.wrap(name, width) or [""]
    return "\n".join([first, shorten(" ".join(rest), width)]) if rest else first


def _limits(axes: Any, chart: Chart) -> None:
    """All points and marks inside, so that nothing has to be cut off."""
    xs = [mark.value for mark in chart.marks if mark.axis == "x"]
    ys = [mark.value for mark in chart.marks if mark.axis == "y"]
    stacked: dict[float, float] = {}
    for series in chart.series:
        for x, y in series.points:
            if _hidden(chart, x, y):
                continue
            xs.append(x)
            if series.kind is Kind.BARS:
                xs.append(x + series.step)
                stacked[x] = stacked.get(x, 0.0) + y
            else:
                ys.append(y)
    ys += stacked.values()
    for axis, values, set_limits, set_scale in (
        (chart.x, xs, axes.set_xlim, axes.set_xscale),
        (chart.y, ys, axes.set_ylim, axes.set_yscale),
    ):
        low, high = min(values, default=0.0), max(values, default=1.0)
        if axis.scale is Scale.LOG:
            set_scale("log")
            low, high = (low, high) if 0 < low < high else (max(low, 1e-9) / 2, max(high, 1e-9) * 2)
            set_limits(low / 1.1, high * 1.1)
            continue
        if axis is chart.y:
            low = min(low, 0.0)
            high += (high - low) * 0.05
        if high <= low:
            high = low + 1
        set_limits(*_times(axis, [low, high]))


def _hidden(chart: Chart, x: float, y: float) -> bool:
    """Whether a logarithmic axis has no place for a point."""
    return (chart.x.scale is Scale.LOG and x <= 0) or (chart.y.scale is Scale.LOG and y <= 0)


def _ticks(axis: Any, shown: Axis, most: int) -> None:
    if shown.scale is Scale.TIME:
        locator = AutoDateLocator(minticks=1, maxticks=max(4, most))  # type: ignore[no-untyped-call]  # theirs
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # theirs
        axis.get_offset_text().set_color(SOFT[0])
        return
    if shown.scale is Scale.LINEAR:
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: say_number(float(f"{value:.12g}")).replace("-", "−")))
    axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _times(axis: Axis, values: Sequence[float]) -> list[float]:
    """Seconds as Matplotlib's days on an axis of time, other values as they are."""
    return [value / _DAY_S for value in values] if axis.scale is Scale.TIME else list(values)
