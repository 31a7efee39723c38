"""Every transport as the same plain function, so that one set of tests says what all of them do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.transports.server import Scripted, scripted


@pytest.fixture(scope="session")
def one_server() -> Iterator[Scripted]:
    """One server for all tests."""
    with scripted() as state:
        yield state


@pytest.fixture
def server(one_server: Scripted) -> Scripted:
    """A server on a free port that answers as it is told, and has seen nothing."""
    one_server.script.clear()
    one_server.seen.clear()
    return one_server
