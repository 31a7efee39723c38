"""``RedisStore``: state in Redis or Valkey, for threads. Its twin is ``AsyncRedisStore``."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.errors import StoreError
from headway.stores.base import Answer
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.redis import sweeping
from headway.stores.redis.base import BaseRedisStore
from headway.stores.redis.bills import MOST_TOGETHER, Bill
from headway.stores.redis.changing import change
from headway.stores.redis.deciding import decide
from headway.stores.redis.keys import stored_key
from headway.stores.redis.lane import Made, Near, one_way, trips
from headway.stores.redis.servers import Server, Servers
from headway.stores.redis.topology import Flow

__all__ = ["RedisStore"]

T = TypeVar("T")


class RedisStore(BaseRedisStore):
    """One Redis or Valkey server, a Sentinel service, or a cluster.

    Args:
        where: a URL such as ``redis://user:password@host:6379/0``, or a redis-py or valkey-py client of any kind, whose
            settings are used.
        deadline: seconds that a call takes at most, connecting included; also ``?deadline=100ms`` in the URL.
        refusal_cache: seconds that a refusal is remembered in this process at most; 0: never; also in the URL.
        share: of every limit that ``on_store_failure = local`` grants in this process while the store is away: 1/N for
            N processes; also in the URL.
        clock: for tests only: ns since 1970, to decide by instead of the server's clock.

    Raises:
        ConfigError: a URL or an option that cannot be right.
    """

    def __init__(
        self,
        where: object,
        *,
        deadline: float | None = None,
        refusal_cache: float | None = None,
        share: Fraction | float | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(where, deadline=deadline, refusal_cache=refusal_cache, share=share, clock=clock)
        self._servers = _shared(self)
        single = self.settings.mode == "single" and clock is None
        self._server = self._servers.server(self.settings.nodes[0]) if single else None
        self._leave = weakref.finalize(self, self._servers.leave)

    @property
    def server(self) -> Server | None:
        """The one server, where it is known without asking (no cluster, no Sentinel, no test's clock)."""
        return self._server

    @property
    def breakers(self) -> list[Breaker]:
        """One for each server known: whether it is left alone, its failures, outages and calls not tried."""
        return self._servers.breakers()

    def short(self, namespace: str, limits: Sequence[Limit]) -> Callable[[Sequence[Key], Sequence[int]], Made | None]:
        """See ``BaseRedisStore.short``; here it decides everything but what ``advance`` refuses to."""
        return trips(self, namespace, limits) if len(limits) <= MOST_TOGETHER else super().short(namespace, limits)

    def one(
        self, namespace: str, limit: Limit, attribute: str
    ) -> Callable[[Mapping[str, object], int], tuple[object, ...] | None]:
        """See ``BaseRedisStore.one``; here it decides everything."""
        near = Near(self)
        return one_way(self, attribute, near, trips(self, namespace, [limit], near))

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        known = self._remembered(charges, commit)
        if known is not None:
            return known
        sent = self.refusals.ticks()
        flow = decide(self.topology, (Bill(charges, commit, self.refusals),), self.now, self._clock is not None)
        (decided,) = self._drive(flow)
        if isinstance(decided, StoreError):
            raise decided
        if commit:
            self.learn(sent, charges, decided)
        return decided.answer

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        try:
            (in_time,) = self._drive(change(self.topology, [changes], self.now, self._clock is not None))
        finally:  # an answer may be lost of what was done
            self.refusals.given_back([stored_key(change.charge) for change in changes])
        if isinstance(in_time, StoreError):
            raise in_time
        return in_time

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``. Key by key, each in one step, while decisions go on."""
        flow = sweeping.requota(self.topology, namespace, old, new, self.now, self._clock is not None)
        try:
            return self._drive(flow, whole=False)
        finally:
            self.refusals.clear()

    def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``. Walks through all keys of the server."""
        try:
            return self._drive(sweeping.clear(self.topology, namespace, limit), whole=False)
        finally:
            self.refusals.clear()

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return self._drive(sweeping.clears_after(self.topology, charge, self.now, self._clock is not None))

    def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        keys = [stored_key(charge) for charge in charges]
        try:
            self._drive(sweeping.reset(self.topology, keys))
        finally:
            self.refusals.given_back(keys)

    def close(self) -> None:
        """Close the connections, if no other store works with them. A later decision opens new ones."""
        self._leave()
        self._servers.tidy()

    def _drive(self, flow: Flow[T], *, whole: bool = True) -> T:
        """Perform a flow; ``whole``: all of it within one deadline, else each of its trips."""
        exchange = self._servers.exchange
        until = time.monotonic() + self.deadline if whole else None
        try:
            sends = next(flow)
            while True:
                sends = flow.send(exchange(sends, until))
        except StopIteration as stop:
            value: T = stop.value
            return value


_lock = threading.Lock()
_all: weakref.WeakValueDictionary[object, Servers] = weakref.WeakValueDictionary()


def _shared(store: RedisStore) -> Servers:
    """The connections for these settings: one set for all stores of the process that have the same."""
    place = (store.settings, store.deadline)
    with _lock:
        servers = _all.get(place)
        if servers is None:
            servers = _all[place] = Servers(store.settings, store.deadline)
        servers.use()
    return servers
