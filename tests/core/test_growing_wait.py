"""The growing wait: 30 s doubling to an hour, forgiven on success or after a quiet time, not lengthened by hammering."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Limit, Limiter, LimitError, MemoryStore
from headway.core.growing_wait import Attempts, GrowingWait
from headway.core.lease import Receipt
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import DAY, HOUR, MINUTE, SECOND
from headway.core.rule import CLOCK_SLACK_NS
from headway.testing.clock import ManualClock

RULE = GrowingWait(1, 30 * SECOND, HOUR, DAY)


def test_the_wait_doubles_from_thirty_seconds_to_an_hour() -> None:
    """One code, then 30 s, 1 min, 2, 4 … 32 min, and an hour ever after, each exact."""
    state, now, waits = None, 0, []
    for _ in range(10):
        state, outcome = RULE.decide(state, now, 1)
        assert isinstance(outcome, Admitted)
        refused = RULE.decide(state, now, 1)[1]
        assert isinstance(refused, Refused)
        waits.append(refused.retry_after // SECOND)
        assert isinstance(RULE.decide(state, now + refused.retry_after - 1, 1)[1], Refused)
        now += refused.retry_after
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_hammering_does_not_lengthen_a_wait() -> None:
    """Refused calls write nothing, however many there are."""
    state, _ = RULE.decide(None, 0, 1)
    for now in range(0, 30 * SECOND, SECOND):
        after, outcome = RULE.decide(state, now, 1)
        assert after is state
        assert outcome == Refused(0, 30 * SECOND - now, 30 * SECOND - now, DAY - now)


def test_free_attempts_come_before_the_first_wait() -> None:
    """With a burst of 3 the wait begins with the attempt that completes them."""
    rule = GrowingWait(3, 30 * SECOND, HOUR, DAY)
    state, outcome = rule.decide(None, 0, 2)
    assert (state, outcome) == (Attempts(2, 0), Admitted(1, DAY, DAY))
    state, outcome = rule.decide(state, SECOND, 1)
    assert (state, outcome) == (Attempts(3, SECOND), Admitted(0, 30 * SECOND, DAY))
    assert rule.decide(state, 31 * SECOND, 0)[1] == Admitted(1, DAY - 30 * SECOND, DAY - 30 * SECOND)


def test_several_attempts_at_once_need_forgiveness_once_waits_have_begun() -> None:
    """After the free ones only one at a time is ever free again, so a cost of 2 waits for the quiet time, and says so."""
    rule = GrowingWait(3, 30 * SECOND, HOUR, DAY)
    state = Attempts(3, 0)
    assert rule.decide(state, SECOND, 2)[1] == Refused(0, DAY - SECOND, 29 * SECOND, DAY - SECOND)
    assert rule.decide(state, 30 * SECOND, 2)[1] == Refused(1, DAY - 30 * SECOND, DAY - 30 * SECOND, DAY - 30 * SECOND)
    assert rule.decide(state, SECOND, 4)[1] == Never(3, 0, 29 * SECOND, DAY - SECOND)
    assert isinstance(rule.decide(state, DAY, 3)[1], Admitted)


def test_a_quiet_time_forgives_everything_at_once() -> None:
    """Exactly a day after the latest attempt the key is as if unused, and may be forgotten."""
    state = Attempts(9, 5)
    assert RULE.expires_at(state) == 5 + DAY
    assert RULE.decide(state, DAY + 4, 0)[1] == Admitted(1, 1, 1)
    assert RULE.decide(state, DAY + 5, 1) == (Attempts(1, DAY + 5), Admitted(0, 30 * SECOND, DAY))


def test_very_many_attempts_wait_no_longer_than_the_longest() -> None:
    """The doubling stops there, and its arithmetic stays small."""
    for made in (8, 64, 65, 66, 10**9):
        assert RULE.wait_after(made) == HOUR
    assert RULE.wait_after(7) == 32 * MINUTE
    assert RULE.wait_after(1) == 30 * SECOND
    assert RULE.wait_after(0) == 0
    tiny = GrowingWait(1, 1, 2**70, 2**70)
    assert [tiny.wait_after(made) for made in (65, 66)] == [2**64, 2**70]


def test_a_reported_failure_counts_and_a_refund_forgets() -> None:
    """``take`` counts without asking; giving back forgets as many, keeps the latest's time, and forgets no later ones."""
    state = RULE.take(None, 0, 1)
    state = RULE.take(state, 10, 2)
    assert state == Attempts(3, 10)
    receipt = Receipt(10, 2, 0, Admitted(0, 0, 0))
    assert RULE.give_back(state, 20, 1, receipt) == Attempts(2, 10)
    assert RULE.give_back(state, 20, 9, receipt) == Attempts(1, 10), "never more than was charged"
    assert RULE.give_back(Attempts(2, 10), 20, 2, receipt) is None
    assert RULE.give_back(state, 20, 0, receipt) is state
    assert RULE.give_back(None, 20, 2, receipt) is None
    earlier = Attempts(3, 9)
    assert RULE.give_back(earlier, 20, 2, receipt) is earlier, "a state from before it was charged"


def test_a_refund_of_forgiven_attempts_forgets_no_later_one() -> None:
    """Yesterday's attempt was forgiven; today's stays."""
    receipt = Receipt(0, 1, 0, Admitted(0, 0, 0))
    today, _ = RULE.decide(Attempts(1, 0), DAY, 1)
    assert today == Attempts(1, DAY)
    assert RULE.give_back(today, DAY, 1, receipt) is today
    assert RULE.give_back(Attempts(2, DAY - 1), DAY - 1, 1, receipt) == Attempts(1, DAY - 1)


def test_a_clock_set_back_far_locks_nobody_out() -> None:
    """An attempt in the far future counts as made now, and that is kept on a refusal; a small step back changes nothing."""
    state = Attempts(1, CLOCK_SLACK_NS)
    assert RULE.decide(state, 0, 1) == (state, Refused(0, 40 * SECOND, 40 * SECOND, DAY + 10 * SECOND))
    far = Attempts(1, CLOCK_SLACK_NS + 1)
    assert RULE.decide(far, 0, 1) == (Attempts(1, 0), Refused(0, 30 * SECOND, 30 * SECOND, DAY))
    assert RULE.decide(far, 0, 0)[0] is far
    assert RULE.take(state, 0, 1) == Attempts(2, CLOCK_SLACK_NS)


def test_a_changed_quota_keeps_the_attempts() -> None:
    """As they are, whatever the new waits; what was forgiven stays forgiven."""
    other = GrowingWait(2, MINUTE, HOUR, DAY)
    assert other.scaled(Attempts(3, 10), 20, RULE) == Attempts(3, 10)
    assert other.scaled(Attempts(3, 10), DAY + 10, RULE) is None
    assert other.load(other.dump(Attempts(3, 10))) == Attempts(3, 10)


@given(
    st.integers(1, 4),
    st.integers(1, 50),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3)), max_size=12),
)
def test_every_told_wait_is_exact(burst: int, first: int, times: int, history: list[tuple[int, int]]) -> None:
    """At the wait that cost is admitted, a nanosecond earlier it is not."""
    rule = GrowingWait(burst, first, first * times, first * times * 2)
    state, now = None, 0
    for move, cost in history:
        now += move
        state, outcome = rule.decide(state, now, cost)
        if isinstance(outcome, Refused):
            assert isinstance(rule.decide(state, now + outcome.retry_after, cost)[1], Admitted)
            assert isinstance(rule.decide(state, now + outcome.retry_after - 1, cost)[1], Refused)


def test_a_line_clears_one_wait_after_the_other() -> None:
    """Three callers: at once, after 30 s, and after a minute more."""
    assert RULE.clears_after(None, 0, 1) == 0
    assert RULE.clears_after(None, 0, 3) == 90 * SECOND


def test_a_login_is_forgiven_on_success() -> None:
    """Failures are charged, a success resets the key: the next failure begins anew at 30 s."""
    clock = ManualClock()
    login = Limiter(
        Limit("login", "1 per 30 s", by="account", algorithm="growing-wait", longest="1 hour", forgiven_after="1 day"),
        store=MemoryStore(clock=clock),
    )
    waits = []
    for _ in range(3):
        assert login.hit(account="a").allowed
        waits.append(login.hit(account="a").retry_after)
        clock.advance(waits[-1])
    assert waits == [30, 60, 120]
    login.reset(account="a")
    assert login.hit(account="a").allowed
    assert login.hit(account="a").retry_after == 30


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"longest": "10 s"}, "begins with 30 seconds, so longest"),
        ({"longest": "2 days"}, "forgiven_after"),
        ({"longest": 0}, "longest is 0; expected a duration"),
        ({"forgiven_after": True}, "forgiven_after is True; expected a duration"),
    ],
)
def test_waits_that_cannot_be_right_are_refused_when_made(options: dict[str, object], problem: str) -> None:
    """The message names the limit, the value and what is accepted."""
    with pytest.raises(LimitError, match=problem):
        Limit("login", "1 per 30 s", algorithm="growing-wait", **options)  # type: ignore[arg-type]  # wrong on purpose


def test_a_single_attempt_may_be_taken_back_and_a_line_begins_where_the_key_stands() -> None:
    """Then the key is as if unused; a used one makes a line wait for what is left of its wait."""
    state, outcome = RULE.decide(None, 0, 1)
    assert isinstance(outcome, Admitted)
    assert RULE.give_back(state, 1, 1, Receipt(0, 1, 0, outcome)) is None
    spent = RULE.take(None, 0, RULE.burst)
    assert RULE.clears_after(spent, 1, 1) == RULE.wait_after(RULE.burst) - 1 > 0
