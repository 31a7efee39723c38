"""How clients are shown: API keys are secrets, so a report has only a key's beginning and a fingerprint of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2s
from typing import Final

from headway.analysis.logs.block import printable

__all__ = ["masked", "shown_client"]

_BEGINNING: Final = 4
_LONGEST: Final = 80


def masked(secret: str) -> str:
    """``sk_l…(1f3a09)``: enough to tell keys apart and to find one's own; of a short key the fingerprint alone."""
    fingerprint = blake2s(secret.encode("utf-8", "backslashreplace"), digest_size=3).hexdigest()
    beginning = secret[:_BEGINNING] if len(secret) >= 4 * _BEGINNING else ""
    return f"{printable(beginning)}…({fingerprint})"


def shown_client(client: str, by: Sequence[str]) -> str:
    """A client's key, printable and at most about 80 characters, with what is secret masked.

    Args:
        client: as ``Traffic`` makes it: the value, or where a client is the first of several keys, ``user=bob``.
        by: what a client is.
    """
    if len(by) == 1:
        return masked(client) if by[0] == "api_key" and client != "-" else printable(client, _LONGEST)
    name, equals, value = client.partition("=")
    if name == "network":
        name = "address"
    return f"{name}{equals}{masked(value) if name == 'api_key' else printable(value, _LONGEST)}"
