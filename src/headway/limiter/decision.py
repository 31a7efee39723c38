"""``Decision``: the answer for the whole request.

A plain class, not a dataclass, and without ``__init__``, which would cost a call as much as its lock: one is made on
every call, its maker sets what it knows, and what few callers ask for is worked out when they ask.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.bill import settle
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.lease import Receipt
from headway.core.limit import Algorithm
from headway.core.outcome import Admitted, Outcome
from headway.core.rule import State
from headway.core.verdict import Verdict
from headway.limiter.plan import Plan
from headway.stores.base import Answer

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Decision", "OneDecision", "decided"]

_SECOND = 1_000_000_000
_claims = threading.Lock()


class Decision:
    """Whether a request passed, which limit binds, and when to come back.

    Attributes:
        allowed: the request passed (``bool(decision)`` says the same).
    """

    __slots__ = ("__weakref__", "_charges", "_given_back", "_local", "_made", "_plan", "_verdict", "allowed")

    allowed: bool
    _plan: Plan
    _made: tuple[Any, ...]
    _verdict: Verdict
    _charges: tuple[Charge, ...]
    _local: bool

    @staticmethod
    def of(verdict: Verdict, charges: tuple[Charge, ...] = (), *, local: bool = False) -> Decision:
        """The decision whose facts are known already, with the charges that a store, or its stand-in, made of it."""
        decision = Decision()
        decision.allowed, decision._verdict, decision._charges = verdict.allowed, verdict, charges
        decision._local = local
        return decision

    @staticmethod
    def by(plan: Plan, made: tuple[Any, ...], charges: tuple[Charge, ...] | None = None) -> Decision:
        """The decision of a plan's limits, whose facts are worked out when somebody asks.

        Args:
            plan: the limits.
            made: whether it was admitted, when, and one cost, key and state before per limit, or the store's answer.
            charges: the bill, where there is one already.
        """
        decision = Decision()
        decision.allowed, decision._plan, decision._made = made[0], plan, made
        if charges is not None:
            decision._charges = charges
        return decision

    def _details(self) -> tuple[int, Sequence[int], Sequence[Key], Sequence[State | None] | Answer]:
        """When it was decided (ns since 1970), and one cost, key and state before per limit, or the store's answer."""
        _, now, costs, keys, states = self._made
        return now, costs, keys, states

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        what = "allowed" if self.allowed else "never" if self.never else f"refused, retry after {self.retry_after:g} s"
        degraded = f", degraded: {self.degraded}" if self.degraded else ""
        return f"<Decision {what}, limit {self.limit!r}, remaining {self.remaining}{degraded}>"

    def __getstate__(self) -> Verdict:
        return self.verdict

    def __setstate__(self, verdict: Verdict) -> None:
        self.allowed, self._verdict, self._charges = verdict.allowed, verdict, ()

    @property
    def verdict(self) -> Verdict:
        """The plain facts, for ``presentation``."""
        if not hasattr(self, "_verdict"):
            plan = self._plan
            now, costs, _, states = self._details()
            if isinstance(states, Answer):
                outcomes = states.outcomes
            elif self.allowed:  # what settle says of it, without what it would write
                outcomes = tuple([r.decide(s, now, c)[1] for r, s, c in zip(plan.rules, states, costs, strict=True)])
            else:
                outcomes = settle(plan.rules, states, costs, now, shadows=plan.shadows).outcomes
            self._verdict = Verdict(plan.limits, outcomes, self.allowed, now, None, tuple(costs))
        return self._verdict

    def at(self, index: int) -> tuple[Outcome | None, int]:
        """One limit's outcome and what it was asked for, without working out the others'."""
        if hasattr(self, "_verdict"):
            return self._verdict.outcomes[index], self._verdict.costs[index]
        now, costs, _, states = self._details()
        if isinstance(states, Answer):
            return states.outcomes[index], costs[index]
        return self._plan.rules[index].decide(states[index], now, costs[index])[1], costs[index]

    @property
    def degraded(self) -> str | None:
        """Why the store did not decide, or None where it did."""
        return self._verdict.degraded if hasattr(self, "_verdict") else None

    @property
    def local(self) -> bool:
        """Whether the store was away and this process decided in its stead (``on_store_failure = local``)."""
        return getattr(self, "_local", False)

    @property
    def limit(self) -> str | None:
        """The binding limit's name: refusing, the longest wait; admitted, the fewest remaining; ties by name."""
        limit = self.verdict.limit
        return None if limit is None else limit.name

    @property
    def binding(self) -> Outcome | None:
        """The binding limit's outcome; None where the store did not decide."""
        return self.verdict.binding

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """Every limit's outcome by its name, in the policy's order; a limit that nobody could decide is missing."""
        verdict = self.verdict
        pairs = zip(verdict.limits, verdict.outcomes, strict=True)
        return {limit.name: outcome for limit, outcome in pairs if outcome is not None}

    @property
    def remaining(self) -> int | None:
        """The binding limit's whole units left; on a refusal its uncharged balance. None without a binding limit."""
        binding = self.verdict.binding
        return None if binding is None else binding.remaining

    @property
    def retry_after_ns(self) -> int | None:
        """Ns until the same request would pass if nobody else came: 0 when it passed, None when never."""
        return self.verdict.retry_after

    @property
    def retry_after(self) -> float:
        """Seconds, never rounded below the exact wait: 0.0 when it passed, ``math.inf`` when never."""
        wait = self.verdict.retry_after
        return math.inf if wait is None else _seconds_up(wait)

    @property
    def retry_at(self) -> datetime | None:
        """When the wait ends on the store's clock, rounded up to the next microsecond (UTC).

        None when never, and where a date cannot hold it (after the year 9999).
        """
        wait = self.verdict.retry_after
        return None if wait is None else _instant(-(-(self.verdict.now + wait) // 1_000))

    @property
    def decided_at(self) -> datetime:
        """The store's clock when it decided, rounded down to the microsecond (UTC).

        A clock beyond the years 1 to 9999 is told as the nearest date there is.
        """
        from datetime import UTC, datetime

        first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        return _instant(self.verdict.now // 1_000) or (last if self.verdict.now > 0 else first)

    @property
    def delay(self) -> float:
        """Seconds an admitted caller has to wait before it goes on (leaky-bucket-queue); else 0.0."""
        return _seconds_up(self.verdict.delay)

    @property
    def costs(self) -> Mapping[str, int]:
        """What each limit was asked for, by its name; with ``up_to``, what was granted."""
        verdict = self.verdict
        return {limit.name: cost for limit, cost in zip(verdict.limits, verdict.costs, strict=True)}

    @property
    def granted(self) -> int:
        """The units that passed, of every limit without a fixed cost; 0 on a refusal."""
        verdict = self.verdict
        pairs = zip(verdict.limits, verdict.costs, strict=True)
        return min((cost for limit, cost in pairs if limit.cost is None), default=0) if self.allowed else 0

    @property
    def shadowed(self) -> tuple[str, ...]:
        """The names of the shadow limits that would have refused, were they enforced."""
        return tuple(limit.name for limit in self.verdict.shadowed)

    @property
    def never(self) -> bool:
        """No wait helps: the cost exceeds a limit's burst, or everything is blocked."""
        return self.verdict.never

    @property
    def blocked(self) -> bool:
        """The binding limit admits nothing at all (a count of 0, a ban)."""
        return self.verdict.blocked

    def changes(
        self, *, give_back: bool, holds_only: bool = False, of_nothing: bool = False, local: bool = False
    ) -> tuple[Change, ...]:
        """What giving this decision's charges back asks of a store; nothing for a refusal, a peek or a copy.

        Args:
            give_back: the whole cost; else nothing but the lease ends.
            holds_only: only what is held (concurrency).
            of_nothing: also those of charges of 0, of which a store knows nothing.
            local: what it asks of the stand-in of a store that was away, instead.
        """
        if not self.allowed or local is not self.local:
            return ()
        if not hasattr(self, "_charges"):
            _, costs, keys, _ = self._details()
            self._charges = self._plan.charges(keys, costs)
        verdict = self.verdict
        return tuple(
            Change(
                charge,
                Receipt(verdict.now, cost, charge.lease.token if charge.lease else 0, outcome),
                give_back=cost if give_back else 0,
            )
            for charge, cost, outcome in zip(self._charges, verdict.costs, verdict.outcomes, strict=False)
            if (cost or of_nothing) and isinstance(outcome, Admitted)
            if not holds_only or charge.limit.algorithm is Algorithm.CONCURRENCY
        )

    def claim(self) -> bool:
        """True for the first caller, who may give back; False ever after."""
        with _claims:
            if getattr(self, "_given_back", False):
                return False
            self._given_back = True
            return True

    def unclaim(self) -> None:
        """What was claimed could not be done; another may try."""
        self._given_back = False

    def sentence(self, locale: str = "en") -> str:
        """One plain sentence or two for a person: what happened and when to try again."""
        from headway.presentation.sentence import sentence  # what is said to people is loaded when something is said

        return sentence(self.verdict, locale=locale)

    def headers(self) -> dict[str, str]:
        """The fields a response carries, allowed or refused: RateLimit, RateLimit-Policy, Retry-After."""
        from headway.presentation.fields import fields

        return dict(fields(self.verdict))

    def problem(self, locale: str = "en") -> dict[str, object]:
        """The RFC 9457 problem document of a refusal."""
        from headway.presentation.problem import problem

        return problem(self.verdict, locale=locale)

    def to_dict(self) -> dict[str, Any]:
        """The decision as JSON-able values; times in whole ns, ``retry_after`` in seconds or None when never."""
        wait = self.retry_after_ns
        retry_at = self.retry_at
        return {
            "allowed": self.allowed,
            "limit": self.limit,
            "remaining": self.remaining,
            "retry_after": None if wait is None else self.retry_after,
            "retry_after_ns": wait,
            "retry_at": None if retry_at is None or self.allowed else retry_at.isoformat(),
            "never": self.never,
            "degraded": self.degraded,
            "delay": self.delay,
            "costs": self.costs,
            "shadowed": list(self.shadowed),
            "outcomes": {name: _outcome_dict(outcome) for name, outcome in self.outcomes.items()},
        }


class OneDecision(Decision):
    """The decision of the shortest way: one limit, whose cost, key and state stand for themselves."""

    __slots__ = ()

    def _details(self) -> tuple[int, Sequence[int], Sequence[Key], Sequence[State | None] | Answer]:
        _, now, cost, key, state = self._made
        return now, (cost,), (key,), state if isinstance(state, Answer) else (state,)


def decided(decision: Any) -> Decision:
    """What is given as a decision, if it is one.

    Raises:
        TypeError: it is none; says what is accepted.
    """
    if isinstance(decision, Decision):
        return decision
    kind = type(decision).__name__
    own = "; a reservation has commit() and cancel() of its own" if kind.endswith("Reservation") else ""
    raise TypeError(f"{decision!r} is a {kind}; expected the Decision that hit() or wait() returned{own}")


def _outcome_dict(outcome: Outcome) -> dict[str, object]:
    fields = {name: getattr(outcome, name) for name in outcome.__slots__}
    return {
        "outcome": type(outcome).__name__.lower(),
        **{f"{n}_ns" if n.endswith("after") or n == "delay" else n: v for n, v in fields.items()},
    }


def _instant(microseconds: int) -> datetime | None:
    from datetime import UTC, datetime, timedelta  # not needed to decide

    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def _seconds_up(nanoseconds: int) -> float:
    """The smallest convenient float that is no less than the exact seconds."""
    seconds = nanoseconds / _SECOND
    numerator, denominator = seconds.as_integer_ratio()
    return seconds if numerator * _SECOND >= nanoseconds * denominator else math.nextafter(seconds, math.inf)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_claims._at_fork_reinit)  # type: ignore[attr-defined]  # what the standard library's own locks do
