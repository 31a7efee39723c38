"""What bursts and limits some arrivals need, held to the core's own decisions."""

from __future__ import annotations

import random
from array import array

from hypothesis import given
from hypothesis import strategies as st

from headway.analysis.suggest.numpy_levels import burst_needed, refused_of, smallest_limit
from headway.core.limit import Limit
from headway.core.outcome import Refused
from headway.core.quota import SECOND, Quota

TIMES = st.one_of(
    st.lists(st.integers(0, 40), min_size=1, max_size=80).map(lambda seconds: [second * SECOND for second in seconds]),
    st.lists(st.integers(0, 3 * SECOND), min_size=1, max_size=80),
    st.lists(st.integers(0, 2**61), min_size=1, max_size=80),
).map(lambda times: array("q", sorted(times)))
LONG = st.tuples(st.integers(0, 2**32), st.integers(31, 300), st.sampled_from([1, SECOND, 2**55])).map(
    lambda drawn: array("q", sorted(random.Random(drawn[0]).randrange(60) * drawn[2] for _ in range(drawn[1])))
)
"""Too many to be counted one by one, in ns, in seconds, and so far apart that 64 bits would not do."""
TIMES = st.one_of(TIMES, LONG)
PERIODS = st.sampled_from([SECOND, 60 * SECOND, 7 * SECOND + 13, 86_400 * SECOND])


def refused_by_core(times: array[int], quota: Quota) -> int:
    """How many requests the core refuses."""
    rule, state, refused = Limit("x", quota).rule, None, 0
    for now in times:
        state, outcome = rule.decide(state, now, 1)
        refused += isinstance(outcome, Refused)
    return refused


@given(TIMES, st.integers(1, 50), PERIODS)
def test_the_burst_is_enough_and_one_less_is_not(times: array[int], count: int, period: int) -> None:
    """With the burst that is said the core refuses nothing, with one less it refuses something."""
    burst = burst_needed(times, count, period)
    assert refused_by_core(times, Quota(count, period, burst)) == 0
    assert burst == 1 or refused_by_core(times, Quota(count, period, burst - 1)) > 0


@given(TIMES, st.integers(1, 50), PERIODS, st.integers(1, 20))
def test_refusals_are_the_cores(times: array[int], count: int, period: int, burst: int) -> None:
    """The number of refusals that a search counts is the number of the core's."""
    assert refused_of(times, count, period, burst) == refused_by_core(times, Quota(count, period, burst))


@given(TIMES, PERIODS, st.integers(1, 5))
def test_the_smallest_limit_is_the_smallest(times: array[int], period: int, known: int) -> None:
    """With n per period nothing is refused, with n - 1 something is, unless n was known to be needed."""
    limit = smallest_limit(times, period, known)
    assert limit >= known
    assert refused_by_core(times, Quota(limit, period)) == 0
    assert limit == known or refused_by_core(times, Quota(limit - 1, period)) > 0
