"""Where something stands in a text: the line of a position, and the lines of a JSON document's keys."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

__all__ = ["KeyLines", "Lines"]

_COLON: Final = re.compile(r"[ \t\r\n]*:")


class Lines:
    """The lines of a text, counted from 1."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def of(self, at: int) -> int:
        """The line of a position, counted from 0; a line feed belongs to the line that it ends."""
        return bisect_left(self._ends, at) + 1


class KeyLines:
    """The lines of a JSON document's keys, asked for in the order of the document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = Lines(text)
        self._at = 0

    def next(self, key: str) -> int:
        """The line of the next key of this name; where the text spells it otherwise, that of the key before."""
        quoted = f'"{key}"'
        at = self._text.find(quoted, self._at)
        while at >= 0 and not _COLON.match(self._text, at + len(quoted)):  # a value that reads like the key
            at = self._text.find(quoted, at + 1)
        if at >= 0:
            self._at = at
        return self._lines.of(self._at)
