"""``Lane``: a fixed list of limits on one memory store, decided again and again: the hot path.

GCRA with a whole number of nanoseconds per unit is decided in line, in two ways that a benchmark paid for (one limit,
several limits); anything unusual, and every other algorithm, goes to ``core.bill.settle``. What was decided is returned
as the states before it: ``settle`` on the same states gives the outcomes if somebody asks.

Both take the lock by its methods, which costs half of what ``with`` does. An exception may come between any two steps
(a signal's handler, an interrupt), so whoever leaves by one asks whether the lock is its own and gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any, TypeAlias

from headway.core.bill import settle
from headway.core.gcra import Gcra
from headway.core.key import LONGEST_KEPT, Key, kept
from headway.core.limit import Limit
from headway.core.rule import State
from headway.stores.clock import AnchoredClock, Clock
from headway.stores.table import Table

__all__ = ["Lane", "OneWay", "SeveralWays"]

Write: TypeAlias = Callable[[Sequence[tuple[Table, Key, State]], int], None]
Enter: TypeAlias = Callable[[Table, Key, State, int], None]
OneWay: TypeAlias = Callable[[Mapping[str, object], int], tuple[bool, int, int, Key, State | None] | None]
"""From attributes and a cost above 0 to: admitted, the clock in ns since 1970, the cost, the key, the state before.

None where the key is not there, or is no plain text.
"""

SeveralWays: TypeAlias = Callable[[Sequence[Key], Sequence[int]], tuple[bool, int, Sequence[int], Sequence[Key], Any]]
"""From one key and one cost above 0 per limit to: admitted, the clock, the costs, the keys, each key's state before."""


class Lane:
    """The way of a limiter's limits through a memory store.

    Args:
        lock: the store's; held during a decision.
        clock: the store's.
        tables: one per limit.
        limits: the limits.
        write: writes states, all or none; raises ``StoreFull``.
        enter: the same for one state.

    Attributes:
        several: the short way for limits of GCRA on whole nanoseconds, with one key and one cost above 0 each; None for
            other lanes.
    """

    __slots__ = ("_clock", "_enter", "_lock", "_rules", "_shadows", "_tables", "_whole", "_write", "several")

    def __init__(
        self, lock: RLock, clock: Clock, tables: Sequence[Table], limits: Sequence[Limit], write: Write, enter: Enter
    ) -> None:
        self._lock = lock
        self._clock = clock
        self._tables = tables
        self._rules = rules = [limit.rule for limit in limits]
        self._shadows = [limit.shadow for limit in limits]
        self._write = write
        self._enter = enter
        whole = [(rule.interval, rule.depth) for rule in rules if isinstance(rule, Gcra) and rule.scale == 1]
        self._whole = whole if len(whole) == len(rules) and not any(self._shadows) else []
        self.several = self._several_ways(self._whole) if self._whole else None

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
            allowed, now, _, _, states = self.several(keys, costs)
            return allowed, now, states
        with self._lock:
            return self._settle(keys, costs, commit, self._clock())

    def _settle(
        self, keys: Sequence[Key], costs: Sequence[int], commit: bool, now: int
    ) -> tuple[bool, int, Sequence[State | None]]:
        """The long way, for everything; the lock is held."""
        keys = [kept(key) for key in keys]
        states = [table.states.get(key) for table, key in zip(self._tables, keys, strict=True)]
        settled = settle(self._rules, states, costs, now, shadows=self._shadows)
        if commit and settled.writes:
            self._write([(self._tables[index], keys[index], new) for index, new in settled.writes], now)
        return settled.allowed, now, states

    def one(self, attribute: str) -> OneWay | None:
        """The shortest way, ``core.gcra.Gcra.decide`` inlined, for a single limit that is keyed by one attribute.

        None for other lanes; an odd state takes the long way.
        """
        if len(self._whole) != 1:
            return None
        ((interval, depth),) = self._whole
        lock, table, enter = self._lock, self._tables[0], self._enter
        acquire, release, is_mine = lock.acquire, lock.release, lock._is_owned  # type: ignore[attr-defined]  # RLock's own
        states = table.states
        ticks, anchor = AnchoredClock.parts(self._clock)

        def one(attributes: Mapping[str, object], cost: int) -> tuple[bool, int, int, Key, State | None] | None:
            key = attributes[attribute] if attribute in attributes else None  # noqa: SIM401  # twice as fast as get
            if key.__class__ is not str:
                return None
            made: tuple[bool, int, int, Key, State | None]
            step = interval if cost == 1 else cost * interval
            fits = cost == 1 or step <= depth
            try:
                acquire()
                tick = ticks()
                now = tick + anchor.offset if tick < anchor.check_at else self._clock()
                tat = states[key] if key in states else None  # noqa: SIM401  # the same
                if tat.__class__ is int and fits:
                    if tat > now:
                        new = tat + step
                        if new - now <= depth:
                            states[key] = new
                            made = (True, now, cost, key, tat)
                        elif tat - now <= depth:
                            made = (False, now, cost, key, tat)
                        else:
                            made = self._odd(key, cost, now)
                    else:
                        states[key] = now + step
                        made = (True, now, cost, key, tat)
                elif tat is None and fits and len(key) <= LONGEST_KEPT:
                    enter(table, key, now + step, now)
                    made = (True, now, cost, key, None)
                else:
                    made = self._odd(key, cost, now)
                release()
            except BaseException:
                if is_mine():
                    release()
                raise
            return made

        return one

    def _odd(self, key: Key, cost: int, now: int) -> tuple[bool, int, int, Key, State | None]:
        """The long way of ``one``."""
        allowed, now, before = self._settle((key,), (cost,), True, now)
        return allowed, now, cost, key, before[0]

    def _several_ways(self, whole: Sequence[tuple[int, int]]) -> SeveralWays:
        """``core.bill.settle`` over ``core.gcra.Gcra.decide``, inlined; an odd or a new key takes the long way.

        A state is written as soon as its limit admits, and put back when another refuses: nobody sees it under the lock.
        """
        lock = self._lock
        all_states: list[dict[Key, Any]] = [table.states for table in self._tables]
        acquire, release, is_mine = lock.acquire, lock.release, lock._is_owned  # type: ignore[attr-defined]  # RLock's own
        intervals, depths = [interval for interval, _ in whole], [depth for _, depth in whole]
        ticks, anchor = AnchoredClock.parts(self._clock)

        def several(
            keys: Sequence[Key], costs: Sequence[int]
        ) -> tuple[bool, int, Sequence[int], Sequence[Key], Sequence[State | None]]:
            steps = intervals
            if sum(costs) != len(intervals):  # each is above 0
                steps = [cost * interval for cost, interval in zip(costs, intervals, strict=True)]
            before: list[Any] = []
            allowed = True
            try:
                acquire()
                tick = ticks()
                now = tick + anchor.offset if tick < anchor.check_at else self._clock()
                try:
                    for states, key, step, depth in zip(all_states, keys, steps, depths):  # noqa: B905  # one per limit
                        tat = states[key]
                        before.append(tat)
                        new = tat + step if tat > now else now + step
                        if new - now > depth:
                            if tat - now > depth or step > depth:
                                raise TypeError  # to be capped, or never admitted
                            if allowed:
                                allowed = False
                                if len(before) > 1:
                                    _put_back(all_states, keys, before)
                        elif allowed:
                            states[key] = new
                except (KeyError, TypeError):  # a new key, a state that is no whole number
                    _put_back(all_states, keys, before)
                    before.clear()
                    allowed, now, before[:] = self._settle(keys, costs, True, now)
                release()
            except BaseException:
                if is_mine():
                    _put_back(all_states, keys, before)
                    release()
                raise
            return allowed, now, costs, keys, before

        return several


def _put_back(all_states: Sequence[dict[Key, Any]], keys: Sequence[Key], before: Sequence[Any]) -> None:
    """The states as they were, of the limits that were looked at."""
    for states, key, state in zip(all_states, keys, before):  # noqa: B905  # there may be fewer states
        states[key] = state
