"""Tallies of a replay: what each limit and each key was refused, when, and for how long, in a few numbers a key.

A *stretch* of refusal begins with a refused request and lasts until the wait that was told last is over; a request that
is refused meanwhile prolongs it. So it is the time for which the limit was closed to the key, whether anybody came or not.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from headway.core.key import Key

__all__ = ["KeyTally", "LimitTally", "Spread"]

_STEPS_BITS: Final = 4


class Spread:
    """How some times in ns are spread: count, mean and most exactly, quantiles within a sixteenth, in bounded memory."""

    __slots__ = ("_steps", "count", "most", "whole")

    def __init__(self) -> None:
        self.count = self.whole = self.most = 0
        self._steps: Counter[int] = Counter()

    def add(self, time: int) -> None:
        """Add a time, ns from 0."""
        self.count += 1
        self.whole += time
        if time > self.most:
            self.most = time
        shift = max(0, time.bit_length() - _STEPS_BITS - 1)
        self._steps[shift << _STEPS_BITS + 1 | time >> shift] += 1

    def quantile(self, share: float) -> int:
        """The nearest-rank quantile, rounded up by at most a sixteenth; 0 where there is no time."""
        rank = max(1, -int(-share * self.count // 1))
        for step in sorted(self._steps, key=_upper):
            rank -= self._steps[step]
            if rank <= 0:
                return min(_upper(step), self.most)
        return 0


def _upper(step: int) -> int:
    """The most that a step of a ``Spread`` holds."""
    shift = step >> _STEPS_BITS + 1
    return ((step & (1 << _STEPS_BITS + 1) - 1) + 1 << shift) - 1


class KeyTally:
    """What one key was refused by one limit.

    Attributes:
        refused: requests.
        first: when the first was refused, ns since 1970.
        last: when the last was.
        longest_told: the longest wait that was told, ns.
        never: how many were told that no wait helps.
        stretches: see the module.
        closed: how long all stretches took together, ns; the one that is open counts to its end.
        longest_closed: how long the longest took, ns.
    """

    __slots__ = (
        "_from",
        "_until",
        "closed",
        "first",
        "last",
        "longest_closed",
        "longest_told",
        "never",
        "refused",
        "stretches",
    )

    def __init__(self, now: int) -> None:
        self.first = self.last = self._from = now
        self._until = -1
        self.refused = self.longest_told = self.never = self.stretches = self.closed = self.longest_closed = 0

    def refuse(self, now: int, wait: int | None) -> None:
        """Count a refusal; ``wait`` is what was told, None for never."""
        self.refused += 1
        self.last = now
        if wait is None:
            self.never += 1
            wait = 0
        elif wait > self.longest_told:
            self.longest_told = wait
        end = now + wait
        if now > self._until:
            self.stretches += 1
            self._from = now
            self.closed += wait
        elif end > self._until:
            self.closed += end - self._until
        self._until = max(end, self._until)
        self.longest_closed = max(self.longest_closed, self._until - self._from)


class LimitTally:
    """What one limit refused.

    Attributes:
        refused: how many of them it refused; of a shadow limit, would have refused.
        bound: how many refusals it was the reason of: the one whose wait was longest.
        never: how many were told that no wait helps.
        first: when it first refused, ns since 1970; None where it never did.
        last: when it did last.
        told: the waits that were told.
        requests: how many requests that the limit applied to each key had.
        keys: what was refused, by key.
        behind: different values of another field behind each key, where they are asked for.
        callers: of a limit without a key, how often each caller was refused.
    """

    __slots__ = ("behind", "bound", "callers", "first", "keys", "last", "never", "refused", "requests", "told")

    def __init__(self) -> None:
        self.refused = self.bound = self.never = 0
        self.first: int | None = None
        self.last: int | None = None
        self.told = Spread()
        self.requests: dict[Key, int] = {}
        self.keys: dict[Key, KeyTally] = {}
        self.behind: dict[Key, set[str]] = {}
        self.callers: Counter[Key] = Counter()

    @property
    def asked(self) -> int:
        """How many requests the limit applied to."""
        return sum(self.requests.values())

    def ask(self, key: Key) -> None:
        """Count a request."""
        self.requests[key] = self.requests.get(key, 0) + 1

    def refuse(self, key: Key, now: int, wait: int | None, *, binds: bool) -> None:
        """Count a refusal of a request that was asked."""
        self.refused += 1
        self.bound += binds
        self.first = now if self.first is None else self.first
        self.last = now
        if wait is None:
            self.never += 1
        else:
            self.told.add(wait)
        tally = self.keys.get(key)
        if tally is None:
            tally = self.keys[key] = KeyTally(now)
        tally.refuse(now, wait)
