"""Charts as PNG and SVG."""

from __future__ import annotations

import re
import struct
import warnings
import xml.etree.ElementTree as ET
import zlib

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.analysis.figures import Axis, Chart, Kind, Mark, Scale, Series
from headway.analysis.pictures.matplotlib import NARROW, WIDE, draw_png, draw_svg
from headway.analysis.pictures.palette import INK, LINES, MARK, PAPER, SERIES, SOFT, dark_style
from headway.analysis.pictures.svg import restyled

from .examples import BARS, CHARTS, HOSTILE, NAMES, TIMES
from .examples import LINES as CURVES

SVG = "{http://www.w3.org/2000/svg}"


def picture(chart: Chart, size: tuple[int, int] = WIDE) -> ET.Element:
    """A chart's SVG, parsed."""
    return ET.fromstring(restyled(draw_svg([chart], size), title=chart.title, description="d", name="n"))


def test_a_png_has_the_size_that_was_asked_for() -> None:
    """Charts lie below each other, in device pixels; what the picture says of its maker is nothing."""
    png = draw_png([BARS, TIMES], (400, 200), sharpness=2)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (800, 800)
    assert b"Software" not in png


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_an_svg_refers_to_nothing(chart: Chart, size: tuple[int, int]) -> None:
    """No style attribute, script, link or reference is left, and every id is the picture's own."""
    text = restyled(draw_svg([chart], size), title=chart.title, description=chart.description, name="one")
    for element in ET.fromstring(text).iter():
        assert element.tag.removeprefix(SVG) in ("svg", "title", "desc", "path", "text", "rect")
        for name, value in element.attrib.items():
            assert "style" not in name and "href" not in name and not name.startswith("on")
            assert "url(" not in value
            assert name != "id" or value in ("one-title", "one-desc")
    assert "\n" not in text
    assert len(text) < 40_000


def test_an_svg_is_named_for_who_cannot_see_it() -> None:
    """Title and description stand first, as they are, and the picture points to both."""
    root = ET.fromstring(restyled(draw_svg([BARS]), title=HOSTILE[:20], description="<&>", name="n"))
    title, description = root[0], root[1]
    assert (title.tag, title.text) == (f"{SVG}title", HOSTILE[:20])
    assert (description.tag, description.text) == (f"{SVG}desc", "<&>")
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]
    assert root.attrib["role"] == "img"


def test_every_colour_has_its_class_and_its_dark_one() -> None:
    """Whatever is drawn carries the class of its colour, and dark paper gives each class another colour."""
    rules = dark_style()
    for chart in CHARTS:
        for element in picture(chart).iter():
            classes = element.attrib.get("class", "").split()
            for name, letter in (("fill", "f"), ("stroke", "k")):
                if (colour := element.attrib.get(name, "none")) != "none":
                    assert f"{letter}{colour[1:]}" in classes
                    assert f".{letter}{colour[1:]}{{" in rules, colour


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast of two colours."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("paper", [0, 1])
def test_colours_stand_out(paper: int) -> None:
    """On light and on dark paper texts stand out by 7:1, series and marks by 4.5:1; no two series share a colour."""
    for colour in (INK, SOFT):
        assert contrast(colour[paper], PAPER[paper]) >= 7
    for colour in (*SERIES, MARK):
        assert contrast(colour[paper], PAPER[paper]) >= 4.5
    assert len({colour[paper] for colour in (*SERIES, MARK, INK, SOFT, LINES, PAPER)}) == len(SERIES) + 5


def test_texts_come_out_as_they_are() -> None:
    """Dollars, an underscore in front, markup and letters that no font here has are shown, not interpreted, and warn nobody."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curves = {element.text for element in picture(CURVES).iter(f"{SVG}text")}
        names = {element.text for element in picture(NAMES).iter(f"{SVG}text")}
        draw_png([NAMES, CURVES])
    assert any(text and text.startswith("_hidden <script>") for text in curves)
    assert {"$5", "日本語", "203.0.113.7"} <= names


def test_nothing_leaves_the_picture() -> None:
    """Every line, bar and text begins inside of the picture, on a telephone too."""
    for chart in CHARTS:
        for size in (WIDE, NARROW):
            root = picture(chart, size)
            width, height = map(float, root.attrib["viewBox"].split()[2:])
            for element in root.iter():
                points = re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", element.attrib.get("d", ""))
                if element.tag == f"{SVG}text":
                    moved = re.match(r"translate\((\S+) (\S+)\)", element.attrib.get("transform", ""))
                    points.append(moved.groups() if moved else (element.attrib["x"], element.attrib["y"]))
                for x, y in points:
                    assert -1 <= float(x) <= width + 1, (chart.title, element.attrib)
                    assert -1 <= float(y) <= height + 1, (chart.title, element.attrib)


def test_bars_stand_on_each_other() -> None:
    """The second series' bars begin where the first one's end, and the axis reaches over both."""
    series = (Series("a", ((0, 10),), Kind.BARS), Series("b", ((0, 5),), Kind.BARS))
    root = picture(Chart("c", Axis("x"), Axis("y"), series))
    spans = []
    for colour, _ in SERIES[:2]:
        bar = max(
            (element for element in root.iter(f"{SVG}path") if element.attrib.get("fill") == colour),
            key=lambda element: len(element.attrib["d"]),
        )
        heights = [float(y) for _, y in re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", bar.attrib["d"])]
        spans.append((max(heights), min(heights)))
    (bottom, between), (also, top) = spans
    assert between == pytest.approx(also, abs=0.2)
    assert (bottom - between) / (between - top) == pytest.approx(2, rel=0.02)


def test_the_same_chart_gives_the_same_bytes() -> None:
    """Pictures are reproducible: no date, no random id, and not the user's own settings."""
    before = draw_svg([BARS]), draw_png([BARS])
    with mpl.rc_context({"font.size": 40, "axes.grid": True, "text.usetex": False}):
        assert (draw_svg([BARS]), draw_png([BARS])) == before
        assert mpl.rcParams["font.size"] == 40


def test_two_marks_are_told_apart() -> None:
    """Each mark has dashes of its own, in the chart and in the legend."""
    marks = (Mark(3, "low"), Mark(8, "high"))
    root = picture(Chart("c", Axis("x"), Axis("y"), (Series("a", ((0, 0), (10, 10))),), marks))
    dashes = [part.attrib["stroke-dasharray"] for part in root.iter() if part.attrib.get("stroke") == MARK[0]]
    assert len(dashes) == 4
    assert sorted(map(dashes.count, set(dashes))) == [2, 2]


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_times_have_ticks_whatever_their_span(size: tuple[int, int]) -> None:
    """From a millisecond to thirty years an axis of times is named at one to ten places, without a warning."""
    span = 0.001
    while span < 1e9:
        points = ((1_445_731_207.5, 1.0), (1_445_731_207.5 + span, 2.0))
        chart = Chart("c", Axis("time", "UTC", Scale.TIME), Axis("y"), (Series("a", points),))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            texts = [element.text or "" for element in picture(chart, size).iter(f"{SVG}text")]
        assert 4 <= len(texts) <= 22, (span, texts)
        span *= 3.7


def chunks(png: bytes) -> bytes:
    """A PNG's pixels, filtered as they are."""
    at, found = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            found += png[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(found)


def test_a_png_shows_something() -> None:
    """The picture has other pixels than paper."""
    assert len(set(chunks(draw_png([BARS], sharpness=1)))) > 10


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12)), max_size=20),
    st.sampled_from(Kind),
    st.sampled_from(Scale),
    st.sampled_from([Scale.LINEAR, Scale.LOG]),
)
def test_any_points_can_be_drawn(points: list[tuple[float, float]], kind: Kind, x: Scale, y: Scale) -> None:
    """Any finite points, none, one, all alike, on any axes, make a picture without a warning."""
    if x is Scale.TIME:
        points = [(abs(at) / 1e3, value) for at, value in points]
    if kind is Kind.BARS:
        points = [(at, abs(value)) for at, value in points]
    series = Series("a", tuple(sorted(points)), kind)
    chart = Chart("c", Axis("x", scale=x), Axis("y", scale=y), (series,), (Mark(5, "m"),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture(chart)
