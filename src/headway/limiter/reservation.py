"""Reservations: charge an estimate now, settle for the actual cost when it is known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headway.core.change import Change
from headway.core.limit import Algorithm
from headway.errors import RateLimited, StoreError
from headway.limiter.decision import Decision
from headway.limiter.plan import Cost, Plan

if TYPE_CHECKING:
    from headway.limiter.async_limiter import AsyncLimiter
    from headway.limiter.limiter import Limiter

__all__ = ["AsyncReservation", "Reservation", "settling"]


def settling(plan: Plan, decision: Decision, actual: Cost | None, *, debt: bool) -> tuple[Change, ...]:
    """What settling a decision for its actual cost asks of a store.

    Args:
        plan: the limits.
        decision: the reservation's.
        actual: units of every limit without a fixed cost, or by limit name (limits not named: as reserved); None: as
            reserved. A fixed cost is no estimate, so it stays as reserved.
        debt: charge what exceeds the estimate without asking; else it stays uncharged.

    Raises:
        TypeError: a cost that is no int.
        LimitError: a negative cost.
        UnknownName: a cost for a limit that is not there.
    """
    reserved = decision.costs
    if isinstance(actual, Mapping):
        flexible = {name: cost for name, cost in reserved.items() if plan.by_name[name].cost is None}
        actual = {**flexible, **actual}
    costs = dict(reserved) if actual is None else dict(zip(plan.by_name, plan.costs(actual), strict=True))
    changes = []
    for change in decision.changes(give_back=False, of_nothing=debt, local=decision.local):
        limit = change.charge.limit
        over = costs[limit.name] - reserved[limit.name] if limit.cost is None else 0
        if not change.receipt.cost:  # nothing was reserved, so no lease ends
            if over and limit.algorithm is not Algorithm.CONCURRENCY:
                changes.append(Change(replace(change.charge, lease=None), change.receipt._replace(token=0), take=over))
        elif limit.algorithm is Algorithm.CONCURRENCY:  # the work is over, so nothing is held any more
            changes.append(replace(change, give_back=change.receipt.cost))
        else:
            changes.append(replace(change, give_back=max(0, -over), take=max(0, over) if debt else 0))
    return tuple(changes)


class _Reserved:
    """What both kinds of reservation share."""

    def __init__(self, decision: Decision, debt: bool) -> None:
        self.decision = decision
        self.debt = debt

    @property
    def allowed(self) -> bool:
        """The estimate was admitted. Of a refused reservation nothing is charged and nothing can be settled."""
        return self.decision.allowed

    def __bool__(self) -> bool:
        return self.decision.allowed


class Reservation(_Reserved):
    """A charge whose cost is settled afterwards; made by ``Limiter.reserve``.

    As a context manager it raises ``RateLimited`` when refused, and at the end commits the estimate, or cancels when
    the block raised, unless it was settled inside. A store that is away then is no error: the estimate stays charged.

    Attributes:
        decision: what the limits answered to the estimate.
        debt: whether ``commit`` charges what exceeds the estimate.
    """

    def __init__(self, limiter: Limiter, decision: Decision, debt: bool) -> None:
        super().__init__(decision, debt)
        self._limiter = limiter

    def commit(self, actual: Cost | None = None) -> bool:
        """Settle for the actual cost (default: the estimate); what was too much is given back.

        A number is the cost of every limit without a fixed one; a fixed cost stays charged (``cancel`` gives it back).

        Returns:
            True when this call settled it; False when it was settled before, was refused, or the lease had expired.

        Raises:
            StoreError: the store could not do it: the estimate stays charged, and another try may settle it; on a
                networked store only for limits of GCRA and of how many at once, which know what is settled already.
            TypeError: a cost that is no int.
            LimitError: a negative cost.
        """
        changes = settling(self._limiter.plan, self.decision, actual, debt=self.debt)
        return self._limiter._settle(self.decision, changes)

    def cancel(self) -> bool:
        """Give everything back, as far as leaves the limits as if it had never been charged. Returns as ``commit``."""
        changes = self.decision.changes(give_back=True, local=self.decision.local)
        return self._limiter._settle(self.decision, changes)

    def __enter__(self) -> Self:
        if not self.allowed:
            raise RateLimited(self.decision)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(StoreError):
            self.commit() if error is None else self.cancel()


class AsyncReservation(_Reserved):
    """The twin of ``Reservation``; made by ``AsyncLimiter.reserve``."""

    def __init__(self, limiter: AsyncLimiter, decision: Decision, debt: bool) -> None:
        super().__init__(decision, debt)
        self._limiter = limiter

    async def commit(self, actual: Cost | None = None) -> bool:
        """See ``Reservation.commit``."""
        changes = settling(self._limiter.plan, self.decision, actual, debt=self.debt)
        return await self._limiter._settle(self.decision, changes)

    async def cancel(self) -> bool:
        """See ``Reservation.cancel``."""
        changes = self.decision.changes(give_back=True, local=self.decision.local)
        return await self._limiter._settle(self.decision, changes)

    async def __aenter__(self) -> Self:
        if not self.allowed:
            raise RateLimited(self.decision)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(StoreError):
            await (self.commit() if error is None else self.cancel())
