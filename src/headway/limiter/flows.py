"""Every branch around waiting, once: generators that yield effects and are driven with or without ``await``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.lease import Lease
from headway.core.limit import Algorithm, FailureMode, Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.verdict import Verdict
from headway.errors import StoreError
from headway.limiter.decision import Decision
from headway.limiter.effects import Advance, Apply, Clears, Flow, Pause, Turn
from headway.limiter.plan import Plan
from headway.limiter.queue import Lines, Ticket
from headway.stores.base import Answer

__all__ = ["decide", "degraded", "give_back", "wait"]

_LOOK_AGAIN_NS = 250_000_000
"""How often a wait for somebody else's lease looks whether it was given back in another process."""

_PATIENCE_NS = 1_000_000_000
"""How long after its time a waiting caller looks whether those before it in line are still there."""


def decide(
    plan: Plan,
    keys: Sequence[Key],
    costs: Sequence[int],
    now: int,
    *,
    commit: bool = True,
    lease: Lease | None = None,
    held: Lease | None = None,
    flexible: bool = False,
    since: int | None = None,
) -> Flow[Decision]:
    """Ask the store; where it cannot answer, do what each limit's ``on_store_failure`` says.

    Args:
        plan: the limits.
        keys: one per limit.
        costs: one per limit.
        now: the caller's wall clock in ns, for a decision that no store dated.
        commit: False for a peek.
        lease: asks the store to remember the charges.
        held: the same for concurrency limits only.
        flexible: costs that are not fixed may be lowered to what fits.
        since: the store's clock when the caller began to stand in line.
    """
    charges = plan.charges(keys, costs, lease=lease, held=held, flexible=flexible)
    if not charges:  # nothing to ask: no limit applies
        return Decision.of(Verdict((), (), True, now))
    try:
        answer: Answer = yield Advance(charges, commit, since=since)
    except StoreError as error:
        return (yield from degraded(plan, charges, now, error, commit=commit))
    verdict = Verdict(plan.limits, answer.outcomes, answer.allowed, answer.now, None, answer.costs)
    return Decision.of(verdict, charges if commit else ())


def degraded(
    plan: Plan, charges: Sequence[Charge], now: int, error: StoreError, *, commit: bool = True
) -> Flow[Decision]:
    """``deny`` refuses the request, ``allow`` lets its limit pass, ``local`` asks the in-process stand-in.

    What admits nothing at all needs no store to say so.
    """
    outcomes: list[Outcome | None] = [None] * len(charges)
    denied = False
    local: list[int] = []
    for index, charge in enumerate(charges):
        limit = charge.limit
        if charge.cost and not limit.quota.count:
            outcomes[index] = Never(0, 0, 0, 0)
            denied = denied or not limit.shadow
        elif not limit.shadow:
            if limit.on_store_failure is FailureMode.LOCAL:
                local.append(index)
            elif charge.cost and limit.on_store_failure is FailureMode.DENY:
                denied = True
    if local and not denied:
        answer: Answer = yield Advance(tuple([charges[index] for index in local]), commit, local=True)
        for index, outcome in zip(local, answer.outcomes, strict=True):
            outcomes[index] = outcome
        now = answer.now
        denied = not answer.allowed
    reason = str(error) or type(error).__name__
    costs = tuple([charge.cost for charge in charges])
    made = tuple(charges) if local and commit else ()
    return Decision.of(Verdict(plan.limits, tuple(outcomes), not denied, now, reason, costs), made, local=bool(local))


def give_back(changes: tuple[Change, ...], lines: Lines, *, local: bool = False) -> Flow[bool]:
    """Apply changes and let those look again who wait; whether they were in time (all that there were)."""
    if not changes:
        return False
    in_time: tuple[bool, ...] = yield Apply(changes, local)
    if any(in_time):
        lines.look_again()
    return all(in_time)


def wait(
    plan: Plan,
    keys: Sequence[Key],
    costs: Sequence[int],
    now: int,
    *,
    held: Lease | None,
    lines: Lines,
    ticket: Ticket,
    ticks: Callable[[], int],
    deadline: int | None,
    current: Callable[[Plan], Plan],
) -> Flow[Decision]:
    """Stand in line, then ask until admitted; give up at once where it cannot end in time.

    Args:
        plan: the limits.
        keys: one per limit.
        costs: one per limit.
        now: as for ``decide``.
        held: as for ``decide``.
        lines: the limiter's.
        ticket: the caller's, not yet in line.
        ticks: the clock the deadline is on, ns.
        deadline: on ``ticks``; None waits for ever.
        current: the plan with the quotas that its limits have by now.

    Returns:
        The admitting decision, once its delay is over too; else a refusal whose wait is what it would have taken.
    """

    def left() -> int:
        return 2**63 if deadline is None else max(0, deadline - ticks())

    places = [(limit.name, key) for limit, key in zip(plan.limits, keys, strict=True)]
    at = _place(plan, places, lines)
    patience = _PATIENCE_NS
    since: int | None = None
    try:
        while at is not None:
            if places[at] != ticket.line:
                ahead = lines.join(places[at], ticket, costs[at])
                told = None if ticket.first else (yield from _told(plan, keys, costs, at, ahead, now))
                if told is not None and (told.never or _surely(_in_all(told)) > left()):
                    return _in_all(told)
                if told is not None:
                    since = since or told.verdict.now
                patience = _PATIENCE_NS + (0 if told is None else told.retry_after_ns or 0)
            while not lines.is_first(ticket):
                if not left():
                    return (yield from _out_of_time(current(plan), keys, costs, at, now, held, lines, ticket))
                yield Turn(ticket, min(left(), patience))
                ticket.calm()  # who was first may not be any more; a wake that comes now finds it first
                patience = _PATIENCE_NS
            ticket.calm()
            decision = yield from decide(current(plan), keys, costs, now, held=held, since=since)
            if decision.allowed:
                delay = decision.verdict.delay
                if delay > left():
                    return (yield from _too_late(decision, lines))
                if delay:
                    lines.leave(ticket)
                    yield from _delayed(decision, lines, ticket, ticks, ticks() + delay)
                return decision
            needed, surely = decision.retry_after_ns, _surely(decision)
            in_all = _in_all(decision)
            if needed is None or decision.degraded or _surely(in_all) > left() or not left():
                return in_all
            since = since or decision.verdict.now
            at = decision.verdict.bound
            if at is not None and places[at] == ticket.line:
                yield Pause(ticket, min(left(), max(surely, min(needed, _LOOK_AGAIN_NS))))
        return (yield from decide(current(plan), keys, costs, now, held=held))
    finally:
        lines.leave(ticket)


def _place(plan: Plan, places: Sequence[tuple[str, Key]], lines: Lines) -> int | None:
    """The index of the limit in whose line a caller begins: where somebody waits already, else the most particular one."""
    enforced = [index for index, limit in enumerate(plan.limits) if not limit.shadow]
    particular = sorted(enforced, key=lambda index: -len(plan.limits[index].by))
    busy = lines.busy([places[index] for index in particular])
    return particular[busy or 0] if particular else None


def _surely(refusal: Decision) -> int:
    """The ns that have to pass whatever others give back: the longest wait that is no upper bound."""
    outcomes = refusal.outcomes
    refused = [outcomes.get(limit.name) for limit in refusal.verdict.violated]
    return max((out.retry_after for out in refused if isinstance(out, Refused) and not out.at_most), default=0)


def _in_all(refusal: Decision) -> Decision:
    """A refusal that tells all the time that waiting would take: a queue's delay comes after the wait for its place."""
    wait = _surely(refusal)
    verdict = refusal.verdict
    outcomes = [
        outcome if outcome is None or limit.shadow else _with_delay(limit, outcome, cost, wait)
        for limit, outcome, cost in zip(verdict.limits, verdict.outcomes, verdict.costs, strict=True)
    ]
    none = refusal.allowed or refusal.never
    return refusal if none else Decision.of(replace(verdict, outcomes=tuple(outcomes)))


def _with_delay(limit: Limit, outcome: Outcome, cost: int, wait: int) -> Outcome:
    if limit.algorithm is not Algorithm.LEAKY_BUCKET_QUEUE or isinstance(outcome, Never) or not cost:
        return outcome
    delay = limit.rule.delay_after(outcome, cost, wait)  # type: ignore[attr-defined]  # the queue's rule alone has it
    return Refused(outcome.remaining, wait + delay, outcome.replenish_after, outcome.reset_after) if delay else outcome


def _out_of_time(
    plan: Plan,
    keys: Sequence[Key],
    costs: Sequence[int],
    at: int,
    now: int,
    held: Lease | None,
    lines: Lines,
    ticket: Ticket,
) -> Flow[Decision]:
    """The deadline of a caller that is not first: what it would still have taken; if nothing, its units."""
    told = yield from _told(plan, keys, costs, at, lines.ahead(ticket), now)
    if told is not None:
        return _in_all(told)
    decision = yield from decide(plan, keys, costs, now, held=held)
    late = decision.allowed and decision.verdict.delay
    return (yield from _too_late(decision, lines)) if late else _in_all(decision)


def _told(
    plan: Plan, keys: Sequence[Key], costs: Sequence[int], at: int, ahead: int, now: int
) -> Flow[Decision | None]:
    """What a caller in the line of a limit is told: a refusal with the time until those ahead and it have passed.

    None where there seems to be room for all of them, or where the store cannot say.
    """
    peeked = yield from decide(plan, keys, costs, now, commit=False)
    if peeked.never or peeked.degraded:
        return peeked if peeked.never else None
    outcomes = list(peeked.verdict.outcomes)
    outcome = outcomes[at]
    try:
        clears, _ = yield Clears(plan.charges(keys, [ahead + cost for cost in costs])[at])
    except StoreError:  # asking for the units themselves decides what this means
        return None
    if clears and outcome is not None and not isinstance(outcome, Never):
        at_most = plan.limits[at].algorithm is Algorithm.CONCURRENCY
        outcomes[at] = Refused(outcome.remaining, clears, outcome.replenish_after, outcome.reset_after, at_most)
    elif peeked.allowed:
        return None
    return Decision.of(replace(peeked.verdict, outcomes=tuple(outcomes), allowed=False))


def _too_late(decision: Decision, lines: Lines) -> Flow[Decision]:
    """An admission whose delay would end after the deadline: give it back, and say what it would have taken."""
    yield from _undo(decision, lines)
    verdict = decision.verdict
    outcomes = tuple(
        Refused(outcome.remaining, outcome.delay, outcome.replenish_after, outcome.reset_after)
        if isinstance(outcome, Admitted) and outcome.delay
        else outcome
        for outcome in verdict.outcomes
    )
    return Decision.of(replace(verdict, outcomes=outcomes, allowed=False))


def _delayed(decision: Decision, lines: Lines, ticket: Ticket, ticks: Callable[[], int], until: int) -> Flow[None]:
    """Let an admitted caller's delay pass; one that is cancelled in it gives its units back."""
    try:
        while (rest := until - ticks()) > 0:
            ticket.calm()  # a wake from the time in line must not cut the delay short
            yield Pause(ticket, rest)
    except BaseException:
        yield from _undo(decision, lines)
        raise


def _undo(decision: Decision, lines: Lines) -> Flow[None]:
    """Give an admission back that nobody will use. Where the store is away it stays charged: never too little."""
    with suppress(StoreError):
        yield from give_back(decision.changes(give_back=True, local=decision.local), lines, local=decision.local)
