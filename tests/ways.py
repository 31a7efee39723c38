"""The ways a decision can take through this process: each store bare, and each limiter over it.

A test that goes through all of them keeps the short ways of the memory store and the asynchronous twins honest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Outcome
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.stores.base import Store
from headway.stores.clock import Clock
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore

Ask = Callable[..., tuple[bool, Mapping[str, Outcome]]]
"""``ask(cost, key="k", commit=True)``: admitted, and the outcomes by limit name."""

STORES: dict[str, Callable[[Clock, Path], Store]] = {
    "memory": lambda clock, folder: MemoryStore(clock=clock),
    "sqlite": lambda clock, folder: SqliteStore(folder / "limits.db", clock=clock),
}


def bare(store: Store, *limits: Limit) -> Ask:
    """Charges handed to the store itself."""

    def ask(cost: int, key: str = "k", commit: bool = True) -> tuple[bool, Mapping[str, Outcome]]:
        answer = store.advance([Charge("n", limit, key, cost) for limit in limits], commit=commit)
        return answer.allowed, {limit.name: out for limit, out in zip(limits, answer.outcomes, strict=True)}

    return ask


def through_limiter(limiter: Limiter) -> Ask:
    """``Limiter.hit`` and ``peek``; the limits are keyed by ``id``."""

    def ask(cost: int, key: str = "k", commit: bool = True) -> tuple[bool, Mapping[str, Outcome]]:
        decision = (limiter.hit if commit else limiter.peek)(id=key, cost=cost)
        return decision.allowed, decision.outcomes

    return ask


def through_async_limiter(limiter: AsyncLimiter, loop: asyncio.AbstractEventLoop) -> Ask:
    """``AsyncLimiter.hit`` and ``peek``, one call at a time."""

    def ask(cost: int, key: str = "k", commit: bool = True) -> tuple[bool, Mapping[str, Outcome]]:
        call = limiter.hit if commit else limiter.peek
        decision = loop.run_until_complete(call(id=key, cost=cost))
        return decision.allowed, decision.outcomes

    return ask


WAYS = [f"{form} {store}" for store in STORES for form in ("bare", "limiter", "async")]


@contextmanager
def opened(way: str, clock: Clock, folder: Path, *limits: Limit) -> Iterator[Ask]:
    """One way through a fresh store; every limit must be keyed by ``id``."""
    form, name = way.split()
    store = STORES[name](clock, folder)
    loop = asyncio.new_event_loop()
    try:
        if form == "bare":
            yield bare(store, *limits)
        elif form == "limiter":
            yield through_limiter(Limiter(*limits, store=store))
        else:
            limiter = AsyncLimiter(*limits, store=store)
            yield through_async_limiter(limiter, loop)
            loop.run_until_complete(limiter.store.close())
    finally:
        loop.close()
        store.close()


def admitted(outcome: Outcome) -> bool:
    return isinstance(outcome, Admitted)
