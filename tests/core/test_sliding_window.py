"""The sliding window counter: two weighted counters, exact waits, no burst at a boundary."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from headway.core.lease import Receipt
from headway.core.outcome import Admitted, Never, Refused
from headway.core.sliding_window import Counters, SlidingWindow

RULE = SlidingWindow(10, 100)
"""10 units per 100 ns: windows begin at multiples of 100."""


def test_the_previous_window_counts_by_its_share_in_view() -> None:
    """60 % into a window, 40 % of the previous one is in view: 8 units there count as 3.2, so 6 more fit."""
    state = Counters(1100, 100, 0, 8)
    assert RULE.decide(state, 1060, 0)[1].remaining == 6
    after, outcome = RULE.decide(state, 1060, 6)
    assert after == Counters(1100, 100, 6, 8)
    assert outcome == Admitted(0, 3, 140)
    assert RULE.decide(after, 1062, 1)[1] == Refused(0, 1, 1, 138)
    assert isinstance(RULE.decide(after, 1063, 1)[1], Admitted)


def test_nothing_is_rounded_in_anybody_s_favour() -> None:
    """The comparison is in whole units · ns: at 3 units seen through a third of a window exactly 9 more fit of 10."""
    state = Counters(300_000_000_000, 30, 0, 3)
    end = state.end
    assert RULE.burst == 10
    rule = SlidingWindow(10, 30)
    assert rule.decide(state, end - 10, 0)[1].remaining == 9
    assert rule.decide(state, end - 11, 0)[1].remaining == 8
    assert rule.decide(state, end - 9, 0)[1].remaining == 9


def test_a_boundary_lets_no_double_burst_through() -> None:
    """Ten at the end of one window leave nothing at the beginning of the next, where a fixed window would give ten."""
    state, outcome = RULE.decide(None, 999, 10)
    assert outcome == Admitted(0, 11, 101)
    _, outcome = RULE.decide(state, 1000, 1)
    assert outcome == Refused(0, 10, 10, 100)
    _, outcome = RULE.decide(state, 1001, 1)
    assert outcome == Refused(0, 9, 9, 99)


def test_what_was_charged_is_forgotten_after_two_windows() -> None:
    """A unit counts in its window and, ever less, in the next; then the key is as if unused and may be forgotten."""
    state, _ = RULE.decide(None, 905, 4)
    assert state == Counters(1000, 100, 4, 0)
    assert RULE.expires_at(state) == 1100
    assert RULE.decide(state, 1099, 0)[1] == Admitted(9, 1, 1)
    assert RULE.decide(state, 1100, 0)[1] == Admitted(10, 0, 0)


def test_at_the_very_end_of_a_window_the_next_one_has_begun() -> None:
    """A window holds its first instant and not its end: what comes there is charged to the next one."""
    assert RULE.decide(Counters(1000, 100, 3, 9), 1000, 1)[0] == Counters(1100, 100, 1, 3)
    assert RULE.decide(Counters(1000, 100, 3, 9), 999, 1)[0] == Counters(1000, 100, 4, 9)


def test_above_the_count_is_never() -> None:
    """No wait helps a cost above the count; what is told besides is how the key stands."""
    state, _ = RULE.decide(None, 950, 10)
    after, outcome = RULE.decide(state, 950, 11)
    assert after is state
    assert outcome == Never(10, 0, 60, 150)


states = st.builds(
    lambda index, current, previous: Counters(index * 100, 100, current, previous),
    st.integers(10, 11),
    st.integers(0, 14),
    st.integers(0, 14),
)


@given(states, st.integers(1000, 1099), st.integers(1, 10))
def test_the_told_wait_is_the_first_instant_that_admits(state: Counters, now: int, cost: int) -> None:
    """Trying every nanosecond finds no earlier one, whatever two counters there are, above the count through debt too."""
    outcome = RULE.decide(state, now, cost)[1]
    tried = next(wait for wait in range(400) if isinstance(RULE.decide(state, now + wait, cost)[1], Admitted))
    assert tried == (outcome.retry_after if isinstance(outcome, Refused) else 0)


def test_a_refund_comes_off_the_window_it_was_charged_to() -> None:
    """In its own window it is whole, in the next as much as is in view of it, afterwards nothing."""
    state, outcome = RULE.decide(None, 950, 4)
    assert isinstance(outcome, Admitted)
    receipt = Receipt(950, 4, 0, outcome)
    assert RULE.give_back(state, 960, 3, receipt) == Counters(1000, 100, 1, 0)
    assert RULE.give_back(state, 1050, 3, receipt) == Counters(1100, 100, 0, 1)
    moved, _ = RULE.decide(state, 1050, 2)
    assert RULE.give_back(moved, 1060, 4, receipt) == Counters(1100, 100, 2, 0)
    assert RULE.give_back(moved, 1150, 4, receipt) is moved
    assert RULE.give_back(state, 960, 0, receipt) is state
    assert RULE.give_back(state, 960, 1, receipt) == Counters(1000, 100, 3, 0)
    assert RULE.give_back(None, 960, 4, receipt) is None
    assert RULE.give_back(state, 960, 9, receipt) == Counters(1000, 100, 0, 0), "never more than was charged"


def test_a_refund_under_another_period_takes_nothing_off() -> None:
    """Once windows of another length hold the units, which are whose cannot be told: they stay."""
    state, outcome = RULE.decide(None, 950, 4)
    assert isinstance(outcome, Admitted)
    longer, _ = SlidingWindow(10, 1000).decide(state, 951, 1)
    assert longer == Counters(1000, 1000, 5, 0)
    assert RULE.give_back(longer, 952, 4, Receipt(950, 4, 0, outcome)) is longer
    assert RULE.take(longer, 952, 3) == Counters(1000, 1000, 8, 0), "and debt goes where the others are"
    assert RULE.take(None, 952, 3) == Counters(1000, 100, 3, 0)


def test_a_changed_period_keeps_every_unit_in_view() -> None:
    """All that were in view count as if they came just now, so a new period never forgives."""
    state = Counters(1000, 100, 3, 4)
    longer = SlidingWindow(10, 70)
    assert longer.decide(state, 950, 0)[1].remaining == 3
    assert longer.decide(state, 1005, 0)[1].remaining == 7, "the previous window is out of view by then"
    assert longer.decide(state, 1000, 0)[1].remaining == 7, "from its end on"
    assert longer.decide(state, 1100, 0)[1].remaining == 10


def test_a_refusal_under_a_changed_period_writes_only_what_would_last_too_long() -> None:
    """Another quota's counters are adopted when something is charged; a refusal leaves them, unless they end too late."""
    state = Counters(1000, 100, 10, 0)
    for now in (950, 1005, 1060, 1100):
        assert SlidingWindow(10, 70).decide(state, now, 11)[0] is state or state.end > (now // 70 + 1) * 70 > now
    assert SlidingWindow(10, 300).decide(state, 950, 1)[0] is state
    assert SlidingWindow(10, 300).decide(state, 1005, 11)[0] is state
    assert SlidingWindow(10, 30).decide(state, 1035, 11)[0] is state
    assert SlidingWindow(10, 30).decide(state, 1075, 11)[0] is state
    assert SlidingWindow(10, 30).decide(state, 950, 1)[0] == Counters(960, 30, 10, 0), (
        "or it would wait for the old end"
    )


def test_units_of_a_longer_period_grow_old_in_a_shorter_one() -> None:
    """After "10 per 1000" became "10 per 100" nobody is refused for the rest of the old window's view: each hint holds."""
    state: Counters | None = Counters(1000, 1000, 10, 0)
    now, waits = 950, []
    for _ in range(3):
        kept, outcome = RULE.decide(state, now, 1)
        if isinstance(outcome, Admitted):
            break
        assert isinstance(outcome, Refused)
        assert kept is state, "what grows old by itself need not be written"
        assert isinstance(RULE.decide(state, now + outcome.retry_after - 1, 1)[1], Refused)
        waits.append(outcome.retry_after)
        now += outcome.retry_after
    assert waits == [60], "as for ten units in a window that ends at 1000"


def test_an_open_window_that_outlasts_the_new_one_is_kept_as_come_now() -> None:
    """Within the clock's slack too: else the next window would count the same units again."""
    kept, outcome = RULE.decide(Counters(1030, 515, 10, 0), 950, 1)
    assert kept == Counters(1000, 100, 10, 0)
    assert isinstance(outcome, Refused)
    assert isinstance(RULE.decide(kept, 950 + outcome.retry_after, 1)[1], Admitted)


def test_units_of_an_ended_window_are_of_its_last_instant() -> None:
    """In this window, the one before, or gone, while the old counters would still be in view."""
    state = Counters(1000, 1000, 10, 7)
    assert RULE.decide(state, 1000, 0)[1].remaining == 0, "the previous window, wholly in view"
    assert RULE.decide(state, 1050, 0)[1].remaining == 5
    assert RULE.decide(state, 1100, 0)[1].remaining == 10


@given(
    st.builds(
        lambda begun, period, current, previous: Counters((begun // period + 1) * period, period, current, previous),
        st.integers(900, 1300),
        st.sampled_from([50, 70, 100, 150, 300, 1000]),
        st.integers(0, 12),
        st.integers(0, 12),
    ),
    st.sampled_from([30, 70, 100, 200, 300]),
    st.integers(890, 1400),
    st.integers(1, 10),
)
@example(Counters(1000, 10, 9, 0), 300, 995, 5)
@example(Counters(1000, 100, 0, 10), 300, 950, 1)
@example(Counters(1000, 200, 10, 10), 300, 950, 1)
def test_after_a_changed_period_every_time_that_is_told_is_the_first_instant(
    state: Counters | None, period: int, now: int, cost: int
) -> None:
    """While nothing else is written: admitted at the told wait and not before, more is left, and all of it, when told."""
    rule = SlidingWindow(10, period)
    state, _ = rule.decide(state, now, 11)  # what a refusal keeps
    outcome = rule.decide(state, now, cost)[1]

    def left(at: int) -> int:
        return rule.decide(state, at, 0)[1].remaining

    if isinstance(outcome, Refused):
        assert left(now + outcome.retry_after) >= cost > left(now + outcome.retry_after - 1)
    standing = rule.decide(state, now, 0)[1]
    if standing.replenish_after:
        assert left(now + standing.replenish_after) > standing.remaining == left(now + standing.replenish_after - 1)
    unused = Admitted(10, 0, 0)
    assert rule.decide(state, now + standing.reset_after, 0)[1] == unused
    assert not standing.reset_after or rule.decide(state, now + standing.reset_after - 1, 0)[1] != unused


def test_a_proportional_change_uses_the_same_share_rounded_up() -> None:
    """3 of 10 become 2 of 5, and no unit in use vanishes."""
    assert SlidingWindow(5, 100).scaled(Counters(1000, 100, 3, 9), 950, RULE) == Counters(1000, 100, 2, 5)


SLACK = 10_000_000_000


def test_a_clock_set_back_far_neither_locks_nor_refills() -> None:
    """Beyond the slack all units count as come just now, and that is kept on a refusal; within it nothing changes."""
    rule = SlidingWindow(10, 1_000_000_000)
    now = 100 * 1_000_000_000
    state = Counters(now + 1_000_000_000, 1_000_000_000, 6, 3)
    assert rule.decide(state, now - SLACK, 10)[0] is state
    after, outcome = rule.decide(state, now - SLACK - 1, 10)
    assert after == Counters(now - SLACK, 1_000_000_000, 9, 0)
    assert isinstance(outcome, Refused)
    assert outcome.retry_after <= 2 * 1_000_000_000
    assert isinstance(rule.decide(after, now - SLACK - 1 + outcome.retry_after, 10)[1], Admitted)


def test_what_is_too_far_ahead_is_told_in_whole_windows() -> None:
    """The bound is the end of the window that is open after the slack, to the nanosecond, at today's instants too."""
    second = 1_000_000_000
    rule, now = SlidingWindow(10, second), 1_800_000_000 * second + second // 2
    bound = 1_800_000_011 * second
    assert rule.decide(Counters(bound, 2 * second // 5, 10, 0), now, 11)[0].end == (now // second + 1) * second
    longer = SlidingWindow(10, 2 * second)
    for end, capped in ((bound + 1 * second, False), (bound + 1 * second + 1, True)):
        state = Counters(end, 2 * second, 10, 0)
        assert (longer.decide(state, now, 11)[0] is not state) is capped


def test_numbers_come_back_as_a_state() -> None:
    """``load`` undoes ``dump``."""
    state = Counters(1000, 100, 3, 4)
    assert RULE.dump(state) == (1000, 100, 3, 4)
    assert RULE.load((1000, 100, 3, 4)) == state


def test_a_line_of_units_clears_as_fast_as_it_may() -> None:
    """Three times the count takes what fits now, then unit by unit as the windows slide."""
    assert RULE.clears_after(None, 1000, 10) == 0
    assert RULE.clears_after(None, 1000, 11) == 110
    assert RULE.clears_after(Counters(1100, 100, 0, 10), 1000, 1) == 10


def test_a_refund_after_a_small_step_back_takes_the_units_from_where_they_were_charged() -> None:
    """A clock set back over a boundary charges the window that had begun; the refund comes off that one, too."""
    state, _ = RULE.decide(None, 950, 2)
    state, _ = RULE.decide(state, 1_001, 1)
    state, outcome = RULE.decide(state, 990, 3)
    assert state == Counters(1100, 100, 4, 2)
    assert isinstance(outcome, Admitted)
    assert RULE.give_back(state, 995, 3, Receipt(990, 3, 0, outcome)) == Counters(1100, 100, 1, 2)
    assert RULE.give_back(state, 1_150, 3, Receipt(990, 3, 0, outcome)) == Counters(1200, 100, 0, 1)


def test_a_refusal_under_a_changed_period_tells_what_a_look_tells() -> None:
    """As long as nothing is written the old windows hold: what is told besides the wait follows them, too."""
    rule = SlidingWindow(10, 300)
    state = Counters(1000, 100, 10, 0)
    looked = rule.decide(state, 950, 0)[1]
    assert looked.reset_after == 150
    for cost in (1, 11):
        outcome = rule.decide(state, 950, cost)[1]
        assert (outcome.replenish_after, outcome.reset_after) == (looked.replenish_after, looked.reset_after)
    refused = rule.decide(Counters(1000, 100, 4, 6), 950, 6)[1]
    assert isinstance(refused, Refused)
    assert refused.retry_after == 50, "four stay in view, and six fit"


def test_at_the_end_of_another_quota_s_window_its_units_are_of_the_previous_one() -> None:
    """To the nanosecond: they are wholly in view, and leave it from then on."""
    assert RULE.decide(Counters(1000, 1000, 10, 7), 1000, 1)[1] == Refused(0, 10, 10, 100)
