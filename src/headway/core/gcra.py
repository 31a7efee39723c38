"""GCRA, the generic cell rate algorithm: one instant a key, the theoretical arrival time (TAT).

The same limiter as a token bucket that holds ``burst`` and refills continuously, and as a leaky bucket used as a meter
(ITU-T I.371 Annex A.1 virtual scheduling, A.2 continuous-state leaky bucket; equality conforms). The emission interval
T = period / count is never rounded: times are counted in ticks of 1/d ns, where T is a whole number of ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import Quota
from headway.core.rule import CLOCK_SLACK_NS

__all__ = ["Gcra", "TatState"]

TatState = int | tuple[int, int]
"""The TAT: whole nanoseconds, or (ticks, ticks per nanosecond) where T is no whole number of nanoseconds."""


@dataclass(frozen=True, slots=True)
class Gcra:
    """GCRA(T, τ) on integers.

    Args:
        interval: the emission interval T in ticks, at least 1.
        depth: burst · T in ticks, at least T; τ = depth − T.
        scale: ticks per unit of ``now`` (a nanosecond), at least 1.
        slack: in units of ``now``; a TAT further than depth + slack ahead is capped at now + depth.
    """

    interval: int
    depth: int
    scale: int = 1
    slack: int = CLOCK_SLACK_NS

    @classmethod
    def of(cls, quota: Quota) -> Gcra:
        """The rule of a quota with a count above 0."""
        common = gcd(quota.period_ns, quota.count)
        interval = quota.period_ns // common
        return cls(interval, interval * quota.burst, quota.count // common)

    @property
    def burst(self) -> int:
        """The most units admitted at once."""
        return self.depth // self.interval

    def decide(self, state: TatState | None, now: int, cost: int) -> tuple[TatState | None, Outcome]:
        """Admit iff TAT ≤ now + τ (for n units: max(TAT, now) + n·T ≤ now + depth); see ``Rule.decide``."""
        start = now * self.scale
        owed, capped = self._owed(state, start)
        if cost == 0:
            return state, self._admitted(owed)
        wanted = owed + cost * self.interval
        if wanted <= self.depth:
            return self._state(start + wanted), self._admitted(wanted)
        kept = self._state(start + owed) if capped else state
        if cost * self.interval > self.depth:
            remaining, replenish, reset = self._standing(owed)
            return kept, Never(self.burst, remaining, replenish, reset)
        remaining, replenish, reset = self._standing(owed)
        return kept, Refused(remaining, self._up(wanted - self.depth), replenish, reset)

    def expires_at(self, state: TatState) -> int:
        """The TAT itself, rounded up: from then on the key owes nothing."""
        return state if type(state) is int else -(-state[0] // state[1])  # type: ignore[index]

    def dump(self, state: TatState) -> tuple[int, ...]:
        """(ticks, ticks per nanosecond)."""
        return (state, 1) if type(state) is int else state  # type: ignore[return-value]

    def load(self, numbers: tuple[int, ...]) -> TatState:
        """See ``dump``; another quota's ticks are converted when they are used."""
        ticks, scale = numbers
        return ticks if scale == 1 else (ticks, scale)

    def ticks(self, state: TatState) -> int:
        """The TAT in this rule's ticks, rounded up (never in the caller's favour) when another quota wrote it."""
        ticks, scale = (state, 1) if type(state) is int else state  # type: ignore[misc]
        return ticks if scale == self.scale else -(-ticks * self.scale // scale)

    def _state(self, ticks: int) -> TatState:
        return ticks if self.scale == 1 else (ticks, self.scale)

    def _owed(self, state: TatState | None, start: int) -> tuple[int, bool]:
        """How far the TAT lies ahead, in ticks, and whether it had to be capped."""
        if state is None:
            return 0, False
        owed = self.ticks(state) - start
        if owed > self.depth + self.slack * self.scale:
            return self.depth, True
        return max(owed, 0), False

    def _up(self, ticks: int) -> int:
        return -(-ticks // self.scale)

    def _standing(self, owed: int) -> tuple[int, int, int]:
        """(remaining, replenish-after, reset-after) when the TAT lies ``owed`` ticks ahead."""
        remaining = max(0, (self.depth - owed) // self.interval)
        next_level = self.depth - (remaining + 1) * self.interval
        replenish = owed - next_level if next_level >= 0 else owed
        return remaining, self._up(replenish) if owed else 0, self._up(owed)

    def _admitted(self, owed: int) -> Admitted:
        return Admitted(*self._standing(owed))
