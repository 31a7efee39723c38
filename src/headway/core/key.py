"""Keys: from attribute values to the one thing a counter belongs to, injectively, and its printable bytes for stores.

str, int and UUID values are one entity by their text (42 ≡ "42"); bytes are another kind; a tuple is its parts. No key
is built by joining unescaped parts, so no two different tuples of attributes share one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from headway.errors import AttributeUnusable

__all__ = ["LONGEST_KEPT", "Key", "encode_key", "kept", "key_part", "key_prefix"]

Key = str | bytes | tuple["Key", ...]
"""A canonical value (one attribute) or the tuple of them in the order of the limit's ``by``."""

LONGEST_KEPT: Final = 256
"""Characters or bytes of a key that a store in this process keeps as they are."""

_VERSION = b"h1"
_DEEPEST: Final = 32
"""So many tuples may stand within each other: hashing, comparing and encoding a deeper one could exhaust the stack."""


def key_part(attribute: str, value: object, depth: int = 0) -> Key:
    """The canonical form of one attribute's value.

    Args:
        attribute: its name, for errors.
        value: the value.
        depth: how many tuples it stands in.

    Raises:
        AttributeUnusable: None, bool, float or any other type, or tuples nested more than 32 deep (a TypeError), naming
            the attribute.
    """
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        raise AttributeUnusable(attribute, value)
    if isinstance(value, int):
        try:
            return int.__repr__(value)
        except ValueError:  # more digits than the interpreter prints: hexadecimal has no such bound
            return hex(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, tuple):
        if depth == _DEEPEST:
            raise AttributeUnusable(attribute, value, f"is nested more than {_DEEPEST} tuples deep")
        return tuple([key_part(attribute, part, depth + 1) for part in value])
    from uuid import UUID  # slow to import; whoever has a UUID has imported it

    if isinstance(value, UUID):
        return str(value)
    raise AttributeUnusable(attribute, value)


def encode_key(namespace: str, limit: str, algorithm: str, by: tuple[str, ...], key: Key) -> bytes:
    """The bytes under which a store outside the process keeps one counter.

    Layout: ``h1`` then netstring-like parts ``<tag><length>:<bytes>``: ``s`` text as UTF-8 (lone surrogates included),
    ``b`` bytes, ``t`` a tuple with the number of its parts. Every part says its length, so parts cannot run together.
    """
    parts = [key_prefix(namespace, limit, algorithm, by)]
    _encode(key, parts)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def key_prefix(namespace: str, limit: str, algorithm: str, by: tuple[str, ...]) -> bytes:
    """What all stored keys of one limit begin with, and no other's: the number of attributes stands before them."""
    parts = [_VERSION]
    for name in (namespace, limit, algorithm, by):
        _encode(name, parts)
    return b"".join(parts)


def _encode(key: Key, parts: list[bytes]) -> None:
    if isinstance(key, tuple):
        parts.append(b"t%d:" % len(key))
        for part in key:
            _encode(part, parts)
        return
    tag, raw = (b"s", key.encode("utf-8", "surrogatepass")) if isinstance(key, str) else (b"b", key)
    parts.append(b"%s%d:" % (tag, len(raw)))
    parts.append(raw)


def kept(key: Key) -> Key:
    """What a store in this process keeps a key as: the key, or the digest of a long one.

    Callers choose their keys, so the number of keys bounds a store's memory only if each of them is short.
    """
    if (len(key) if key.__class__ is str else _length(key)) <= LONGEST_KEPT:
        return key
    import hashlib  # slow to import, and few keys are long

    parts: list[bytes] = []
    _encode(key, parts)
    return b"sha256:" + hashlib.sha256(b"".join(parts)).digest()


def _length(key: Key) -> int:
    return sum(map(_length, key)) + len(key) if isinstance(key, tuple) else len(key)
