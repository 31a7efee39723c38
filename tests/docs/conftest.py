"""Pages as the tests see them: Markdown files and their fenced blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^([ ]*)(`{3,}|~{3,})([A-Za-z]*)[^\n]*$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        language: the first word after the fence; empty for none.
        text: what is between the fences, without the fence's indentation.
        line: the line of its first line of text, counted from 1.
    """

    language: str
    text: str
    line: int


class Page:
    """A Markdown file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text("utf-8")
        self.blocks = tuple(_blocks(self.text))
        self.prose = _without_blocks(self.text)


def _blocks(text: str) -> list[Block]:
    found: list[Block] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        at += 1
        if not opened:
            continue
        indent, fence, language = opened.groups()
        start = at
        while lines[at].strip() != fence:
            at += 1
        inside = [line.removeprefix(indent) for line in lines[start:at]]
        found.append(Block(language, "".join(f"{line}\n" for line in inside), start + 1))
        at += 1
    return found


def _without_blocks(text: str) -> str:
    return re.sub(r"(?ms)^[ ]*(`{3,}|~{3,}).*?^[ ]*\1[ ]*$", "", text)


PAGES = [
    Page(path) for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/README.md")])
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``page`` is every page; ``page_with_blocks`` every one that has blocks to run."""
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", PAGES, ids=lambda page: page.name)
    if "page_with_blocks" in metafunc.fixturenames:
        metafunc.parametrize("page_with_blocks", [page for page in PAGES if page.blocks], ids=lambda page: page.name)


@pytest.fixture(scope="session")
def pages() -> list[Page]:
    """All pages."""
    return PAGES
