"""The lists that proxies write, read from the right: ``X-Forwarded-For``, and ``Forwarded`` (RFC 7239).

The right end is what the nearest proxy wrote. Whatever stands to its left may come from the caller, so it is not even
looked at before the right has been read, and cannot change how the right is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["forwarded_nodes", "list_entries"]

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_BARE: Final = re.compile(r"[^\s\",;=\\]+")

_LONGEST: Final = 4096
"""Characters of a line of ``Forwarded`` that are read, from the right."""


def list_entries(lines: Sequence[str]) -> Iterator[str]:
    """The entries of ``X-Forwarded-For`` from the right: the last entry of the last line first."""
    for line in reversed(lines):
        end = len(line)
        while end >= 0:
            comma = line.rfind(",", 0, end)
            yield line[comma + 1 : end].strip(" \t")
            end = comma


def forwarded_nodes(lines: Sequence[str]) -> Iterator[str | None]:
    """The ``for`` nodes of ``Forwarded`` (RFC 7239 §4) from the right, unquoted; None for an element without one.

    Elements are split from the right as well, so that an unbalanced quote on the left cannot swallow what a trusted
    proxy wrote.
    """
    for line in reversed(lines):
        if len(line) > _LONGEST:
            line = f"={line[-_LONGEST:]}"  # begins with what is no pair, so the element that was cut has no node
        for element in _split_from_right(line, ","):
            yield _node(element)


def _split_from_right(text: str, separator: str) -> Iterator[str]:
    """The parts between separators outside quoted strings, the last first."""
    end, quoted = len(text), False
    for at in range(len(text) - 1, -1, -1):
        character = text[at]
        if character == '"':
            if not (quoted and _escapes_before(text, at) % 2):
                quoted = not quoted
        elif character == separator and not quoted:
            yield text[at + 1 : end]
            end = at
    yield text[:end]


def _escapes_before(text: str, at: int) -> int:
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return at - start


def _node(element: str) -> str | None:
    """The one ``for`` of an element, or None where it is missing, doubled or malformed."""
    node = None
    for pair in _split_from_right(element, ";"):
        name, equals, value = pair.strip(" \t").partition("=")
        if not name and not equals:
            continue
        if not equals or not _TOKEN.fullmatch(name):
            return None
        if _QUOTED.fullmatch(value):
            value = _ESCAPE.sub(r"\1", value[1:-1])
        elif not _BARE.fullmatch(value):
            return None
        if name.lower() == "for":
            if node is not None:
                return None
            node = value
    return node
