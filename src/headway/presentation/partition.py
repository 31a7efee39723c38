"""Partition keys: an opaque tag that tells two counters of one limit apart and nothing else (``pk``, draft -11)."""

from __future__ import annotations

from typing import Final

from headway.core.key import Key, encode_key
from headway.errors import ConfigError

__all__ = ["partition_key"]

_PURPOSE: Final = b"headway RateLimit pk"
_SHORTEST_SECRET: Final = 16
_LENGTH: Final = 12


def partition_key(secret: bytes, limit: str, by: tuple[str, ...], key: Key) -> bytes:
    """The first 96 bits of an HMAC-SHA-256 over the limit's name and the key's attributes, for this purpose alone.

    Without the secret nobody can find the attributes, not even by trying every telephone number or address, which an
    unkeyed hash allows. A request without attributes has nothing to tell apart and gets a tag as well, always the same.

    Args:
        secret: at least 16 random bytes, used for nothing else; the same on every host that serves one API.
        limit: the limit's name.
        by: the names of the attributes.
        key: their canonical values, as a ``Charge`` holds them.

    Raises:
        ConfigError: the secret is too short; the message does not show it.
    """
    if len(secret) < _SHORTEST_SECRET:
        raise ConfigError(
            f"the secret for partition keys is {len(secret)} bytes long; expected at least {_SHORTEST_SECRET} random bytes"
        )
    import hmac

    parts = (key,) if len(by) == 1 else key
    return hmac.digest(secret, _PURPOSE + encode_key("", limit, "", by, parts), "sha256")[:_LENGTH]
