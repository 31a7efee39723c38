"""``AsyncLimiter``: ``Limiter`` with ``await``. A memory store decides at once; one that waits never blocks the loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from headway.core.limit import Limit
from headway.errors import RateLimited, StoreError
from headway.limiter.base import BaseLimiter, merged
from headway.limiter.decision import Decision
from headway.limiter.flows import Flow, decide, degraded
from headway.limiter.plan import Cost
from headway.stores.base import AsyncStore, Store
from headway.stores.url import open_async_store

if TYPE_CHECKING:
    from headway.limiter.decorate import AttributeSource, CostSource

__all__ = ["AsyncLimiter"]

P = ParamSpec("P")
R = TypeVar("R")


class AsyncLimiter(BaseLimiter):
    """The twin of ``Limiter`` for asyncio; the same arguments, decisions and errors.

    Args:
        limits: see ``Limiter``.
        store: a URL, an ``AsyncStore``, or a ``Store`` (SQLite then works in a worker thread).
        namespace: see ``Limiter``.
        secret_key: see ``Limiter``.

    Raises:
        LimitError: see ``Limiter``.
        ConfigError: see ``Limiter``.
        StoreUnusable: see ``Limiter``.
    """

    def __init__(
        self,
        *limits: Limit,
        store: str | Store | AsyncStore = "memory://",
        namespace: str = "default",
        secret_key: bytes | str | None = None,
    ) -> None:
        opened: AsyncStore = open_async_store(store)
        super().__init__(limits, opened, namespace, secret_key)
        self.store = opened
        self._owned = isinstance(store, str)

    async def hit(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Decision:
        """See ``Limiter.hit``."""
        one = self._one
        if one is not None and attributes is None and type(cost) is int and cost > 0:
            key = named.get(self.plan.single)  # type: ignore[arg-type]  # no attribute is named None
            if type(key) is str:
                try:
                    allowed, now, before = one(key, cost)
                except StoreError:
                    pass  # a full store: the long way decides what that means
                else:
                    return Decision(self.plan, allowed, now, (cost,), (before,))
        return await self._decide(attributes, named, cost, True)

    async def peek(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Decision:
        """See ``Limiter.peek``."""
        return await self._decide(attributes, named, cost, False)

    async def reset(self, *what: str | Mapping[str, object], **named: object) -> tuple[str, ...]:
        """See ``Limiter.reset``."""
        charges = self._resets(what, named)
        await self.store.reset(charges)
        return tuple(charge.limit.name for charge in charges)

    @asynccontextmanager
    async def admitted(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> AsyncIterator[Decision]:
        """See ``Limiter.admitted``: ``async with codes.admitted(phone=…) as decision:``."""
        decision = await self._decide(attributes, named, cost, True)
        if not decision.allowed:
            raise RateLimited(decision)
        yield decision

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

            how.check_kind(function, asynchronous=True, immediate=self._lane is not None)
            request = how.request_of(function, self.plan.attributes, attributes, cost)

            async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                facts, units = request(args, kwargs)
                decision = await self._decide(facts, {}, units, True)
                if not decision.allowed:
                    raise RateLimited(decision)
                return await function(*args, **kwargs)

            return cast("Callable[P, Coroutine[Any, Any, R]]", how.keep(wrapper, function))

        return decorate if function is None else decorate(function)

    async def close(self) -> None:
        """Close the store, if this limiter opened it."""
        if self._owned:
            await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _decide(
        self, attributes: Mapping[str, object] | None, named: Mapping[str, object], cost: Cost, commit: bool
    ) -> Decision:
        keys = self.plan.keys(named if attributes is None else merged(attributes, named))
        costs = self.plan.costs(cost)
        if self._lane is None:
            return await self._drive(decide(self.plan, keys, costs, commit, time.time_ns()))
        try:
            allowed, now, states = self._lane.advance(keys, costs, commit)
        except StoreError as error:
            charges = self.plan.charges(keys, costs)
            return await self._drive(degraded(self.plan, charges, costs, commit, time.time_ns(), error))
        return Decision(self.plan, allowed, now, costs, states)

    async def _drive(self, flow: Flow[Decision]) -> Decision:
        try:
            effect = next(flow)
            while True:
                store = self._async_stand_in if effect.local else self.store
                try:
                    answer = await store.advance(effect.charges, commit=effect.commit)
                except StoreError as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision
