"""Every branch around waiting, once: generators that yield effects and are driven with or without ``await``."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import FailureMode
from headway.core.outcome import Admitted, Outcome
from headway.core.verdict import Verdict
from headway.errors import StoreError
from headway.limiter.decision import Decision
from headway.limiter.plan import Plan
from headway.stores.base import Answer

__all__ = ["Advance", "Flow", "decide", "degraded"]


@dataclass(frozen=True, slots=True)
class Advance:
    """The effect: ask a store. The driver sends its answer back, or throws its ``StoreError`` into the flow.

    Attributes:
        charges: the bill.
        commit: False for a peek.
        local: ask the in-process stand-in instead of the store.
    """

    charges: tuple[Charge, ...]
    commit: bool
    local: bool = False


_Result = TypeVar("_Result")
Flow = Generator[Advance, Answer, _Result]


def decide(plan: Plan, keys: Sequence[Key], costs: Sequence[int], commit: bool, now: int) -> Flow[Decision]:
    """Ask the store; where it cannot answer, do what each limit's ``on_store_failure`` says.

    Args:
        plan: the limits.
        keys: one per limit.
        costs: one per limit.
        commit: False for a peek.
        now: the caller's wall clock in ns, for a decision that no store dated.
    """
    charges = plan.charges(keys, costs)
    try:
        answer = yield Advance(charges, commit)
    except StoreError as error:
        return (yield from degraded(plan, charges, costs, commit, now, error))
    return Decision.of(Verdict(plan.limits, answer.outcomes, answer.allowed, answer.now, None, answer.costs))


def degraded(
    plan: Plan, charges: Sequence[Charge], costs: Sequence[int], commit: bool, now: int, error: StoreError
) -> Flow[Decision]:
    """``deny`` refuses the request, ``allow`` lets its limit pass, ``local`` asks the in-process stand-in."""
    outcomes: dict[str, Outcome] = {}
    denied = any(charge.limit.on_store_failure is FailureMode.DENY and charge.cost for charge in charges)
    local = tuple(charge for charge in charges if charge.limit.on_store_failure is FailureMode.LOCAL)
    if local and not denied:
        answer = yield Advance(local, commit, local=True)
        outcomes = {charge.limit.name: outcome for charge, outcome in zip(local, answer.outcomes, strict=True)}
        now = answer.now
        denied = not all(isinstance(outcome, Admitted) for outcome in answer.outcomes)
    listed = tuple(outcomes.get(charge.limit.name) for charge in charges)
    reason = str(error) or type(error).__name__
    return Decision.of(Verdict(plan.limits, listed, not denied, now, reason, tuple(costs)))
