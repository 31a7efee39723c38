"""Fixed windows: aligned to the epoch, and anchored at the first hit."""

from __future__ import annotations

import pytest

from headway.core.fixed_window import FixedWindow, Window
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import HOUR, MINUTE, SECOND

MINUTELY = FixedWindow(5, MINUTE)
ANCHORED = FixedWindow(5, MINUTE, anchored=True)


def test_aligned_windows_begin_at_multiples_of_the_period() -> None:
    """A window spent at 59.9 s is whole again at 60 s, not a nanosecond earlier."""
    state, outcome = MINUTELY.decide(None, 59_900_000_000, 5)
    assert outcome == Admitted(0, 100_000_000, 100_000_000)
    assert MINUTELY.decide(state, MINUTE - 1, 1)[1] == Refused(0, 1, 1, 1)
    assert MINUTELY.decide(state, MINUTE, 1)[1] == Admitted(4, MINUTE, MINUTE)


def test_anchored_windows_begin_at_the_first_hit() -> None:
    """The first hit opens a window of a whole period; later ones do not move its end."""
    state, outcome = ANCHORED.decide(None, 59_900_000_000, 1)
    assert outcome == Admitted(4, MINUTE, MINUTE)
    state, outcome = ANCHORED.decide(state, 100_000_000_000, 4)
    assert outcome == Admitted(0, 19_900_000_000, 19_900_000_000)
    assert isinstance(ANCHORED.decide(state, 119_899_999_999, 1)[1], Refused)
    assert ANCHORED.decide(state, 119_900_000_000, 1)[1] == Admitted(4, MINUTE, MINUTE)


def test_a_refused_cost_leaves_the_rest_to_smaller_ones() -> None:
    """A cost of 3 with 2 left is refused and takes nothing; a cost of 2 then passes."""
    state, _ = MINUTELY.decide(None, 0, 3)
    same, outcome = MINUTELY.decide(state, 1, 3)
    assert same is state
    assert outcome == Refused(2, MINUTE - 1, MINUTE - 1, MINUTE - 1)
    assert MINUTELY.decide(state, 2, 2)[1].remaining == 0


def test_a_cost_above_the_count_is_never_admitted() -> None:
    """No window ever holds more than the count, so no wait is named."""
    state, _ = MINUTELY.decide(None, 0, 1)
    assert MINUTELY.decide(state, 0, 6) == (state, Never(5, 4, MINUTE, MINUTE))
    assert MINUTELY.decide(None, 0, 6) == (None, Never(5, 5, 0, 0))


def test_cost_zero_writes_nothing() -> None:
    """A look at an unused, a used and a spent window returns the very state it was given."""
    assert MINUTELY.decide(None, 0, 0) == (None, Admitted(5, 0, 0))
    for used in range(1, 6):
        state = Window(MINUTE, used)
        same, outcome = MINUTELY.decide(state, 10, 0)
        assert same is state
        assert outcome == Admitted(5 - used, MINUTE - 10, MINUTE - 10)


@pytest.mark.parametrize("back", [1, SECOND, 9 * SECOND, 10 * SECOND - 1])
def test_a_small_step_back_over_a_boundary_does_not_open_the_next_window_twice(back: int) -> None:
    """The window opened at 60 s stays spent when the clock shows 59 s and then 60 s once more."""
    state, _ = MINUTELY.decide(None, MINUTE, 5)
    state, outcome = MINUTELY.decide(state, MINUTE - back, 1)
    assert outcome == Refused(0, MINUTE + back, MINUTE + back, MINUTE + back)
    assert isinstance(MINUTELY.decide(state, MINUTE, 1)[1], Refused)


@pytest.mark.parametrize("rule", [MINUTELY, ANCHORED], ids=["aligned", "anchored"])
@pytest.mark.parametrize("back", [11 * SECOND + MINUTE, HOUR, 10**18])
def test_a_large_step_back_holds_nobody_longer_than_a_window(rule: FixedWindow, back: int) -> None:
    """The end that the clock can no longer explain is capped, and the cap is kept although the call is refused."""
    now = 10**18 + 30 * SECOND
    state, _ = rule.decide(None, now, 5)
    after, outcome = rule.decide(state, now - back, 1)
    assert isinstance(outcome, Refused)
    assert 0 < outcome.retry_after <= MINUTE
    assert after is not state
    assert isinstance(rule.decide(after, now - back + outcome.retry_after, 5)[1], Admitted)
    assert rule.decide(state, now - back, 0)[0] is state, "a look keeps the state as it is"


def test_lowering_the_count_gives_no_negative_balance() -> None:
    """Eight used of a count now five: nothing remains, and the window ends when it would have ended."""
    state, _ = FixedWindow(10, MINUTE).decide(None, 0, 8)
    assert MINUTELY.decide(state, SECOND, 1)[1] == Refused(0, MINUTE - SECOND, MINUTE - SECOND, MINUTE - SECOND)


def test_a_longer_period_keeps_what_was_used() -> None:
    """When a minute becomes an hour, the units used this minute count until the hour's end."""
    state, _ = MINUTELY.decide(None, HOUR, 3)
    state, outcome = FixedWindow(5, HOUR).decide(state, HOUR + SECOND, 1)
    assert outcome == Admitted(1, HOUR - SECOND, HOUR - SECOND)
    assert state == Window(2 * HOUR, 4)


def test_count_refused_counts_up_to_the_limit_and_moves_no_reset() -> None:
    """A request that the window refuses fills it; one that can never pass, and a spent window, change nothing."""
    rule = FixedWindow(5, MINUTE, count_refused=True)
    state, _ = rule.decide(None, 0, 3)
    state, outcome = rule.decide(state, SECOND, 3)
    assert outcome == Refused(0, MINUTE - SECOND, MINUTE - SECOND, MINUTE - SECOND)
    assert state == Window(MINUTE, 5)
    assert rule.decide(state, 2 * SECOND, 1)[0] is state
    assert rule.decide(state, 2 * SECOND, 6)[0] is state


def test_a_state_comes_back_from_its_numbers() -> None:
    """``load`` undoes ``dump``, and a window is forgotten exactly when it ends."""
    state = Window(MINUTE, 3)
    assert MINUTELY.load(MINUTELY.dump(state)) == state
    assert MINUTELY.expires_at(state) == MINUTE
    assert MINUTELY.decide(state, MINUTE, 5) == MINUTELY.decide(None, MINUTE, 5)


def test_the_whole_count_is_refused_by_a_window_in_use_and_not_for_ever() -> None:
    """It fits the next window; one unit more fits none."""
    rule = FixedWindow(5, 100)
    assert rule.decide(Window(1_100, 1), 1_050, 5)[1] == Refused(4, 50, 50, 50)
    assert rule.decide(Window(1_100, 1), 1_050, 6)[1] == Never(5, 4, 50, 50)


def test_after_a_small_step_back_over_a_boundary_the_window_that_had_begun_counts() -> None:
    """Until its own end, which lies up to the slack behind the one that is open by the clock."""
    rule = FixedWindow(5, SECOND)
    state, outcome = rule.decide(Window(12 * SECOND, 3), 10 * SECOND + SECOND // 2, 1)
    assert state == Window(12 * SECOND, 4)
    assert outcome == Admitted(1, 3 * SECOND // 2, 3 * SECOND // 2)
