"""Named patterns of arrivals."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.analysis.compare.patterns import MOST_ARRIVALS, Arrival, Pattern, arrivals_of, explain_pattern
from headway.core.quota import SECOND, Quota

TEN = Quota.parse("10/s")
QUOTAS = st.builds(Quota, st.integers(1, 60), st.integers(1, 10**12))


@given(st.sampled_from(Pattern), QUOTAS, st.integers(1, 20), st.integers())
def test_arrivals_are_in_order_and_within_their_length(pattern: Pattern, quota: Quota, periods: int, seed: int) -> None:
    """Whatever the quota, arrivals come in the order of time, none before the beginning, none at or after the end."""
    arrivals = arrivals_of(pattern, quota, periods, seed)
    assert arrivals == sorted(arrivals)
    assert all(0 <= at < periods * quota.period_ns + max(1, quota.period_ns // 20) for at, _ in arrivals)
    assert all(key for _, key in arrivals)


@pytest.mark.parametrize("pattern", Pattern)
def test_a_pattern_is_the_same_every_time(pattern: Pattern) -> None:
    """The same seed gives the same arrivals; another one shifts them, and gives as many."""
    assert arrivals_of(pattern, TEN, seed=7) == arrivals_of(pattern, TEN, seed=7)
    other = arrivals_of(pattern, TEN, seed=8)
    assert other != arrivals_of(pattern, TEN, seed=7)
    assert len(other) == len(arrivals_of(pattern, TEN, seed=7))
    assert explain_pattern(pattern).endswith(".")


def within(arrivals: list[Arrival], start: float, end: float) -> int:
    """How many come from ``start`` until before ``end``, in seconds."""
    return sum(start * SECOND <= at < end * SECOND for at, _ in arrivals)


def test_steady_comes_evenly() -> None:
    """Half as many again as the quota, in every second alike."""
    arrivals = arrivals_of(Pattern.STEADY, TEN, 6)
    assert [within(arrivals, second, second + 1) for second in range(6)] == [15] * 6


def test_bursts_stand_at_the_windows_edge() -> None:
    """The whole count just before every second edge, the whole count just after it, nothing else."""
    arrivals = arrivals_of(Pattern.WINDOW_EDGE, TEN, 6)
    for edge in (1, 3, 5):
        assert within(arrivals, edge - 0.02, edge) == within(arrivals, edge, edge + 0.02) == 10
    assert len(arrivals) == 60


def test_the_herd_is_five_times_the_count_after_a_quiet_period() -> None:
    """Nothing for a period, then fifty clients within a twentieth of one."""
    arrivals = arrivals_of(Pattern.HERD, TEN, 6)
    assert within(arrivals, 2, 3) == 0
    assert within(arrivals, 3, 3.05) == 50
    assert within(arrivals, 0, 2) == 10
    assert len({key for at, key in arrivals if 3 * SECOND <= at < 3.05 * SECOND}) == 50


def test_one_client_is_greedy() -> None:
    """The greedy one sends five times the quota, each of five others half of it."""
    sent = Counter(key for _, key in arrivals_of(Pattern.GREEDY, TEN, 6))
    assert sent == {"greedy": 300} | {f"honest-{n}": 30 for n in range(1, 6)}


def test_the_worker_that_stops_has_honest_work() -> None:
    """Nine tenths of the quota in every period, and the whole count once, when the pause is over."""
    arrivals = arrivals_of(Pattern.DRIP_PAUSE, TEN, 6)
    assert [within(arrivals, second, second + 1) for second in range(6)] == [9, 9, 9, 9, 19, 9]


@pytest.mark.parametrize("periods", [0, -1, 1001])
def test_a_length_that_cannot_be(periods: int) -> None:
    """A length out of range is named with what is accepted."""
    with pytest.raises(ValueError, match=rf"length is {periods}; expected 1 to 1000"):
        arrivals_of(Pattern.STEADY, TEN, periods)


def test_too_many_arrivals_are_refused_before_they_are_made() -> None:
    """A huge quota is refused at once, with the number."""
    with pytest.raises(ValueError, match=rf"expected at most {MOST_ARRIVALS:,}"):
        arrivals_of(Pattern.STEADY, Quota(10**12, SECOND))
