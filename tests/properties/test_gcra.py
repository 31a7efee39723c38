"""GCRA: the quota's bound, nothing lost, no drift, and the same limiter as the two buckets.

HEADWAY_TESTS_LONG=1 makes a million calls of every quota instead of two hundred thousand of some.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact_gcra import ExactGcra
from headway.core.gcra import Gcra
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import DAY, SECOND, Quota
from headway.core.rule import State
from length import LONG

from . import histories as h


@given(h.gcra_limits, h.histories_with_clock_steps)
def test_every_field_is_the_exact_one_rounded_up(limit: Limit, history: list[h.Step]) -> None:
    """On any history, clock steps included, each field is the fraction of the definition, rounded up to a nanosecond."""
    quota = limit.quota
    model = ExactGcra(Fraction(quota.period_ns, quota.count), Fraction(quota.burst), Fraction(10 * SECOND))

    def see(now: int, cost: int, before: State, after: State, outcome: Outcome) -> None:
        expected = model.decide(Fraction(now), cost)
        kind = Admitted if expected.allowed else Never if expected.never else Refused
        assert type(outcome) is kind
        assert outcome.remaining == expected.remaining
        assert outcome.reset_after == ceil(expected.reset)
        assert outcome.replenish_after == ceil(expected.replenish)
        if isinstance(outcome, Refused) and expected.wait is not None:
            assert outcome.retry_after == ceil(expected.wait)

    h.play(limit.rule, quota.period_ns, history, see=see)


@given(h.gcra_limits, h.histories)
def test_gcra_is_the_token_bucket_and_the_leaky_bucket(limit: Limit, history: list[h.Step]) -> None:
    """A bucket that refills and a bucket that leaks, each written from its own definition, admit the same calls."""
    rate = Fraction(limit.quota.count, limit.quota.period_ns)
    burst = limit.quota.burst
    tokens, level, last = Fraction(burst), Fraction(0), h.EPOCH

    def see(now: int, cost: int, before: State, after: State, outcome: Outcome) -> None:
        nonlocal tokens, level, last
        tokens = min(Fraction(burst), tokens + (now - last) * rate)
        level = max(Fraction(0), level - (now - last) * rate)
        last = now
        assert (cost <= tokens) is (level + cost <= burst) is isinstance(outcome, Admitted)
        if cost <= tokens:
            tokens, level = tokens - cost, level + cost
        assert outcome.remaining == int(tokens) == int(burst - level)

    h.play(limit.rule, limit.quota.period_ns, history, see=see)


@given(h.gcra_limits, h.histories, st.lists(st.integers(0, 10**9), max_size=25))
def test_the_greediest_client_never_gets_more_than_the_quota(
    limit: Limit, history: list[h.Step], greed: list[int]
) -> None:
    """In every window between two calls, however greedy: at most burst + elapsed · count / period units."""
    quota, rule = limit.quota, limit.rule
    taken: list[tuple[int, int]] = []
    state, now = None, h.EPOCH
    for step in history:
        now += step.move(quota.period_ns, h.told(rule.decide(state, now, 1)[1]))
        while cost := rule.decide(state, now, 0)[1].remaining:  # everything there is, at once or in two parts
            part = max(1, cost - greed[len(taken) % len(greed)] % cost) if greed else cost
            state, outcome = rule.decide(state, now, part)
            assert isinstance(outcome, Admitted)
            taken.append((now, part))
            if len(taken) > 80:
                break
    for first, (start, _) in enumerate(taken):
        units = 0
        for end, cost in taken[first:]:
            units += cost
            assert units <= quota.burst + Fraction((end - start) * quota.count, quota.period_ns)
            assert units <= quota.most_in(end - start)


@given(h.quotas().filter(lambda quota: quota.burst > 1 and quota.period_ns >= quota.count), st.integers(1, 60))
def test_an_obedient_client_loses_nothing(quota: Quota, calls: int) -> None:
    """A client that spends its burst and then always comes when told gets call n at exactly n·T, rounded up once."""
    rule = Limit("l", quota).rule
    state, outcome = rule.decide(None, h.EPOCH, quota.burst)
    now = h.EPOCH
    for number in range(1, calls + 1):
        wait = outcome.replenish_after
        now += wait
        assert now == h.EPOCH + ceil(Fraction(number * quota.period_ns, quota.count)) or wait == 0
        state, outcome = rule.decide(state, now, 1)
        assert isinstance(outcome, Admitted)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        *((text, 1_000_000) for text in ("3/s", "11/day")),
        *((text, 1_000_000 if LONG else 200_000) for text in ("7/min", "3000000/s", "1 per 365 days")),
        *((text, 100_000) for text in ("3/s burst 1", "7 per 11 s burst 2", "1000000007/s")),
    ],
)
def test_no_drift_over_many_calls(text: str, calls: int) -> None:
    """Call n of a client exactly on schedule is admitted at ⌈n·T⌉, never earlier, up to a million of them."""
    quota = Quota.parse(text)
    rule = Gcra.of(quota)
    state, _ = rule.decide(None, 0, quota.burst)
    count, period = quota.count, quota.period_ns
    decide = rule.decide
    if quota.burst == 1 and period % count:  # each arrival is late by its own rounding, and the next counts from it
        step = -(-period // count)
        for number in range(1, calls + 1):
            assert type(decide(state, number * step - 1, 1)[1]) is Refused
            state, outcome = decide(state, number * step, 1)
            assert type(outcome) is Admitted
        return
    for number in range(1, calls + 1):
        now = -(-number * period // count)
        if not number % 997:
            assert type(decide(state, now - 1, 1)[1]) is Refused
        state, outcome = decide(state, now, 1)
        if type(outcome) is not Admitted:
            pytest.fail(f"call {number} of {text} was refused at {now}")
    reset = decide(state, now, 0)[1].reset_after
    assert reset == -(-(number + quota.burst) * period // count) - now


def test_a_call_five_ms_after_a_full_burst_is_told_five_ms() -> None:
    """100/s burst 20: the slot after twenty at once comes 10 ms after them, equality admits."""
    rule = Gcra.of(Quota.parse("100/s burst 20"))
    state, _ = rule.decide(None, h.EPOCH, 20)
    outcome = rule.decide(state, h.EPOCH + 5_000_000, 1)[1]
    assert isinstance(outcome, Refused)
    assert outcome.retry_after == 5_000_000
    assert isinstance(rule.decide(state, h.EPOCH + 10_000_000, 1)[1], Admitted)


def test_one_per_365_days_for_a_thousand_years_of_calls() -> None:
    """The longest ordinary quota neither drifts nor overflows over a thousand periods."""
    rule = Gcra.of(Quota.parse("1 per 365 days"))
    state = None
    for year in range(1000):
        state, outcome = rule.decide(state, year * 365 * DAY, 1)
        assert isinstance(outcome, Admitted)
        assert isinstance(rule.decide(state, (year + 1) * 365 * DAY - 1, 1)[1], Refused)
