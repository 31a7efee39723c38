"""What every algorithm promises, in the words of the quota, on random histories."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import SECOND
from headway.core.rule import CLOCK_SLACK_NS, State

from . import histories as h

ONE_AT_A_TIME = 40
"""Up to how many remaining units are spent one by one."""


def period_of(limit: Limit) -> int:
    return limit.quota.period_ns


@given(h.limits, h.histories, st.integers(1, 14))
def test_the_exact_wait_is_enough_and_one_unit_less_is_not(limit: Limit, history: list[h.Step], cost: int) -> None:
    """Whatever came before, the told wait admits exactly that cost, and a nanosecond less does not."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    state, outcome = rule.decide(state, now, min(cost, rule.burst))
    assume(isinstance(outcome, Refused))
    assert isinstance(outcome, Refused)
    wait, cost = outcome.retry_after, min(cost, rule.burst)
    assert isinstance(rule.decide(state, now + wait, cost)[1], Admitted)
    early = rule.decide(state, now + wait - 1, cost)[1]
    assert isinstance(early, Refused)
    assert early.retry_after == 1


@given(h.limits, h.histories, st.integers(2, 10**18))
def test_the_wait_counts_down(limit: Limit, history: list[h.Step], part: int) -> None:
    """Looked at in between, a refusal's wait is what is left of the first one told: refused calls never lengthen it."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    state, outcome = rule.decide(state, now, rule.burst)
    assume(isinstance(outcome, Refused) and outcome.retry_after > 1)
    assert isinstance(outcome, Refused)
    later = 1 + part % (outcome.retry_after - 1)
    state, again = rule.decide(state, now + later, rule.burst)
    assert isinstance(again, Refused)
    assert again.retry_after == outcome.retry_after - later


@given(h.limits, h.histories_with_clock_steps)
def test_remaining_is_how_many_unit_calls_pass(limit: Limit, history: list[h.Step]) -> None:
    """``remaining = k`` means: a cost of k passes at this instant, as k calls of 1 do; then the next call is refused."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    remaining = rule.decide(state, now, 0)[1].remaining
    assert 0 <= remaining <= rule.burst
    if remaining <= ONE_AT_A_TIME:
        spent = state
        for left in reversed(range(remaining)):
            spent, outcome = rule.decide(spent, now, 1)
            assert isinstance(outcome, Admitted)
            assert outcome.remaining == left
        assert isinstance(rule.decide(spent, now, 1)[1], Refused)
    if remaining:
        spent, outcome = rule.decide(state, now, remaining)
        assert isinstance(outcome, Admitted)
        assert outcome.remaining == 0
        assert isinstance(rule.decide(spent, now, 1)[1], Refused)
    assert not isinstance(rule.decide(state, now, remaining + 1)[1], Admitted)


@given(h.limits, h.histories_with_clock_steps)
def test_fields_of_every_outcome_agree_with_each_other(limit: Limit, history: list[h.Step]) -> None:
    """0 ≤ remaining ≤ burst; the waits are ordered; a refusal writes nothing but a cap; cost 0 writes nothing at all."""
    rule = limit.rule

    def see(now: int, cost: int, before: State, after: State, outcome: Outcome) -> None:
        assert 0 <= outcome.remaining <= rule.burst
        assert 0 <= outcome.replenish_after <= outcome.reset_after
        assert (outcome.reset_after == 0) == (outcome.replenish_after == 0)
        if outcome.remaining < rule.burst:
            assert outcome.replenish_after > 0
        if cost == 0:
            assert after is before
            assert isinstance(outcome, Admitted)
        if isinstance(outcome, Refused):
            assert cost <= rule.burst
            assert outcome.remaining < cost
            assert 0 < outcome.replenish_after <= outcome.retry_after <= outcome.reset_after
        if isinstance(outcome, Never):
            assert cost > outcome.burst == rule.burst
        if not isinstance(outcome, Admitted) and after is not before:
            assert rule.expires_at(after) < rule.expires_at(before), (
                "only a dishonest state is written, and it is capped"
            )

    h.play(rule, period_of(limit), history, see=see)


@given(h.limits, h.histories)
def test_a_refusal_changes_nothing(limit: Limit, history: list[h.Step]) -> None:
    """While the clock goes forward, the state after a refusal is the very object from before."""

    def see(now: int, cost: int, before: State, after: State, outcome: Outcome) -> None:
        if not isinstance(outcome, Admitted):
            assert after is before

    h.play(limit.rule, period_of(limit), history, see=see)


@given(h.limits, h.histories)
def test_more_can_be_spent_exactly_after_replenish(limit: Limit, history: list[h.Step]) -> None:
    """At replenish-after there is more than ``remaining``, a nanosecond earlier there is not."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    outcome = rule.decide(state, now, 0)[1]
    wait, remaining = outcome.replenish_after, outcome.remaining
    if remaining < rule.burst:
        assert rule.decide(state, now + wait, 0)[1].remaining > remaining
        assert rule.decide(state, now + wait - 1, 0)[1].remaining == remaining
    elif wait:
        assert rule.decide(state, now + wait, 0)[1] == Admitted(rule.burst, 0, 0)


@given(h.limits, h.histories, st.integers(0, 10**15), st.integers(1, 14))
def test_after_reset_and_after_expiry_a_limit_is_as_if_unused(
    limit: Limit, history: list[h.Step], later: int, cost: int
) -> None:
    """From reset-after on, the state and no state decide alike, and a store may forget it no earlier than that."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    assume(state is not None)
    reset = rule.decide(state, now, 0)[1].reset_after
    assert rule.decide(state, now + reset, 0)[1] == Admitted(rule.burst, 0, 0)
    if reset:
        assert rule.decide(state, now + reset - 1, 0)[1].reset_after == 1
    for moment in (now + reset + later, max(now, rule.expires_at(state)) + later):
        assert rule.decide(state, moment, cost)[1] == rule.decide(None, moment, cost)[1]


@given(h.limits, h.histories, st.integers(1, 10**30))
def test_above_the_burst_is_never_however_large(limit: Limit, history: list[h.Step], excess: int) -> None:
    """An integer above the burst is ``Never`` in any state, and leaves the state alone."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    after, outcome = rule.decide(state, now, rule.burst + excess)
    assert after is state
    assert isinstance(outcome, Never)
    assert outcome.burst == rule.burst
    assert outcome.remaining == rule.decide(state, now, 0)[1].remaining


@given(h.limits, h.histories_with_clock_steps)
def test_nobody_waits_longer_than_a_recovery_and_ten_seconds(limit: Limit, history: list[h.Step]) -> None:
    """However the clock was set back, every wait stays within a full burst's recovery plus the slack."""
    longest = _longest_recovery(limit) + CLOCK_SLACK_NS

    def see(now: int, cost: int, before: State, after: State, outcome: Outcome) -> None:
        assert outcome.reset_after <= longest
        assert h.told(outcome) <= longest

    h.play(limit.rule, period_of(limit), history, see=see)


@given(h.limits, h.histories_with_clock_steps, st.integers(0, 3000))
def test_a_capped_state_heals_by_itself(limit: Limit, history: list[h.Step], years: int) -> None:
    """After a step back of any size, a refused caller that waits what it is told is admitted: the cap was kept."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    now = max(1, now - years * 365 * 86_400 * SECOND // 100)
    state, outcome = rule.decide(state, now, rule.burst)
    if isinstance(outcome, Refused):
        assert isinstance(rule.decide(state, now + outcome.retry_after, rule.burst)[1], Admitted)


@given(st.data(), h.histories, h.histories)
def test_a_changed_quota_keeps_the_state_and_frightens_nobody(
    data: st.DataObject, before: list[h.Step], after: list[h.Step]
) -> None:
    """Another count, period or burst on the same key: what was used stays used, and no wait passes the new recovery."""
    old = data.draw(h.limits)
    new = data.draw(h.limits_like(old))
    state, now = h.play(old.rule, period_of(old), before)
    carried = None if state is None else new.rule.load(old.rule.dump(state))
    longest = _longest_recovery(new) + CLOCK_SLACK_NS

    def see(now: int, cost: int, was: State, will: State, outcome: Outcome) -> None:
        assert 0 <= outcome.remaining <= new.rule.burst
        assert 0 <= h.told(outcome) <= outcome.reset_after <= longest

    h.play(new.rule, period_of(new), after, state=carried, now=now, see=see)


@given(h.limits, h.histories_with_clock_steps)
def test_a_state_comes_back_from_its_numbers(limit: Limit, history: list[h.Step]) -> None:
    """``load`` undoes ``dump`` for every state a history can reach, and the numbers are integers."""
    rule = limit.rule
    state, now = h.play(rule, period_of(limit), history)
    assume(state is not None)
    numbers = rule.dump(state)
    assert all(type(number) is int for number in numbers)
    again = rule.load(numbers)
    for cost in (0, 1, rule.burst, rule.burst + 1):
        assert rule.decide(again, now, cost) == rule.decide(state, now, cost)


def _longest_recovery(limit: Limit) -> int:
    if limit.algorithm is Algorithm.CALENDAR_WINDOW:
        return 32 * 86_400 * SECOND  # a month of 31 days with an hour to spare
    if limit.algorithm is Algorithm.SLIDING_WINDOW:
        return 2 * limit.quota.period_ns
    return max(limit.quota.recovery_ns, limit.quota.period_ns if limit.algorithm is not Algorithm.GCRA else 0)
