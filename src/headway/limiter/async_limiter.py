"""``AsyncLimiter``: ``Limiter`` with ``await``. A memory store decides at once; one that waits never blocks the loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from headway.core.change import Change
from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import RateLimited, StoreError
from headway.limiter.arguments import check_store, facts_of, lease_of, merged
from headway.limiter.base import BaseLimiter, Exempt, Keep
from headway.limiter.decision import Decision, OneDecision
from headway.limiter.effects import Advance, Apply, Call, Clears, Effect, Flow, Pause, Turn
from headway.limiter.flows import degraded
from headway.limiter.plan import Cost
from headway.limiter.queue import Ticket
from headway.limiter.reservation import AsyncReservation
from headway.limiter.timer import Timer
from headway.policy.choice import Choice
from headway.stores.base import AsyncStore, Store
from headway.stores.url import open_async_store

if TYPE_CHECKING:
    from headway.limiter.decorate import AttributeSource, CostSource
    from headway.limiter.explain import Explanation

__all__ = ["AsyncLimiter"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class AsyncLimiter(BaseLimiter):
    """The twin of ``Limiter`` for asyncio; the same arguments, decisions and errors.

    Args:
        limits: see ``Limiter``.
        store: a URL, an ``AsyncStore``, or a ``Store`` (SQLite then works in a worker thread).
        namespace: see ``Limiter``.
        secret_key: see ``Limiter``.
        exempt: see ``Limiter``.
        timer: see ``Limiter``.

    Raises:
        LimitError: see ``Limiter``.
        ConfigError: see ``Limiter``.
        StoreUnusable: see ``Limiter``.
    """

    def __init__(
        self,
        *limits: Limit | Choice,
        store: str | Store | AsyncStore = "memory://",
        namespace: str = "default",
        secret_key: bytes | str | None = None,
        exempt: Exempt | None = None,
        timer: Timer | None = None,
    ) -> None:
        check_store(store, asynchronous=True)
        self.store: AsyncStore = open_async_store(store)
        self._owned = isinstance(store, str)
        super().__init__(limits, self.store, namespace, secret_key, exempt, timer)

    async def hit(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = 1,
        up_to: int | None = None,
        **named: object,
    ) -> Decision:
        """See ``Limiter.hit``."""
        facts = named if attributes is None else attributes
        if type(cost) is int and cost > 0 and up_to is None and (facts is named or (type(facts) is dict and not named)):
            try:
                if (ready := self._one) is not None:
                    one, plan = ready
                    made = one(facts, cost)
                    if made is not None:
                        decision = OneDecision()  # as ``Decision.by``, without the call
                        decision.allowed, decision._plan, decision._made = made[0], plan, made
                        return decision
                elif (way := self._quick) is not None:
                    found = way[0](facts, cost)
                    if found is not None:
                        return Decision.by(way[1], found)
            except StoreError as error:
                bill = (plan := self.plan).charges(plan.keys(facts), plan.costs(cost))
                return await self._drive(degraded(plan, bill, time.time_ns(), error))
            if self._trip is not None:
                bill_of, trip, plan = self._trip
                asked = bill_of(facts, cost)
                if asked is not None:
                    try:
                        allowed, at, states = await trip(*asked)
                    except StoreError as error:  # meanwhile the attributes may be others, and the plan another
                        return await self._drive(degraded(plan, plan.charges(*asked), time.time_ns(), error))
                    return Decision.by(plan, (allowed, at, asked[1], asked[0], states))
        return await self._decide(attributes, named, cost, up_to=up_to)

    async def peek(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Decision:
        """See ``Limiter.peek``."""
        return await self._decide(facts_of(attributes, named, "up_to"), {}, cost, commit=False)

    async def wait(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = 1,
        deadline: float | None = None,
        **named: object,
    ) -> Decision:
        """See ``Limiter.wait``."""
        facts = facts_of(attributes, named, "up_to", "timeout")
        return await self._drive(self._waiting(facts, cost, deadline, _ticket))

    async def reserve(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = 1,
        ttl: float = 60.0,
        debt: bool = True,
        **named: object,
    ) -> AsyncReservation:
        """See ``Limiter.reserve``."""
        facts = facts_of(attributes, named, "up_to", "deadline", "timeout")
        return AsyncReservation(self, await self._drive(self._asking(facts, cost, lease=lease_of(ttl))), debt)

    async def refund(self, decision: Decision) -> bool:
        """See ``Limiter.refund``."""
        return await self._drive(self._refunding(decision))

    async def release(self, decision: Decision) -> bool:
        """See ``Limiter.release``."""
        return await self._drive(self._releasing(decision))

    async def renew(self, decision: Decision) -> bool:
        """See ``Limiter.renew``."""
        return await self._drive(self._renewing(decision))

    async def explain(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Explanation:
        """See ``Limiter.explain``."""
        facts = facts_of(attributes, named, "up_to")
        return await self._drive(self._explaining(facts, cost))

    async def change_quota(self, name: str, quota: Quota | str, *, keep: Keep = "as-is") -> None:
        """See ``Limiter.change_quota``."""
        old, new = self._changed(name, quota, keep)
        if keep == "proportional" and old.quota.count and new.quota.count:  # nothing is a share of 0
            await self.store.requota(self._namespace, old, new)
        elif keep == "reset":
            await self.store.clear(self._namespace, old)
        self._swap(old, new)

    async def reset(self, *what: str | Mapping[str, object], **named: object) -> tuple[str, ...]:
        """See ``Limiter.reset``."""
        charges = self._resets(what, named)
        await self.store.reset(charges)
        self._lines.look_again()
        return tuple(charge.limit.name for charge in charges)

    @asynccontextmanager
    async def admitted(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> AsyncIterator[Decision]:
        """See ``Limiter.admitted``."""
        decision = await self._decide(facts_of(attributes, named, "up_to", "deadline", "timeout"), {}, cost)
        if not decision.allowed:
            raise RateLimited(decision)
        try:
            yield decision
        finally:
            if self.plan.holds:
                await self._drive(self._leaving(decision))

    @overload
    def limited(self, function: Callable[P, Awaitable[R]], /) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def limited(
        self, /, *, cost: CostSource = 1, **attributes: AttributeSource
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Coroutine[Any, Any, R]]]: ...
    def limited(
        self,
        function: Callable[P, Awaitable[R]] | None = None,
        /,
        *,
        cost: CostSource = 1,
        **attributes: AttributeSource,
    ) -> (
        Callable[P, Coroutine[Any, Any, R]] | Callable[[Callable[P, Awaitable[R]]], Callable[P, Coroutine[Any, Any, R]]]
    ):
        """See ``Limiter.limited``; for ``async def`` only."""

        def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
            from headway.limiter import decorate as how  # inspect is slow to import

            how.check_kind(function, asynchronous=True, immediate=self._memory is not None, holds=self.plan.holds)
            request = how.request_of(function, self.plan.attributes, attributes, cost, looked_at=self.attributes)

            async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                facts, units = request(args, kwargs)
                async with self.admitted(facts, cost=units):
                    return await function(*args, **kwargs)

            return cast("Callable[P, Coroutine[Any, Any, R]]", how.keep(wrapper, function))

        return decorate if function is None else decorate(function)

    async def close(self) -> None:
        """Close the store, if this limiter opened it."""
        if self._owned:
            await self.store.close()

    aclose = close
    """For ``contextlib.aclosing``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _decide(
        self,
        attributes: Mapping[str, object] | None,
        named: Mapping[str, object],
        cost: Cost,
        *,
        commit: bool = True,
        up_to: int | None = None,
    ) -> Decision:
        facts = named if attributes is None else merged(attributes, named)
        way = self._way if self._fixed else self._at_hand(facts)
        if way is None or self._off or way.plan.holds or up_to is not None:
            return await self._drive(self._asking(facts, cost, commit=commit, up_to=up_to))
        plan, charges = way.plan, None
        keys = plan.keys(facts)
        costs = plan.costs(cost) if self._fixed else self._costs(plan, cost)
        try:
            found = way.direct(keys, costs, commit)
            if found is None and way.trip is not None and commit and all(costs):
                found = await way.trip(keys, costs)
            if found is None:
                charges = plan.charges(keys, costs)
                if self._advance_states is not None:
                    found = await self._advance_states(charges, commit=commit)
                else:
                    answer = await self.store.advance(charges, commit=commit)
                    found = answer.allowed, answer.now, answer
        except StoreError as error:
            bill = charges or plan.charges(keys, costs)
            return await self._drive(degraded(plan, bill, time.time_ns(), error, commit=commit))
        decision = Decision.by(plan, (found[0], found[1], costs, keys, found[2]), charges if commit else ())
        return self._shadows.note(plan, keys, decision, facts) if commit and self._shadows else decision

    async def _settle(self, decision: Decision, changes: tuple[Change, ...]) -> bool:
        return await self._drive(self._settling(decision, changes))

    async def _drive(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    answer = await self._perform(effect)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _perform(self, effect: Effect) -> Any:
        match effect:
            case Advance(charges, commit, local, since):
                if since is not None and not local and self._advance_late is not None:
                    return await self._advance_late(charges, since)
                store = self._async_stand_in if local else self.store
                return await store.advance(charges, commit=commit)
            case Apply(changes, local):
                return await (self._async_stand_in if local else self.store).change(changes)
            case Clears(charge):
                return await self.store.clears_after(charge)
            case Turn(ticket, at_most):
                await self._timer.turn_async(ticket.event, at_most)
                return ticket.first
            case Pause(ticket, ns):
                return await self._timer.pause_async(ticket.event, ns)
            case Call(function, attributes):
                answer = function(attributes)
                return await answer if hasattr(answer, "__await__") else answer


def _ticket() -> Ticket:
    import asyncio  # whoever awaits has imported it

    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop was closed: the ticket is gone
            loop.call_soon_threadsafe(event.set)

    return Ticket(wake, event.clear, event, loop.is_closed)
