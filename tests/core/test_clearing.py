"""When a queue of units has passed, on states that are not honest."""

from __future__ import annotations

import pytest

from headway.core.block import Block
from headway.core.clearing import clears_after
from headway.core.limit import Limit
from headway.core.quota import DAY, SECOND


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-window", "sliding-log"])
def test_a_clock_that_went_back_by_a_year_does_not_make_a_queue_wait_for_it(algorithm: str) -> None:
    """The state is capped by the first look, so five units wait for some periods, and are worked out at once."""
    rule = Limit("l", "6 per 10s", by="id", algorithm=algorithm).rule
    now = 1_800_000_000 * SECOND
    state, _ = rule.decide(None, now, 6)
    assert rule.clears_after(state, now - 400 * DAY, 5) <= 40 * SECOND


def test_a_queue_waits_for_what_is_left_of_it_and_not_a_moment_more() -> None:
    """Windows of two: what fits goes at once, then two a window; the wait is until the last unit has gone."""
    rule = Limit("l", "2 per 10s", by="id", algorithm="fixed-window").rule
    now = 1_800_000_000 * SECOND + 4 * SECOND
    state, _ = rule.decide(None, now, 1)
    waits = [clears_after(rule, state, now, units) for units in range(7)]
    assert waits == [0, 0, 6 * SECOND, 6 * SECOND, 16 * SECOND, 16 * SECOND, 26 * SECOND]
    assert clears_after(rule, None, now, 2) == 0
    assert clears_after(rule, None, now, 3) == 6 * SECOND


def test_places_in_a_log_come_free_one_by_one() -> None:
    """Three arrivals at different times: each unit that waits goes when the oldest is forgotten."""
    rule = Limit("l", "3 per 10s", by="id", algorithm="sliding-log").rule
    state, now = None, 1_800_000_000 * SECOND
    for move in (0, 2 * SECOND, 3 * SECOND):
        state, _ = rule.decide(state, now + move, 1)
    now += 5 * SECOND
    waits = [clears_after(rule, state, now, units) for units in range(8)]
    assert waits == [each * SECOND for each in (0, 5, 7, 8, 15, 17, 18, 25)]


def test_where_nothing_is_ever_admitted_no_wait_is_told() -> None:
    """A block answers at once, and does not loop for ever."""
    assert clears_after(Block(), None, 1_800_000_000 * SECOND, 5) == 0
