"""``Change``: what is done to a charge after it was made: given back, added to, renewed."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.charge import Charge
from headway.core.lease import Receipt
from headway.core.limit import Algorithm
from headway.core.rule import State

__all__ = ["Change"]


@dataclass(frozen=True, slots=True)
class Change:
    """One key's share in a commit, a cancellation, a refund or a renewal.

    Attributes:
        charge: the charge that was made.
        receipt: what it was answered.
        give_back: units to give back, at least 0; a lease ends with it, also with 0.
        take: units to add without asking, at least 0.
        renew: let the lease last a whole period from now (concurrency only).
    """

    charge: Charge
    receipt: Receipt
    give_back: int = 0
    take: int = 0
    renew: bool = False

    @property
    def ends_a_lease(self) -> bool:
        """Whether it ends a lease that the state remembers: so doing it twice is doing it once."""
        return self.receipt.token != 0 and self.charge.limit.algorithm.stored in ("gcra", "concurrency")

    def applied(self, state: State | None, now: int) -> tuple[State | None, bool]:
        """The state after the change (the same object where there is nothing to write), and whether it was in time.

        It is not once the lease has expired or was ended before; then nothing changes.
        """
        limit, lease = self.charge.limit, self.charge.lease
        rule = limit.rule
        if limit.algorithm is Algorithm.CONCURRENCY and limit.quota.count:
            new = (
                rule.renew(state, now, self.receipt.token)  # type: ignore[attr-defined]  # concurrency's rule alone has it
                if self.renew
                else rule.give_back(state, now, self.give_back, self.receipt)
            )
            return new, new is not state
        if self.renew or (lease is not None and now >= self.receipt.at + lease.ttl):
            return state, self.renew
        new = rule.give_back(state, now, self.give_back, self.receipt)
        if lease is not None and new is state and limit.algorithm.stored == "gcra":
            return state, False
        return (rule.take(new, now, self.take) if self.take else new), True
