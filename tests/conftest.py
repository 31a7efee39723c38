"""What every test shares: one time, and hypothesis without deadlines or a database that remembers other machines.

Set HEADWAY_TESTS_LONG=1 for the long variants: ten times the examples, two hundred kills.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from headway.testing.clock import ManualClock

LONG = os.environ.get("HEADWAY_TESTS_LONG") == "1"

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
