"""One server of each kind a test run, empty for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import REDIS, Server, redis_server


@pytest.fixture(scope="session", params=list(REDIS))
def every_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with redis_server(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    with redis_server("redis-6.2") as server:
        yield server


@pytest.fixture
def server(every_server: Server) -> Server:
    """Each kind of server in turn."""
    every_server.flush()
    return every_server


@pytest.fixture
def redis(one_server: Server) -> Server:
    """The oldest server we work with, where one kind is enough."""
    one_server.flush()
    return one_server
