"""``Answer``: one captured response to be audited, beside what a client's reader made of it.

Whoever calls passes the reading in, so that nothing here depends on the client: ``headway.client.read`` gives a value
that fits ``Heard``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

__all__ = ["Answer", "Heard", "Place"]


class Heard(Protocol):
    """What a client understood of a refusal: ``headway.client.Rejection`` is one."""

    @property
    def kind(self) -> str:
        """``rate_limited``, ``quota_exhausted``, ``overloaded``, ``transient``, ``forbidden``, ``misconfigured`` or ``ambiguous``."""
        ...

    @property
    def retry_after(self) -> float | None:
        """The wait in seconds that it would keep."""
        ...

    @property
    def limit(self) -> int | None:
        """How many the violated limit allows."""
        ...

    @property
    def remaining(self) -> int | None:
        """What is left of it."""
        ...

    @property
    def reset_at(self) -> datetime | None:
        """When it resets."""
        ...

    @property
    def limit_name(self) -> str | None:
        """What the wire calls it."""
        ...

    @property
    def source(self) -> str:
        """Which evidence gave the wait, else the kind."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Hints that were malformed."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was found.

    Attributes:
        file: the file, URL or ``-`` that was looked at.
        line: its line, from 1; None where lines mean nothing.
        what: which part of it: a response's id, an operation such as ``GET /items``; empty for the whole.
    """

    file: str
    line: int | None = None
    what: str = ""

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.what}" if self.what else where


@dataclass(frozen=True, slots=True)
class Answer:
    """One response.

    Attributes:
        status: the HTTP status; 200 for gRPC.
        headers: name and value pairs in the order of the wire.
        body: as captured, perhaps empty.
        place: where it was found.
        heard: what a client's reader makes of it; None where it is no refusal.
        received_at: when it arrived, on a clock that is not the server's; None where nobody knows.
        asked: what the answer is to: equal for answers to the same request; None where nothing is known.
        wants_html: the request asked for HTML.
        assume_limit: whoever captured it knows that a limit refused, whether it says so or not.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str | bytes
    place: Place
    heard: Heard | None = None
    received_at: datetime | None = None
    asked: str | None = None
    wants_html: bool = False
    assume_limit: bool = False
