"""State in this process: a dict per limit under one lock, bounded, forgetting only what has recovered.

For threads and asyncio alike (a decision never waits for anything but the lock). Several processes do not share it:
each would admit the whole quota.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from weakref import WeakSet

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key, kept
from headway.core.limit import Algorithm, Limit
from headway.core.rule import State
from headway.errors import ConfigError, StoreFull
from headway.stores.base import Answer, settled_late
from headway.stores.clock import AnchoredClock, Clock
from headway.stores.lane import Lane
from headway.stores.table import Table

__all__ = ["MemoryStore"]

_FORGIVES = (Algorithm.GROWING_WAIT,)
_LOOK_AT_EACH_INSERT = 2
_LOOK_WHEN_FULL = 16
_LARGE = 10_000
_LOG_EVERY_NS = 60 * 1_000_000_000


class MemoryStore:
    """A bounded store in this process.

    Args:
        max_keys: how many keys are held at most, over all limits. Recovered keys are forgotten a few at a time as new
            ones come; when only active ones are left, a new key raises ``StoreFull``, so its limit's
            ``on_store_failure`` decides: no active key is ever forgotten.
        clock: nanoseconds since 1970; default: the monotonic clock anchored to the wall clock.

    Attributes:
        full_count: how often a new key found no place.

    Raises:
        ConfigError: ``max_keys`` is no whole number above 0.
    """

    def __init__(self, *, max_keys: int = 1_000_000, clock: Clock | None = None) -> None:
        if type(max_keys) is not int or max_keys < 1:
            raise ConfigError(f"max_keys is {max_keys!r}; expected a whole number from 1")
        self.max_keys = max_keys
        self.full_count = 0
        self.clock: Clock = AnchoredClock() if clock is None else clock
        self._lock = threading.RLock()  # one that knows its owner: see ``lane``
        self._tables: dict[tuple[str, str, str, tuple[str, ...]], Table] = {}
        self._held = 0
        self._looks = _LOOK_WHEN_FULL
        self._logged_at = -_LOG_EVERY_NS
        _alive.add(self)

    def __len__(self) -> int:
        """How many keys are held now, recovered ones not yet forgotten included."""
        return self._held

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy starts empty: another process is another memory."""
        return (_restore, (self.max_keys,))

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        return self._advance(charges, commit, None)

    def _advance(self, charges: Sequence[Charge], commit: bool, since: int | None) -> Answer:
        with self._lock:
            now = self.clock()
            tables = [self._table(charge.namespace, charge.limit) for charge in charges]
            keys = [kept(charge.key) for charge in charges]
            states = [table.states.get(key) for table, key in zip(tables, keys, strict=True)]
            settled, costs, at = settled_late(charges, states, now, now if since is None else since)
            if commit and settled.writes:
                self._write([(tables[index], keys[index], new) for index, new in settled.writes], now)
        return Answer(settled.allowed, at, settled.outcomes, costs)

    def advance_late(self, charges: Sequence[Charge], since: int) -> Answer:
        """``advance`` for a caller that has stood in line since then; see ``settled_late``."""
        return self._advance(charges, True, since)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        with self._lock:
            now = self.clock()
            writes: list[tuple[Table, Key, State]] = []
            in_times = []
            for change in changes:
                table = self._table(change.charge.namespace, change.charge.limit)
                key = kept(change.charge.key)
                state = table.states.get(key)
                new, in_time = change.applied(state, now)
                in_times.append(in_time)
                if new is not state:
                    writes.append((table, key, new))
            if writes:
                self._write(writes, now)
        return tuple(in_times)

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``."""
        with self._lock:
            now = self.clock()
            table = self._table(namespace, new)
            for key, state in table.states.items():
                if state is not None:
                    table.states[key] = new.rule.scaled(state, now, old.rule)
            return len(table.states)

    def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        with self._lock:
            table = self._table(namespace, limit)
            count = len(table.states)
            table.states.clear()
            table.ring.clear()
            self._held -= count
            return count

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        with self._lock:
            now = self.clock()
            state = self._table(charge.namespace, charge.limit).states.get(kept(charge.key))
            return charge.limit.rule.clears_after(state, now, charge.cost), now

    def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        with self._lock:
            for charge in charges:
                states = self._table(charge.namespace, charge.limit).states
                key = kept(charge.key)
                if key in states:
                    states[key] = None  # its place in the ring is given up when the ring comes round

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            for table in self._tables.values():
                table.states.clear()
                table.ring.clear()
            self._held = 0

    def lane(self, namespace: str, limits: Sequence[Limit]) -> Lane:
        """The way of these limits through this store, for a limiter that decides them again and again."""
        with self._lock:
            tables = [self._table(namespace, limit) for limit in limits]
        return Lane(self._lock, self.clock, tables, limits, self._write, self._enter)

    def _table(self, namespace: str, limit: Limit) -> Table:
        name = (namespace, limit.name, limit.algorithm.stored, limit.by)
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = Table(limit.rule)
        if limit.quota.count:  # a blocked limit cannot tell whether what an earlier quota left has recovered
            table.judge(limit.rule, limit.forgiven_after if limit.algorithm in _FORGIVES else limit.quota.period_ns)
        return table

    def _write(self, writes: Sequence[tuple[Table, Key, State]], now: int) -> None:
        """Write the states, all or none.

        Raises:
            StoreFull: there is no place for the new keys among them; nothing was written.
        """
        if any(key not in table.states for table, key, _ in writes):
            self._make_room(writes, now)
        for table, key, state in writes:
            table.states[key] = state

    def _enter(self, table: Table, key: Key, state: State, now: int) -> None:
        """``_write`` for one key that is probably new: the way of a flood of them."""
        if key not in table.states:
            self._held -= table.drop_recovered(now, _LOOK_AT_EACH_INSERT)
            if self._held >= self.max_keys:
                self._look_further(now)
                if self._held >= self.max_keys:
                    raise self._full(now)
            table.ring.append(key)
            self._held += 1
        table.states[key] = state

    def _make_room(self, writes: Sequence[tuple[Table, Key, State]], now: int) -> None:
        """Give the new keys among the writes their places; what is forgotten on the way may be among the writes too."""
        for table, key, _ in writes:
            if key not in table.states:
                self._held -= table.drop_recovered(now, _LOOK_AT_EACH_INSERT)
        new = [(table, key) for table, key, _ in writes if key not in table.states]
        if self._held + len(new) > self.max_keys:
            self._look_further(now)
            new = [(table, key) for table, key, _ in writes if key not in table.states]
            if self._held + len(new) > self.max_keys:
                raise self._full(now)
        for table, key in new:
            table.ring.append(key)
            table.states[key] = None
        self._held += len(new)

    def _look_further(self, now: int) -> None:
        """In a large store half as far each time that nothing is found: a flood of refusals is cheap, and goes round anyway."""
        found = sum([table.drop_recovered(now, self._looks) for table in self._tables.values()])
        self._held -= found
        least = _LOOK_AT_EACH_INSERT if self.max_keys > _LARGE else _LOOK_WHEN_FULL
        self._looks = _LOOK_WHEN_FULL if found else max(least, self._looks // 2)

    def _full(self, now: int) -> StoreFull:
        self.full_count += 1
        problem = f"the memory store holds {self._held} keys that still owe (max_keys={self.max_keys}); a new key has no place"
        if now - self._logged_at >= _LOG_EVERY_NS:
            self._logged_at = now
            import logging  # slow to import, and a store is rarely full

            logging.getLogger("headway.stores.memory").warning(
                "%s; on_store_failure decides for it (%d times so far)", problem, self.full_count
            )
        return StoreFull(problem)


def _restore(max_keys: int) -> MemoryStore:
    return MemoryStore(max_keys=max_keys)


_alive: WeakSet[MemoryStore] = WeakSet()


def _after_fork_in_child() -> None:
    """Another thread may have held a lock at the moment of the fork; in the child nobody does."""
    for store in _alive:
        store._lock._at_fork_reinit()  # type: ignore[attr-defined]  # what the standard library's own locks do


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
