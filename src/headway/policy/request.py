"""``RequestFacts``: what is known of an HTTP request before it is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["RequestFacts"]


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """An HTTP request as an adapter describes it, without a framework's types.

    Attributes:
        method: as sent.
        route: the template that matched, such as ``/items/{id}``; None where none did. Never the raw URL.
        path: the raw path, for matching only.
        headers: (name, value) in the order of the wire, one pair a line; a mapping is accepted.
        cookies: by name; None means: read them from the ``Cookie`` header.
        path_params: the values in the route, by name.
        query: the first value of each query parameter, by name.
        peer: the address of the connection's other end as the server gives it; None or a path for a Unix socket.
        account: whoever the application has authenticated, as a value for a key, or None.
    """

    method: str = "GET"
    route: str | None = None
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    cookies: Mapping[str, str] | None = None
    path_params: Mapping[str, object] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    peer: str | None = None
    account: object = None

    def __post_init__(self) -> None:
        given: Mapping[str, str] | Iterable[tuple[str, str]] = self.headers
        if not isinstance(given, tuple):
            pairs = given.items() if isinstance(given, Mapping) else given
            object.__setattr__(self, "headers", tuple((name, value) for name, value in pairs))

    def lines(self, name: str) -> tuple[str, ...]:
        """The values of every line of that field, in order; names are compared without regard to case."""
        wanted = name.lower()
        return tuple([value for given, value in self.headers if given.lower() == wanted])

    def cookie(self, name: str) -> str | None:
        """The first cookie of that name (RFC 6265 §5.4: the one with the longest path), or None."""
        if self.cookies is not None:
            return self.cookies.get(name)
        for line in self.lines("cookie"):
            for pair in line.split(";"):
                given, equals, value = pair.strip().partition("=")
                if equals and given == name:
                    return value.strip('"')
        return None
