"""The two models: a token bucket told naively, and a leaky bucket with a process."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.analysis.compare.models import Drip, DripBucket, NaiveTokenBucket
from headway.core.gcra import Gcra
from headway.core.outcome import Admitted, Refused
from headway.core.quota import SECOND, Quota

QUOTAS = st.builds(Quota, st.integers(1, 1000), st.integers(1, 10**10), st.integers(1, 50))
GAPS = st.lists(st.integers(0, 10**9) | st.integers(0, 3), min_size=1, max_size=60)
TEN = Quota.parse("10/s")


@given(QUOTAS, GAPS)
def test_token_bucket_and_gcra_are_one(quota: Quota, gaps: list[int]) -> None:
    """On any arrivals a naive token bucket and GCRA admit the same, tell the same wait, and hold the same tokens."""
    bucket, rule, state = NaiveTokenBucket(quota), Gcra.of(quota), None
    now = 0
    for gap in gaps:
        now += gap
        wait = bucket.take(now)
        state, outcome = rule.decide(state, now, 1)
        match outcome:
            case Admitted():
                assert wait == 0
            case Refused(retry_after=told):
                assert wait == told
        tat = rule.ticks(state) if state is not None else 0
        owed = max(0, tat - now * rule.scale)
        assert bucket.tokens(now) == quota.burst - Fraction(owed, rule.interval)


@given(QUOTAS, GAPS, st.data())
def test_the_level_is_what_a_process_leaves(quota: Quota, gaps: list[int], data: st.DataObject) -> None:
    """A bucket that is looked at now and then has the level of one that is drained run by run."""
    every = data.draw(st.integers(max(1, sum(gaps) // 500), 10**9))
    stops = data.draw(st.none() | st.integers(0, 10**10))
    resumes = None if stops is None else data.draw(st.none() | st.integers(stops + 1, 2 * 10**10))
    catches_up = data.draw(st.booleans())
    drip = Drip(quota, every, stops, resumes, catches_up)
    bucket = DripBucket(quota, drip)
    now = level = run = taken = skipped = 0
    for gap in gaps:
        now += gap
        while (run + 1) * every <= now:
            run += 1
            at = run * every
            due = at * quota.count // quota.period_ns
            if stops is not None and at >= stops and (resumes is None or at < resumes):
                skipped += 0 if catches_up else due - taken - skipped
                continue
            level = max(0, level - (due - taken - skipped))
            taken = due - skipped
        assert bucket.level(now) == level
        wait = bucket.pour(now)
        assert (wait == 0) == (level < quota.burst)
        level += wait == 0


def test_a_process_that_stands_still_drains_nothing() -> None:
    """While it stands still the bucket stays full; when it goes on it takes out one a run, or all at once to catch up."""
    tenth = SECOND // 10
    for catches_up, then in ((False, 9), (True, 0)):
        bucket = DripBucket(TEN, Drip(TEN, tenth, 0, 2 * SECOND, catches_up))
        for _ in range(10):
            assert bucket.pour(0) == 0
        assert bucket.pour(SECOND) == tenth, "all that it can tell is when the next run is due"
        assert not bucket.fits(2 * SECOND - 1)
        assert bucket.level(2 * SECOND) == then


def test_a_process_that_never_goes_on_refuses_for_ever() -> None:
    """A bucket whose process died stays as full as it is."""
    bucket = DripBucket(TEN, Drip(TEN, SECOND // 10, 5 * SECOND))
    for _ in range(10):
        assert bucket.pour(5 * SECOND) == 0
    assert not bucket.fits(10**6 * SECOND)


@pytest.mark.parametrize("quota", ["3/s", "7 per 10s", "1000/s burst 3", "1 per 60s", "11/day"])
def test_the_next_run_takes_a_unit_out(quota: str) -> None:
    """The told wait is just long enough, while the process lives: at that instant there is room, a nanosecond before there is none."""
    own = Quota.parse(quota)
    every = -(-own.period_ns // own.count)
    bucket = DripBucket(own, Drip(own, every))
    now = 12_345
    for _ in range(5):
        while not (wait := bucket.pour(now)):
            pass
        assert bucket.fits(now + wait)
        assert not bucket.fits(now + wait - 1)
        now += wait
