"""``Pace`` and ``AsyncPace``: wait so that the next call fits the quotas, before it is sent."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from headway.client.attempt import Reply
from headway.client.pacing import BasePace, Call, Calls, Cost, Nap, Quotas
from headway.client.reading import read
from headway.client.rejection import Rejection
from headway.client.slot import AsyncSlot, Slot
from headway.limiter.arguments import merged
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.limiter.timer import Timer
from headway.stores.base import AsyncStore, Store

__all__ = ["AsyncPace", "Pace"]

R = TypeVar("R")


class Pace(BasePace):
    """Quotas that callers keep to before they send; threads, processes and hosts share them through a store.

    Args:
        quotas: ``"11/day in America/Los_Angeles"``, ``"10/s; 1000/day"``, ``"1 at once for 60 s"``, a mapping by name,
            or ``Limit``s; without any, limits are discovered from what responses show.
        store: a store or its URL. With ``memory://``, paces of this process that have the same name share it.
        by: the attributes that each have a budget of their own: ``"host"``, ``("account", "endpoint")``.
        name: keeps paces that share a store apart.
        learn: whether a response that shows less than is left here lowers the budget of all who share it.
        timer: how to wait; default: real time, or the store's ``ManualClock``.

    Raises:
        QuotaError: a text that is no quota.
        LimitError: a name that cannot be one.
        ConfigError: a URL that names no store, two quotas of one name.
        StoreUnusable: a store that cannot serve.
    """

    def __init__(
        self,
        *quotas: Quotas,
        store: str | Store = "memory://",
        by: str | tuple[str, ...] = (),
        name: str = "pace",
        learn: bool = True,
        timer: Timer | None = None,
    ) -> None:
        super().__init__(quotas, store, by, name, learn, timer, Limiter)

    def wait(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = None,
        deadline: float | None = None,
        **named: object,
    ) -> Decision:
        """Return as soon as the call may be sent, first come first served; it is charged then.

        Args:
            attributes: what is known of the call; names that are not in ``by`` are ignored.
            cost: units; by default 1 of every quota, or by a quota's name.
            deadline: seconds; a wait that cannot end before it is not begun. None waits as long as it takes.
            named: attributes by keyword.

        Raises:
            DeadlineTooSoon: at once, with the time it would take.
            RateLimited: no wait helps: the cost is above a quota's count.
            StoreUnavailable: the store did not answer.
            AttributeMissing: an attribute of ``by`` is not there.
        """
        facts = named if attributes is None else merged(attributes, named)
        return self._drive(self._acquiring(facts, cost, deadline))

    def peek(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = None, **named: object
    ) -> Decision:
        """What the quotas would answer to a call now, a pause included; nothing is charged. See ``left``."""
        facts = named if attributes is None else merged(attributes, named)
        return self._drive(self._peeking(facts, cost))

    def left(self, attributes: Mapping[str, object] | None = None, /, **named: object) -> dict[str, int]:
        """How many units of each quota may go now, by its limit's name; a pause doesn't count."""
        facts = named if attributes is None else merged(attributes, named)
        return self._remaining(self.peek(facts, cost=0))

    def acquire(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = None,
        deadline: float | None = None,
        **named: object,
    ) -> Slot:
        """``wait``, for a caller that says when the call is over: ``slot.complete(…)``."""
        facts = named if attributes is None else merged(attributes, named)
        decision = self._drive(self._acquiring(facts, cost, deadline))
        return Slot(self, facts, decision)

    @contextmanager
    def slot(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = None,
        deadline: float | None = None,
        **named: object,
    ) -> Iterator[Slot]:
        """``with pace.slot(host=…) as slot:`` waits, and ends with the block what is held.

        A lease ("1 at once for 60 s") is renewed while the block runs, and expires by itself when its holder dies.
        """
        taken = self.acquire(attributes, cost=cost, deadline=deadline, **named).hold()
        try:
            yield taken
        finally:
            taken.complete()

    def learn(
        self, status: int, headers: Any = None, body: Any = None, /, attributes: Mapping[str, object] | None = None
    ) -> Rejection | None:
        """Learn from a response that was paced by ``wait``: a refusal pauses everybody, what is left lowers the budget.

        Returns:
            The refusal, or None where it is none.
        """
        rejection = read(status, headers, body, received_at=self._wall() / 1e9)
        facts = attributes or {}
        if rejection is not None and rejection.waiting_helps and rejection.kind != "ambiguous":
            self.pause(rejection.retry_after or 1.0, facts)
        self._drive(self._learning(facts, Reply(status, headers, body, None), None))
        return rejection

    def pause(self, seconds: float, attributes: Mapping[str, object] | None = None, /, **named: object) -> None:
        """Let nobody go for so many seconds from now, whoever shares the store; then one by one."""
        self._drive(self._pausing(named if attributes is None else merged(attributes, named), seconds))

    def close(self) -> None:
        """Close the store, if this pace opened it."""
        if self._owned:
            self._limiter.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _drive(self, flow: Calls[R]) -> R:
        try:
            call = next(flow)
            while True:
                try:
                    answer = self._perform(call)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    call = flow.throw(error)
                else:
                    call = flow.send(answer)
        except StopIteration as stop:
            value: R = stop.value
            return value

    def _perform(self, call: Call | Nap) -> Any:
        return self.timer.pause(threading.Event(), call.ns) if isinstance(call, Nap) else call()


class AsyncPace(BasePace):
    """The twin of ``Pace`` for asyncio; the same arguments and errors, in any event loop."""

    def __init__(
        self,
        *quotas: Quotas,
        store: str | Store | AsyncStore = "memory://",
        by: str | tuple[str, ...] = (),
        name: str = "pace",
        learn: bool = True,
        timer: Timer | None = None,
    ) -> None:
        super().__init__(quotas, store, by, name, learn, timer, AsyncLimiter)

    async def wait(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = None,
        deadline: float | None = None,
        **named: object,
    ) -> Decision:
        """See ``Pace.wait``."""
        facts = named if attributes is None else merged(attributes, named)
        return await self._drive(self._acquiring(facts, cost, deadline))

    async def peek(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = None, **named: object
    ) -> Decision:
        """See ``Pace.peek``."""
        facts = named if attributes is None else merged(attributes, named)
        return await self._drive(self._peeking(facts, cost))

    async def left(self, attributes: Mapping[str, object] | None = None, /, **named: object) -> dict[str, int]:
        """See ``Pace.left``."""
        facts = named if attributes is None else merged(attributes, named)
        return self._remaining(await self.peek(facts, cost=0))

    async def acquire(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = None,
        deadline: float | None = None,
        **named: object,
    ) -> AsyncSlot:
        """See ``Pace.acquire``."""
        facts = named if attributes is None else merged(attributes, named)
        decision = await self._drive(self._acquiring(facts, cost, deadline))
        return AsyncSlot(self, facts, decision)

    @asynccontextmanager
    async def slot(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = None,
        deadline: float | None = None,
        **named: object,
    ) -> AsyncIterator[AsyncSlot]:
        """See ``Pace.slot``."""
        taken = (await self.acquire(attributes, cost=cost, deadline=deadline, **named)).hold()
        try:
            yield taken
        finally:
            await taken.complete()

    async def learn(
        self, status: int, headers: Any = None, body: Any = None, /, attributes: Mapping[str, object] | None = None
    ) -> Rejection | None:
        """See ``Pace.learn``."""
        rejection = read(status, headers, body, received_at=self._wall() / 1e9)
        facts = attributes or {}
        if rejection is not None and rejection.waiting_helps and rejection.kind != "ambiguous":
            await self.pause(rejection.retry_after or 1.0, facts)
        await self._drive(self._learning(facts, Reply(status, headers, body, None), None))
        return rejection

    async def pause(self, seconds: float, attributes: Mapping[str, object] | None = None, /, **named: object) -> None:
        """See ``Pace.pause``."""
        await self._drive(self._pausing(named if attributes is None else merged(attributes, named), seconds))

    async def close(self) -> None:
        """See ``Pace.close``."""
        if self._owned:
            await self._limiter.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _drive(self, flow: Calls[R]) -> R:
        try:
            call = next(flow)
            while True:
                try:
                    answer = await self._perform(call)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    call = flow.throw(error)
                else:
                    call = flow.send(answer)
        except StopIteration as stop:
            value: R = stop.value
            return value

    async def _perform(self, call: Call | Nap) -> Any:
        import asyncio  # whoever awaits has imported it

        return await (self.timer.pause_async(asyncio.Event(), call.ns) if isinstance(call, Nap) else call())
