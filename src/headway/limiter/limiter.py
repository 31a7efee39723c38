"""``Limiter``: decide, look, forget. For threads; ``AsyncLimiter`` is its twin with ``await``."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar, cast, overload

from headway.core.limit import Limit
from headway.errors import RateLimited, StoreError
from headway.limiter.base import BaseLimiter, merged
from headway.limiter.decision import Decision
from headway.limiter.flows import Flow, decide, degraded
from headway.limiter.plan import Cost
from headway.stores.base import Store
from headway.stores.url import open_store

if TYPE_CHECKING:
    from headway.limiter.decorate import AttributeSource, CostSource

__all__ = ["Limiter"]

P = ParamSpec("P")
R = TypeVar("R")


class Limiter(BaseLimiter):
    """Several named limits, checked together: all or nothing.

    Args:
        limits: in the order in which outcomes and header fields list them.
        store: a store, or a URL: ``memory://``, ``sqlite:///relative/file.db``, ``sqlite:////absolute/file.db``.
        namespace: two limiters share a counter only with the same namespace, limit name and attributes.
        secret_key: at least 16 bytes (text as UTF-8) that values of secret attributes are hashed with; default: the
            environment variable HEADWAY_SECRET_KEY, and with a memory store a random one.

    Raises:
        LimitError: two limits of one name, secret attributes without a key.
        ConfigError: a URL that names no store, a secret_key that is too short.
        StoreUnusable: a store that cannot serve.
    """

    def __init__(
        self,
        *limits: Limit,
        store: str | Store = "memory://",
        namespace: str = "default",
        secret_key: bytes | str | None = None,
    ) -> None:
        opened: Store = open_store(store) if isinstance(store, str) else store
        super().__init__(limits, opened, namespace, secret_key)
        self.store = opened
        self._owned = isinstance(store, str)

    def hit(self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object) -> Decision:
        """Charge a request to all limits, or to none if one refuses.

        Args:
            attributes: what is known of the request; names that no limit uses are ignored.
            cost: whole units, at least 0, for every limit without a fixed cost; or a mapping by limit name (limits
                not named are asked for 1). 0 is admitted, writes nothing and reports.
            named: attributes by keyword.

        Raises:
            AttributeMissing: a limit is keyed by an attribute that is not there.
            AttributeUnusable: a value that is no str, int, UUID, bytes or tuple of these (a TypeError).
            TypeError: a cost that is no int.
            LimitError: a negative cost (a ValueError).
        """
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
        return self._decide(attributes, named, cost, True)

    def peek(self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object) -> Decision:
        """What ``hit`` would answer now; nothing is written. Same arguments and errors."""
        return self._decide(attributes, named, cost, False)

    def reset(self, *what: str | Mapping[str, object], **named: object) -> tuple[str, ...]:
        """Forget the state of keys: of the limits named, else of those whose key is non-empty and fully given.

        Args:
            what: names of limits (a limit without a key is reset only by its name), and attributes as mappings.
            named: attributes by keyword.

        Returns:
            The names of the limits that were reset.

        Raises:
            LimitError: nothing would be reset.
            UnknownName: no limit of that name.
            AttributeMissing: a named limit's key is not fully given.
            StoreError: the store could not do it.
        """
        charges = self._resets(what, named)
        self.store.reset(charges)
        return tuple(charge.limit.name for charge in charges)

    @contextmanager
    def admitted(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Iterator[Decision]:
        """A block that runs only if the request is admitted: ``with codes.admitted(phone=…) as decision:``.

        Raises:
            RateLimited: refused; carries the decision. And what ``hit`` raises.
        """
        decision = self._decide(attributes, named, cost, True)
        if not decision.allowed:
            raise RateLimited(decision)
        yield decision

    @overload
    def limited(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def limited(
        self, /, *, cost: CostSource = 1, **attributes: AttributeSource
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def limited(
        self, function: Callable[P, R] | None = None, /, *, cost: CostSource = 1, **attributes: AttributeSource
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Ask before each call of a function: ``@codes.limited`` or ``@codes.limited(phone="number")``.

        Args:
            function: a function; an ``async def`` only with a memory store, which never waits.
            cost: units, or a function of the call's arguments by name.
            attributes: for those that no parameter is named like: a parameter's name, or a function of the call's
                arguments by name, such as ``ip=lambda call: call["request"].client``.

        Raises:
            RateLimited: by the call, when it is refused; the function does not run.
            LimitError: at once, for an attribute that nothing gives.
            TypeError: at once, for an ``async def`` on a store that waits; names AsyncLimiter.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            from headway.limiter import decorate as how  # inspect is slow to import

            how.check_kind(function, asynchronous=False, immediate=self._lane is not None)
            request = how.request_of(function, self.plan.attributes, attributes, cost)

            def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                facts, units = request(args, kwargs)
                decision = self._decide(facts, {}, units, True)
                if not decision.allowed:
                    raise RateLimited(decision)
                return function(*args, **kwargs)

            async def async_wrapper(*args: P.args, **kwargs: P.kwargs) -> object:
                return await cast("Awaitable[object]", wrapper(*args, **kwargs))

            return cast("Callable[P, R]", how.keep(async_wrapper if how.is_async(function) else wrapper, function))

        return decorate if function is None else decorate(function)

    def close(self) -> None:
        """Close the store, if this limiter opened it."""
        if self._owned:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _decide(
        self, attributes: Mapping[str, object] | None, named: Mapping[str, object], cost: Cost, commit: bool
    ) -> Decision:
        keys = self.plan.keys(named if attributes is None else merged(attributes, named))
        costs = self.plan.costs(cost)
        if self._lane is None:
            return self._drive(decide(self.plan, keys, costs, commit, time.time_ns()))
        try:
            allowed, now, states = self._lane.advance(keys, costs, commit)
        except StoreError as error:
            charges = self.plan.charges(keys, costs)
            return self._drive(degraded(self.plan, charges, costs, commit, time.time_ns(), error))
        return Decision(self.plan, allowed, now, costs, states)

    def _drive(self, flow: Flow[Decision]) -> Decision:
        try:
            effect = next(flow)
            while True:
                store = self._stand_in if effect.local else self.store
                try:
                    answer = store.advance(effect.charges, commit=effect.commit)
                except StoreError as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision
