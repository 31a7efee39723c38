"""Limits: another quota for the same limit, and what that keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.core.limit import Algorithm, Limit, requoted
from headway.core.quota import Quota
from headway.errors import LimitError, QuotaError


def test_a_minimum_interval_has_burst_one_however_it_is_said() -> None:
    """Its quota is the same again when another field is replaced, and "burst 1" says nothing new."""
    limit = Limit("l", "2 per 3 s", by="id", algorithm="minimum-interval")
    assert limit.quota == Quota.parse("2 per 3 s burst 1")
    assert replace(limit, shadow=True).quota == limit.quota
    assert Limit("l", "2 per 3 s burst 1", by="id", algorithm="minimum-interval") == limit
    for algorithm in ("minimum-interval", "sliding-log", "fixed-window"):
        with pytest.raises(LimitError, match=f"{algorithm} takes no burst; drop 'burst 5' or use gcra"):
            Limit("l", "2 per 3 s burst 5", algorithm=algorithm)
    with pytest.raises(LimitError, match="sliding-log takes no burst"):
        Limit("l", "2 per 3 s burst 1", algorithm="sliding-log")


def test_another_quota_is_counted_the_same_way() -> None:
    """By text or as a value; all else stays."""
    limit = Limit("l", "5/s", by="id", cost=2, shadow=True, text="Slow down.")
    for quota in ("7/s burst 3", Quota.parse("7/s burst 3")):
        changed = requoted(limit, quota)
        assert changed == replace(limit, quota=Quota.parse("7/s burst 3"))
        assert changed.rule.burst == 3
    with pytest.raises(QuotaError, match="7 per"):
        requoted(limit, "7 per")


@pytest.mark.parametrize(
    ("limit", "quota", "says"),
    [
        (Limit("l", "3 at once"), "5/s", "'5/s' and '3 at once for 1 minute' are not both counted by concurrency"),
        (Limit("l", "5/s", algorithm="concurrency"), "3 at once", "are not both counted by concurrency"),
        (Limit("l", "5/s"), "3 at once", "counted by concurrency, not by gcra"),
        (Limit("l", "5/s"), "3/day in UTC", "counted by calendar-window, not by gcra"),
        (Limit("l", "3/day in UTC"), "5/s", "needs a quota 'in ZONE'"),
        (Limit("l", "5/s", algorithm="sliding-log"), "5/s burst 2", "takes no burst"),
    ],
)
def test_a_quota_that_is_counted_otherwise_is_refused(limit: Limit, quota: str, says: str) -> None:
    """Its keys' states would mean nothing."""
    with pytest.raises(LimitError, match=f"limit 'l': .*{says}"):
        requoted(limit, quota)


def test_blocking_and_back_again_is_always_possible() -> None:
    """A count of 0 is no kind of counting; a limit of places stays one, with a number of places again."""
    places = Limit("l", "3 at once")
    blocked = requoted(places, "0/s")
    assert blocked.algorithm is Algorithm.CONCURRENCY
    assert blocked.rule.burst == 0
    assert requoted(blocked, "3 at once").rule == places.rule
    assert requoted(Limit("l", "5/s", algorithm="concurrency"), "7/s").rule.burst == 7
