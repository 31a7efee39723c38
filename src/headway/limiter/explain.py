"""``Explanation``: for one request, each limit's state in words, what it would answer, why, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from headway.core.key import Key
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import MICROSECOND, MILLISECOND, SECOND
from headway.limiter.decision import Decision
from headway.limiter.plan import Plan

__all__ = ["Explanation", "LimitExplanation", "explained"]


@dataclass(frozen=True, slots=True)
class LimitExplanation:
    """One limit in words.

    Attributes:
        limit: its name.
        quota: its quota, printed.
        algorithm: how it counts.
        key: what it is keyed by and the values; those of secret attributes are not shown.
        state: what is in use and when it is as if unused.
        answer: "admits", "would admit" (another limit refuses), "refuses" or "never admits", and why.
        outcome: the same as data; None where the store could not say.
        ready_at: when the cost would be admitted (UTC); None when never, or where the store could not say.
        shadow: evaluated, not enforced.
    """

    limit: str
    quota: str
    algorithm: str
    key: str
    state: str
    answer: str
    outcome: Outcome | None
    ready_at: datetime | None
    shadow: bool

    def __str__(self) -> str:
        note = " [shadow: not enforced]" if self.shadow else ""
        return f"{self.limit} ({self.quota}, {self.algorithm}) for {self.key}{note}: {self.state}; {self.answer}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a request would meet now.

    Attributes:
        decision: what ``hit`` would answer.
        limits: each limit that applies to the request, in the policy's order.
        exempt: the request passes unlimited and uncounted, whatever the limits say.
        others: the names of the limits that do not apply to it, and on what each depends.
    """

    decision: Decision
    limits: tuple[LimitExplanation, ...]
    exempt: bool = False
    others: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        head = "exempt: passes unlimited and uncounted" if self.exempt else self._head()
        others = (f"  {name} does not apply to this request: {why}" for name, why in self.others.items())
        return "\n".join([head, *(f"  {limit}" for limit in self.limits), *others])

    def _head(self) -> str:
        decision = self.decision
        if decision.degraded:
            return f"the store cannot say ({decision.degraded}); the request would be {_passed(decision.allowed)}"
        if decision.allowed:
            tightest = f", {decision.remaining} left by {decision.limit}" if decision.limit else ""
            return f"would be admitted{tightest}"
        return f"would be refused by {decision.limit}: {decision.sentence()}"


def explained(
    plan: Plan,
    attributes: Mapping[str, object],
    decision: Decision,
    standing: Decision,
    *,
    exempt: bool,
    others: Mapping[str, str],
) -> Explanation:
    """Put two looks at the store into words.

    Args:
        plan: the limits.
        attributes: the request's.
        decision: a peek at the cost asked about.
        standing: a peek at cost 0.
        exempt: whether the request is.
        others: see ``Explanation``.
    """
    now = decision.decided_at
    rows = zip(
        plan.limits,
        plan.keys(attributes),
        decision.verdict.outcomes,
        standing.verdict.outcomes,
        decision.verdict.costs,
        strict=True,
    )
    return Explanation(decision, tuple(_limit(*row, now, decision.allowed) for row in rows), exempt, others)


def _limit(
    limit: Limit, key: Key, outcome: Outcome | None, standing: Outcome | None, cost: int, now: datetime, passes: bool
) -> LimitExplanation:
    wait = outcome.retry_after if isinstance(outcome, Refused) else 0
    known = outcome is not None and not isinstance(outcome, Never)
    return LimitExplanation(
        limit.name,
        str(limit.quota),
        limit.algorithm.value,
        _key(limit, key),
        _state(limit, standing, now),
        _answer(limit, outcome, cost, now, passes),
        outcome,
        _later(now, wait) if known else None,
        limit.shadow,
    )


def _key(limit: Limit, key: Key) -> str:
    if not limit.by:
        return "everyone"
    values = (key,) if len(limit.by) == 1 else key
    shown = (
        (name, "(secret)" if name in limit.secret else repr(value))
        for name, value in zip(limit.by, values, strict=True)
    )
    return ", ".join(f"{name}={value}" for name, value in shown)


def _state(limit: Limit, standing: Outcome | None, now: datetime) -> str:
    if standing is None:
        return "state unknown"
    burst = limit.rule.burst
    if burst == 0:
        return "everything is blocked"
    if standing.reset_after == 0:
        return f"unused, {burst} of {burst} left"
    free = f"{standing.remaining} of {burst} left"
    return f"{free}, as if unused in {_duration(standing.reset_after)} (at {_at(now, standing.reset_after)})"


def _answer(limit: Limit, outcome: Outcome | None, cost: int, now: datetime, passes: bool) -> str:
    units = "1 unit" if cost == 1 else f"{cost} units"
    match outcome:
        case None:
            return f"on_store_failure = {limit.on_store_failure.value} decides"
        case Admitted() if not passes:  # it stands as it is
            return f"would admit {units}"
        case Admitted(delay=delay) if delay:
            return f"admits {units} after a delay of {_duration(delay)}"
        case Admitted(remaining=left):
            return f"admits {units}, leaving {left}"
        case Refused(retry_after=wait, at_most=at_most):
            bound = "at most " if at_most else ""
            return f"refuses {units}: wait {bound}{_duration(wait)} (until {_at(now, wait)})"
        case Never(burst=burst):
            return f"never admits {units}: " + (
                "it blocks everything" if burst == 0 else f"at most {burst} fit at once"
            )


def _duration(ns: int) -> str:
    """A duration for an operator: exact enough to act on, rounded up."""
    if ns < SECOND:
        return f"{-(-ns // MILLISECOND)} ms"
    if ns < 60 * SECOND:
        tenths = -(-ns * 10 // SECOND)
        return f"{tenths / 10:g} s"
    return str(timedelta(seconds=-(-ns // SECOND)))


def _later(now: datetime, ns: int) -> datetime | None:
    """The moment that many ns later, rounded up to the microsecond; None where a date cannot hold it."""
    try:
        return now + timedelta(microseconds=-(-ns // MICROSECOND))
    except OverflowError:
        return None


def _at(now: datetime, ns: int) -> str:
    moment = _later(now, ns)
    if moment is None:
        return "a time after the year 9999"
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _passed(allowed: bool) -> str:
    return "let through" if allowed else "refused"
