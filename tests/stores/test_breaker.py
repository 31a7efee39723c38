"""The breaker: opens after repeated failures, lets one call try now and then, says so once an outage."""

from __future__ import annotations

import logging

import pytest

from headway.errors import StoreUnavailable
from headway.stores.breaker import Breaker
from headway.testing.clock import ManualClock


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    return Breaker("store x", ticks=lambda: clock.now / 1e9)


def outage(breaker: Breaker) -> None:
    for _ in range(3):
        breaker.enter()
        breaker.failed(OSError("no route"))


def test_it_opens_after_three_failures_in_a_row_and_not_before(breaker: Breaker) -> None:
    """Two failures, a success, two failures: closed; a third in a row: open, and the message says why."""
    for _ in range(2):
        breaker.failed(OSError("a"))
    breaker.succeeded()
    for _ in range(2):
        breaker.failed(OSError("b"))
    breaker.enter()
    breaker.failed(OSError("no route"))
    with pytest.raises(StoreUnavailable, match=r"store x is away \(no route\); it is tried again every 1 s"):
        breaker.enter()


def test_one_call_a_pause_tries(breaker: Breaker, clock: ManualClock) -> None:
    """After the pause one call is let through, the next is not; what it finds decides."""
    outage(breaker)
    for _ in range(3):
        clock.advance(1)
        breaker.enter()
        with pytest.raises(StoreUnavailable):
            breaker.enter()
        breaker.failed(OSError("still"))
    clock.advance(1)
    breaker.enter()
    breaker.succeeded()
    for _ in range(10):
        breaker.enter()
    assert breaker.outages == 1


def test_one_line_an_outage_and_counters_for_all(
    breaker: Breaker, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand refused calls log nothing more; the end of the outage says how many there were."""
    caplog.set_level(logging.INFO, "headway.stores")
    for number in (1, 2):
        outage(breaker)
        for _ in range(1000):
            with pytest.raises(StoreUnavailable):
                breaker.enter()
        assert breaker.skipped_count == 1000 * number
        clock.advance(1)
        breaker.enter()
        breaker.succeeded()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING", "INFO"]
    assert "on_store_failure decides until it is back" in caplog.messages[0]
    assert (breaker.failed_count, breaker.outages) == (6, 2)
