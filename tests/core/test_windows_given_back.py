"""Windows of every kind: units given back, debt, other quotas, lines that clear, and the instants at their edges."""

from __future__ import annotations

from headway import Limit
from headway.core.fixed_window import FixedWindow, Window
from headway.core.lease import Receipt
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import DAY, HOUR, SECOND
from headway.core.rule import CLOCK_SLACK_NS

RULE = FixedWindow(10, 100)


def charged(cost: int, now: int = 1_020) -> tuple[Window, Receipt]:
    state, outcome = RULE.decide(None, now, cost)
    assert isinstance(outcome, Admitted)
    return state, Receipt(now, cost, 0, outcome)


def test_units_come_off_the_window_they_were_charged_to() -> None:
    """At most what was charged, while it is open; an emptied window is forgotten; another window is left alone."""
    state, receipt = charged(4)
    assert state == Window(1_100, 4)
    assert RULE.give_back(state, 1_030, 3, receipt) == Window(1_100, 1)
    assert RULE.give_back(state, 1_030, 4, receipt) is None
    assert RULE.give_back(Window(1_100, 9), 1_030, 7, receipt) == Window(1_100, 5)
    assert RULE.give_back(state, 1_099, 1, receipt) == Window(1_100, 3)
    for untouched, now, units in (
        (state, 1_030, 0),
        (state, 1_100, 4),
        (Window(1_200, 4), 1_130, 4),
        (Window(1_150, 4), 1_030, 4),
    ):
        assert RULE.give_back(untouched, now, units, receipt) is untouched
    assert RULE.give_back(None, 1_030, 4, receipt) is None


def test_debt_is_counted_in_the_open_window() -> None:
    """Above the count too, and in a window of its own when none is open; the end of a longer quota's window stays."""
    assert RULE.take(None, 1_020, 3) == Window(1_100, 3)
    assert RULE.take(Window(1_100, 9), 1_099, 3) == Window(1_100, 12)
    assert RULE.take(Window(1_100, 9), 1_100, 3) == Window(1_200, 3)
    day = Window(DAY, 9)
    assert RULE.take(day, 1_020, 3) == Window(DAY, 12)
    assert RULE.decide(Window(1_100, 12), 1_020, 1)[1] == Refused(0, 80, 80, 80)


def test_a_line_clears_a_count_a_window() -> None:
    """What fits now, then the count from each edge on."""
    assert [RULE.clears_after(None, 1_020, units) for units in (0, 10, 11, 20, 21, 30, 31)] == [
        0,
        0,
        80,
        80,
        180,
        180,
        280,
    ]
    full = Window(1_100, 10)
    assert [RULE.clears_after(full, 1_020, units) for units in (0, 1, 10, 11)] == [0, 80, 80, 180]
    assert RULE.clears_after(Window(1_100, 7), 1_020, 3) == 0
    assert RULE.clears_after(Window(1_100, 15), 1_020, 1) == 80
    assert RULE.clears_after(full, 1_100, 10) == 0
    anchored = FixedWindow(10, 100, anchored=True)
    assert anchored.clears_after(Window(1_050, 10), 1_020, 11) == 130


def test_a_share_of_the_count_is_kept_rounded_up() -> None:
    """In a window of the new quota that begins now; what had ended is not carried over."""
    assert FixedWindow(3, 50).scaled(Window(1_100, 4), 1_020, RULE) == Window(1_050, 2)
    assert FixedWindow(3, 50).scaled(Window(1_100, 4), 1_100, RULE) == Window(1_150, 0)


def test_a_longer_quota_extends_an_open_window_once_something_is_charged() -> None:
    """Aligned windows grow to the new boundary, anchored ones keep their end; a refusal says when it ends as it stands."""
    longer, anchored = FixedWindow(10, 1_000), FixedWindow(10, 1_000, anchored=True)
    assert longer.decide(Window(1_100, 4), 1_020, 1) == (Window(2_000, 5), Admitted(5, 980, 980))
    assert anchored.decide(Window(1_100, 4), 1_020, 1) == (Window(1_100, 5), Admitted(5, 80, 80))
    assert longer.decide(Window(1_100, 4), 1_020, 7)[1] == Refused(6, 80, 80, 80)
    assert longer.decide(Window(1_100, 4), 1_020, 0)[1] == Admitted(6, 80, 80)
    assert longer.decide(Window(1_100, 4), 1_100, 11)[1] == Never(10, 10, 0, 0)
    assert longer.decide(Window(1_100, 4), 1_100, 1)[0] == Window(2_000, 1)


def test_a_calendar_day_becomes_a_week_and_a_week_a_day() -> None:
    """The day's units count in the week that holds it; a week that is cut to a day ends with the day that is open."""
    day, week = (Limit("l", f"5/{unit} in UTC").rule for unit in ("day", "week"))
    monday = 20_700 * DAY - 3 * DAY  # 2026-09-01 is a Tuesday: day 20697
    while Limit("l", "1/week in UTC").rule.window(monday)[0] != monday:  # type: ignore[attr-defined]  # a calendar window
        monday -= DAY
    state, _ = day.decide(None, monday + HOUR, 2)
    assert state == Window(monday + DAY, 2)
    assert week.decide(state, monday + 2 * HOUR, 1)[0] == Window(monday + 7 * DAY, 3)
    state, _ = week.decide(None, monday + HOUR, 2)
    after, outcome = day.decide(state, monday + 2 * HOUR, 4)
    assert after == Window(monday + DAY, 2)
    assert outcome == Refused(3, 22 * HOUR, 22 * HOUR, 22 * HOUR)


def test_an_end_is_honest_up_to_the_window_after_the_slack() -> None:
    """To the nanosecond: the edge that the slack reaches is kept, one window more is cut, and that is written."""
    rule, now = FixedWindow(10, SECOND), 5 * SECOND
    edge = now + CLOCK_SLACK_NS + SECOND
    assert rule.decide(Window(edge, 10), now, 1) == (Window(edge, 10), Refused(0, edge - now, edge - now, edge - now))
    assert rule.decide(Window(edge + 1, 10), now, 1) == (Window(now + SECOND, 10), Refused(0, SECOND, SECOND, SECOND))
    assert rule.decide(Window(edge + 1, 10), now, 0)[0] == Window(edge + 1, 10)
    assert rule.decide(Window(now + 1, 10), now + 1, 1)[0] == Window(now + SECOND, 1)
