"""Settling a bill: all charges or none, over several limits, whatever their order.

The one place where "if one limit refuses, no limit is charged" is written; every store in the process calls it, and a
translation (Lua, SQL) names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headway.core.outcome import Admitted, Outcome
from headway.core.rule import Rule, State

__all__ = ["Settlement", "settle"]


class Settlement(NamedTuple):
    """What a bill comes to.

    Attributes:
        allowed: every charge was admitted.
        outcomes: one per charge, in order. When refused, the limits that would have admitted are shown as they stand.
        writes: (index of the charge, new state), only where something has to be written.
    """

    allowed: bool
    outcomes: tuple[Outcome, ...]
    writes: tuple[tuple[int, State], ...]


def settle(rules: Sequence[Rule], states: Sequence[State | None], costs: Sequence[int], now: int) -> Settlement:
    """Decide every cost against its rule's state at ``now`` (ns since 1970); the states are of different counters.

    On refusal only the refusing limits may have something to write: a capped dishonest state, or a counted refusal.
    """
    decided = [rule.decide(state, now, cost) for rule, state, cost in zip(rules, states, costs, strict=True)]
    if all(isinstance(outcome, Admitted) for _, outcome in decided):
        return Settlement(
            True,
            tuple(outcome for _, outcome in decided),
            tuple((index, new) for index, (new, _) in enumerate(decided) if new is not states[index]),
        )
    outcomes: list[Outcome] = []
    writes: list[tuple[int, State]] = []
    for index, (new, outcome) in enumerate(decided):
        if isinstance(outcome, Admitted):
            outcomes.append(rules[index].decide(states[index], now, 0)[1])
        else:
            outcomes.append(outcome)
            if new is not states[index]:
                writes.append((index, new))
    return Settlement(False, tuple(outcomes), tuple(writes))
