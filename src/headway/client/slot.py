"""``Slot`` and ``AsyncSlot``: a call that a pace admitted and that is not over yet."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from headway.client.attempt import Reply
from headway.client.pacing import Calls, Cost
from headway.client.rejection import Rejection
from headway.errors import StoreError
from headway.limiter.decision import Decision

__all__ = ["AsyncSlot", "Slot"]

_log = logging.getLogger("headway.client.slot")


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
        self._stop: Callable[[], object] = _nothing

    def _beat_seconds(self) -> float | None:
        """A third of the shortest lease, in seconds; None where nothing is held."""
        held = self.decision.changes(give_back=False, holds_only=True)
        periods = [change.charge.limit.quota.period_ns for change in held]
        return min(periods) / 3e9 if periods else None

    def _completing(
        self, reply: Reply[Any] | None, rejection: Rejection | None, pause: float | None, charged: bool, cost: Cost
    ) -> Calls[None]:
        flow: Calls[None] = self._pace._completing(
            self._attributes, self.decision, self._since, reply, rejection, pause, charged=charged, actual=cost
        )
        return flow


class Slot(_Taken):
    """A call that may be sent now; made by ``Pace.acquire`` and ``Pace.slot``."""

    def hold(self) -> Self:
        """Renew the leases by a thread until the call is over; nothing where none is held. The slot itself."""
        seconds = self._beat_seconds()
        if seconds is not None:
            over = threading.Event()
            self._stop = over.set
            beat = threading.Thread(target=self._beat, args=(over, seconds), name="headway-lease", daemon=True)
            beat.start()
        return self

    def _beat(self, over: threading.Event, seconds: float) -> None:
        while not over.wait(seconds):
            try:
                self.renew()
            except StoreError as error:  # the lease lasts; the next beat may renew it
                _log.warning("a lease could not be renewed: %s", error)

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
        self._stop()
        self._pace._drive(self._completing(reply, rejection, pause, charged, cost))

    def cancel(self) -> None:
        """The call was never sent: give everything back."""
        self._stop()
        self._pace._drive(self._completing(None, None, None, False, None))

    def renew(self) -> bool:
        """Let what is held last its whole time from now; False where it had expired."""
        held: bool = self._pace._limiter.renew(self.decision)
        return held


class AsyncSlot(_Taken):
    """The twin of ``Slot``; made by ``AsyncPace``."""

    def hold(self) -> Self:
        """See ``Slot.hold``; by a task of the running loop."""
        import asyncio  # whoever awaits has imported it

        seconds = self._beat_seconds()
        if seconds is not None:
            self._stop = asyncio.create_task(self._beat(seconds)).cancel
        return self

    async def _beat(self, seconds: float) -> None:
        import asyncio  # whoever awaits has imported it

        while True:
            await asyncio.sleep(seconds)
            try:
                await self.renew()
            except StoreError as error:  # the lease lasts; the next beat may renew it
                _log.warning("a lease could not be renewed: %s", error)

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
        self._stop()
        await self._pace._drive(self._completing(reply, rejection, pause, charged, cost))

    async def cancel(self) -> None:
        """See ``Slot.cancel``."""
        self._stop()
        await self._pace._drive(self._completing(None, None, None, False, None))

    async def renew(self) -> bool:
        """See ``Slot.renew``."""
        held: bool = await self._pace._limiter.renew(self.decision)
        return held


def _nothing() -> None:
    """Nothing is renewed."""
