"""``Slot`` and ``AsyncSlot``: a call that a pace admitted and that is not over yet."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from headway.client.attempt import Reply
from headway.client.pacing import Calls, Cost
from headway.client.rejection import Rejection
from headway.limiter.decision import Decision

__all__ = ["AsyncSlot", "Slot", "keep", "keep_async"]


class _Taken:
    """What both kinds of slot share.

    Attributes:
        decision: what the quotas answered.
    """

    def __init__(self, pace: Any, attributes: Mapping[str, object], decision: Decision) -> None:
        self.decision = decision
        self._pace = pace
        self._attributes = dict(attributes)
        self._since = pace.timer.ticks()

    def _completing(
        self, reply: Reply[Any] | None, rejection: Rejection | None, pause: float | None, charged: bool, cost: Cost
    ) -> Calls[None]:
        flow: Calls[None] = self._pace._completing(
            self._attributes, self.decision, self._since, reply, rejection, pause, charged=charged, actual=cost
        )
        return flow


class Slot(_Taken):
    """A call that may be sent now; made by ``Pace.acquire`` and ``Pace.slot``."""

    def complete(
        self,
        reply: Reply[Any] | None = None,
        rejection: Rejection | None = None,
        pause: float | None = None,
        *,
        charged: bool = True,
        cost: Cost = None,
    ) -> None:
        """Say that the call is over; what it holds is given back, and the budget is settled. The first time counts.

        Args:
            reply: the answer, to learn from.
            rejection: how it was read, where it is a refusal.
            pause: seconds for which nobody is to send.
            charged: whether the other side may have counted it; else it is given back.
            cost: what it cost in the end, where that was not known before (tokens).
        """
        self._pace._drive(self._completing(reply, rejection, pause, charged, cost))

    def cancel(self) -> None:
        """The call was never sent: give everything back."""
        self._pace._drive(self._completing(None, None, None, False, None))

    def renew(self) -> bool:
        """Let what is held last its whole time from now; False where it had expired."""
        held: bool = self._pace._limiter.renew(self.decision)
        return held


class AsyncSlot(_Taken):
    """The twin of ``Slot``; made by ``AsyncPace``."""

    async def complete(
        self,
        reply: Reply[Any] | None = None,
        rejection: Rejection | None = None,
        pause: float | None = None,
        *,
        charged: bool = True,
        cost: Cost = None,
    ) -> None:
        """See ``Slot.complete``."""
        await self._pace._drive(self._completing(reply, rejection, pause, charged, cost))

    async def cancel(self) -> None:
        """See ``Slot.cancel``."""
        await self._pace._drive(self._completing(None, None, None, False, None))

    async def renew(self) -> bool:
        """See ``Slot.renew``."""
        held: bool = await self._pace._limiter.renew(self.decision)
        return held


def _lease_seconds(slot: _Taken) -> float:
    """A third of the shortest lease, in seconds."""
    held = slot.decision.changes(give_back=False, holds_only=True)
    return min((change.charge.limit.quota.period_ns for change in held), default=60_000_000_000) / 3e9


def keep(slot: Slot, over: threading.Event) -> None:
    """Renew what a slot holds until it is over."""
    while not over.wait(_lease_seconds(slot)):
        slot.renew()


async def keep_async(slot: AsyncSlot) -> None:
    """The twin of ``keep``; ends when it is cancelled."""
    import asyncio  # whoever awaits has imported it

    while True:
        await asyncio.sleep(_lease_seconds(slot))
        await slot.renew()
