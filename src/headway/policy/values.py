"""``Values``: what a condition compares an attribute with: exact values, globs with ``*``, addresses and ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time
from enum import Enum
from ipaddress import ip_address
from numbers import Complex, Number, Real
from typing import Final, cast

from headway.policy.address import Network, read_address, read_network
from headway.policy.spelling import described

__all__ = ["Values", "is_range", "many", "number_of", "text_of", "wrong_values"]

_RANGE: Final = re.compile(
    r"[0-9]+(?:\.[0-9]+)+/[0-9.]*"
    r"|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/[0-9]*"
    r"|[0-9]+(?:\.[0-9]+){3}\s*-\s*[0-9]+(?:\.[0-9]+){0,3}"
)
"""What is meant as an address range, whether it is right or not."""

_LONGEST_NUMBER: Final = 400


@dataclass(frozen=True, slots=True)
class Values:
    """Values of an attribute; ``value in values`` costs the same however many exact values and ranges there are.

    Attributes:
        written: as they were written, for people.
        texts: exact ones.
        globs: the texts between the stars of each glob.
        networks: for each version and prefix length, the network addresses as integers.
    """

    written: tuple[str, ...]
    texts: frozenset[str]
    globs: tuple[tuple[str, ...], ...]
    networks: tuple[tuple[int, int, frozenset[int]], ...]

    @classmethod
    def of(cls, wanted: object) -> Values:
        """Read a value or a sequence of them; ``wrong_values`` has found nothing wrong with it."""
        several = many(wanted)
        written = tuple(
            text for one in ((wanted,) if several is None else several) if (text := text_of(one)) is not None
        )
        found: dict[tuple[int, int], set[int]] = {}
        for network in _networks(written):
            found.setdefault((network.version, network.prefixlen), set()).add(int(network.network_address))
        return cls(
            written,
            frozenset(text for text in written if "*" not in text),
            tuple(tuple(text.split("*")) for text in written if "*" in text),
            tuple((version, prefix, frozenset(numbers)) for (version, prefix), numbers in sorted(found.items())),
        )

    def __contains__(self, value: object) -> bool:
        text = text_of(value)
        if text is None:
            return False
        return text in self.texts or (bool(self.globs) and self._in_a_glob(text)) or self._in_a_network(text)

    def _in_a_glob(self, text: str) -> bool:
        """As it is written, or as the address that it is: what ``10.0.*`` keeps out must not come in as ``::ffff:10.0.0.1``."""
        if any(_fits(text, glob) for glob in self.globs):
            return True
        address = read_address(text) if "." in text or ":" in text else None
        return address is not None and any(_fits(str(address), glob) for glob in self.globs)

    def _in_a_network(self, text: str) -> bool:
        place = _place_of(text) if self.networks else None
        if place is None:
            return False
        version, number, length = place
        bits = 32 if version == 4 else 128
        return any(
            version == wanted and prefix <= length and number >> bits - prefix << bits - prefix in numbers
            for wanted, prefix, numbers in self.networks
        )

    def __str__(self) -> str:
        shown = list(self.written[:5]) + ([f"{len(self.written) - 5} more"] if len(self.written) > 5 else [])
        return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}" if shown else "nothing"


def text_of(value: object) -> str | None:
    """The text that a value is compared by, as keys are (42 ≡ "42"); None for what has none (bytes, a tuple)."""
    match value:
        case str():
            return str.__str__(value)
        case Enum():
            return text_of(value.value)
        case bool():
            return "true" if value else "false"
        case int():
            try:
                return int.__repr__(value)
            except ValueError:  # more digits than the interpreter prints
                return hex(value)
        case None | bytes() | bytearray() | tuple() | list() | dict() | set() | frozenset():
            return None
        case _:
            return str(value)  # a float, a UUID, an address


def number_of(value: object) -> int | float | None:
    """The number that a value is, or that its text says; None where it is none (a boolean, NaN)."""
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and value.isascii() and "_" not in value:
        for kind in (int, float):
            with suppress(ValueError):
                value = kind(value)
                break
    if isinstance(value, bool) or value != value:
        return None
    if isinstance(value, Real) or (
        isinstance(value, Number) and not isinstance(value, Complex)
    ):  # a Decimal is no Real
        return cast("int | float", value)
    return None


def is_range(text: str) -> bool:
    """Whether a text is meant as an address range, be it right or not."""
    return _RANGE.fullmatch(text) is not None


def many(wanted: object) -> Sequence[object] | None:
    """A list, tuple or set as a sequence; None for a single value."""
    return tuple(wanted) if isinstance(wanted, list | tuple | set | frozenset) else None


def wrong_values(wanted: object, expected: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """Everything that is wrong with a value or several: the index of each, and what would be accepted."""
    several = many(wanted)
    if several is None:
        if problem := _wrong(wanted, expected):
            yield (), problem
        return
    if not several:
        yield (), f"is empty, so nothing would meet it; expected {expected}"
    for index, one in enumerate(several):
        if problem := _wrong(one, "a string, a number, true or false"):
            yield (index,), problem


def _wrong(one: object, expected: str) -> str | None:
    if text_of(one) is None or isinstance(one, date | time):
        return f"is {'None' if one is None else described(one)}; expected {expected}"
    if isinstance(one, str) and is_range(one):
        try:
            read_network(one)
        except ValueError as error:
            return str(error)
    return None


def _networks(written: Iterable[str]) -> Iterator[Network]:
    for text in written:
        if "*" in text or not ("." in text or ":" in text):
            continue
        try:
            ip_address(text.partition("/")[0])
            yield read_network(text)
        except ValueError:
            continue  # a text like any other


def _place_of(text: str) -> tuple[int, int, int] | None:
    """(version, address, prefix length) of an address, or of the range that a grouped address stands for."""
    address = read_address(text)
    if address is not None:
        return address.version, int(address), address.max_prefixlen
    if "/" not in text:
        return None
    try:
        network = read_network(text)
    except ValueError:
        return None
    return network.version, int(network.network_address), network.prefixlen


def _fits(text: str, glob: tuple[str, ...]) -> bool:
    """Whether the pieces of a glob stand in the text, in order, the first at its start and the last at its end.

    Taking each piece where it first occurs is enough, so the time grows with the text alone.
    """
    first, *middle, last = glob
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
