"""Calendar windows: local days, weeks and months, exact across daylight-saving changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.calendar_window import CalendarWindow
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Refused
from headway.core.quota import DAY, HOUR, SECOND

ZONES = [
    "UTC", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Asia/Beirut", "Africa/Cairo",
    "America/Santiago", "America/Goose_Bay", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Casablanca",
]  # fmt: skip


def rule(quota: str) -> CalendarWindow:
    found = Limit("l", quota).rule
    assert isinstance(found, CalendarWindow)
    return found


def at(text: str, zone: str = "UTC") -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return round(moment.astimezone(UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/Los_Angeles", "2026-03-08", 23),
        ("America/Los_Angeles", "2026-11-01", 25),
        ("America/Los_Angeles", "2026-07-01", 24),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Asia/Kathmandu", "2026-05-01", 24),
        ("Europe/Berlin", "2026-03-29", 23),
        ("Asia/Beirut", "2026-03-29", 23),
        ("America/Havana", "2026-11-01", 25),
    ],
)
def test_a_day_has_the_hours_it_has(zone: str, day: str, hours: float) -> None:
    """Noon of the day falls into a window of 23, 23.5, 24, 24.5 or 25 hours."""
    start, end = rule(f"5/day in {zone}").window(at(f"{day}T12:00", zone))
    assert (end - start) / HOUR == hours


def test_a_missing_midnight_begins_the_day_at_the_change() -> None:
    """Beirut's 29 March 2026 begins at 01:00: there was no 00:00."""
    start, _ = rule("5/day in Asia/Beirut").window(at("2026-03-29T12:00", "Asia/Beirut"))
    assert datetime.fromtimestamp(start / SECOND, ZoneInfo("Asia/Beirut")).isoformat() == "2026-03-29T01:00:00+03:00"


def test_a_repeated_midnight_begins_the_day_once() -> None:
    """Havana's 1 November 2026 has 00:00 twice: the second one opens no new window."""
    havana = rule("5/day in America/Havana")
    first = at("2026-11-01T00:00", "America/Havana")
    state, _ = havana.decide(None, first, 5)
    outcome = havana.decide(state, first + HOUR, 1)[1]
    assert outcome == Refused(0, 24 * HOUR, 24 * HOUR, 24 * HOUR)


def test_a_clock_that_goes_back_over_midnight_does_not_reopen_yesterday() -> None:
    """Goose Bay, 7 November 2010: a minute after midnight it was 23:01 of the 6th again; the 7th's window stays open."""
    bay = rule("1/day in America/Goose_Bay")
    midnight = int(datetime(2010, 11, 7, 3, 0, tzinfo=UTC).timestamp()) * SECOND
    state, _ = bay.decide(None, midnight, 1)
    for later in (SECOND, 60 * SECOND, HOUR // 2, HOUR, 2 * HOUR):
        assert isinstance(bay.decide(state, midnight + later, 1)[1], Refused), later
    assert isinstance(bay.decide(bay.decide(None, midnight - SECOND, 1)[0], midnight, 1)[1], Admitted)


def test_a_day_that_never_was_opens_no_window() -> None:
    """Apia skipped 30 December 2011: the 29th's window ends where the 31st's begins."""
    apia = rule("5/day in Pacific/Apia")
    _, end = apia.window(at("2011-12-29T12:00", "Pacific/Apia"))
    assert apia.window(end)[0] == end
    assert datetime.fromtimestamp(end / SECOND, ZoneInfo("Pacific/Apia")).isoformat() == "2011-12-31T00:00:00+14:00"


def test_weeks_begin_on_monday_or_where_said_and_months_on_the_first() -> None:
    """Friday 15 January 2027 in Berlin."""
    now = at("2027-01-15T12:00", "Europe/Berlin")
    for quota, first, last in [
        ("5/week in Europe/Berlin", "2027-01-11", "2027-01-18"),
        ("5/week starting sunday in Europe/Berlin", "2027-01-10", "2027-01-17"),
        ("5/week starting friday in Europe/Berlin", "2027-01-15", "2027-01-22"),
        ("5/month in Europe/Berlin", "2027-01-01", "2027-02-01"),
    ]:
        assert rule(quota).window(now) == (at(first, "Europe/Berlin"), at(last, "Europe/Berlin")), quota


@given(st.sampled_from(ZONES), st.sampled_from(["day", "week", "month"]), st.integers(0, 4_000_000_000))
@settings(max_examples=300)
def test_windows_tile_time(zone: str, unit: str, second: int) -> None:
    """Each instant is in the window it is told, windows meet without gap or overlap, and each begins at a local date's start."""
    calendar = rule(f"5/{unit} in {zone}")
    now = second * SECOND
    start, end = calendar.window(now)
    assert start <= now < end
    assert calendar.window(start) == calendar.window(end - 1) == (start, end)
    assert calendar.window(end)[0] == end
    assert calendar.window(start - 1)[1] == start
    local = ZoneInfo(zone)
    begin = datetime.fromtimestamp(start // SECOND, local)
    before = datetime.fromtimestamp(start // SECOND, UTC) - timedelta(seconds=1)
    assert begin.date() != before.astimezone(local).date()
    if unit == "month":
        assert begin.day == 1
        assert end - start < 32 * DAY
    if unit == "week":
        assert begin.weekday() == 0


def test_an_unknown_zone_is_named_with_what_helps() -> None:
    """A quota cannot be made with a zone that this system does not know."""
    with pytest.raises(ValueError, match=r"no time zone of that name .* IANA name such as UTC, Europe/Berlin"):
        Limit("l", "5/day in Europe/Atlantis")
