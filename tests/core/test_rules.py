"""From a limit to its rule: which algorithm, with which numbers."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from headway.core.block import Block
from headway.core.calendar_window import CalendarWindow
from headway.core.concurrency import Concurrency
from headway.core.fixed_window import FixedWindow
from headway.core.gcra import Gcra
from headway.core.growing_wait import GrowingWait
from headway.core.leaky_bucket import LeakyBucketQueue
from headway.core.limit import Algorithm, Limit
from headway.core.quota import DAY, HOUR, MINUTE, SECOND
from headway.core.rule import Rule, in_order
from headway.core.rules import rule_of
from headway.core.sliding_log import SlidingLog
from headway.core.sliding_window import SlidingWindow
from headway.errors import LimitError

GCRA = Gcra(3 * SECOND, 12 * SECOND)
RULES: dict[Algorithm, tuple[str, Rule]] = {
    Algorithm.GCRA: ("10 per 30s burst 4", GCRA),
    Algorithm.TOKEN_BUCKET: ("10 per 30s burst 4", GCRA),
    Algorithm.LEAKY_BUCKET: ("10 per 30s burst 4", GCRA),
    Algorithm.LEAKY_BUCKET_QUEUE: ("10 per 30s burst 4", LeakyBucketQueue(GCRA, 1)),
    Algorithm.MINIMUM_INTERVAL: ("10 per 30s", Gcra(3 * SECOND, 3 * SECOND)),
    Algorithm.FIXED_WINDOW: ("10 per 30s", FixedWindow(10, 30 * SECOND)),
    Algorithm.ANCHORED_WINDOW: ("10 per 30s", FixedWindow(10, 30 * SECOND, anchored=True)),
    Algorithm.CALENDAR_WINDOW: (
        "10/week starting sunday in Asia/Tokyo",
        CalendarWindow(10, ZoneInfo("Asia/Tokyo"), "week", 6),
    ),
    Algorithm.SLIDING_WINDOW: ("10 per 30s", SlidingWindow(10, 30 * SECOND)),
    Algorithm.SLIDING_LOG: ("10 per 30s", SlidingLog(10, 30 * SECOND)),
    Algorithm.CONCURRENCY: ("10 at once for 30s", Concurrency(10, 30 * SECOND)),
    Algorithm.GROWING_WAIT: ("10 per 30s burst 4", GrowingWait(4, 3 * SECOND, HOUR, DAY)),
}


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_every_algorithm_s_name_makes_its_rule(algorithm: Algorithm) -> None:
    """With the quota's own numbers."""
    text, rule = RULES[algorithm]
    assert rule_of(Limit("l", text, algorithm=algorithm)) == rule


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_a_count_of_0_blocks_whatever_counts(algorithm: Algorithm) -> None:
    """No algorithm has anything to divide by then."""
    text = "0/week in UTC" if algorithm is Algorithm.CALENDAR_WINDOW else "0/s"
    assert rule_of(Limit("l", text, algorithm=algorithm)) == Block()


def test_options_reach_the_rule_that_takes_them() -> None:
    """Refused requests counted, units that pass undelayed, the longest wait and when it is forgiven."""
    queue = Limit("l", "10 per 30s burst 4", algorithm="leaky-bucket-queue", undelayed=3)
    assert rule_of(queue) == LeakyBucketQueue(GCRA, 3)
    counting = Limit("l", "10 per 30s", algorithm="fixed-window", count_refused=True)
    assert rule_of(counting) == FixedWindow(10, 30 * SECOND, count_refused=True)
    counting = Limit("l", "10 per 30s", algorithm="anchored-window", count_refused=True)
    assert rule_of(counting) == FixedWindow(10, 30 * SECOND, anchored=True, count_refused=True)
    counting = Limit("l", "10/day in Asia/Tokyo", count_refused=True)
    assert rule_of(counting) == CalendarWindow(10, ZoneInfo("Asia/Tokyo"), "day", 0, count_refused=True)
    growing = Limit("l", "10 per 30s burst 4", algorithm="growing-wait", longest="5 min", forgiven_after="2 h")
    assert rule_of(growing) == GrowingWait(4, 3 * SECOND, 5 * MINUTE, 2 * HOUR)


def test_the_first_wait_is_rounded_up() -> None:
    """Three a second: nobody comes back a fraction of a nanosecond early."""
    limit = Limit("l", "3/s", algorithm="growing-wait")
    assert rule_of(limit) == GrowingWait(3, 333_333_334, HOUR, DAY)


def test_the_longest_wait_lies_between_the_first_and_the_time_that_forgives() -> None:
    """Either bound itself is fine."""
    same = Limit("l", "1 per 30s", algorithm="growing-wait", longest="30 s", forgiven_after="30 s")
    assert rule_of(same) == GrowingWait(1, 30 * SECOND, 30 * SECOND, 30 * SECOND)


@pytest.mark.parametrize(("longest", "forgiven_after"), [("29 s", "1 h"), ("2 min", "90 s"), ("29 s", "28 s")])
def test_a_growing_wait_that_cannot_grow_names_all_three_times(longest: str, forgiven_after: str) -> None:
    """Its name, the first wait, the longest one and the quiet time, in words that can be written back."""
    said = {"29 s": "29 seconds", "28 s": "28 seconds", "1 h": "1 hour", "2 min": "2 minutes", "90 s": "90 seconds"}
    with pytest.raises(LimitError) as caught:
        Limit("login", "1 per 30s", algorithm="growing-wait", longest=longest, forgiven_after=forgiven_after)
    assert str(caught.value) == (
        "limit 'login': a growing wait begins with 30 seconds, so longest "
        f"({said[longest]}) must be at least that, and forgiven_after ({said[forgiven_after]}) at least longest"
    )


@pytest.mark.parametrize("numbers", [(), (5,), (5, 1, 5, 1, 5), (9, 1, 5, 1), (9, 0), (9, -1), (5, -1, 7, 0, 1)])
@pytest.mark.parametrize("algorithm", [one for one in Algorithm if one in RULES])
def test_what_no_rule_wrote_is_not_taken_for_a_state(algorithm: Algorithm, numbers: tuple[int, ...]) -> None:
    """Somebody else's numbers under our key are an error when they are read, not later when an outcome is asked for."""
    rule = RULES[algorithm][1]
    now = 1_700_000_000 * SECOND
    try:
        state = rule.load(numbers)
    except (TypeError, ValueError):
        return
    assert rule.decide(state, now, 1)[1].remaining >= 0


@pytest.mark.parametrize(
    ("numbers", "size"), [((), 2), ((5, 1), 2), ((5, 1, 5, 2, 9, 3), 2), ((5, 0, 1), 3), ((-5, 0, 1, 5, -7, 9), 3)]
)
def test_a_list_that_was_written_is_read_as_it_is(numbers: tuple[int, ...], size: int) -> None:
    """By instant, which may be the same one twice; a token may be any number."""
    assert in_order(numbers, size) == numbers


@pytest.mark.parametrize(
    ("numbers", "size"), [((5,), 2), ((5, 1, 9), 2), ((9, 1, 5, 1), 2), ((5, 0), 2), ((5, 1, 9, -1), 2), ((5, 1, 0), 3)]
)
def test_a_list_that_nobody_wrote_is_refused_with_its_length(numbers: tuple[int, ...], size: int) -> None:
    """A group that is not whole, instants that go back, and less than a unit."""
    with pytest.raises(ValueError, match=rf"^{len(numbers)} numbers that are no list of {size} each, by instant$"):
        in_order(numbers, size)
