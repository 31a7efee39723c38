"""One server a session; each test has a schema of its own. Tests that kill it have one of their own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from stores.postgres.server import PostgresServer, postgres_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """One that nobody kills."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def schema() -> str:
    """A schema's name that nobody else uses."""
    return f"t{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def url(server: PostgresServer, schema: str) -> str:
    """The server, with a schema that nobody else uses, and a deadline that is no part of what a test looks at."""
    return f"{server.url}?schema={schema}&deadline=10s"
