"""The report page: what it says, and what nobody can put into it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from headway.analysis.figures import Axis, Chart, Report, Section, Series, Table
from headway.analysis.pictures.html import html_page

from .examples import BARS, HOSTILE, WIDE_TABLE, report

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Elements with their attributes, the text of each kind of element, and what was left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.stack: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.texts.setdefault(self.stack[-1], []).append(data)


@pytest.fixture(scope="module")
def text() -> str:
    """A page with everything in it."""
    return html_page(report())


@pytest.fixture(scope="module")
def outline(text: str) -> Outline:
    """Its elements."""
    return Outline(text)


def test_every_element_is_closed(outline: Outline) -> None:
    """The page is well formed."""
    assert outline.stack == []


def test_markup_from_a_log_stays_text(text: str, outline: Outline) -> None:
    """Whatever a title, a key or a caption holds is shown as it is: no element, no attribute, no entity comes of it."""
    tags = {tag for tag, _ in outline.elements}
    assert not tags & {"script", "b", "img", "a", "iframe", "object", "link"}
    assert "<script>alert(1)</script>" in "".join(outline.texts["h1"])
    assert any("<script>alert(1)</script>" in cell for cell in outline.texts["th"])
    assert "\u202e" not in text and "\x1b" not in text
    assert not [
        name for _, attributes in outline.elements for name in attributes if name.startswith("on") or name == "style"
    ]


def test_the_policy_lets_only_the_pages_own_style_in(text: str, outline: Outline) -> None:
    """The policy forbids everything, but for the one style sheet by its hash, which is right."""
    (policy,) = [attributes["content"] for tag, attributes in outline.elements if attributes.get("http-equiv")]
    assert policy
    style = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert len(style) == 1
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_nothing_is_loaded(text: str) -> None:
    """No address of anything stands in the page but the name of SVG."""
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(?:src|href|url|@import)\s*[=(]", text)


def test_ids_are_used_once(outline: Outline) -> None:
    """Every id is there once, and whatever is pointed to is there."""
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [name for _, attributes in outline.elements for name in (attributes.get("aria-labelledby") or "").split()]
    assert named
    assert set(named) <= set(ids)


def test_headings_go_down_one_by_one(outline: Outline) -> None:
    """One h1, an h2 for each section, an h3 for each chart: no level is left out."""
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert levels == [1, 2, 3, 3, 3, 3, 3, 2]


def test_every_table_can_be_read_aloud(outline: Outline) -> None:
    """Every table has a caption, heads with a scope for columns and rows, and a box that the keyboard can scroll."""
    tags = [tag for tag, _ in outline.elements]
    assert tags.count("table") == tags.count("caption") == tags.count("thead") == 6
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in outline.elements if tag == "th")
    boxes = [attributes for _, attributes in outline.elements if attributes.get("class") == "scroll"]
    assert len(boxes) == 6
    assert all(box["tabindex"] == "0" and box["role"] == "region" and box["aria-labelledby"] for box in boxes)


def test_every_chart_has_a_name_and_its_numbers(outline: Outline) -> None:
    """Each chart is there for a narrow and for a wide page, with its name, and its numbers stand behind it."""
    pictures = [attributes for tag, attributes in outline.elements if tag == "svg"]
    assert len(pictures) == 10
    assert all(picture["role"] == "img" and picture["aria-labelledby"] for picture in pictures)
    assert [tag for tag, _ in outline.elements].count("details") == 5


def test_language_and_papers_are_said(outline: Outline) -> None:
    """The page says its language, that it fits a telephone, and that it has a dark side."""
    metas = {attributes.get("name"): attributes.get("content") for tag, attributes in outline.elements if tag == "meta"}
    assert dict(outline.elements[0][1]) == {"lang": "en"}
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert metas["color-scheme"] == "light dark"


def test_a_partial_report_says_so_at_the_top() -> None:
    """A report that is not the whole says so, and why, right below its title; a whole one says nothing of it."""
    text = html_page(Report("R", ("Answer.",), partial="stopped after <7> lines"))
    assert (
        text.index("<h1>")
        < text.index("not the whole")
        < text.index("stopped after &lt;7&gt; lines")
        < text.index("Answer.")
    )
    assert "not the whole" not in html_page(Report("R"))


def test_numbers_stand_at_the_right() -> None:
    """Cells and heads of numbers are marked as such; a lacking one is a dash."""
    text = html_page(Report("R", (), (Section("S", tables=(WIDE_TABLE,)),)))
    assert '<th scope="col">key</th><th scope="col" class=n>requests</th><th scope="col" class=n>share</th>' in text
    assert "<td class=n>12,345</td><td class=n>0.25</td>" in text
    assert "<td class=n>7</td><td class=n>–</td><td>curl/8</td>" in text


def test_a_chart_without_points_says_so() -> None:
    """A chart that has nothing to draw says so instead of showing empty axes."""
    text = html_page(Report("R", (), (Section("S", charts=(Chart("C", Axis("x"), Axis("y"), (Series("a", ()),)),)),)))
    assert "There is nothing to draw." in text
    assert "<svg" not in text


def test_a_report_without_charts_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only charts load Matplotlib."""
    monkeypatch.setitem(__import__("sys").modules, "headway.analysis.pictures.matplotlib", None)
    html_page(Report("R", (), (Section("S", tables=(Table("T", ("a",), ((HOSTILE,),)),)),)))
    with pytest.raises(ModuleNotFoundError):
        html_page(Report("R", (), (Section("S", charts=(BARS,)),)))


def test_the_same_report_gives_the_same_page(text: str) -> None:
    """A page is reproducible, and small enough to mail."""
    assert html_page(report()) == text
    assert len(text) < 250_000
