"""On which line of a TOML text each key stands: ``tomllib`` gives the values and no places.

A scanner of keys and brackets, for text that ``tomllib`` has accepted: it never judges, it only finds its way through
quoted and dotted keys, tables, arrays of tables, inline tables and strings of every kind.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from typing import Final

__all__ = ["KeyPath", "has_long_key", "locate"]

KeyPath = tuple[str | int, ...]
"""Keys and, within arrays, indices from 0: ``("policies", "codes", "limits", 0, "quota")``."""

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
_BARE_KEY: Final = re.compile(r"[^\s.=\]\"'#]+")
_LONGEST_KEY: Final = 64
"""Parts of one dotted key: no policy has so many, and ``tomllib`` takes the square of their number."""
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")
"""Numbers, booleans and dates, to the end of their place (a date may hold a space, none of them these characters)."""


def has_long_key(text: str) -> bool:
    """Whether a text may hold a dotted key of more than 64 parts; also of text that is no TOML."""
    if text.count(".") < _LONGEST_KEY:
        return False
    try:
        locate(text)
    except OverflowError:
        return True
    except (ValueError, RecursionError):
        pass  # no TOML, as its reader will say
    return False


def locate(text: str) -> dict[KeyPath, int]:
    """The line, counted from 1, on which each key and each array element of a TOML text first appears.

    Args:
        text: what ``tomllib.loads`` accepts; other text gives lines of no meaning.

    Raises:
        OverflowError: a dotted key has more than 64 parts.
    """
    return _Scanner(text.replace("\r\n", "\n")).document()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[KeyPath, int] = {}
        self.elements: dict[KeyPath, int] = {}
        """How many ``[[…]]`` headers each array of tables has had so far."""

    def document(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self.skip(_BLANK) < len(self.text):
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self.new_element(self.key(()))
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.latest(self.key(()))
                self.at += 1
            else:
                self.pair(table)
        return self.lines

    def skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1  # text that is no TOML must not stop the scanner
        return self.at

    def note(self, path: KeyPath) -> KeyPath:
        self.lines.setdefault(path, bisect_left(self.newlines, self.at) + 1)
        return path

    def latest(self, path: KeyPath) -> KeyPath:
        """A path that ends at an array of tables means that array's latest element."""
        count = self.elements.get(path)
        return path if count is None else (*path, count - 1)

    def new_element(self, array: KeyPath) -> KeyPath:
        index = self.elements.get(array, 0)
        self.elements[array] = index + 1
        return self.note((*array, index))

    def key(self, table: KeyPath) -> KeyPath:
        """Read a key, dotted or not, up to the ``=`` or ``]`` behind it."""
        path = table
        for _ in range(_LONGEST_KEY):
            self.skip(_SPACE)
            path = self.note((*self.latest(path), self.key_part()))
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return path
            self.at += 1
        raise OverflowError(f"a dotted key of more than {_LONGEST_KEY} parts")

    def key_part(self) -> str:
        start = self.at
        quoted = self.text[start : start + 1] in ('"', "'")
        raw = self.text[start : self.skip(_STRING if quoted else _BARE_KEY)]
        return str(tomllib.loads(f"key = {raw}")["key"]) if quoted else raw

    def pair(self, table: KeyPath) -> None:
        path = self.key(table)
        self.at += 1  # the "="
        self.value(path)

    def value(self, path: KeyPath) -> None:
        self.skip(_SPACE)
        match self.text[self.at : self.at + 1]:
            case '"' | "'":
                self.skip(_STRING)
            case "[":
                self.array(path)
            case "{":
                self.inline_table(path)
            case _:
                self.skip(_SCALAR)

    def array(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while self.skip(_BLANK) < len(self.text) and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.value(self.note((*path, index)))
            index += 1
        self.at += 1

    def inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self.skip(_BLANK) < len(self.text) and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.pair(path)
        self.at += 1
