"""The leaky bucket as a queue: admitted with a delay up to the burst; nginx's plain, ``delay=`` and ``nodelay`` forms."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Limit, LimitError
from headway.core.gcra import Gcra
from headway.core.leaky_bucket import LeakyBucketQueue
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Refused
from headway.core.quota import SECOND

QUEUE = "leaky-bucket-queue"


def delays(limit: Limit, arrivals: list[int]) -> list[Fraction | None]:
    """Seconds of delay for each arrival (ns), None where it is refused."""
    state, told = None, []
    for now in arrivals:
        state, outcome = limit.rule.decide(state, now, 1)
        told.append(Fraction(outcome.delay, SECOND) if isinstance(outcome, Admitted) else None)
    return told


def nginx(rate_per_minute: int, burst: int, delay: int | None, arrivals: list[int]) -> list[Fraction | None]:
    """``limit_req`` as ngx_http_limit_req_module computes it: an excess of requests that leaks; the first has none."""
    excess: Fraction | None = None
    last, told = 0, []
    for now in arrivals:
        new = (
            Fraction(0)
            if excess is None
            else max(Fraction(0), excess - Fraction(now - last, 60 * SECOND) * rate_per_minute + 1)
        )
        if new > burst:
            told.append(None)
            continue
        excess, last = new, now
        told.append(Fraction(0) if delay is None else max(Fraction(0), new - delay) * 60 / rate_per_minute)
    return told


@pytest.mark.parametrize(
    ("rate", "burst", "delay", "undelayed"),
    [
        (60, 20, 0, 1),
        (120, 20, 0, 1),
        (60, 20, None, 21),
        (60, 20, 8, 9),
        (300, 12, 8, 9),
        (60, 0, 0, 1),
        (60, 5, 5, 6),
    ],
)
@given(moves=st.lists(st.one_of(st.just(0), st.integers(0, 3000)), min_size=1, max_size=40))
def test_nginx_s_three_forms_can_be_said(
    rate: int, burst: int, delay: int | None, undelayed: int, moves: list[int]
) -> None:
    """burst=B is a burst of B + 1; delay=D is D + 1 undelayed; nodelay is all undelayed; plain is one: same decisions, same delays."""
    limit = Limit("req", f"{rate}/min burst {burst + 1}", algorithm=QUEUE, undelayed=undelayed)
    now, arrivals = 0, []
    for move in moves:
        now += move * 1_000_000
        arrivals.append(now)
    assert delays(limit, arrivals) == nginx(rate, burst, delay, arrivals)


def test_five_at_once_are_paced() -> None:
    """120 a minute: the first goes on at once, each further one half a second after the one before."""
    limit = Limit("req", "120/min burst 21", algorithm=QUEUE)
    assert delays(limit, [0] * 5) == [0, Fraction(1, 2), 1, Fraction(3, 2), 2]


def test_a_full_queue_refuses_with_the_time_until_it_has_room() -> None:
    """The wait is for a place in the queue; the delay then comes on top."""
    rule = Limit("req", "60/min burst 3", algorithm=QUEUE).rule
    state, _ = rule.decide(None, 0, 3)
    state, outcome = rule.decide(state, 0, 1)
    assert outcome == Refused(0, SECOND, SECOND, 3 * SECOND)
    assert rule.decide(state, SECOND, 1)[1] == Admitted(0, SECOND, 3 * SECOND, delay=2 * SECOND)


def test_a_delay_is_rounded_up() -> None:
    """At 3 per second nobody goes on a fraction of a nanosecond early."""
    rule = Limit("req", "3/s", algorithm=QUEUE).rule
    state, _ = rule.decide(None, 0, 1)
    assert rule.decide(state, 0, 1)[1] == Admitted(1, 333_333_334, 666_666_667, delay=333_333_334)


def test_looking_asks_for_no_delay() -> None:
    """Cost 0 and a refusal carry none."""
    rule = Limit("req", "60/min burst 3", algorithm=QUEUE).rule
    state, outcome = rule.decide(None, 0, 3)
    assert outcome == Admitted(0, SECOND, 3 * SECOND, delay=2 * SECOND)
    assert rule.decide(state, 0, 0) == (state, Admitted(0, SECOND, 3 * SECOND))
    assert rule.decide(None, 0, 0) == (None, Admitted(3, 0, 0))


@given(
    st.sampled_from([1, 3, 7]),
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)), max_size=6),
    st.integers(1, 6),
    st.integers(0, 60),
)
def test_the_delay_after_a_wait_is_what_the_queue_says_then(
    scale: int, burst: int, undelayed: int, arrivals: list[tuple[int, int]], cost: int, more: int
) -> None:
    """Told before, from a refusal or from how the key stands, and when the time has come: the same, to a nanosecond."""
    rule = LeakyBucketQueue(Gcra(10 * scale + 1, burst * (10 * scale + 1), scale), min(undelayed, burst))
    state, now, cost = None, 1_000, min(cost, burst)
    for pause, units in arrivals:
        now += pause
        state, _ = rule.decide(state, now, min(units, burst))
    _, asked = rule.decide(state, now, cost)
    refused = isinstance(asked, Refused)
    wait = more + (asked.retry_after if isinstance(asked, Refused) else 0)
    standing = asked if refused else rule.decide(state, now, 0)[1]
    _, then = rule.decide(state, now + wait, cost)
    assert isinstance(then, Admitted)
    told = rule.delay_after(standing, cost, wait)
    assert then.delay <= told <= then.delay + 1
    assert scale > 1 or told == then.delay


def test_a_full_queue_s_last_unit_is_told_its_delay() -> None:
    """At the end of the refusal the bucket is full; later it has leaked; undelayed units have none."""
    rule = LeakyBucketQueue(Gcra(SECOND, 3 * SECOND))
    state, _ = rule.decide(None, 0, 3)
    refused = rule.decide(state, 0, 1)[1]
    assert [rule.delay_after(refused, 1, wait * SECOND) for wait in (1, 2, 3, 9)] == [2 * SECOND, SECOND, 0, 0]
    standing = rule.decide(state, 0, 0)[1]
    assert [rule.delay_after(standing, 1, wait * SECOND) for wait in (1, 2, 3, 9)] == [2 * SECOND, SECOND, 0, 0]
    assert rule.delay_after(standing, 2, 4 * SECOND) == SECOND
    thirds = Limit("l", "3/s burst 9", algorithm=QUEUE).rule
    assert isinstance(thirds, LeakyBucketQueue)
    six = thirds.decide(thirds.decide(None, 0, 6)[0], 0, 0)[1]
    assert [thirds.delay_after(six, 1, wait * SECOND) for wait in (0, 1, 2)] == [2 * SECOND, SECOND, 0]
    nodelay = LeakyBucketQueue(Gcra(SECOND, 3 * SECOND), 3)
    assert nodelay.delay_after(refused, 1, SECOND) == 0


def test_everything_but_the_answer_is_gcra() -> None:
    """State, giving back, debt, scaling, clearing, expiry and numbers are those of the meter."""
    quota = Limit("l", "60/min burst 3").quota
    queue, meter = LeakyBucketQueue.of(quota, 2), Gcra.of(quota)
    assert queue == LeakyBucketQueue(meter, 2)
    assert LeakyBucketQueue.of(quota).undelayed == 1
    assert queue.burst == 3
    lease = Lease(7, 10 * SECOND)
    state, outcome = queue.decide(None, 0, 2, lease)
    assert isinstance(outcome, Admitted)
    assert state == meter.decide(None, 0, 2, lease)[0]
    receipt = Receipt(0, 2, 7, outcome)
    assert queue.give_back(state, SECOND, 1, receipt) == meter.give_back(state, SECOND, 1, receipt)
    assert queue.take(state, SECOND, 5) == meter.take(state, SECOND, 5)
    other = Gcra(SECOND, 9 * SECOND)
    assert LeakyBucketQueue(other).scaled(state, SECOND, queue) == other.scaled(state, SECOND, meter)
    assert queue.clears_after(state, SECOND, 9) == meter.clears_after(state, SECOND, 9)
    assert queue.expires_at(state) == meter.expires_at(state)
    assert queue.dump(state) == meter.dump(state)
    assert queue.load(queue.dump(state)) == state


def test_the_bucket_by_its_name_takes_its_own_parameters() -> None:
    """Capacity and leak; as a meter it is GCRA, as a queue it delays."""
    meter = Limit.leaky_bucket("l", capacity=5, leak="10 per 30 s", by="id")
    assert meter.rule == Gcra.of(meter.quota) == Gcra(3 * SECOND, 15 * SECOND)
    queue = Limit.leaky_bucket("l", capacity=5, leak="10 per 30 s", by="id", algorithm=QUEUE, undelayed=2)
    assert queue.rule == LeakyBucketQueue(Gcra(3 * SECOND, 15 * SECOND), 2)
    with pytest.raises(LimitError, match=r"undelayed is 6; expected a whole number from 1 to the burst, 5"):
        Limit.leaky_bucket("l", capacity=5, leak="10 per 30 s", algorithm=QUEUE, undelayed=6)
