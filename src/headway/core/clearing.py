"""When a queue of units has passed: the general answer, by letting them pass one by one on a copy of the state."""

from __future__ import annotations

from headway.core.outcome import Refused
from headway.core.rule import Rule, State

__all__ = ["clears_after"]


def clears_after(rule: Rule, state: State | None, now: int, units: int) -> int:
    """``Rule.clears_after`` for any rule: spend what fits, wait for the next unit, and again."""
    wait = 0
    while units > 0:
        fits = min(units, rule.decide(state, now + wait, 0)[1].remaining)
        if fits:
            state, _ = rule.decide(state, now + wait, fits)
            units -= fits
        if units > 0:
            state, outcome = rule.decide(state, now + wait, 1)  # a refusal caps what is not honest, once
            if not isinstance(outcome, Refused):  # nothing is ever admitted
                return wait
            wait += outcome.retry_after
    return wait
