"""``trips``: a fixed list of limits on one asynchronous Redis store, decided again and again: the hot path for asyncio.

Decisions of one event loop travel together (``line.Line``); what is left to do here for each is kept to what its keys need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from headway.core.key import Key
from headway.core.limit import Limit
from headway.stores.redis.bills import Bill, Packed
from headway.stores.redis.codec import form_of
from headway.stores.redis.keys import tag_of
from headway.stores.redis.lane import Made, parts_of

if TYPE_CHECKING:
    from headway.stores.redis.aio import AsyncRedisStore

__all__ = ["trips"]


def trips(
    store: AsyncRedisStore, namespace: str, limits: Sequence[Limit]
) -> Callable[[Sequence[Key], Sequence[int]], Awaitable[Made]]:
    """From one key and one cost above 0 per limit to what the store decides, whatever it has refused before.

    Raises:
        LimitError: a limit whose numbers Redis cannot hold exactly; from the awaitable: ``StoreError``.
    """
    cache, parts = store.refusals, parts_of(namespace, limits)
    forms = [form_of(limit) for limit in limits]
    bys = [limit.by for limit in limits]
    numbers = range(len(limits))

    async def several(keys: Sequence[Key], costs: Sequence[int]) -> Made:
        stored = [parts[i] + tag_of(namespace, bys[i], keys[i]) for i in numbers]
        bill = Bill(Packed(namespace, limits, keys, costs, stored, forms), True, cache)
        sent = cache.ticks()
        line = store.line()
        coming = line.decide(bill)
        try:
            decided = await coming
        except asyncio.CancelledError:
            line.take_back(bill, coming)
            raise
        if not decided.allowed:
            store.learn(sent, bill.charges, decided)
        elif cache._known:
            cache.forget(stored)
        return decided.allowed, decided.now, decided.joined or decided.states

    return several
