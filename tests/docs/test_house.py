"""The pages as a whole: links, rooms, and an entry for everything."""

from __future__ import annotations

import functools
import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import headway

ROOT = Path(__file__).parents[2]
CLI = ROOT / "src/headway/cli"
ROOMS = {"tutorial", "how-to", "reference", "explanation", "decisions"}
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _anchors(text: str) -> set[str]:
    """What GitHub makes of headings."""
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere(page: Any) -> None:
    """Every relative link and picture of a page names a file that is there, and a heading in it."""
    broken = []
    for link in _LINK.findall(page.prose):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text("utf-8"))):
            broken.append(link)
    assert not broken


def test_every_page_is_in_one_room(pages: list[Any]) -> None:
    """A page of docs/ is the index, the glossary, or in one of the rooms, and begins with its title."""
    for page in pages:
        if page.name.startswith("docs/"):
            place = Path(page.name).relative_to("docs")
            assert place.parts[0] in ROOMS or str(place) in ("index.md", "glossary.md"), page.name
            assert page.text.startswith("# "), page.name


def test_every_page_is_in_the_index(pages: list[Any]) -> None:
    """The index leads to every page."""
    index = ROOT / "docs/index.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text("utf-8"))}
    missing = [
        page.name for page in pages if page.name.startswith("docs/") and page.path != index and page.path not in linked
    ]
    assert not missing


def test_every_public_name_has_an_entry(pages: list[Any]) -> None:
    """Every name that headway or a sub-package offers has a heading of its own in the reference."""
    reference = "\n".join(page.text for page in pages if page.name.startswith("docs/reference/"))
    headings = "\n".join(re.findall(r"(?m)^#+ .*$", reference))
    offered = {name for module in (headway, *_generator()["offering"]()) for name in module.__all__}
    assert not [name for name in sorted(offered) if f"`{name}`" not in headings]


def test_every_command_has_an_entry(pages: list[Any]) -> None:
    """Every module of headway.cli that adds a command has a heading of its own in the reference."""
    reference = next(page.text for page in pages if page.name == "docs/reference/cli.md")
    commands = re.findall(r'add_parser\(\s*"([^"]+)"', "\n".join(path.read_text("utf-8") for path in CLI.glob("*.py")))
    assert commands
    headings = [words.split()[-1] for words in re.findall(r"(?m)^## `headway ([\w -]+)`$", reference)]
    assert [name for name in commands if name not in headings] == []


@pytest.mark.parametrize("name", ["api.md", "cli.md"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    """The reference says what docstrings and parsers say; `uv run python docs/generate.py` writes it anew."""
    written = (ROOT / "docs/reference" / name).read_text("utf-8")
    assert written == _generator()["generated"]()[name], "run: uv run python docs/generate.py"


def test_pictures_are_sound(page: Any) -> None:
    """A page's pictures are SVG files with a title and a description, for both light and dark, that load nothing."""
    for link in _LINK.findall(page.prose):
        if link.endswith(".svg"):
            text = (page.path.parent / link).read_text("utf-8")
            picture = ET.fromstring(text)
            names = {part.tag.rpartition("}")[2] for part in picture.iter()}
            assert {"title", "desc"} <= names
            assert "script" not in names
            assert "prefers-color-scheme: dark" in text
            assert not re.search(r"(?:href|src)=|url\(|@import", text)


@functools.cache
def _generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs/generate.py"))
