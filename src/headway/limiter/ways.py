"""``Way``: a plan of limits over a store, and what shortens the way from a call to its decision."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from headway.core.key import Key
from headway.limiter.plan import Plan
from headway.stores.base import AsyncStore, Store
from headway.stores.lane import Lane
from headway.stores.memory import MemoryStore

__all__ = ["Way", "plain_bill", "quick_way"]

Short: TypeAlias = Callable[[Sequence[Any], Sequence[int]], tuple[bool, int, Any] | None]
"""From one key and one cost above 0 per limit to: admitted, the store's clock, each key's state before (or its ``Answer``).
None: the long way has to be taken."""

Trip: TypeAlias = Callable[[Sequence[Any], Sequence[int]], Awaitable[tuple[bool, int, Any]]]
"""The same of an asynchronous store, for what ``Short`` does not know; it asks the server, and takes every bill without leases.

Raises ``StoreError``."""


class Way:
    """A plan and what shortens its way: over a memory store its lane, over others what the store's ``short`` and ``trip`` return."""

    __slots__ = ("lane", "plan", "short", "trip")

    def __init__(self, plan: Plan, memory: MemoryStore | None, store: Store | AsyncStore) -> None:
        self.plan = plan
        self.lane: Lane | None = None if memory is None or plan.holds else memory.lane(plan.namespace, plan.limits)
        shorten = getattr(store, "short", None) if plan.limits else None
        short = shorten and shorten(plan.namespace, plan.limits)  # says which limit the store cannot hold
        self.short: Short | None = None if plan.holds else short
        travels = getattr(store, "trip", None) if plan.limits and not plan.holds else None
        self.trip: Trip | None = travels and travels(plan.namespace, plan.limits)

    def direct(self, keys: Sequence[Key], costs: Sequence[int], commit: bool) -> tuple[bool, int, Any] | None:
        """The decision by whatever shortens this way; None where nothing does, or a call needs the long one.

        Where no limit applies there is nothing to ask, and a store that is away keeps nobody from passing.
        """
        if self.lane is not None:
            return self.lane.advance(keys, costs, commit)
        if not costs:
            return True, time.time_ns(), ()
        return self.short(keys, costs) if self.short is not None and commit and all(costs) else None


def quick_way(way: Way) -> Callable[[Mapping[str, object], int], tuple[Any, ...] | None] | None:
    """From attributes and a cost above 0 to what a ``Decision`` is made of, where every key is one plain text.

    None where there is no such way, or, from the way itself, where a call needs a longer one.
    """
    plan, short = way.plan, way.short
    several = way.lane.several if way.lane else None
    pick, names = plan.pick, plan.attributes
    if (short is None and several is None) or pick is None or not plan.takes_any_cost:
        return None
    ones = (1,) * len(plan.limits)

    def quick(attributes: Mapping[str, object], cost: int) -> tuple[Any, ...] | None:
        for name in names:
            if name not in attributes or attributes[name].__class__ is not str:
                return None
        keys = pick(attributes)
        costs = ones if cost == 1 else (cost,) * len(ones)
        if several is not None:
            return several(keys, costs)
        found = short(keys, costs)  # type: ignore[misc]  # one of the two is there
        return None if found is None else (found[0], found[1], costs, keys, found[2])

    return quick


def plain_bill(plan: Plan) -> Callable[[Mapping[str, object], int], tuple[Sequence[Key], Sequence[int]] | None]:
    """From attributes and a cost above 0 to one key and one cost per limit, where every key is one plain text; else None."""
    pick, names = plan.pick, plan.attributes
    ones = (1,) * len(plan.limits)

    def bill(attributes: Mapping[str, object], cost: int) -> tuple[Sequence[Key], Sequence[int]] | None:
        if pick is None:
            return None
        for name in names:
            if name not in attributes or attributes[name].__class__ is not str:
                return None
        return pick(attributes), ones if cost == 1 else (cost,) * len(ones)

    return bill
