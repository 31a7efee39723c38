"""The header fields of one response, by lower-case name, with the spelling of the wire kept."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

HeadersLike: TypeAlias = Mapping[Any, Any] | Iterable[Any] | None
"""A mapping, pairs, or anything with `multi_items()` (httpx) or `items()` (email, aiohttp); `str` or `bytes`."""


class HeaderFields:
    """Header fields in the order of the wire; several lines of one name are kept apart."""

    __slots__ = ("lines", "spelling")

    def __init__(self, headers: HeadersLike) -> None:
        self.lines: dict[str, list[str]] = {}
        self.spelling: dict[str, str] = {}
        for name, value in _pairs(headers):
            wire = name.strip() if type(name) is str else _text(name).strip()
            lower = wire.lower()
            lines = self.lines.get(lower)
            if lines is None:
                lines = self.lines[lower] = []
                self.spelling[lower] = wire
            if type(value) is str:
                lines.append(value.strip())
            else:
                lines.extend(_text(one).strip() for one in (value if isinstance(value, list | tuple) else (value,)))

    def get(self, name: str) -> str | None:
        """Return the first line of a field (lower-case name), or None."""
        lines = self.lines.get(name)
        return lines[0] if lines else None

    def joined(self, name: str) -> str | None:
        """Return all lines of a field joined by commas (RFC 9110 §5.3), or None."""
        lines = self.lines.get(name)
        return ", ".join(lines) if lines else None


def _pairs(headers: HeadersLike) -> Iterable[tuple[Any, Any]]:
    """Yield name and value of anything that holds header fields; skip what is no pair."""
    if headers is None:
        return
    listed = getattr(headers, "multi_items", None) or getattr(headers, "items", None)
    items = listed() if callable(listed) else headers
    for pair in items:
        if isinstance(pair, list | tuple) and len(pair) == 2:
            yield pair[0], pair[1]


def _text(value: Any) -> str:
    """Return text whatever the type; bytes are Latin-1, as in HTTP."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("latin-1")
    return "" if value is None else str(value)
