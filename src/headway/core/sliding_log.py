"""The sliding log: exact, because it remembers every admitted arrival of the last period.

A hit made at t stops counting at exactly t + period. State grows with the hits of one period (never with refusals), so
it suits small counts; GCRA answers large ones in constant space.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.clearing import clears_after
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import CLOCK_SLACK_NS, in_order

__all__ = ["Arrivals", "SlidingLog"]

Arrivals = tuple[int, ...]
"""(t0, cost0, t1, cost1, …), oldest first: instants in ns since 1970, strictly rising, and the units charged there."""


@dataclass(frozen=True, slots=True)
class SlidingLog:
    """Up to ``burst`` units in any half-open window of ``period`` ns; see ``Rule``."""

    burst: int
    period: int

    def decide(
        self,
        state: Arrivals | None,
        now: int,
        cost: int,
        lease: Lease | None = None,  # an arrival's instant is receipt enough
    ) -> tuple[Arrivals | None, Outcome]:
        """Admit iff the units that arrived after now − period, plus cost, fit the count; see ``Rule.decide``."""
        live, capped = self._live(state, now)
        used = sum(live[1::2])
        remaining = max(0, self.burst - used)
        if cost == 0:
            return state, Admitted(remaining, *self._waits(live, now, remaining))
        if cost <= remaining:
            live = _with(live, now, cost)
            return live, Admitted(remaining - cost, *self._waits(live, now, remaining - cost))
        kept = live if capped else state
        waits = self._waits(live, now, remaining)
        if cost > self.burst:
            return kept, Never(self.burst, remaining, *waits)
        return kept, Refused(remaining, self._wait_for(live, now, used + cost - self.burst), *waits)

    def give_back(self, state: Arrivals | None, now: int, units: int, receipt: Receipt) -> Arrivals | None:
        """Take units off the arrival they were charged as, if it still counts; see ``Rule.give_back``."""
        at = receipt.at + receipt.outcome.reset_after - self.period
        if state and units > 0 and now < at + self.period:
            for index in range(0, len(state), 2):
                if state[index] == at:
                    left = state[index + 1] - min(units, receipt.cost)
                    return state[:index] + ((at, left) if left > 0 else ()) + state[index + 2 :] or None
        return state

    def take(self, state: Arrivals | None, now: int, units: int) -> Arrivals:
        """Remember an arrival without asking; see ``Rule.take``."""
        return _with(state or (), now, units)

    def scaled(self, state: Arrivals, now: int, old: SlidingLog) -> Arrivals | None:
        """Every arrival weighs the same share of the count; see ``Rule.scaled``."""
        live, _ = old._live(state, now)
        scaled = tuple(
            number if index % 2 == 0 else -(-number * self.burst // old.burst) for index, number in enumerate(live)
        )
        return scaled or None

    def clears_after(self, state: Arrivals | None, now: int, units: int) -> int:
        """See ``Rule.clears_after``."""
        return clears_after(self, state, now, units)

    def expires_at(self, state: Arrivals) -> int:
        """When the newest arrival stops counting."""
        return state[-2] + self.period if state else 0

    def dump(self, state: Arrivals) -> tuple[int, ...]:
        """The arrivals as they are."""
        return state

    def load(self, numbers: tuple[int, ...]) -> Arrivals:
        """See ``dump``."""
        return in_order(numbers, 2)

    def _live(self, state: Arrivals | None, now: int) -> tuple[Arrivals, bool]:
        """The arrivals that still count, those beyond the slack in the future moved to ``now``."""
        if not state:
            return (), False
        first = 0
        while first < len(state) and state[first] + self.period <= now:
            first += 2
        live = state[first:] if first else state
        if not live or live[-2] <= now + CLOCK_SLACK_NS:
            return live, False
        honest: dict[int, int] = {}
        for at, units in zip(live[::2], live[1::2], strict=True):
            at = at if at <= now + CLOCK_SLACK_NS else now  # the capped instant replaces it
            honest[at] = honest.get(at, 0) + units
        return tuple(number for pair in sorted(honest.items()) for number in pair), True

    def _wait_for(self, live: Arrivals, now: int, excess: int) -> int:
        """Ns until ``excess`` units (at least 1) have stopped counting."""
        index = 0
        while excess > live[index + 1]:
            excess -= live[index + 1]
            index += 2
        return live[index] + self.period - now

    def _waits(self, live: Arrivals, now: int, remaining: int) -> tuple[int, int]:
        """(replenish-after, reset-after)."""
        if not live:
            return 0, 0
        used = sum(live[1::2])
        return self._wait_for(live, now, used - self.burst + remaining + 1), live[-2] + self.period - now


def _with(live: Arrivals, now: int, units: int) -> Arrivals:
    """The arrivals and one more. At the same instant, or after a small step back, it joins the newest entry."""
    return (*live[:-1], live[-1] + units) if live and live[-2] >= now else (*live, now, units)
