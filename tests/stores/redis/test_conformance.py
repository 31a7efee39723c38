"""The public conformance suite on every kind of server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.stores.base import Store
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.testing import StoreConformance, blocking
from servers import Server


class TestRedisStore(StoreConformance):
    """The synchronous store keeps the contract, between processes too."""

    shared = True
    grid_ns = 1000

    @pytest.fixture(autouse=True)
    def place(self, server: Server) -> None:
        self.url = server.url

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return RedisStore(self.url, clock=clock, deadline=5)


class TestAsyncRedisStore(TestRedisStore):
    """So does its twin, and calls from several threads meet in one event loop."""

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return blocking(AsyncRedisStore(self.url, clock=clock, deadline=5))
