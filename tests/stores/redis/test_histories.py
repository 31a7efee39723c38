"""Concurrent histories of eight processes on a real server are explained by some order of the sequential core."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from headway.stores.base import Store
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.testing import blocking
from linearizable import assert_linearizable, overlaps, record
from servers import Server


def opened(url: str) -> Store:
    return RedisStore(url, deadline=10, refusal_cache=0)


def opened_async(url: str) -> Store:
    return blocking(AsyncRedisStore(url, deadline=10, refusal_cache=0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("open_store", [opened, opened_async], ids=["sync", "async"])
def test_some_order_of_the_core_explains_what_eight_processes_were_told(
    redis: Server, open_store: Callable[[str], Store], seed: int
) -> None:
    """Bills of several limits and algorithms, peeks, partial grants, refunds, leases and resets: none is odd."""
    history = record(partial(open_store, redis.url), seed=seed, calls=50)
    assert len(assert_linearizable(history)) == 400
    assert overlaps(history) > 100
