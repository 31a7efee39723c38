"""``Lane``: a fixed list of limits on one memory store, decided again and again: the hot path.

GCRA with a whole number of nanoseconds per unit is decided in line, in two loops that a benchmark paid for (one limit,
several limits); anything unusual, and every other algorithm, goes to ``core.bill.settle``. What was decided is returned
as the states before it: ``settle`` on the same states gives the outcomes if somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeAlias

from headway.core.bill import settle
from headway.core.gcra import Gcra
from headway.core.key import Key
from headway.core.limit import Limit
from headway.core.rule import State
from headway.stores.clock import AnchoredClock, Clock
from headway.stores.table import Table

__all__ = ["Lane", "OneWay"]

Write: TypeAlias = Callable[[Sequence[tuple[Table, Key, State]], int], None]
Enter: TypeAlias = Callable[[Table, Key, State, int], None]
OneWay: TypeAlias = Callable[[Key, int], tuple[bool, int, int, Key, State | None]]
"""From a key and a cost above 0 to: admitted, the clock in ns since 1970, the cost, the key, the state before."""


class Lane:
    """The way of a limiter's limits through a memory store.

    Args:
        lock: the store's; held during a decision.
        clock: the store's.
        tables: one per limit.
        limits: the limits.
        write: writes states, all or none; raises ``StoreFull``.
        enter: the same for one state.
        enter: the same for one state.

    Attributes:
        one: the shortest way, for a single limit of GCRA on whole nanoseconds; None for other lanes.
        several: the short way for several of these, with one key and one cost above 0 each; None for other lanes.
    """

    __slots__ = ("_clock", "_enter", "_lock", "_rules", "_shadows", "_tables", "_write", "one", "several")

    def __init__(
        self, lock: Lock, clock: Clock, tables: Sequence[Table], limits: Sequence[Limit], write: Write, enter: Enter
    ) -> None:
        self._lock = lock
        self._clock = clock
        self._tables = tables
        self._rules = rules = [limit.rule for limit in limits]
        self._shadows = [limit.shadow for limit in limits]
        self._write = write
        self._enter = enter
        whole = [(rule.interval, rule.depth) for rule in rules if isinstance(rule, Gcra) and rule.scale == 1]
        in_line = 0 < len(whole) == len(rules) and not any(self._shadows)
        self.one: OneWay | None = self._one_way(*whole[0]) if in_line and len(rules) == 1 else None
        self.several = self._several_ways(whole) if in_line else None

    def advance(
        self, keys: Sequence[Key], costs: Sequence[int], commit: bool
    ) -> tuple[bool, int, Sequence[State | None]]:
        """Decide all limits at once.

        Args:
            keys: one canonical key per limit.
            costs: one cost per limit, each at least 0.
            commit: False answers the same and writes nothing.

        Returns:
            Whether all admitted, the clock in ns since 1970, and each key's state before the decision.

        Raises:
            StoreFull: a new key has no place; nothing was written.
        """
        if commit and self.several is not None and all(costs):
            return self.several(keys, costs)
        with self._lock:
            return self._settle(keys, costs, commit, self._clock())

    def _settle(
        self, keys: Sequence[Key], costs: Sequence[int], commit: bool, now: int
    ) -> tuple[bool, int, Sequence[State | None]]:
        """The long way, for everything; the lock is held."""
        states = [table.states.get(key) for table, key in zip(self._tables, keys, strict=True)]
        settled = settle(self._rules, states, costs, now, shadows=self._shadows)
        if commit and settled.writes:
            self._write([(self._tables[index], keys[index], new) for index, new in settled.writes], now)
        return settled.allowed, now, states

    def _one_way(self, interval: int, depth: int) -> OneWay:
        """``core.gcra.Gcra.decide`` for one limit, inlined; an odd state takes the long way."""
        lock, table, enter = self._lock, self._tables[0], self._enter
        states = table.states
        ticks, anchor = AnchoredClock.parts(self._clock)

        def one(key: Key, cost: int) -> tuple[bool, int, int, Key, State | None]:
            with lock:
                tick = ticks()
                now = tick + anchor.offset if tick < anchor.check_at else self._clock()
                tat = states.get(key)
                if tat.__class__ is int:
                    if tat > now:
                        new = tat + cost * interval
                        if new - now <= depth:
                            states[key] = new
                            return True, now, cost, key, tat
                        if tat - now <= depth:
                            return False, now, cost, key, tat
                    elif cost * interval <= depth:
                        states[key] = now + cost * interval
                        return True, now, cost, key, tat
                elif tat is None and cost * interval <= depth:
                    enter(table, key, now + cost * interval, now)
                    return True, now, cost, key, None
                allowed, now, before = self._settle((key,), (cost,), True, now)
                return allowed, now, cost, key, before[0]

        return one

    def _several_ways(
        self, whole: Sequence[tuple[int, int]]
    ) -> Callable[[Sequence[Key], Sequence[int]], tuple[bool, int, Sequence[State | None]]]:
        """``core.bill.settle`` over ``core.gcra.Gcra.decide``, inlined; an odd or a new key takes the long way."""
        lock, all_states = self._lock, [table.states for table in self._tables]
        for_ones = [(states, interval, depth) for states, (interval, depth) in zip(all_states, whole, strict=True)]
        ones = (1,) * len(for_ones)
        ticks, anchor = AnchoredClock.parts(self._clock)

        def several(keys: Sequence[Key], costs: Sequence[int]) -> tuple[bool, int, Sequence[State | None]]:
            lines = for_ones
            if costs != ones:
                lines = [
                    (states, cost * step, depth) for (states, step, depth), cost in zip(for_ones, costs, strict=True)
                ]
            before = []
            after = []
            allowed = True
            with lock:
                tick = ticks()
                now = tick + anchor.offset if tick < anchor.check_at else self._clock()
                for (states, step, depth), key in zip(lines, keys):  # noqa: B905  # one key per limit
                    tat = states.get(key)
                    if tat.__class__ is not int:
                        return self._settle(keys, costs, True, now)
                    before.append(tat)
                    new = tat + step if tat > now else now + step
                    if new - now > depth:
                        if tat - now > depth:
                            return self._settle(keys, costs, True, now)
                        allowed = False
                    after.append(new)
                if allowed:
                    for states, key, new in zip(all_states, keys, after):  # noqa: B905  # one key per limit
                        states[key] = new
            return allowed, now, before

        return several
