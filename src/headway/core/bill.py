"""Settling a bill: all charges or none, over several limits, whatever their order.

The one place where "if one limit refuses, no limit is charged" is written; every store in the process calls it, and a
translation (Lua, SQL) names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headway.core.lease import Lease
from headway.core.outcome import Admitted, Outcome
from headway.core.rule import Rule, State

__all__ = ["Settlement", "grant", "settle"]


class Settlement(NamedTuple):
    """What a bill comes to.

    Attributes:
        allowed: every enforced charge was admitted.
        outcomes: one per charge, in order. When refused, the limits that would have admitted are shown as they stand.
        writes: (index of the charge, new state), only where something has to be written.
    """

    allowed: bool
    outcomes: tuple[Outcome, ...]
    writes: tuple[tuple[int, State], ...]


def settle(
    rules: Sequence[Rule],
    states: Sequence[State | None],
    costs: Sequence[int],
    now: int,
    *,
    leases: Sequence[Lease | None] = (),
    shadows: Sequence[bool] = (),
) -> Settlement:
    """Decide every cost against its rule's state at ``now`` (ns since 1970); the states are of different counters.

    On refusal only the refusing limits may have something to write: a capped dishonest state, or a counted refusal.
    A shadow limit is charged when the request passes and the limit itself admits; it never makes a request fail.

    Args:
        rules: one per charge.
        states: one per charge, None for a key without a history.
        costs: one per charge, each at least 0.
        now: the store's clock.
        leases: one per charge, or none at all.
        shadows: one per charge, or none at all: whether its limit is only evaluated, not enforced.
    """
    decided: list[tuple[State | None, Outcome]] = []
    allowed = True
    for index, rule in enumerate(rules):
        new, outcome = rule.decide(states[index], now, costs[index], leases[index] if leases else None)
        decided.append((new, outcome))
        if not isinstance(outcome, Admitted) and not (shadows and shadows[index]):
            allowed = False
    outcomes: list[Outcome] = []
    writes: list[tuple[int, State]] = []
    for index, (new, outcome) in enumerate(decided):
        if allowed or not isinstance(outcome, Admitted):
            outcomes.append(outcome)
            if new is not states[index]:
                writes.append((index, new))
        else:
            outcomes.append(rules[index].decide(states[index], now, 0)[1])
    return Settlement(allowed, tuple(outcomes), tuple(writes))


def grant(
    rules: Sequence[Rule],
    states: Sequence[State | None],
    costs: Sequence[int],
    now: int,
    *,
    flexible: Sequence[bool],
    shadows: Sequence[bool] = (),
) -> tuple[int, ...]:
    """The costs to settle when the flexible ones may be lowered, all to the same number, to what fits now.

    Never below 1: where not even that fits, settling 1 tells the wait for it.
    """
    enforced = [not shadow for shadow in shadows] or [True] * len(rules)
    fits = [
        rule.decide(state, now, 0)[1].remaining
        for rule, state, bends, counts in zip(rules, states, flexible, enforced, strict=True)
        if bends and counts
    ]
    most = max(1, min(fits)) if fits else None
    return tuple(
        min(cost, most) if bends and most is not None else cost for cost, bends in zip(costs, flexible, strict=True)
    )
