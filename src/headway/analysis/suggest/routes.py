"""Routes out of paths: what varies from request to request is folded, so that ``/items/1`` and ``/items/2`` are one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

__all__ = ["NO_ROUTE", "OTHER", "Routes", "template"]

ID: Final = "{id}"
OTHER: Final = "(other)"
"""The route of every request whose own came when there were too many already."""
NO_ROUTE: Final = "(no path)"
"""The route of a request without a path."""

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_WHOLE: Final = re.compile(
    rf"[0-9]+|{_UUID}|[0-9]{{4}}-[0-9]{{2}}(?:-[0-9]{{2}})?|[^/@]+@[^/@]+\.[^/@]+|%7B.*%7D",
    re.IGNORECASE,
)
"""Segments that are values from end to end: numbers, UUIDs, dates, addresses of mail."""
_PART: Final = re.compile(r"[^-_.~:,;=()]+")
_VERSION: Final = re.compile(r"v[0-9]+(?:\.[0-9]+)*", re.IGNORECASE)
_LONGEST: Final = 200
_MOST: Final = 20_000
_MANY: Final = 40
"""So many different last segments under one path are values too, such as the titles of articles."""


def template(path: str) -> str:
    """A path with its values folded: ``/items/{id}`` of ``/items/17``, ``/app.{id}.js`` of ``/app.3f9c01d2.js``."""
    return "/".join([_folded(segment) for segment in path[:_LONGEST].split("/")])


def _folded(segment: str) -> str:
    if not any(map(str.isdigit, segment)) and len(segment) < 24:
        return segment if "@" not in segment and "%7B" not in segment.upper() else _WHOLE.sub(ID, segment)
    if _VERSION.fullmatch(segment):
        return segment
    if _WHOLE.fullmatch(segment):
        return ID
    return _PART.sub(lambda found: ID if _is_value(found[0]) else found[0], segment)


def _is_value(word: str) -> bool:
    """Whether a word within a segment is a value: three digits or more, a hash, or a random text."""
    digits = sum(map(str.isdigit, word))
    if digits == len(word):
        return digits >= 3
    hexadecimal = len(word) >= 6 and all(char in "0123456789abcdefABCDEF" for char in word)
    return (hexadecimal and digits >= 2) or (len(word) >= 16 and digits >= 2) or len(word) >= 32


class Routes:
    """The routes of a log by number; bounded, whatever the paths are."""

    def __init__(self) -> None:
        self.names: list[str] = [NO_ROUTE, OTHER]
        self._numbers: dict[str, int] = {}
        self._seen: dict[tuple[str | None, str | None], int] = {}

    def number(self, method: str | None, path: str | None) -> int:
        """The number of a request's route."""
        asked = (method, path)
        found = self._seen.get(asked)
        if found is None:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            found = self._seen[asked] = self._numbered(method, path)
        return found

    def _numbered(self, method: str | None, path: str | None) -> int:
        if path is None:
            return 0
        route = f"{method[:20]} {template(path)}" if method else template(path)
        found = self._numbers.get(route)
        if found is None:
            if len(self._numbers) >= _MOST:
                return 1
            found = self._numbers[route] = len(self.names)
            self.names.append(route)
        return found

    def folded(self, requests: Iterable[tuple[int, int]]) -> dict[int, int]:
        """For routes that are one with others after all: the number to use instead. New names are added to ``names``.

        Many last segments under one path, most of them of few requests, are values: articles' titles, users' names.

        Args:
            requests: how many each route has, by number.
        """
        beneath: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in requests:
            head, slash, last = self.names[number].rpartition("/")
            if slash and last and ID not in last:
                beneath[head].append((number, count))
        instead: dict[int, int] = {}
        for head, routes in beneath.items():
            whole = sum(count for _, count in routes)
            values = [number for number, count in routes if count * _MANY < whole * 2]
            if len(values) > _MANY:
                name = f"{head}/{{name}}"
                self.names.append(name)
                instead.update(dict.fromkeys(values, len(self.names) - 1))
        return instead
