"""The keys under which Redis keeps counters: 30 characters, whatever the attributes are: ``<limit>{<key parts>}``.

Both parts are SHA-256 digests, cut and written in base64url, of injective encodings (``core.key``), so no separator,
brace or length in a value can make two counters one, and an entry costs the same for a name of 5 and of 5,000
characters. Limits that are keyed by the same attribute values in one namespace share the part in braces: the hash tag
that puts them on one node of a cluster.

The second part has 108 bits: two among 10**9 keys share one with a probability of 10**-15. The first has 60: it tells
the limits of one deployment apart.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256
from typing import Final

from headway.core.charge import Charge
from headway.core.key import Key, encode_key, key_prefix

__all__ = ["limit_part", "limit_pattern", "slot_of", "stored_key", "tag_of"]

_LIMIT_LENGTH: Final = 10
_TAG_LENGTH: Final = 18
_LONG: Final = 128
_SLOTS: Final = 16384


def stored_key(charge: Charge) -> bytes:
    """The key of a charge's counter, 30 ASCII characters."""
    limit = charge.limit
    part = limit_part(charge.namespace, limit.name, limit.algorithm.stored, limit.by)
    return part + tag_of(charge.namespace, limit.by, charge.key)


def tag_of(namespace: str, by: tuple[str, ...], key: Key) -> bytes:
    """The part in braces, with them."""
    if key.__class__ is str and len(key) <= _LONG:
        return _remembered_tag(namespace, by, key)
    return _tag(namespace, by, key)


def limit_pattern(namespace: str, name: str, algorithm: str, by: tuple[str, ...]) -> bytes:
    """What SCAN matches to find the keys of one limit and no other's."""
    return limit_part(namespace, name, algorithm, by) + b"{*"


@lru_cache(maxsize=4096)
def limit_part(namespace: str, name: str, algorithm: str, by: tuple[str, ...]) -> bytes:
    """What the keys of one limit begin with."""
    return _digest(key_prefix(namespace, name, algorithm, by), _LIMIT_LENGTH)


def slot_of(key: bytes) -> int:
    """The cluster's hash slot of a key of ours (Redis Cluster specification, "Hash tags"): CRC16 of what is in braces."""
    from binascii import crc_hqx  # CRC-16/XMODEM, the cluster's

    return crc_hqx(key[_LIMIT_LENGTH + 1 : -1], 0) % _SLOTS


def _tag(namespace: str, by: tuple[str, ...], key: Key) -> bytes:
    parts = (key,) if len(by) == 1 else key
    return b"{%s}" % _digest(encode_key(namespace, "", "", by, parts), _TAG_LENGTH)


_remembered_tag = lru_cache(maxsize=4096)(_tag)


def _digest(text: bytes, length: int) -> bytes:
    return urlsafe_b64encode(sha256(text).digest()[:24])[:length]
