"""Fixed windows: a counter that starts anew at a boundary.

Aligned windows begin at whole multiples of the period since 1970; anchored ones begin at the first hit (what SETEX and
upsert counters do). Up to twice the count can pass within one period, on both sides of a boundary: choose GCRA or the
sliding log where that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import CLOCK_SLACK_NS

__all__ = ["FixedWindow", "Window", "Windowed"]


class Window(NamedTuple):
    """A window in use: ``used`` units count until ``end`` (ns since 1970)."""

    end: int
    used: int


class Windowed:
    """What fixed and calendar windows share: everything but where a window ends."""

    __slots__ = ()

    burst: int
    count_refused: bool

    def fresh_end(self, now: int) -> int:
        """Where the window that a first hit at ``now`` falls into ends."""
        raise NotImplementedError

    def extends(self) -> bool:
        """Whether an open window grows to the boundary of the current quota's (windows aligned to something do)."""
        return True

    def decide(
        self,
        state: Window | None,
        now: int,
        cost: int,
        lease: Lease | None = None,  # a window's end is receipt enough
    ) -> tuple[Window | None, Outcome]:
        """Admit iff used + cost ≤ count in the window that is open at ``now``; see ``Rule.decide``."""
        (end, used), capped = self._open(state, now)
        remaining = max(0, self.burst - used)
        if 0 < cost <= remaining:
            return Window(end, used + cost), Admitted(remaining - cost, end - now, end - now)
        left = end - now
        if state is not None and now < state[0] and not capped:
            left = state[0] - now  # nothing is written, so a window that a longer quota would extend ends as it stands
        pending = left if used else 0
        if cost == 0:
            return state, Admitted(remaining, pending, pending)
        kept = Window(end, used) if capped else state
        if cost > self.burst:
            return kept, Never(self.burst, remaining, pending, pending)
        if self.count_refused and used < self.burst:
            return Window(end, self.burst), Refused(0, end - now, end - now, end - now)
        return kept, Refused(remaining, left, left, left)

    def give_back(self, state: Window | None, now: int, units: int, receipt: Receipt) -> Window | None:
        """Take units off the window they were charged to, if it is still open; see ``Rule.give_back``.

        An emptied window is forgotten. One that began with this charge and has others keeps its end.
        """
        if state is None or units <= 0 or now >= state[0] or state[0] != receipt.at + receipt.outcome.reset_after:
            return state
        left = state[1] - min(units, receipt.cost)
        return Window(state[0], left) if left > 0 else None

    def take(self, state: Window | None, now: int, units: int) -> Window:
        """Count without asking; see ``Rule.take``."""
        if state is None or now >= state[0]:
            return Window(self.fresh_end(now), units)
        return Window(state[0], state[1] + units)

    def scaled(self, state: Window, now: int, old: Windowed) -> Window:
        """The same share of the count in use; see ``Rule.scaled``."""
        (_, used), _ = old._open(state, now)
        return Window(self.fresh_end(now), -(-used * self.burst // old.burst))

    def clears_after(self, state: Window | None, now: int, units: int) -> int:
        """See ``Rule.clears_after``."""
        (end, used), _ = self._open(state, now)
        units -= max(0, self.burst - used)
        if units <= 0:
            return 0
        while units > self.burst:
            end, units = self.fresh_end(end), units - self.burst
        return end - now

    def expires_at(self, state: Window) -> int:
        """The window's end."""
        return state[0]

    def dump(self, state: Window) -> tuple[int, ...]:
        """(end, used)."""
        return tuple(state)

    def load(self, numbers: tuple[int, ...]) -> Window:
        """See ``dump``."""
        return Window(*numbers)

    def _open(self, state: Window | None, now: int) -> tuple[Window, bool]:
        """The window that is open at ``now``, and whether its end had to be capped.

        An open window keeps its end when the quota changes (a longer aligned one extends it), except that an end which
        the current quota cannot explain, beyond the window that is open after the slack, is capped at its own. So a
        small step back over a boundary does not open the next window twice.
        """
        end = self.fresh_end(now)
        if state is None or now >= state[0]:
            return Window(end, 0), False
        if state[0] > end and state[0] > self.fresh_end(now + CLOCK_SLACK_NS):
            return Window(end, state[1]), True
        return Window(max(state[0], end) if self.extends() else state[0], state[1]), False


@dataclass(frozen=True, slots=True)
class FixedWindow(Windowed):
    """Up to ``burst`` units a window of ``period`` ns; see ``Rule``.

    Args:
        burst: the quota's count.
        period: nanoseconds.
        anchored: windows begin at the first hit instead of at multiples of the period.
        count_refused: a request that this limit refuses counts too, up to the limit; the reset never moves.
    """

    burst: int
    period: int
    anchored: bool = False
    count_refused: bool = False

    def fresh_end(self, now: int) -> int:
        """See ``Windowed``."""
        return now + self.period if self.anchored else (now // self.period + 1) * self.period

    def extends(self) -> bool:
        """See ``Windowed``."""
        return not self.anchored
