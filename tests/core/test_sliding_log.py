"""The sliding log: exact, because it remembers every admitted arrival of the last period."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.core.lease import Receipt
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import MINUTE, SECOND
from headway.core.rule import CLOCK_SLACK_NS
from headway.core.sliding_log import SlidingLog

THREE = SlidingLog(3, MINUTE)


def test_a_hit_stops_counting_at_exactly_its_period_later() -> None:
    """The window is half open: one nanosecond before, the hit still counts; at the instant it does not."""
    state, _ = THREE.decide(None, 0, 3)
    assert THREE.decide(state, MINUTE - 1, 1)[1] == Refused(0, 1, 1, 1)
    assert THREE.decide(state, MINUTE, 3)[1] == Admitted(0, MINUTE, MINUTE)


def test_hits_of_one_instant_are_one_entry() -> None:
    """A thousand hits at one instant take the room of one, and an entry of a little earlier time joins the newest."""
    rule = SlidingLog(1000, MINUTE)
    state = None
    for _ in range(1000):
        state, _ = rule.decide(state, 5, 1)
    assert state == (5, 1000)
    state, _ = THREE.decide(None, 10 * SECOND, 1)
    assert THREE.decide(state, 9 * SECOND, 1)[0] == (10 * SECOND, 2)


def test_the_log_forgets_what_no_longer_counts() -> None:
    """State holds the hits of one period, however long the history."""
    state = None
    for second in range(0, 10_000, 20):
        state, outcome = THREE.decide(state, second * SECOND, 1)
        assert isinstance(outcome, Admitted)
        assert state is not None
        assert len(state) <= 6


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), max_size=60))
def test_no_half_open_period_holds_more_than_the_count(moves: list[tuple[int, int]]) -> None:
    """Summed over any (t − period, t], the admitted units are at most the count; and none is refused that would fit."""
    now, state, admitted = 0, None, []
    for seconds, cost in moves:
        now += seconds * SECOND
        live = sum(units for at, units in admitted if at + MINUTE > now)
        state, outcome = THREE.decide(state, now, cost)
        assert isinstance(outcome, Admitted) is (live + cost <= 3)
        if isinstance(outcome, Admitted):
            admitted.append((now, cost))


def test_units_come_off_the_arrival_they_were_charged_as() -> None:
    """As long as it counts, as many as it has; a log without any is none, and what is not there leaves the very object."""
    rule = SlidingLog(5, 100)
    state = (950, 2, 980, 3)
    old, new = Receipt(950, 2, 0, Admitted(3, 100, 100)), Receipt(980, 3, 0, Admitted(0, 70, 100))
    assert rule.give_back(state, 1_000, 1, old) == (950, 1, 980, 3)
    assert rule.give_back(state, 1_000, 2, old) == (980, 3)
    assert rule.give_back(state, 1_000, 9, old) == (980, 3), "never more than was charged"
    assert rule.give_back(state, 1_000, 1, new) == (950, 2, 980, 2)
    assert rule.give_back(state, 1_000, 3, new) == (950, 2)
    assert rule.give_back((950, 2), 1_000, 2, old) is None
    assert rule.give_back(state, 1_049, 2, old) == (980, 3)
    for now, units, receipt in ((1_050, 2, old), (1_000, 0, old), (1_000, 1, Receipt(970, 1, 0, Admitted(0, 1, 100)))):
        assert rule.give_back(state, now, units, receipt) is state
    assert rule.give_back(None, 1_000, 1, old) is None
    early = Receipt(5, 1, 0, Admitted(3, 100, 100))
    assert rule.give_back((3, 5, 5, 1), 10, 1, early) == (3, 5), "five units are no instant"


def test_the_rest_of_what_a_log_does() -> None:
    """Debt, another count's share (rounded up), lines, and when it may be forgotten."""
    rule = SlidingLog(5, 100)
    assert rule.take((950, 2), 980, 7) == (950, 2, 980, 7)
    assert rule.take((950, 2), 950, 7) == rule.take((950, 2), 940, 7) == (950, 9)
    assert rule.take(None, 980, 1) == (980, 1)
    assert SlidingLog(2, 100).scaled((800, 5, 950, 1, 980, 3), 1_000, rule) == (950, 1, 980, 2)
    assert [rule.clears_after((950, 2, 980, 3), 1_000, units) for units in (0, 1, 2, 3, 6)] == [0, 50, 50, 80, 150]
    assert (rule.expires_at((950, 2, 980, 3)), rule.expires_at(())) == (1_080, 0)
    assert (rule.expires_at((950, 2)), rule.expires_at((950, 2, 980, 2, 990, 1))) == (1_050, 1_090)
    assert rule.dump((950, 2)) == rule.load((950, 2)) == (950, 2)


def test_arrivals_beyond_the_slack_in_the_future_count_as_come_now() -> None:
    """To the nanosecond, each with its units, those of now joined by them; a refusal keeps that and a look does not."""
    rule, now = SlidingLog(5, MINUTE), 100 * SECOND
    edge = now + CLOCK_SLACK_NS
    honest = (now - SECOND, 1, now, 2, edge, 2)
    assert rule.decide(honest, now, 1)[0] is honest
    assert rule.decide(honest, now, 1)[1] == Refused(0, 59 * SECOND, 59 * SECOND, 70 * SECOND)
    beyond = (now - SECOND, 1, edge, 2, edge + 1, 1, 2 * edge, 1)
    capped = (now - SECOND, 1, now, 2, edge, 2)
    assert rule.decide(beyond, now, 1) == (capped, Refused(0, 59 * SECOND, 59 * SECOND, 70 * SECOND))
    assert rule.decide(beyond, now, 6) == (capped, Never(5, 0, 59 * SECOND, 70 * SECOND))
    looked, outcome = rule.decide(beyond, now, 0)
    assert looked is beyond
    assert outcome == Admitted(0, 59 * SECOND, 70 * SECOND)
    assert rule.decide((now, 1, edge + 1, 2), now, 1)[0] == (now, 4)
    assert rule.decide((edge + 1, 2), now, 4) == ((now, 2), Refused(3, MINUTE, MINUTE, MINUTE))
    assert SlidingLog(10, MINUTE).scaled(beyond, now, rule) == (now - SECOND, 2, now, 4, edge, 4)


def test_a_refusal_waits_for_as_many_units_as_it_lacks_and_writes_nothing() -> None:
    """Up to the whole count; what has stopped counting is dropped when something is charged, not before."""
    rule, state = SlidingLog(5, 100), (800, 4, 950, 2, 980, 3)
    for cost, wait in ((1, 50), (2, 50), (3, 80), (5, 80)):
        after, outcome = rule.decide(state, 1_000, cost)
        assert after is state
        assert outcome == Refused(0, wait, 50, 80)
    assert rule.decide(state, 1_050, 2) == ((980, 3, 1_050, 2), Admitted(0, 30, 100))
    three = (950, 1, 980, 2, 990, 2)
    assert [getattr(rule.decide(three, 1_000, cost)[1], "retry_after", 0) for cost in (1, 2, 3, 4)] == [50, 80, 80, 90]
    assert rule.decide((950, 3, 980, 5), 1_000, 0)[1] == Admitted(0, 80, 80), "debt is paid before anything is left"


def test_a_hit_at_the_newest_instant_leaves_the_older_entries() -> None:
    """It joins the last one, and no other."""
    assert SlidingLog(5, 100).decide((950, 2, 980, 1), 980, 1)[0] == (950, 2, 980, 2)
