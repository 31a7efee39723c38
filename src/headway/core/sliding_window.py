"""The sliding window counter: two aligned counters, the previous one weighted by how much of it is still in view.

Constant space, no burst at a boundary, at the price of assuming that the previous window's units came evenly. All
comparisons are in whole units · ns, so nothing is rounded: admit iff
``previous · (period − elapsed) + (current + cost) · period ≤ count · period``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from headway.core.clearing import clears_after
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import CLOCK_SLACK_NS

__all__ = ["Counters", "SlidingWindow"]


class Counters(NamedTuple):
    """The current window's end (ns since 1970) and length, and the units of it and of the one before."""

    end: int
    period: int
    current: int
    previous: int


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """About ``burst`` units in any window of ``period`` ns; see ``Rule``."""

    burst: int
    period: int

    def decide(
        self,
        state: Counters | None,
        now: int,
        cost: int,
        lease: Lease | None = None,  # the contract's
    ) -> tuple[Counters | None, Outcome]:
        """See the module's rule and ``Rule.decide``."""
        seen, capped = self._seen(state, now)
        remaining = self._fits(seen, now)
        other = None if state is None or state.period == self.period or capped else state
        if cost == 0:
            return state, Admitted(remaining, *self._waits(seen, now, remaining, other))
        if cost <= remaining:
            taken = seen._replace(current=seen.current + cost)
            return taken, Admitted(remaining - cost, *self._waits(taken, now, remaining - cost))
        kept = seen if capped else state
        waits = self._waits(seen, now, remaining, other)
        if cost > self.burst:
            return kept, Never(self.burst, remaining, *waits)
        return kept, Refused(remaining, self._wait_for(seen, now, cost, other), *waits)

    def give_back(self, state: Counters | None, now: int, units: int, receipt: Receipt) -> Counters | None:
        """Take units off the window they were charged to, while it is in view; see ``Rule.give_back``.

        Nothing once another quota's windows took the units over: it cannot be told any more which they are.
        """
        if state is None or units <= 0 or state.period != self.period:
            return state
        seen, capped = self._seen(state, now)
        if capped:
            return state
        charged_end = receipt.at + receipt.outcome.reset_after - self.period
        units = min(units, receipt.cost)
        if charged_end >= seen.end:
            return seen._replace(current=max(0, seen.current - units))
        if charged_end == seen.end - self.period:
            return seen._replace(previous=max(0, seen.previous - units))
        return state

    def take(self, state: Counters | None, now: int, units: int) -> Counters:
        """Charge without asking, in the windows that the state speaks of; see ``Rule.take``."""
        windows = self if state is None else replace(self, period=state.period)
        seen, _ = windows._seen(state, now)
        return seen._replace(current=seen.current + units)

    def scaled(self, state: Counters, now: int, old: SlidingWindow) -> Counters:
        """The same share of the quota in use; see ``Rule.scaled``."""
        seen, _ = old._seen(state, now)
        mine, _ = self._seen(None, now)
        return mine._replace(
            current=-(-seen.current * self.burst // old.burst), previous=-(-seen.previous * self.burst // old.burst)
        )

    def clears_after(self, state: Counters | None, now: int, units: int) -> int:
        """See ``Rule.clears_after``."""
        return clears_after(self, state, now, units)

    def expires_at(self, state: Counters) -> int:
        """The end of the window after the current one."""
        return state[0] + state[1]

    def dump(self, state: Counters) -> tuple[int, ...]:
        """(end, period, current, previous)."""
        return tuple(state)

    def load(self, numbers: tuple[int, ...]) -> Counters:
        """See ``dump``."""
        return Counters(*numbers)

    def _seen(self, state: Counters | None, now: int) -> tuple[Counters, bool]:
        """The counters as they stand at ``now`` under this period, and whether a dishonest state was capped."""
        end = (now // self.period + 1) * self.period
        fresh = Counters(end, self.period, 0, 0)
        if state is None or now >= state.end + state.period:
            return fresh, False
        if state.end > ((now + CLOCK_SLACK_NS) // self.period + 1) * self.period:  # a small step back is honest
            return Counters(end, self.period, state.current + state.previous, 0), True
        if state.period != self.period:
            return self._adopted(state, now, fresh)
        if now < state.end:  # the window the state speaks of, or a small step back before it
            return state, False
        return fresh._replace(previous=state.current), False

    def _adopted(self, state: Counters, now: int, fresh: Counters) -> tuple[Counters, bool]:
        """Counters of another quota's windows, and whether they are to be kept like a cap.

        In an open window all units in view count as if they came just now; of one that has ended, as if they came at its
        last instant: so they grow old, and nobody waits longer than this period's windows last.
        """
        if now < state.end:
            return fresh._replace(current=state.current + state.previous), state.end > fresh.end
        if state.end + self.period > fresh.end:
            return fresh._replace(current=state.current), False
        if state.end + 2 * self.period > fresh.end:
            return fresh._replace(previous=state.current), False
        return fresh, False

    def _fits(self, seen: Counters, now: int) -> int:
        """Whole units that fit at ``now``."""
        view = min(self.period, seen.end - now)  # how much of the previous window is still in view
        return max(0, (self.burst * self.period - seen.previous * view) // self.period - seen.current)

    def _wait_for(self, seen: Counters, now: int, cost: int, other: Counters | None = None) -> int:
        """Ns until ``cost`` (at most the burst, and more than fits now) is admitted: the exact first instant.

        Args:
            seen: the counters as they stand.
            now: ns since 1970.
            cost: units.
            other: what is stored, where it is of another quota's windows: while nothing is written, its units of the
                window before leave the view with its end, and all of them one of its windows later.
        """
        room = self.burst - cost
        if other is not None:
            gone = other.end + other.period - now
            if now < other.end:
                if other.current <= room:
                    return other.end - now
                seen = seen._replace(current=other.current)
            return min(gone, self._wait_for(seen, now, cost))
        if seen.current <= room:  # in this window: the longest view of the previous one that leaves room
            return seen.end - (room - seen.current) * self.period // seen.previous - now
        return seen.end + self.period - room * self.period // seen.current - now  # in the next: of this one

    def _waits(self, seen: Counters, now: int, remaining: int, other: Counters | None = None) -> tuple[int, int]:
        """(replenish-after, reset-after); ``other`` as for ``_wait_for``."""
        if not seen.current and not seen.previous:
            return 0, 0
        reset = seen.end - now + (self.period if seen.current else 0)
        if other is not None:
            unused = now < other.end and not other.current
            reset = min(reset, other.end - now if unused else other.end + other.period - now)
        return self._wait_for(seen, now, remaining + 1, other), reset  # units in view leave less than the burst
