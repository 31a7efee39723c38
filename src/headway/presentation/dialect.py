"""``Dialect``: in which syntax a decision's numbers are put into header fields."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import combinations
from typing import Final

from headway.errors import ConfigError

__all__ = ["Dialect", "check_dialects"]


class Dialect(StrEnum):
    """The syntaxes that are written; each is read by ``read_fields``.

    Attributes:
        DRAFT11: draft-ietf-httpapi-ratelimit-headers-11: ``RateLimit: "name";r=9;t=1``; the default.
        DRAFT12_PREVIEW: what is proposed for -12: ``"name";a=9;w=1;c=1``. It can still change.
        DRAFT7: draft -07: ``RateLimit: limit=10, remaining=9, reset=1``.
        DRAFT6: draft -04 to -06: ``RateLimit-Limit``, ``RateLimit-Remaining``, ``RateLimit-Reset``.
        X_RATELIMIT_EPOCH: GitHub's ``X-RateLimit-*``; the reset is in seconds since 1970.
        X_RATELIMIT_DELTA: Envoy's and throttled's ``X-RateLimit-*``; the reset is in seconds from now.
        NONE: no such field at all.
    """

    DRAFT11 = "draft11"
    DRAFT12_PREVIEW = "draft12-preview"
    DRAFT7 = "draft7"
    DRAFT6 = "draft6"
    X_RATELIMIT_EPOCH = "x-ratelimit-epoch"
    X_RATELIMIT_DELTA = "x-ratelimit-delta"
    NONE = "none"


_CLASHES: Final = {
    frozenset({Dialect.DRAFT11, Dialect.DRAFT7}): "RateLimit",
    frozenset({Dialect.DRAFT12_PREVIEW, Dialect.DRAFT7}): "RateLimit",
    frozenset({Dialect.X_RATELIMIT_EPOCH, Dialect.X_RATELIMIT_DELTA}): "X-RateLimit-Reset",
}


def check_dialects(dialects: str | Iterable[str]) -> tuple[Dialect, ...]:
    """The dialects as given by name or member, one or several, each once, in the enum's order.

    Two that give one field two meanings exclude each other. ``draft6`` goes with the newer ones: its own three fields
    are sent and ``RateLimit-Policy`` keeps the newer syntax.

    Raises:
        ConfigError: an unknown name, two dialects that exclude each other, or ``none`` beside another.
    """
    given = (dialects,) if isinstance(dialects, str) else tuple(dialects)
    for name in given:
        if name not in Dialect.__members__.values():
            known = ", ".join(Dialect)
            raise ConfigError(f"{name!r} is no header dialect; expected one or several of {known}", key="dialects")
    found = tuple(dialect for dialect in Dialect if dialect in given)
    if Dialect.NONE in found and len(found) > 1:
        raise ConfigError(f"'none' excludes the others; given: {', '.join(found)}", key="dialects")
    for pair in combinations(found, 2):
        if field := _CLASHES.get(frozenset(pair)):
            raise ConfigError(
                f"{pair[0].value} and {pair[1].value} both write {field}, with different meanings; choose one",
                key="dialects",
            )
    return found or (Dialect.NONE,)
