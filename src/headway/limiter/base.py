"""What ``Limiter`` and ``AsyncLimiter`` share: everything that never waits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import ConfigError
from headway.limiter.plan import Plan, check_limit
from headway.stores.base import AsyncStore, Store
from headway.stores.immediate import ImmediateStore
from headway.stores.lane import Lane, OneWay
from headway.stores.memory import MemoryStore

__all__ = ["BaseLimiter", "merged"]

_SHORTEST_KEY = 16


class BaseLimiter:
    """Limits made ready, and the short way through a memory store. Not for direct use."""

    def __init__(
        self, limits: Sequence[Limit], store: Store | AsyncStore, namespace: str, secret_key: bytes | str | None
    ) -> None:
        if not isinstance(namespace, str):
            raise ConfigError(f"namespace is {namespace!r}, a {type(namespace).__name__}; expected text")
        for limit in limits:
            check_limit(limit)
        memory = store.store if isinstance(store, ImmediateStore) else store
        needed = any(limit.secret for limit in limits)
        self.plan = Plan(limits, namespace, _secret(secret_key, needed, isinstance(memory, MemoryStore)))
        self._lane: Lane | None = memory.lane(namespace, self.plan.limits) if isinstance(memory, MemoryStore) else None
        self._one: OneWay | None = self._lane.one if self._lane and self.plan.single else None

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits, in order."""
        return self.plan.limits

    @cached_property
    def _stand_in(self) -> MemoryStore:
        """Where ``on_store_failure = local`` decides while the store is away."""
        return MemoryStore()

    @cached_property
    def _async_stand_in(self) -> ImmediateStore:
        return ImmediateStore(self._stand_in)

    def _resets(self, what: Sequence[str | Mapping[str, object]], named: Mapping[str, object]) -> tuple[Charge, ...]:
        names = [part for part in what if isinstance(part, str)]
        attributes: Mapping[str, object] = named
        for part in what:
            if not isinstance(part, str):
                attributes = merged(part, attributes)
        return self.plan.resets(names, attributes)


def merged(attributes: Mapping[str, object], named: Mapping[str, object]) -> Mapping[str, object]:
    """Attributes given as a mapping and by keyword.

    Raises:
        TypeError: no mapping, or one attribute given both ways.
    """
    if not isinstance(attributes, Mapping):
        raise TypeError(
            f"attributes are a {type(attributes).__name__}; expected a mapping, or keywords such as phone=…"
        )
    twice = attributes.keys() & named.keys()
    if twice:
        raise TypeError(f"attribute {min(twice)!r} is given both in the mapping and by keyword")
    return {**attributes, **named} if named else attributes


def _secret(given: bytes | str | None, needed: bool, in_memory: bool) -> bytes | None:
    key = given if given is not None else os.environ.get("HEADWAY_SECRET_KEY") if needed else None
    if key is None:
        return os.urandom(32) if needed and in_memory else None
    raw = key.encode() if isinstance(key, str) else bytes(key)
    if len(raw) < _SHORTEST_KEY:
        raise ConfigError(
            f"the secret key has {len(raw)} bytes; expected at least {_SHORTEST_KEY}, for example 32 random ones"
        )
    return raw
