"""Structured Fields (RFC 9651): parse and serialise Lists, Dictionaries and Items, strictly.

A field that is not exactly what the grammar says raises `ValueError`; the RFC's rule is to ignore such a field as a
whole (§4.2). Two leniencies are the RFC's own: base64 without padding, and base64 with non-zero pad bits (§4.2.7).

Bare types: `int` (Integer), `decimal.Decimal` (Decimal), `str` (String), `Token`, `bytes` (Byte Sequence), `bool`
(Boolean), `Date` (seconds since 1970) and `DisplayString`.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TypeAlias
from urllib.parse import unquote_to_bytes


class Token(str):
    """A Token (§3.3.4): a short textual word, written without quotes."""

    __slots__ = ()


class DisplayString(str):
    """A Display String (§3.3.8): Unicode text meant for people."""

    __slots__ = ()


class Date(int):
    """A Date (§3.3.7): whole seconds since 1970-01-01T00:00:00Z, possibly negative."""

    __slots__ = ()


BareItem: TypeAlias = int | Decimal | str | bytes | bool
"""A value without parameters; `Token`, `DisplayString` and `Date` are kinds of `str` and `int`."""


@dataclass(frozen=True, slots=True)
class Item:
    """A bare value and its parameters (§3.3), in the order of the wire."""

    value: BareItem
    params: Mapping[str, BareItem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InnerList:
    """A parenthesised list of items with parameters of its own (§3.1.1)."""

    items: tuple[Item, ...]
    params: Mapping[str, BareItem] = field(default_factory=dict)


_KEY = re.compile(r"[a-z*][a-z0-9_\-.*]*")
_NUMBER = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?(?![0-9.])")
_STRING = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_TOKEN = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*")
_BYTES = re.compile(r":([A-Za-z0-9+/]*)(={0,2}):")
_BOOLEAN = re.compile(r"\?([01])")
_DATE = re.compile(r"@(-?[0-9]{1,15})(?![0-9.])")
_DISPLAY = re.compile(r'%"((?:[ !#$&-~]|%[0-9a-f]{2})*)"')
_SPACES = re.compile(r" *")
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_ESCAPE = re.compile(r"\\(.)")

_MAX_INTEGER = 999_999_999_999_999


def parse_list(text: str) -> list[Item | InnerList]:
    """Parse a List (§4.2.1); several field lines must be joined with `", "` first.

    Raises:
        ValueError: The text is no valid List.
    """
    text = text.strip(" ")
    members: list[Item | InnerList] = []
    at = 0
    while at < len(text):
        member, at = _member(text, at)
        members.append(member)
        at = _next_member(text, at)
    return members


def parse_dictionary(text: str) -> dict[str, Item | InnerList]:
    """Parse a Dictionary (§4.2.2); the last of several equal keys counts.

    Raises:
        ValueError: The text is no valid Dictionary.
    """
    text = text.strip(" ")
    members: dict[str, Item | InnerList] = {}
    at = 0
    while at < len(text):
        key, at = _key(text, at)
        member: Item | InnerList
        if text.startswith("=", at):
            member, at = _member(text, at + 1)
        else:
            params, at = _params(text, at)
            member = Item(True, params)
        members.pop(key, None)
        members[key] = member
        at = _next_member(text, at)
    return members


def parse_item(text: str) -> Item:
    """Parse an Item (§4.2.3).

    Raises:
        ValueError: The text is no valid Item.
    """
    text = text.strip(" ")
    item, at = _item(text, 0)
    if at != len(text):
        raise _malformed(text, at, "the end")
    return item


def serialise_list(members: Iterable[Item | InnerList]) -> str:
    """Write a List (§4.1.1); an empty one gives `""`, which means: send no field."""
    return ", ".join([_write_member(member) for member in members])


def serialise_dictionary(members: Mapping[str, Item | InnerList]) -> str:
    """Write a Dictionary (§4.1.2); an empty one gives `""`, which means: send no field."""
    parts = []
    for key, member in members.items():
        if isinstance(member, Item) and member.value is True:
            parts.append(_write_key(key) + _write_params(member.params))
        else:
            parts.append(f"{_write_key(key)}={_write_member(member)}")
    return ", ".join(parts)


def serialise_item(item: Item) -> str:
    """Write an Item (§4.1.3)."""
    return serialise_bare(item.value) + _write_params(item.params)


def serialise_bare(value: BareItem) -> str:
    """Write one value without parameters.

    A Decimal is rounded to three places, half to even (§4.1.5).

    Raises:
        ValueError: The value cannot be expressed, such as a `str` outside printable ASCII.
    """
    match value:
        case bool():
            return "?1" if value else "?0"
        case int():
            if abs(value) > _MAX_INTEGER:
                raise ValueError(f"an Integer has at most 15 digits, not {value}")
            return f"@{int(value)}" if isinstance(value, Date) else str(int(value))
        case Decimal():
            return _write_decimal(value)
        case bytes():
            return f":{base64.b64encode(value).decode('ascii')}:"
        case DisplayString():
            return _write_display(value)
        case Token():
            if not _TOKEN.fullmatch(value):
                raise ValueError(f"a Token starts with a letter or * and has no spaces or quotes, not {str(value)!r}")
            return str(value)
        case str():
            if not value.isascii() or not value.isprintable():
                raise ValueError(f"a String is printable ASCII, not {value!r}")
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    raise ValueError(f"no Structured Field type for {value!r}")


def _malformed(text: str, at: int, expected: str) -> ValueError:
    """Build the error for text that stops being valid at a place; long text is cut."""
    return ValueError(f"expected {expected} at position {at} of {text[:80]!r}")


def _next_member(text: str, at: int) -> int:
    """Return where the next member starts; `len(text)` after the last one (no trailing comma)."""
    if at == len(text):
        return at
    comma = _COMMA.match(text, at)
    if comma is None:
        if not text[at:].strip(" \t"):
            return len(text)
        raise _malformed(text, at, "a comma")
    if comma.end() == len(text):
        raise _malformed(text, at, "a member after the comma")
    return comma.end()


def _member(text: str, at: int) -> tuple[Item | InnerList, int]:
    """Parse an Item or an Inner List (§4.2.1.1)."""
    if not text.startswith("(", at):
        return _item(text, at)
    items: list[Item] = []
    at += 1
    while True:
        spaces = _SPACES.match(text, at)
        end = spaces.end() if spaces else at
        if text.startswith(")", end):
            params, end = _params(text, end + 1)
            return InnerList(tuple(items), params), end
        if items and end == at:
            raise _malformed(text, at, "a space or )")
        item, at = _item(text, end)
        items.append(item)


def _item(text: str, at: int) -> tuple[Item, int]:
    """Parse an Item in place."""
    value, at = _bare(text, at)
    if not text.startswith(";", at):
        return Item(value), at
    params, at = _params(text, at)
    return Item(value, params), at


def _params(text: str, at: int) -> tuple[dict[str, BareItem], int]:
    """Parse parameters (§4.2.3.2)."""
    params: dict[str, BareItem] = {}
    while text.startswith(";", at):
        spaces = _SPACES.match(text, at + 1)
        key, at = _key(text, spaces.end() if spaces else at + 1)
        value: BareItem = True
        if text.startswith("=", at):
            value, at = _bare(text, at + 1)
        params.pop(key, None)
        params[key] = value
    return params, at


def _key(text: str, at: int) -> tuple[str, int]:
    """Parse a key (§4.2.3.3)."""
    found = _KEY.match(text, at)
    if found is None:
        raise _malformed(text, at, "a lower-case key")
    return found.group(), found.end()


def _bare(text: str, at: int) -> tuple[BareItem, int]:
    """Parse a value without parameters (§4.2.3.1); its first character says its type."""
    first = text[at : at + 1]
    if first == '"':
        found = _STRING.match(text, at)
        if found is not None:
            inner = found.group(1)
            return (_ESCAPE.sub(r"\1", inner) if "\\" in inner else inner), found.end()
    elif first in "-0123456789" and first:
        return _number(text, at)
    elif first == ":":
        found = _BYTES.match(text, at)
        if found is not None:
            return _decode(found.group(1), text, at), found.end()
    elif first == "?":
        found = _BOOLEAN.match(text, at)
        if found is not None:
            return found.group(1) == "1", found.end()
    elif first == "@":
        found = _DATE.match(text, at)
        if found is not None:
            return Date(found.group(1)), found.end()
    elif first == "%":
        found = _DISPLAY.match(text, at)
        if found is not None:
            return DisplayString(unquote_to_bytes(found.group(1)).decode("utf-8")), found.end()
    else:
        found = _TOKEN.match(text, at)
        if found is not None:
            return Token(found.group()), found.end()
    raise _malformed(text, at, "a value")


def _number(text: str, at: int) -> tuple[BareItem, int]:
    """Parse an Integer of at most 15 digits or a Decimal of at most 12 and 3 (§4.2.4)."""
    found = _NUMBER.match(text, at)
    if found is None:
        raise _malformed(text, at, "a number")
    whole, fraction = found.groups()
    if fraction is None:
        if len(whole) > 15:
            raise _malformed(text, at, "at most 15 digits")
        return int(found.group()), found.end()
    if len(whole) > 12 or len(fraction) > 3:
        raise _malformed(text, at, "at most 12 digits, a point and 3 digits")
    return Decimal(found.group()), found.end()


def _decode(encoded: str, text: str, at: int) -> bytes:
    """Decode base64 whose padding may be missing."""
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error as error:
        raise _malformed(text, at, "base64") from error


def _write_member(member: Item | InnerList) -> str:
    """Write an Item or an Inner List."""
    if isinstance(member, InnerList):
        return f"({' '.join([serialise_item(item) for item in member.items])}){_write_params(member.params)}"
    return serialise_item(member)


def _write_params(params: Mapping[str, BareItem]) -> str:
    """Write parameters; a true one is its key alone."""
    return "".join(
        [
            f";{_write_key(key)}" if value is True else f";{_write_key(key)}={serialise_bare(value)}"
            for key, value in params.items()
        ]
    )


def _write_key(key: str) -> str:
    """Write a key after checking it."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"a key is lower-case letters, digits and _-.*, not {key!r}")
    return key


def _write_decimal(value: Decimal) -> str:
    """Write a Decimal with one to three places."""
    if not value.is_finite() or abs(value) >= 10**12:
        raise ValueError(f"a Decimal has at most 12 digits before the point, not {value}")
    rounded = value.quantize(Decimal("0.001"), ROUND_HALF_EVEN)
    if abs(rounded) >= 10**12:
        raise ValueError(f"a Decimal has at most 12 digits before the point, not {value}")
    whole, _, fraction = f"{rounded:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


def _write_display(value: str) -> str:
    """Write Unicode text: everything but printable ASCII, and % and the quote, as lower-case %xx."""
    return (
        '%"'
        + "".join(
            [chr(b) if 0x20 <= b <= 0x7E and b not in (0x22, 0x25) else f"%{b:02x}" for b in value.encode("utf-8")]
        )
        + '"'
    )
