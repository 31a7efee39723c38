"""A process's share of each limit while the store is away."""

from __future__ import annotations

from fractions import Fraction

import pytest

from headway import Limit
from headway.core.charge import Charge
from headway.stores.share import ShareStore, shared_limit
from headway.testing.clock import ManualClock

QUARTER = Fraction(1, 4)


@pytest.mark.parametrize(
    ("limit", "quota"),
    [
        (Limit("l", "100/s burst 20"), "100 per 4 seconds burst 5"),
        (Limit("l", "7/s burst 1"), "7 per 4 seconds burst 1"),
        (Limit("l", "3/s", algorithm="sliding-log"), "1/s"),
        (Limit("l", "9/s", algorithm="fixed-window"), "2/s"),
        (Limit("l", "9/day in Asia/Shanghai"), "2/day in Asia/Shanghai"),
        (Limit("l", "8 at once"), "2 at once for 1 minute"),
        (Limit("l", "0/s"), "0/s"),
        (Limit("l", "1 per 30000 days"), "1 per 30000 days"),
        (Limit("l", "1 per 30s burst 3", algorithm="growing-wait"), "1 per 30 seconds burst 3"),
    ],
)
def test_a_share_is_exact_for_rates_and_at_least_one(limit: Limit, quota: str) -> None:
    """A rate is divided exactly; counts and bursts are rounded down, to no less than one; the rest stays as it is."""
    shared = shared_limit(limit, QUARTER)
    assert str(shared.quota) == quota
    assert (shared.name, shared.by, shared.algorithm) == (limit.name, limit.by, limit.algorithm)


def test_four_quarters_admit_the_whole(clock: ManualClock) -> None:
    """Four processes with a quarter each admit together what one would, at once and over time."""
    limit = Limit("l", "40/s burst 20")
    stores = [ShareStore(QUARTER, clock=clock) for _ in range(4)]
    for expected in (20, 0):
        admitted = [store.advance([Charge("n", limit, (), 1)]).allowed for store in stores for _ in range(30)]
        assert sum(admitted) == expected
    clock.advance(Fraction(1, 4))
    admitted = [store.advance([Charge("n", limit, (), 1)]).allowed for store in stores for _ in range(30)]
    assert sum(admitted) == 8  # 2.5 each, in whole units
