"""The two drivers of ``flows.sending``, with and without ``await``. They perform effects and decide nothing."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headway.client.abort import Abort
from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.clock import clock_of
from headway.client.flows import Acquire, Complete, Effect, Send, Sleep, sending
from headway.client.retry import Retry
from headway.limiter.timer import REAL_TIME, Timer
from headway.stores.clock import Clock

if TYPE_CHECKING:
    from headway.client.pace import AsyncPace, Pace
    from headway.client.slot import AsyncSlot, Slot

__all__ = ["AsyncSender", "Sender"]

R = TypeVar("R")


class _Sending:
    """What both senders share.

    Args:
        retry: when to try again; default: ``Retry()``.
        timer: how to wait; default: real time. A ``ManualClock`` is clock and timer in one.
        clock: the wall clock, ns since 1970; default: the timer's, if it is one, else the host's.
        chance: random numbers from 0 up to, not including, 1.
        abort: ends all waits when it is set.
    """

    def __init__(
        self,
        retry: Retry | None = None,
        *,
        timer: Timer | None = None,
        clock: Clock | None = None,
        chance: Callable[[], float] | None = None,
        abort: Abort | None = None,
    ) -> None:
        self.retry = retry or Retry()
        self.timer = timer or REAL_TIME
        self.clock: Clock = clock or clock_of(timer)
        self.chance = chance or random.random
        self.abort = abort or Abort()

    def _flow(self, request: Outgoing, *, paced: bool) -> Any:
        return sending(self.retry, request, ticks=self.timer.ticks, now=self.clock, chance=self.chance, paced=paced)


class Sender(_Sending):
    """Sends with patience: pace, attempt, read, wait, again.

    Args:
        retry: see ``Retry``.
        pace: asked before every attempt, and told what came of it; None: nobody is asked.
        options: ``timer``, ``clock``, ``chance``, ``abort``.
    """

    def __init__(self, retry: Retry | None = None, pace: Pace | None = None, **options: Any) -> None:
        super().__init__(retry, **options)
        self.pace = pace

    def send(self, request: Outgoing, attempt: Callable[[], Reply[R] | Failure]) -> Reply[R]:
        """Call ``attempt`` until it is answered; see ``flows.sending`` for what is raised."""
        slot: list[Slot] = []
        flow = self._flow(request, paced=self.pace is not None)
        try:
            effect = next(flow)
            while True:
                try:
                    answer = self._perform(effect, request, attempt, slot)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            reply: Reply[R] = stop.value
            return reply

    def _perform(
        self, effect: Effect, request: Outgoing, attempt: Callable[[], Reply[R] | Failure], slot: list[Slot]
    ) -> Any:
        match effect:
            case Send():
                return attempt()
            case Sleep(ns):
                self.timer.pause(self.abort.event, ns)
                return self.abort.is_set()
            case Acquire(seconds):
                assert self.pace is not None  # noqa: S101  # the flow was told that there is one
                slot.append(self.pace.acquire(request.attributes, cost=request.cost, deadline=seconds).hold())
                return None
            case Complete(reply, rejection, pause, charged):
                return slot.pop().complete(reply, rejection, pause, charged=charged)


class AsyncSender(_Sending):
    """The twin of ``Sender`` for asyncio."""

    def __init__(self, retry: Retry | None = None, pace: AsyncPace | None = None, **options: Any) -> None:
        super().__init__(retry, **options)
        self.pace = pace

    async def send(self, request: Outgoing, attempt: Callable[[], Awaitable[Reply[R] | Failure]]) -> Reply[R]:
        """See ``Sender.send``."""
        slot: list[AsyncSlot] = []
        flow = self._flow(request, paced=self.pace is not None)
        try:
            effect = next(flow)
            while True:
                try:
                    answer = await self._perform(effect, request, attempt, slot)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            reply: Reply[R] = stop.value
            return reply

    async def _perform(
        self,
        effect: Effect,
        request: Outgoing,
        attempt: Callable[[], Awaitable[Reply[R] | Failure]],
        slot: list[AsyncSlot],
    ) -> Any:
        match effect:
            case Send():
                return await attempt()
            case Sleep(ns):
                await self._pause(ns)
                return self.abort.is_set()
            case Acquire(seconds):
                assert self.pace is not None  # noqa: S101  # the flow was told that there is one
                slot.append((await self.pace.acquire(request.attributes, cost=request.cost, deadline=seconds)).hold())
                return None
            case Complete(reply, rejection, pause, charged):
                return await slot.pop().complete(reply, rejection, pause, charged=charged)

    async def _pause(self, ns: int) -> None:
        import asyncio  # whoever awaits has imported it

        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

        if self.abort.is_set():  # at once: a wake from another thread takes a turn of the loop
            event.set()
        self.abort.tell(wake)
        try:
            await self.timer.pause_async(event, ns)
        finally:
            self.abort.forget(wake)
