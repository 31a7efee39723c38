"""Who is calling: attribute values out of a request, and what happens where one is missing.

A missing identity is a choice that is stated, never a request without a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from headway.errors import AttributeMissing, ConfigError
from headway.policy.client_address import ClientAddress
from headway.policy.request import RequestFacts

__all__ = [
    "OTHER_METHOD",
    "UNMATCHED",
    "Identify",
    "Identity",
    "Missing",
    "Source",
    "by_account",
    "by_api_key",
    "by_callable",
    "by_cookie",
    "by_header",
    "by_method",
    "by_path_param",
    "by_route",
]

UNMATCHED: Final = "(unmatched)"
"""The route of every request that no route matched: one counter for all of them, whatever their URLs."""

OTHER_METHOD: Final = "(other)"
"""The method of every request whose method is none of the registered ones: callers cannot invent counters."""

_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY"}
    | {"PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH"}
)


class Missing(StrEnum):
    """What happens to a request that lacks an identity."""

    ADDRESS = "address"
    """It is counted by the client's address, apart from every identity that was given."""
    REFUSE = "refuse"
    """It is refused."""
    ERROR = "error"
    """``AttributeMissing`` is raised: the program promised an identity."""


Reader = Callable[[RequestFacts], object]
"""Gives one attribute's value, or None (or an empty text) where the request has none."""


@dataclass(frozen=True, slots=True)
class Source:
    """One way to read an attribute.

    Attributes:
        label: what messages call it: "header x-api-key".
        read: gives the value.
        missing: what happens where there is none.
    """

    label: str
    read: Reader
    missing: Missing = Missing.ERROR

    def __post_init__(self) -> None:
        if self.missing not in Missing.__members__.values():
            raise ConfigError(f"{self.missing!r}: expected one of {', '.join(Missing)}", key="missing")
        object.__setattr__(self, "missing", Missing(self.missing))

    def __call__(self, facts: RequestFacts) -> object:
        """The value, or None where the request has none."""
        value = self.read(facts)
        return None if value in ("", b"", ()) else value


def by_header(name: str, *, missing: Missing | str = Missing.ERROR) -> Source:
    """The value of a header field. Lines that disagree are no identity: a caller could vary them at will.

    Nothing proves that a header is true. Count unverified ones together with the address, or a caller that invents a
    new one for each request is never limited.
    """
    wanted = name.lower()
    return Source(f"header {wanted}", lambda facts: _single(facts.lines(wanted)), _missing(missing))


def by_api_key(header: str = "x-api-key", *, missing: Missing | str = Missing.ERROR) -> Source:
    """An API key from its header field; from ``Authorization``, without the scheme (``Bearer`` or another)."""
    wanted = header.lower()

    def read(facts: RequestFacts) -> str | None:
        value = _single(facts.lines(wanted))
        if wanted != "authorization" or value is None:
            return value
        return value.partition(" ")[2].strip() or None

    return Source(f"API key in {wanted}", read, _missing(missing))


def by_cookie(name: str, *, missing: Missing | str = Missing.ERROR) -> Source:
    """The value of a cookie; see ``by_header`` for what proves it."""
    return Source(f"cookie {name}", lambda facts: facts.cookie(name), _missing(missing))


def by_path_param(name: str, *, missing: Missing | str = Missing.ERROR) -> Source:
    """The value of a parameter in the route, such as ``id`` of ``/items/{id}``."""
    return Source(f"path parameter {name}", lambda facts: facts.path_params.get(name), _missing(missing))


def by_account(*, missing: Missing | str = Missing.ERROR) -> Source:
    """Whoever the application has authenticated."""
    return Source("account", lambda facts: facts.account, _missing(missing))


def by_method() -> Source:
    """The method, in upper case; unregistered ones are ``OTHER_METHOD``. Never missing."""

    def read(facts: RequestFacts) -> str:
        method = facts.method.upper()
        return method if method in _METHODS else OTHER_METHOD

    return Source("method", read)


def by_route() -> Source:
    """The route's template, never the raw URL; requests that none matched are ``UNMATCHED``. Never missing."""
    return Source("route", lambda facts: facts.route or UNMATCHED)


def by_callable(read: Reader, *, missing: Missing | str = Missing.ERROR) -> Source:
    """Whatever a function of the request gives; None or an empty text is a missing identity."""
    return Source(getattr(read, "__name__", "function"), read, _missing(missing))


@dataclass(frozen=True, slots=True)
class Identity:
    """The attributes of one request.

    Attributes:
        attributes: values by name, ready for ``hit``.
        refused: the attributes that are missing and whose absence refuses the request; empty when it may go on.
    """

    attributes: Mapping[str, object]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identify:
    """Reads a request's attributes: ``Identify({"ip": client_address(), "api_key": by_api_key(missing="address")})``.

    Args:
        sources: by attribute name: a ``Source``, a ``ClientAddress``, or any function of ``RequestFacts`` (where that
            gives None, the identity is missing and an error).
        address: what ``missing="address"`` falls back to; the first ``ClientAddress`` among the sources, or the peer.

    Raises:
        ConfigError: a source that cannot be called.
    """

    sources: Mapping[str, Source | Reader]
    address: ClientAddress = None  # type: ignore[assignment]  # None stands for the sources' own and is replaced below
    _ready: tuple[tuple[str, Source], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, read in self.sources.items():
            if not callable(read):
                raise ConfigError(f"{read!r}; expected a source such as by_header('x-api-key') or a function", key=name)
        if self.address is None:
            found = [read for read in self.sources.values() if isinstance(read, ClientAddress)]
            object.__setattr__(self, "address", found[0] if found else ClientAddress())
        ready = tuple((name, _as_source(read)) for name, read in self.sources.items())
        object.__setattr__(self, "_ready", ready)

    def __call__(self, facts: RequestFacts, names: Iterable[str] | None = None) -> Identity:
        """The attributes of a request.

        An identity that falls back to the address is the pair ("address", its key), so that nobody can spend the quota
        of an address by sending it as a key, or the other way round.

        Args:
            facts: the request.
            names: the attributes that the limits ask for; others are not read and cannot be missing. None reads all.

        Raises:
            AttributeMissing: an attribute is missing and ``Missing.ERROR`` was stated for it.
        """
        wanted = None if names is None else frozenset(names)
        attributes: dict[str, object] = {}
        refused: list[str] = []
        for name, source in self._ready:
            if wanted is not None and name not in wanted:
                continue
            value = source(facts)
            if value is not None:
                attributes[name] = value
            elif source.missing is Missing.ADDRESS:
                attributes[name] = ("address", self.address(facts))
            elif source.missing is Missing.REFUSE:
                refused.append(name)
            else:
                error = AttributeMissing(name, None, tuple(attributes))
                error.add_note(f"{source.label} is absent; state missing='address' or missing='refuse' if it may be")
                raise error
        return Identity(attributes, tuple(refused))


def _as_source(read: Source | Reader) -> Source:
    if isinstance(read, Source):
        return read
    return Source("client address" if isinstance(read, ClientAddress) else getattr(read, "__name__", "function"), read)


def _missing(choice: Missing | str) -> Missing:
    return choice  # type: ignore[return-value]  # Source checks it and says what is accepted


def _single(lines: tuple[str, ...]) -> str | None:
    """The one value of a field's lines, or None where there is none or they disagree."""
    values = {line.strip() for line in lines}
    return values.pop() if len(values) == 1 else None
