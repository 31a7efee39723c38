"""``Verdict``: the plain facts of one decision, and which limit binds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused

__all__ = ["DEGRADED_WAIT_NS", "Verdict"]

DEGRADED_WAIT_NS: Final = 1_000_000_000
"""What a caller is told to wait when the store could not decide: about as long as a breaker takes to probe again."""


@dataclass(frozen=True)
class Verdict:
    """All outcomes of one request's limits, and whether it passed.

    Args:
        limits: the limits that were asked, in the policy's order.
        outcomes: one per limit; None where the store could not decide and nothing else did.
        allowed: the request passed.
        now: the deciding clock, ns since 1970.
        degraded: why the store did not decide, or None where it did.
        costs: what each limit was asked for, one per limit.
    """

    limits: tuple[Limit, ...]
    outcomes: tuple[Outcome | None, ...]
    allowed: bool
    now: int
    degraded: str | None = None
    costs: tuple[int, ...] = ()

    @cached_property
    def bound(self) -> int | None:
        """Index of the binding limit: refusing, the longest wait; admitted, the fewest remaining; ties by name."""
        known = [
            (index, outcome)
            for index, outcome in enumerate(self.outcomes)
            if outcome is not None and not self.limits[index].shadow
        ]
        if self.allowed:
            admitted = [(outcome.remaining, self.limits[index].name, index) for index, outcome in known]
            return min(admitted)[2] if admitted else None
        waits = [
            (
                -1 if isinstance(outcome, Never) else 0,
                -getattr(outcome, "retry_after", 0),
                self.limits[index].name,
                index,
            )
            for index, outcome in known
            if not isinstance(outcome, Admitted)
        ]
        return min(waits)[3] if waits else None

    @property
    def limit(self) -> Limit | None:
        """The binding limit; for a degraded denial the first that asks for one; None when there are no limits."""
        if self.bound is not None:
            return self.limits[self.bound]
        if self.allowed or self.degraded is None:
            return None
        denying = [limit for limit in self.limits if limit.on_store_failure == "deny"]
        return (denying or list(self.limits))[0]

    @property
    def binding(self) -> Outcome | None:
        """The binding limit's outcome, or None where the store did not decide."""
        return None if self.bound is None else self.outcomes[self.bound]

    @property
    def never(self) -> bool:
        """No wait helps: the cost exceeds a burst, or everything is blocked."""
        return isinstance(self.binding, Never)

    @property
    def blocked(self) -> bool:
        """The binding limit admits nothing at all: a ban or a count of 0."""
        return isinstance(self.binding, Never) and self.binding.burst == 0

    @property
    def retry_after(self) -> int | None:
        """Ns until the same request would pass if nobody else came: 0 when it passed, None when never."""
        if self.allowed:
            return 0
        match self.binding:
            case Refused(retry_after=wait):
                return wait
            case None:
                return DEGRADED_WAIT_NS
            case _:
                return None

    @property
    def violated(self) -> tuple[Limit, ...]:
        """The enforced limits that refused, in the policy's order."""
        return tuple(limit for limit in self._refusing() if not limit.shadow)

    @property
    def shadowed(self) -> tuple[Limit, ...]:
        """The shadow limits that would have refused, were they enforced."""
        return tuple(limit for limit in self._refusing() if limit.shadow)

    def _refusing(self) -> tuple[Limit, ...]:
        pairs = zip(self.limits, self.outcomes, strict=True)
        return tuple(limit for limit, outcome in pairs if isinstance(outcome, Refused | Never))

    @property
    def delay(self) -> int:
        """Ns the caller has to wait before it goes on, although it was admitted (leaky-bucket-queue)."""
        if not self.allowed:
            return 0
        pairs = zip(self.limits, self.outcomes, strict=True)
        return max(
            (outcome.delay for limit, outcome in pairs if isinstance(outcome, Admitted) and not limit.shadow), default=0
        )
