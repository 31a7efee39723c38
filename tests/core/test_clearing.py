"""When a queue of units has passed, on states that are not honest."""

from __future__ import annotations

import pytest

from headway.core.limit import Limit
from headway.core.quota import DAY, SECOND


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-window", "sliding-log"])
def test_a_clock_that_went_back_by_a_year_does_not_make_a_queue_wait_for_it(algorithm: str) -> None:
    """The state is capped by the first look, so five units wait for some periods, and are worked out at once."""
    rule = Limit("l", "6 per 10s", by="id", algorithm=algorithm).rule
    now = 1_800_000_000 * SECOND
    state, _ = rule.decide(None, now, 6)
    assert rule.clears_after(state, now - 400 * DAY, 5) <= 40 * SECOND
