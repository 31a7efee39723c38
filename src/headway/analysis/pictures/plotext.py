"""Charts in a terminal, drawn by plotext in characters. Nothing else of the project imports it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

import plotext  # type: ignore[import-untyped]  # it has no types of its own

from headway.analysis.figures import Axis, Chart, Kind, Mark, Point, Scale, Series, say_number, say_time, shorten
from headway.analysis.pictures.terminal import columns, fitted

__all__ = ["plot_text"]

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")
_COLOURS: Final = ("blue", "orange", "green", "magenta", "yellow", "cyan", "red", "gray")
_PLAIN_LINES: Final = "•+x*o#%@=~^a"
_PLAIN_BARS: Final = "█░▒▓#%=+o*x."
_MARKS: Final = {"x": "│║┆┇", "y": "─═┄┅"}
_HEIGHT: Final = 14
_ROWS: Final = _HEIGHT - 4  # what axes, ticks and label leave
_TICKS: Final = 5
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_Span = tuple[float, float]


def plot_text(chart: Chart, width: int, *, colour: bool = False) -> str:
    """The chart in lines of text, with its title and a legend.

    Args:
        chart: one with points.
        width: columns, at least 30.
        colour: whether to use the terminal's colours; without them series are told apart by their characters.
    """
    width = max(30, width)
    if chart.categories:
        return _lying_bars(chart, width)
    figure = plotext.figure
    figure.clear.all()  # plotext has one figure for the whole process
    figure.plot_size(width, _HEIGHT)
    figure.theme("colorless")
    figure.canvas("default")
    figure.legend(False)
    curves = [_points(chart, series) for series in chart.series]
    limits = (left, right), (low, high) = _limits(chart, curves)
    lowest_row = low + (high - low) / _ROWS / 2
    beneath = [mark for mark in chart.marks if mark.axis == "y" and _placed(chart.y, mark.value) < lowest_row]
    for mark in beneath:  # a line there would hide every low bar
        _draw_mark(chart, mark, limits, width, colour=colour)
    legend = _draw_series(chart, curves, limits, width, colour=colour)
    for mark in chart.marks:
        if mark not in beneath:
            _draw_mark(chart, mark, limits, width, colour=colour)
        legend.append(f"{_painted(_mark_symbol(chart, mark), -1, colour)} {shorten(mark.label, width - 4)}")
    figure.ruler("x").lim(left, right).ticks(*_ticks(chart.x, left, right))
    figure.ruler("y").lim(low, high).ticks(*_ticks(chart.y, low, high))
    figure.label(chart.x.title, "x")
    text = str(figure.build()).rstrip("\n")
    if not colour:
        text = _ESCAPE.sub("", text)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return "\n".join([shorten(f"{chart.title}: {chart.y.title}", width), text, *(legend if len(legend) > 1 else [])])


def _draw_series(
    chart: Chart, curves: Sequence[list[Point]], limits: tuple[_Span, _Span], width: int, *, colour: bool
) -> list[str]:
    """Draw every series; returns the legend's lines."""
    figure, legend = plotext.figure, []
    for index, (series, points) in enumerate(zip(chart.series, curves, strict=True)):
        bars = series.kind is Kind.BARS
        plain = (_PLAIN_BARS if bars else _PLAIN_LINES)[index]
        symbol = plain if bars or (len(chart.series) > 1 and not colour) else "hd"
        legend.append(f"{_painted(plain if symbol != 'hd' else '▄', index, colour)} {shorten(series.name, width - 4)}")
        if not bars and points:
            figure.draw(figure.signal(*zip(*points, strict=True), marker=_marker(symbol, index, colour)).lines())
    for index, heights in reversed(list(enumerate(_stacked(chart, *limits[0], 2 * width)))):  # the whole stack first
        if heights:
            drawn = figure.signal(*zip(*heights, strict=True), marker=_marker(_PLAIN_BARS[index], index, colour))
            figure.draw(drawn.fillx())
    return legend


def _draw_mark(chart: Chart, mark: Mark, limits: tuple[_Span, _Span], width: int, *, colour: bool) -> None:
    at = _placed(chart.y if mark.axis == "y" else chart.x, mark.value)
    start, end = limits[0] if mark.axis == "y" else limits[1]
    along = [start + (end - start) * n / (2 * width) for n in range(2 * width + 1)]
    across = [at] * len(along)
    xs, ys = (along, across) if mark.axis == "y" else (across, along)
    paint = plotext.pixel("red" if colour else None)
    plotext.figure.draw(plotext.figure.signal(xs, ys, marker=plotext.marker(_mark_symbol(chart, mark), paint)))


def _mark_symbol(chart: Chart, mark: Mark) -> str:
    """Marks of one axis are told apart by their lines."""
    same = [other for other in chart.marks if other.axis == mark.axis]
    symbols = _MARKS[mark.axis]
    return symbols[same.index(mark) % len(symbols)]


def _painted(symbol: str, index: int, colour: bool) -> str:
    if not colour:
        return symbol
    return str(plotext.colorize(symbol, plotext.pixel("red" if index < 0 else _COLOURS[index % len(_COLOURS)])))


def _marker(symbol: str, index: int, colour: bool) -> object:
    return plotext.marker(symbol, plotext.pixel(_COLOURS[index % len(_COLOURS)] if colour else None))


def _points(chart: Chart, series: Series) -> list[Point]:
    """Where to draw a line; the corners of steps."""
    points: list[Point] = []
    for x, y in series.points:
        if (chart.x.scale is Scale.LOG and x <= 0) or (chart.y.scale is Scale.LOG and y <= 0):
            continue
        at = (_placed(chart.x, x), _placed(chart.y, y))
        if series.kind is Kind.STEPS and points:
            points.append((at[0], points[-1][1]))
        points.append(at)
    return points


def _stacked(chart: Chart, left: float, right: float, count: int) -> list[list[Point]]:
    """For each series of bars its stack's height at evenly spaced places; nothing for lines and where no bar is."""
    below = [0.0] * count
    found: list[list[Point]] = []
    for series in chart.series:
        heights: list[Point] = []
        if series.kind is Kind.BARS:
            starts, step = [x for x, _ in series.points], series.step
            for place in range(count):
                x = left + (right - left) * (place + 0.5) / count
                begin, end = _unplaced(chart.x, x), _unplaced(chart.x, x + (right - left) / count)
                first = bisect_right(starts, begin - step)
                here = [y for start, y in series.points[first : bisect_right(starts, end)] if start + step > begin]
                below[place] += max(here, default=0.0)
                if below[place] > 0:
                    heights.append((x, _placed(chart.y, below[place])))
        found.append(heights)
    return found


def _limits(chart: Chart, curves: Sequence[Sequence[Point]]) -> tuple[_Span, _Span]:
    xs = [_placed(chart.x, mark.value) for mark in chart.marks if mark.axis == "x"]
    ys = [_placed(chart.y, mark.value) for mark in chart.marks if mark.axis == "y"]
    stacks: dict[float, float] = {}
    for series, points in zip(chart.series, curves, strict=True):
        if series.kind is Kind.BARS:
            for x, y in series.points:
                if chart.x.scale is Scale.LOG and x <= 0:
                    continue
                xs += [_placed(chart.x, x), _placed(chart.x, x + series.step)]
                stacks[x] = stacks.get(x, 0.0) + y
        else:
            xs += [x for x, _ in points]
            ys += [y for _, y in points]
    ys += [_placed(chart.y, y) for y in stacks.values() if chart.y.scale is not Scale.LOG or y > 0]
    if chart.y.scale is not Scale.LOG:
        ys.append(0.0)
    left_right, (low, high) = _widened(xs), _widened(ys)
    if chart.y.scale is not Scale.LOG:  # a tick at the top says how high it is
        step = _round_step((high - low) / (_TICKS - 1))
        high = ceil(high / step - 1e-9) * step
    return left_right, (low, high)


def _widened(values: Sequence[float]) -> _Span:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high - low > 1e-12 * max(1.0, abs(low), abs(high)) else (low, low + max(1.0, abs(low) * 1e-9))


def _placed(axis: Axis, value: float) -> float:
    """Where a value stands on its axis: logarithms are taken here, so that bars and ticks agree."""
    return log10(max(value, 1e-12)) if axis.scale is Scale.LOG else float(value)


def _unplaced(axis: Axis, place: float) -> float:
    return 10.0**place if axis.scale is Scale.LOG else place


def _ticks(axis: Axis, low: float, high: float) -> tuple[list[float], list[str]]:
    if axis.scale is Scale.LOG:
        powers = range(ceil(low), int(high // 1) + 1)
        every = -(-len(powers) // _TICKS) if powers else 1
        places = [float(power) for power in powers[::every]] or [low, high]
        return places, [say_number(float(f"{10.0**place:.4g}")) for place in places]
    if axis.scale is Scale.TIME:
        places = [low + (high - low) * n / (_TICKS - 1) for n in range(_TICKS)]
        short = slice(11, 19) if high - low < 86_400 else slice(5, 16)
        return places, [say_time(place)[short] for place in places]
    step = _round_step((high - low) / (_TICKS - 1))
    places = [n * step for n in range(ceil(low / step), int(high // step) + 1)]
    return places, [say_number(float(f"{place:.4g}")) for place in places]


def _round_step(least: float) -> float:
    """The smallest of …, 1, 2, 5, 10, … that is not below ``least``."""
    power = 10.0 ** floor(log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * 0.999)


def _lying_bars(chart: Chart, width: int) -> str:
    """A line for each category: its name, its bars, their sum."""
    sums = [0.0] * len(chart.categories)
    for series in chart.series:
        for x, y in series.points:
            sums[int(x)] += y
    names = [shorten(name, width // 3) for name in chart.categories]
    name_width, most = max(map(columns, names)), max([*sums, 1e-12])
    room = width - name_width - max(len(say_number(total)) for total in sums) - 3
    lines = [
        f"{fitted(name, name_width)} {_bar(total / most * room)} {say_number(total)}"
        for name, total in zip(names, sums, strict=True)
    ]
    said = [(mark.label, say_number(mark.value)) for mark in chart.marks]
    marks = [label if value in label else f"{label}: {value}" for label, value in said]
    return "\n".join([shorten(f"{chart.title}: {chart.y.title}", width), *lines, *marks])


def _bar(length: float) -> str:
    eighths = round(length * 8)
    return "█" * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")
