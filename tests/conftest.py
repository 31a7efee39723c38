"""What every test shares: one time, and hypothesis without deadlines or a database that remembers other machines.

The long variants: see ``length``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from browser import Browser
from headway.testing.clock import ManualClock
from length import LONG

settings.register_profile(
    "headway",
    deadline=None,
    derandomize=not LONG,
    max_examples=1000 if LONG else 100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("headway")


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands at 2027-01-15 08:00:00 UTC until it is moved."""
    return ManualClock()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser without a window; tests that use it share one by ``pytest.mark.xdist_group("browser")``."""
    with Browser() as running:
        yield running
