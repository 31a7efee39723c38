"""Block: a count of 0 and a ban."""

from __future__ import annotations

import pytest

from headway import Limit
from headway.core.block import Block
from headway.core.lease import Receipt
from headway.core.limit import Algorithm
from headway.core.outcome import Admitted, Never


def test_a_block_admits_nothing_and_tells_no_wait() -> None:
    """Any cost is ``Never`` with a burst of 0; looking is not."""
    for cost in (1, 10**12):
        assert Block().decide(None, 0, cost) == (None, Never(0, 0, 0, 0))
    assert Block().decide(None, 0, 0) == (None, Admitted(0, 0, 0))


def test_a_block_leaves_the_state_for_the_day_the_quota_is_raised() -> None:
    """Whatever another quota wrote stays, through every call there is."""
    state = (5, 6)
    rule = Block()
    receipt = Receipt(0, 1, 0, Admitted(0, 0, 0))
    assert rule.decide(state, 0, 1)[0] is state
    assert rule.give_back(state, 0, 1, receipt) is state
    assert rule.take(state, 0, 1) is state
    assert rule.scaled(state, 0, None) is state
    assert rule.clears_after(state, 0, 5) == 0
    assert rule.expires_at(state) == 0
    assert rule.dump(state) == ()
    assert rule.load((5, 6)) is None


@pytest.mark.parametrize(
    "algorithm", [a for a in Algorithm if a not in (Algorithm.CALENDAR_WINDOW, Algorithm.CONCURRENCY)]
)
def test_a_count_of_zero_blocks_under_every_algorithm(algorithm: Algorithm) -> None:
    """0 per day means nothing, however it is counted."""
    assert Limit("ban", "0/day", algorithm=algorithm).rule == Block()


def test_a_count_of_zero_in_a_zone_or_at_once_blocks_too() -> None:
    """Also where the quota chooses the algorithm."""
    assert Limit("ban", "0/day in UTC").rule == Block()
    assert Limit("ban", "0 at once").rule == Block()
