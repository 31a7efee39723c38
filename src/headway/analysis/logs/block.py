"""``Block``: some requests of a log, column by column, and the lines among them that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = ["FIELDS", "Block", "Fault", "printable"]

FIELDS: Final = (
    "time",
    "address",
    "user",
    "agent",
    "method",
    "path",
    "status",
    "referer",
    "host",
    "api_key",
    "duration",
    "bytes",
)
"""What can be asked of a log. ``time`` is whole ns since 1970 and always there. ``status`` and ``bytes`` (sent) are whole
numbers, ``duration`` is whole ns; the others are texts as logged, ``path`` without its query. What a request does not have
is None."""

_SHOWN: Final = 100


class Fault(NamedTuple):
    """A line that could not be read.

    Attributes:
        source: the log's name.
        number: the line's, from 1; a row's in Parquet; 0 for the log as a whole.
        problem: what is wrong with it, printable, in at most a few hundred characters.
    """

    source: str
    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class Block:
    """Requests in the order of their log.

    Attributes:
        columns: for each field that was asked for, and for ``time``, one value for each request; see ``FIELDS``.
        lines: how many lines it comes from: its requests and its faults.
        faults: the lines that could not be read.
    """

    columns: dict[str, list[Any]]
    lines: int
    faults: tuple[Fault, ...] = ()

    def __len__(self) -> int:
        """How many requests."""
        return len(self.columns["time"])

    def picked(self, rows: list[int]) -> dict[str, list[Any]]:
        """The columns of some requests, by index."""
        return {name: [values[row] for row in rows] for name, values in self.columns.items()}


def printable(text: str, length: int = _SHOWN) -> str:
    """Text that is safe on a terminal, cut to ``length``: what is not printable comes as escapes."""
    short = text[:length] + "…" if len(text) > length else text
    if short.isprintable():
        return short
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in short)
