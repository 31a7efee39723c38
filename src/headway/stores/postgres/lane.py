"""The short way of a limiter over a ``PostgresStore``: plain charges, one statement, no cursor, outcomes only if asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from headway.core.charge import Charge
from headway.core.key import Key, encode_key, key_prefix
from headway.core.limit import Limit
from headway.core.rule import State
from headway.stores.postgres.codec import array_of, hit_of, kept, lock_of, locks_of, read_state, said, steps_of
from headway.stores.postgres.flows import advanced, told

if TYPE_CHECKING:
    from headway.stores.postgres.sync import PostgresStore

__all__ = ["Short", "shortened"]

Made: TypeAlias = tuple[bool, int, list[State | None]]
Short: TypeAlias = Callable[[Sequence[Key], Sequence[int]], Made | None]
"""From one key and one cost above 0 per limit to: admitted, the server's clock, each key's state before. None: take the
long way."""


def shortened(store: PostgresStore, namespace: str, limits: Sequence[Limit]) -> Short:
    """The short way of limits with at most one attribute each and without leases."""
    if len(limits) == 1 and hit_of(Charge(namespace, limits[0], "", 1)) is not None:
        return _one(store, namespace, limits[0])
    return _several(store, namespace, limits)


def _one(store: PostgresStore, namespace: str, limit: Limit) -> Short:
    text = f"SELECT {store.inside}.hit($1, $2, $3, $4, $5)".encode()
    parameters = said(limit, 0)[1]
    ones = _texts(limit, 1, parameters)
    encoded = _encoder(namespace, limit)

    def hit(keys: Sequence[Key], costs: Sequence[int]) -> Made | None:
        key, cost = encoded(keys[0]), costs[0]
        rest = ones if cost == 1 else _texts(limit, cost, parameters)
        answer = store.ask(text, [b"%d" % lock_of(key), key, *rest], [0, 1, 0, 0, 0], 1)
        if answer is None:
            return None
        allowed, now, before = told(answer)
        return allowed, now, [read_state(limit, before)]

    return hit


def _several(store: PostgresStore, namespace: str, limits: Sequence[Limit]) -> Short:
    text = f"SELECT {store.inside}.advance($1, $2, $3, $4, false, true, NULL, NULL)".encode()
    encoders = [_encoder(namespace, limit) for limit in limits]
    shadows = [int(limit.shadow) for limit in limits]

    def hit(keys: Sequence[Key], costs: Sequence[int]) -> Made | None:
        stored = [encoded(key) for encoded, key in zip(encoders, keys, strict=True)]
        about = time.time_ns()
        kinds, numbers = [], []
        for limit, cost, shadow in zip(limits, costs, shadows, strict=True):
            kind, parameters = said(limit, about)
            kinds.append(kind)
            numbers.append(f"{cost}:{shadow}:0:0:0:{parameters}")
        values = (locks_of(stored), array_of(stored), f"{{{','.join(kinds)}}}", f"{{{','.join(numbers)}}}")
        answer = store.ask(text, [value.encode() for value in values], [0, 0, 0, 0], len(limits))
        if answer is None:
            return None
        allowed, now, texts, _ = advanced(answer, len(limits))
        if allowed is None:
            return None
        return allowed, now, [read_state(limit, before) for limit, before in zip(limits, texts, strict=True)]

    return hit


def _encoder(namespace: str, limit: Limit) -> Callable[[Key], bytes]:
    name, stored, by = limit.name, limit.algorithm.stored, limit.by
    prefix = key_prefix(namespace, name, stored, by)
    if not by:
        everybody = kept(encode_key(namespace, name, stored, by, ()), prefix)
        return lambda key: everybody
    return lambda key: kept(encode_key(namespace, name, stored, by, (key,)), prefix)


def _texts(limit: Limit, cost: int, parameters: str) -> list[bytes | None]:
    """The last arguments of ``hit``."""
    steps = steps_of(limit, cost)
    return [f"{cost}:{parameters}".encode(), *(None if number is None else b"%d" % number for number in steps)]
