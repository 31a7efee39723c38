"""One limit's counters for many keys, asked for yes or no: the core's rules without a store.

Nothing here reads a clock, and times never go back: whoever asks sees to that.

The rules are restated without their outcomes, because building those takes most of a replay's time (200,000 lines a
second become 500,000). That is for a cost of 1. With one quota and times that never go back no state is ever dishonest, so
their caps are left out. ``tests/analysis/test_counters.py`` holds each to the ``decide`` that it restates, on random histories.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any

from headway.core.calendar_window import CalendarWindow
from headway.core.fixed_window import FixedWindow
from headway.core.gcra import Gcra
from headway.core.growing_wait import GrowingWait
from headway.core.leaky_bucket import LeakyBucketQueue
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.rule import Rule
from headway.core.sliding_log import SlidingLog
from headway.core.sliding_window import SlidingWindow

__all__ = ["Counters"]

_States = dict[Hashable, Any]
"""Every key that was seen, with its state; None where it has none or has recovered."""
_Admit = Callable[[Hashable, int], bool]
_Expiry = Callable[[Any], int]


class Counters:
    """The state of every key that was seen.

    Attributes:
        admit: ``admit(key, now)`` charges one unit, or the limit's fixed cost, and says whether it passes. ``now`` is in
            ns since 1970 and never less than in an earlier call.
    """

    admit: _Admit

    def __init__(self, limit: Limit) -> None:
        self._states: _States = {}
        self._calls = 0
        self.admit, self._expires_at = _admit_and_expiry(limit, self._states)

    def __len__(self) -> int:
        """How many keys were seen."""
        return len(self._states)

    def tidy(self, now: int) -> None:
        """Call this about every thousand requests: it forgets the state of recovered keys, but not that they were seen.

        Looks at the keys only every so often, so that it costs about one look a request however many keys there are.
        """
        self._calls += 1
        expires_at, states = self._expires_at, self._states
        if expires_at is None or self._calls * 1000 < len(states):
            return
        self._calls = 0
        for key, state in states.items():
            if state is not None and expires_at(state) <= now:
                states[key] = None


def _admit_and_expiry(limit: Limit, states: _States) -> tuple[_Admit, _Expiry | None]:
    """How to decide, and when a state may be forgotten: None where forgetting would free nothing."""
    rule, cost = limit.rule, limit.cost or 1
    if cost == 1:  # then `count_refused` has nothing to count: a request is refused only where the count is used up
        match rule:
            case Gcra():
                return _gcra(rule, states), None
            case LeakyBucketQueue():  # admits what GCRA admits, only later
                return _gcra(rule.gcra, states), None
            case FixedWindow(anchored=True):
                return _anchored_window(rule, states), itemgetter(0)
            case FixedWindow() | CalendarWindow():
                return _aligned_window(rule, states), None
            case SlidingLog():
                return _sliding_log(rule, states), lambda arrivals: arrivals[-1] + rule.period
            case SlidingWindow():
                return _sliding_window(rule, states), lambda counts: counts[0] + rule.period
            case GrowingWait():
                return _growing_wait(rule, states), lambda attempts: attempts[1] + rule.forgiven_after
    return _any_rule(rule, cost, states), rule.expires_at


def _any_rule(rule: Rule, cost: int, states: _States) -> _Admit:
    decide, known = rule.decide, states.get

    def admit(key: Hashable, now: int) -> bool:
        states[key], outcome = decide(known(key), now, cost)
        return type(outcome) is Admitted

    return admit


def _gcra(rule: Gcra, states: _States) -> _Admit:
    """``Gcra.decide``; a state is the TAT in the rule's ticks."""
    interval, tolerance, scale = rule.interval, rule.depth - rule.interval, rule.scale
    known = states.get

    def admit(key: Hashable, now: int) -> bool:
        start = now * scale
        tat: int = known(key, start)
        if tat > start + tolerance:
            return False
        states[key] = (tat if tat > start else start) + interval
        return True

    return admit


def _anchored_window(rule: FixedWindow, states: _States) -> _Admit:
    """``FixedWindow.decide``; a state is (the window's end, the units it has)."""
    period, burst = rule.period, rule.burst
    known = states.get

    def admit(key: Hashable, now: int) -> bool:
        state: tuple[int, int] | None = known(key)
        if state is None or now >= state[0]:
            states[key] = (now + period, 1)
            return True
        if state[1] >= burst:
            return False
        states[key] = (state[0], state[1] + 1)
        return True

    return admit


def _aligned_window(rule: FixedWindow | CalendarWindow, states: _States) -> _Admit:
    """``Windowed.decide``; aligned windows turn for all keys at once, so only the open one's counts are kept."""
    fresh_end, burst = rule.fresh_end, rule.burst
    used: dict[Hashable, int] = {}
    end = 0

    def admit(key: Hashable, now: int) -> bool:
        nonlocal end
        if now >= end:
            end = fresh_end(now)
            used.clear()
        before = used.get(key)
        if before is None:
            states[key] = None
            before = 0
        if before >= burst:
            return False
        used[key] = before + 1
        return True

    return admit


def _sliding_log(rule: SlidingLog, states: _States) -> _Admit:
    """``SlidingLog.decide``; a state is the list of the instants that still count, once for each unit."""
    period, burst = rule.period, rule.burst
    known = states.get

    def admit(key: Hashable, now: int) -> bool:
        arrivals: list[int] | None = known(key)
        if arrivals is None:
            states[key] = [now]
            return True
        if arrivals[0] + period <= now:
            del arrivals[: bisect_right(arrivals, now - period)]
        if len(arrivals) >= burst:
            return False
        arrivals.append(now)
        return True

    return admit


def _sliding_window(rule: SlidingWindow, states: _States) -> _Admit:
    """``SlidingWindow.decide``; a state is (the current window's end, its units, those of the one before)."""
    period, whole = rule.period, rule.burst * rule.period
    known = states.get

    def admit(key: Hashable, now: int) -> bool:
        state: tuple[int, int, int] | None = known(key)
        if state is None or now >= state[0] + period:
            end, current, previous = (now // period + 1) * period, 0, 0
        else:
            end, current, previous = state
            if now >= end:
                end, current, previous = end + period, 0, current
        if previous * (end - now) + (current + 1) * period > whole:
            return False
        states[key] = (end, current + 1, previous)
        return True

    return admit


def _growing_wait(rule: GrowingWait, states: _States) -> _Admit:
    """``GrowingWait.decide``; a state is (attempts, when the latest was)."""
    burst, wait_after, forgiven_after = rule.burst, rule.wait_after, rule.forgiven_after
    known = states.get

    def admit(key: Hashable, now: int) -> bool:
        state: tuple[int, int] | None = known(key)
        if state is None or now >= state[1] + forgiven_after:
            states[key] = (1, now)
            return True
        made, latest = state
        if made >= burst and now < latest + wait_after(made):
            return False
        states[key] = (made + 1, now)
        return True

    return admit
