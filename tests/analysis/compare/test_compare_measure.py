"""What is measured of each algorithm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.analysis.compare import measure
from headway.analysis.compare.contenders import DEFAULT, NAMES, Ruled, contenders_for
from headway.analysis.compare.measure import Comparing, Comparison, Worst
from headway.analysis.compare.patterns import Arrival, Pattern, arrivals_of
from headway.core.limit import Algorithm, Limit
from headway.core.quota import SECOND, Quota
from headway.limiter.limiter import Limiter
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock

TEN = Quota.parse("10/s")
ALL = tuple(NAMES)


def compared(
    quota: Quota,
    arrivals: list[Arrival],
    algorithms: tuple[str, ...] = ALL,
    pause: tuple[int, int] | None = None,
    span: int = SECOND // 5,
) -> Comparison:
    """What comes of some arrivals."""
    comparing = Comparing(quota, contenders_for(quota, algorithms, pause), span)
    for at, key in arrivals:
        comparing.add(key, at)
    return comparing.comparison()


@given(
    st.builds(Quota, st.integers(1, 20), st.sampled_from([SECOND, 7 * SECOND, 60 * SECOND])),
    st.lists(st.tuples(st.integers(0, 3 * SECOND), st.sampled_from("ab")), max_size=60),
)
def test_every_algorithm_decides_as_it_does_live(quota: Quota, gaps: list[tuple[int, str]]) -> None:
    """The limiter that runs live, on the same arrivals, admits and refuses as many of each algorithm."""
    arrivals, now = [], ManualClock()()
    for gap, key in gaps:
        now += gap
        arrivals.append(Arrival(now, key))
    names = tuple(name for name in NAMES if name != "leaky-bucket-drip")
    found = compared(quota, arrivals, names)
    for course in found.courses:
        clock = ManualClock()
        limit = Limit("compare", quota, by="key", algorithm=Algorithm(course.algorithm))
        limiter = Limiter(limit, store=MemoryStore(clock=clock))
        admitted = 0
        for gap, key in gaps:
            clock.advance(ns=gap)
            admitted += limiter.hit(key=key).allowed
        assert course.admitted == admitted
        assert course.refused == len(arrivals) - admitted


@given(
    st.builds(Quota, st.integers(1, 6), st.sampled_from([7, 60])),
    st.lists(st.tuples(st.one_of(st.integers(0, 9), st.integers(0, 99)), st.sampled_from("ab")), max_size=60),
    st.booleans(),
)
def test_the_sliding_log_answers_as_its_rule(quota: Quota, gaps: list[tuple[int, str]], tidied: bool) -> None:
    """Restated for speed, it tells the same waits as the rule that decides live, keeps the same numbers, and its hints hold."""
    (restated,) = contenders_for(quota, ("sliding-log",))
    rule = Ruled(Limit("compare", quota, by="key", algorithm=Algorithm.SLIDING_LOG))
    now = 10**18
    for gap, key in gaps:
        now += gap
        assert restated.offer(key, now) == rule.offer(key, now)
        assert restated.numbers(key) == rule.numbers(key)
        if tidied:
            restated.tidy(now)


@given(st.lists(st.integers(0, 100), max_size=80), st.integers(1, 30))
def test_the_worst_span_is_exact(instants: list[int], period: int) -> None:
    """The most within any half-open period is what trying every beginning finds."""
    worst = Worst(period)
    for at in sorted(instants):
        worst.add(at)
    expected = max((sum(start <= at < start + period for at in instants) for start in instants), default=0)
    assert worst.most == expected


def course_of(found: Comparison, algorithm: str) -> int:
    """The most that an algorithm let through in any period."""
    return next(course for course in found.courses if course.algorithm == algorithm).worst


def test_twice_the_count_passes_at_a_windows_edge() -> None:
    """A time-bucketed counter lets the count through twice around its edge; sliding ones and GCRA do not."""
    found = compared(TEN, arrivals_of(Pattern.WINDOW_EDGE, TEN))
    assert course_of(found, "fixed-window") == 20
    assert course_of(found, "sliding-window") == course_of(found, "sliding-log") == 10
    assert course_of(found, "gcra") == course_of(found, "token-bucket") == 10


def test_token_bucket_and_gcra_have_one_course() -> None:
    """On every pattern GCRA, the token bucket and the naive one are the same to the last figure."""
    for pattern in Pattern:
        found = compared(Quota.parse("7/s burst 3"), arrivals_of(pattern, TEN), ("token-bucket", "gcra"))
        bucket, gcra = found.courses
        assert (bucket.admitted, bucket.refused, bucket.longest_wait, bucket.passed) == (
            *(gcra.admitted, gcra.refused, gcra.longest_wait),
            gcra.passed,
        )
        assert found.twins.different == 0
        assert found.twins.alike == found.requests
        assert all(tokens == room for _, tokens, room in found.twins.levels)


def test_a_process_that_stops_refuses_what_is_within_the_quota() -> None:
    """Of four fates of one process, running refuses least; one that goes on refuses the rush; one that catches up admits it."""
    end = 6 * SECOND
    found = compared(TEN, arrivals_of(Pattern.DRIP_PAUSE, TEN), ("leaky-bucket-drip", "gcra"), (end // 3, 2 * end // 3))
    runs, goes_on, catches_up, dead, gcra = found.courses
    assert [course.name for course in found.courses] == [
        "leaky bucket, drip process",
        "leaky bucket, drip stops and goes on",
        "leaky bucket, drip stops and catches up",
        "leaky bucket, drip stops for good",
        "GCRA",
    ]
    assert runs.refused <= gcra.refused < catches_up.refused < goes_on.refused < dead.refused
    assert goes_on.worst <= 10 < catches_up.worst
    assert dead.hints_kept == 0
    assert gcra.hints_kept == gcra.refused > 0
    assert catches_up.hints_kept < catches_up.refused


def test_only_the_greedy_client_is_refused() -> None:
    """With a counter each, the honest clients lose nothing, whatever the algorithm."""
    found = compared(TEN, arrivals_of(Pattern.GREEDY, TEN))
    assert found.busiest == ("greedy", 300)
    for course in found.courses:
        assert course.refused > 0
        assert course.refused_others == 0


def test_with_one_counter_the_greedy_client_starves_the_others() -> None:
    """With one counter for everyone, the same pattern refuses honest ones."""
    shared = [Arrival(at, "all") for at, _ in arrivals_of(Pattern.GREEDY, TEN)]
    found = compared(TEN, shared, ("gcra",))
    assert found.courses[0].admitted < 80


def test_state_that_is_kept() -> None:
    """GCRA keeps one number, counters two or four, the log two for each admitted request."""
    found = compared(TEN, arrivals_of(Pattern.STEADY, TEN))
    assert {course.algorithm: course.numbers for course in found.courses} == {
        "fixed-window": 2,
        "anchored-window": 2,
        "sliding-window": 4,
        "sliding-log": 20,
        "leaky-bucket-drip": 1,
        "leaky-bucket-queue": 1,
        "token-bucket": 1,
        "gcra": 1,
    }


def test_a_queue_lets_nobody_go_before_their_turn() -> None:
    """What a queue admits goes on one every emission interval, so no period sees more than the count and one."""
    shared = [Arrival(at, "all") for at, _ in arrivals_of(Pattern.HERD, TEN)]
    found = compared(TEN, shared, ("leaky-bucket-queue", "gcra"))
    queue, gcra = found.courses
    assert queue.admitted == gcra.admitted
    assert queue.worst == queue.worst_total <= 11 < gcra.worst


def test_what_passed_over_time_adds_up() -> None:
    """The picture's spans hold every admitted and every refused request once."""
    found = compared(TEN, arrivals_of(Pattern.HERD, TEN))
    for course in found.courses:
        assert sum(count for _, count in course.passed) == course.admitted
        assert sum(count for _, count in course.held_back) == course.refused


def test_long_logs_have_few_spans() -> None:
    """However long the arrivals last, a picture has at most a few hundred spans, each a power of two of the shortest."""
    arrivals = [Arrival(n * 97 * SECOND, "a") for n in range(5000)]
    found = compared(TEN, arrivals, span=SECOND)
    spans = found.last // found.span
    assert 60 <= spans <= 240
    assert found.span // SECOND & (found.span // SECOND - 1) == 0
    assert sum(count for _, count in found.courses[0].passed) == 5000


def test_times_that_go_back_are_decided_at_the_latest() -> None:
    """A request with an earlier time than one before is decided at that one's time, as a clock would have it."""
    arrivals = [Arrival(5 * SECOND, "a"), Arrival(1 * SECOND, "a"), Arrival(6 * SECOND, "a"), Arrival(2 * SECOND, "a")]
    found = compared(Quota.parse("1/s"), arrivals, ("gcra", "token-bucket", "sliding-log", "leaky-bucket-drip"))
    assert (found.first, found.last, found.requests) == (5 * SECOND, 6 * SECOND, 4)
    for course in found.courses:
        assert (course.admitted, course.refused, course.longest_wait) == (2, 2, SECOND)


@given(
    st.lists(st.tuples(st.integers(0, 2 * SECOND), st.sampled_from("abc")), max_size=80),
    st.none() | st.tuples(st.integers(0, 10 * SECOND), st.integers(10 * SECOND + 1, 30 * SECOND)),
)
def test_forgetting_changes_nothing(gaps: list[tuple[int, str]], pause: tuple[int, int] | None) -> None:
    """What is forgotten of keys that are as if unused changes no figure, whatever comes afterwards."""
    quota, arrivals, now = Quota.parse("3/s burst 4"), [], 0
    for gap, key in gaps:
        now += gap
        arrivals.append(Arrival(now, key))
    kept = compared(quota, arrivals, pause=pause)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "_TIDY_AFTER", 1)
        assert compared(quota, arrivals, pause=pause) == kept


def test_keys_that_are_over_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many keys come and go, what is kept of them is what is not yet recovered, and a count."""
    monkeypatch.setattr(measure, "_TIDY_AFTER", 200)
    contenders = contenders_for(TEN, ALL)
    comparing = Comparing(TEN, contenders, SECOND)
    for n in range(3_000):
        comparing.add(str(n), n * SECOND)
    assert all(len(contender._states) <= 201 for contender in contenders if isinstance(contender, Ruled))
    assert len(comparing._buckets) <= 201
    assert all(len(tally._worst) <= 201 for tally in comparing._tallies)


def test_nothing_is_nothing() -> None:
    """Without arrivals every figure is 0."""
    found = compared(TEN, [])
    assert (found.requests, found.keys, found.busiest) == (0, 0, None)
    assert all(course.admitted == course.refused == course.worst == 0 for course in found.courses)


@pytest.mark.parametrize("quota", ["0/s", "5/day in UTC", "3 at once for 60 s"])
def test_a_quota_that_is_no_rate(quota: str) -> None:
    """A quota that blocks, follows a calendar or counts what is held is refused with an example of one that fits."""
    with pytest.raises(ValueError, match=r"expected a rate above 0 .* such as '10/s'"):
        contenders_for(Quota.parse(quota))


def test_another_algorithm_is_named() -> None:
    """A name that is not known is refused with those that are."""
    with pytest.raises(ValueError, match=r"algorithm is 'leaky'; expected any of fixed-window, .*gcra"):
        contenders_for(TEN, ("leaky",))
    assert set(DEFAULT) < set(NAMES)
