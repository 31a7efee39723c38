"""Fixed windows: a counter that starts anew at a boundary.

Aligned windows begin at whole multiples of the period since 1970; anchored ones begin at the first hit (what SETEX and
upsert counters do). Up to twice the count can pass within one period, on both sides of a boundary: choose GCRA or the
sliding log where that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import CLOCK_SLACK_NS

__all__ = ["FixedWindow", "Window", "decide_window"]


class Window(NamedTuple):
    """A window in use: ``used`` units count until ``end`` (ns since 1970)."""

    end: int
    used: int


@dataclass(frozen=True, slots=True)
class FixedWindow:
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

    def decide(self, state: Window | None, now: int, cost: int) -> tuple[Window | None, Outcome]:
        """Admit iff used + cost ≤ count in the window that ``now`` falls into; see ``Rule.decide``."""
        end = now + self.period if self.anchored else (now // self.period + 1) * self.period
        return decide_window(
            state,
            now,
            cost,
            burst=self.burst,
            fresh_end=end,
            aligned=not self.anchored,
            count_refused=self.count_refused,
        )

    def expires_at(self, state: Window) -> int:
        """The window's end."""
        return state[0]

    def dump(self, state: Window) -> tuple[int, ...]:
        """(end, used)."""
        return tuple(state)

    def load(self, numbers: tuple[int, ...]) -> Window:
        """See ``dump``."""
        return Window(*numbers)


def decide_window(
    state: Window | None,
    now: int,
    cost: int,
    *,
    burst: int,
    fresh_end: int,
    aligned: bool = True,
    count_refused: bool = False,
) -> tuple[Window | None, Outcome]:
    """Decide in the window that is open at ``now``, which ends at ``fresh_end`` unless an older one still runs.

    An open window keeps its end when the quota changes (a longer aligned one extends it), except that an end which the
    current quota cannot explain, more than the slack beyond ``fresh_end``, is capped there.
    """
    end, used, capped = fresh_end, 0, False
    if state is not None and now < state[0]:
        end, used = state
        if end > fresh_end + CLOCK_SLACK_NS:
            end, capped = fresh_end, True
        elif aligned:
            end = max(end, fresh_end)
    remaining = max(0, burst - used)
    left = end - now
    pending = left if used else 0
    if cost == 0:
        return state, Admitted(remaining, pending, pending)
    if cost <= remaining:
        return Window(end, used + cost), Admitted(remaining - cost, left, left)
    kept = Window(end, used) if capped else state
    if cost > burst:
        return kept, Never(burst, remaining, pending, pending)
    if count_refused and used < burst:
        return Window(end, burst), Refused(0, left, left, left)
    return kept, Refused(remaining, left, left, left)
