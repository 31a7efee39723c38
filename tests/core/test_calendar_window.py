"""Calendar windows against the zones' own rules: where each local day, week and month begins, to the second."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Limit, Limiter, MemoryStore, Quota, QuotaError
from headway.core.calendar_window import CalendarWindow
from headway.core.fixed_window import Window
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import HOUR, SECOND
from headway.core.zone import zone_of
from headway.testing.clock import ManualClock

FROM, TO = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1990, 2038))
DAY_S = 86_400


def at(text: str) -> int:
    """Ns since 1970 of an ISO time with an offset."""
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def offset(zone: ZoneInfo, second: int) -> int:
    shift = datetime.fromtimestamp(second, zone).utcoffset()
    assert shift is not None
    return int(shift.total_seconds())


@lru_cache
def stretches(name: str) -> list[tuple[int, int]]:
    """(from when, UTC offset) of a zone, in seconds, found by looking every twelve hours and halving."""
    zone = ZoneInfo(name)
    found = [(FROM, offset(zone, FROM))]
    for second in range(FROM, TO, DAY_S // 2):
        low, high = second, second + DAY_S // 2
        if offset(zone, high) != found[-1][1]:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(zone, middle) == found[-1][1] else (low, middle)
            found.append((high, offset(zone, high)))
    return found


def begins(around: list[tuple[int, int]], day: date) -> int:
    """The first instant at which the local date is ``day`` or later."""
    midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    ends = [start for start, _ in around[1:]] + [2**40]
    starts = [max(start, midnight - shift) for start, shift in around]
    return min(start for start, end in zip(starts, ends, strict=True) if start < end)


def following(unit: str, day: date) -> date:
    if unit == "month":
        return (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return day + timedelta(days=7 if unit == "week" else 1)


def first_day(unit: str, day: date, week_start: int = 0) -> date:
    if unit == "month":
        return day.replace(day=1)
    return day - timedelta(days=(day.weekday() - week_start) % 7) if unit == "week" else day


def expected(around: list[tuple[int, int]], second: int, unit: str, week_start: int) -> tuple[int, int]:
    """The window that holds an instant, walking from three days before through all that begin."""
    day = first_day(unit, datetime.fromtimestamp(second, UTC).date() - timedelta(days=3), week_start)
    start, end = begins(around, day), begins(around, following(unit, day))
    while end <= second:
        day = following(unit, day)
        start, end = end, begins(around, following(unit, day))
    return start, end


TRAPS = [
    "America/Goose_Bay",  # after midnight back to the day before
    "Pacific/Apia",  # 2011-12-30 did not exist
    "Pacific/Kwajalein",  # nor did 1993-08-21
    "Australia/Lord_Howe",  # half an hour
    "Asia/Beirut",  # midnights that are missing
    "Africa/Cairo",
    "America/Santiago",
    "America/Havana",  # midnights that come twice
    "Asia/Kathmandu",
    "America/Nuuk",  # the hour before midnight is missing, or comes twice
    "Antarctica/Casey",  # three hours at once
    "Asia/Pyongyang",
    "America/Los_Angeles",
    "Europe/Dublin",  # winter is the exception
    "Africa/Casablanca",  # and four changes a year
]


@pytest.mark.parametrize("name", TRAPS)
def test_every_window_near_every_change_of_a_zone_is_the_zone_s_own(name: str) -> None:
    """Days, weeks and months around each change of offset from 1990 to 2037 begin and end where the local dates do."""
    zone, found = ZoneInfo(name), stretches(name)
    moves = [-DAY_S, -HOUR // SECOND, -1, 0, 1, 1800, 3599, 3600, 2 * 3600, DAY_S]
    rules = [
        (unit, start, CalendarWindow(5, zone, unit, start)) for unit, start in (("day", 0), ("week", 6), ("month", 0))
    ]  # type: ignore[arg-type]  # literals
    for index, (changed, _) in enumerate(found[1:], start=1):
        around = found[max(0, index - 3) : index + 4]
        for move in moves:
            for unit, week_start, rule in rules:
                start, end = expected(around, changed + move, unit, week_start)
                where = f"{unit} at {datetime.fromtimestamp(changed + move, UTC)}"
                assert rule.window((changed + move) * SECOND) == (start * SECOND, end * SECOND), where
                assert rule.window(end * SECOND - 1)[1] == end * SECOND, where
                assert rule.window(end * SECOND)[0] == end * SECOND, where


@pytest.mark.parametrize(
    ("zone", "inside", "begins", "hours"),
    [
        ("America/Los_Angeles", "2026-03-08T12:00-07:00", "2026-03-08T00:00-08:00", 23.0),
        ("America/Los_Angeles", "2026-11-01T12:00-08:00", "2026-11-01T00:00-07:00", 25.0),
        ("America/Goose_Bay", "2010-11-06T23:30-04:00", "2010-11-07T00:00-03:00", 25.0),
        ("Pacific/Apia", "2011-12-29T23:59-10:00", "2011-12-29T00:00-10:00", 24.0),
        ("Pacific/Apia", "2011-12-31T00:00+14:00", "2011-12-31T00:00+14:00", 24.0),
        ("Australia/Lord_Howe", "2026-10-04T12:00+11:00", "2026-10-04T00:00+10:30", 23.5),
        ("Australia/Lord_Howe", "2026-04-05T12:00+10:30", "2026-04-05T00:00+11:00", 24.5),
        ("Asia/Beirut", "2026-03-29T12:00+03:00", "2026-03-29T01:00+03:00", 23.0),
        ("Africa/Cairo", "2026-04-24T12:00+03:00", "2026-04-24T01:00+03:00", 23.0),
        ("America/Santiago", "2026-09-06T12:00-03:00", "2026-09-06T01:00-03:00", 23.0),
        ("America/Havana", "2026-11-01T12:00-05:00", "2026-11-01T00:00-04:00", 25.0),
        ("Asia/Kathmandu", "2026-05-05T12:00+05:45", "2026-05-05T00:00+05:45", 24.0),
        ("America/Toronto", "1919-03-30T23:29-05:00", "1919-03-30T00:00-05:00", 23.5),  # from 23:30 to 00:30
        ("America/Toronto", "1919-03-31T00:45-04:00", "1919-03-31T00:30-04:00", 23.5),
        ("Antarctica/Troll", "2026-03-29T12:00+02:00", "2026-03-29T00:00+00:00", 22.0),
    ],
)
def test_a_day_has_the_hours_its_zone_gives_it(zone: str, inside: str, begins: str, hours: float) -> None:
    """Days of 22 to 25 hours; missing midnights begin at the change, repeated ones at the first."""
    start, end = CalendarWindow(1, ZoneInfo(zone)).window(at(inside))
    assert start == at(begins)
    assert end - start == int(hours * HOUR)


def test_a_clock_that_goes_back_over_midnight_opens_no_second_day() -> None:
    """Goose Bay, 2010-11-07: at 00:01 it was 23:01 again. The new day had begun, and what it admitted stays spent."""
    clock = ManualClock()
    clock.now = at("2010-11-07T00:00:30-03:00")
    limiter = Limiter(Limit("daily", "1/day in America/Goose_Bay"), store=MemoryStore(clock=clock))
    assert limiter.hit().allowed
    clock.now = at("2010-11-06T23:30-04:00")
    refused = limiter.hit()
    assert not refused.allowed
    assert refused.retry_at == datetime.fromisoformat("2010-11-08T00:00-04:00")
    clock.now = at("2010-11-07T00:30-04:00")
    assert not limiter.hit().allowed
    clock.now = at("2010-11-08T00:00-04:00")
    assert limiter.hit().allowed


def test_a_day_that_a_zone_skipped_gives_no_quota() -> None:
    """Apia, 2011-12-30: from the 29th it is the 31st, one window after the other."""
    rule = Limit("daily", "3/day in Pacific/Apia").rule
    state, outcome = rule.decide(None, at("2011-12-29T23:59:59-10:00"), 3)
    assert outcome == Admitted(0, SECOND, SECOND)
    state, outcome = rule.decide(state, at("2011-12-31T00:00+14:00"), 4)
    assert outcome == Never(3, 3, 0, 0)
    state, outcome = rule.decide(state, at("2011-12-31T00:00+14:00"), 3)
    assert outcome == Admitted(0, 24 * HOUR, 24 * HOUR)


@pytest.mark.parametrize(
    ("quota", "inside", "begins", "ends"),
    [
        ("2/week in UTC", "2026-08-26T10:00+00:00", "2026-08-24T00:00+00:00", "2026-08-31T00:00+00:00"),
        ("2/week starting sunday in UTC", "2026-08-26T10:00+00:00", "2026-08-23T00:00+00:00", "2026-08-30T00:00+00:00"),
        (
            "2/week starting wednesday in UTC",
            "2026-08-26T00:00+00:00",
            "2026-08-26T00:00+00:00",
            "2026-09-02T00:00+00:00",
        ),
        ("2/month in Europe/Berlin", "2026-02-10T10:00+01:00", "2026-02-01T00:00+01:00", "2026-03-01T00:00+01:00"),
        ("2/month in Europe/Berlin", "2028-02-29T10:00+01:00", "2028-02-01T00:00+01:00", "2028-03-01T00:00+01:00"),
        ("2/month in Europe/Berlin", "2026-10-25T10:00+01:00", "2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
        ("2/month in UTC", "2026-12-31T23:59+00:00", "2026-12-01T00:00+00:00", "2027-01-01T00:00+00:00"),
        ("2/day in utc", "1969-12-31T23:59+00:00", "1969-12-31T00:00+00:00", "1970-01-01T00:00+00:00"),
    ],
)
def test_weeks_and_months_begin_where_people_say(quota: str, inside: str, begins: str, ends: str) -> None:
    """A week begins on its first weekday (Monday unless said otherwise), a month on its first day, at local midnight."""
    rule = Limit("l", quota).rule
    assert isinstance(rule, CalendarWindow)
    assert rule.window(at(inside)) == (at(begins), at(ends))
    assert rule.window(at(begins)) == (at(begins), at(ends))
    assert rule.window(at(begins) - 1)[1] == at(begins)


def test_a_window_at_the_end_of_the_calendar_still_has_an_end() -> None:
    """Instants that 64 bits of nanoseconds hold, up to 2262, and beyond: no error, and the window holds the instant."""
    for unit in ("day", "week", "month"):
        rule = Limit("l", f"1/{unit} in Europe/Berlin").rule
        assert isinstance(rule, CalendarWindow)
        years = [
            int(datetime(year, 6, 15, tzinfo=UTC).timestamp()) * SECOND for year in (1, 4, 5, 2262, 8973, 8974, 9999)
        ]
        for now in (*years, 2**70, -(2**70), 2**63, -(2**63), 0, -1):
            start, end = rule.window(now)
            assert start <= now < end
            assert end - start <= 31 * 24 * HOUR + HOUR
            assert rule.window(end)[0] <= end < rule.window(end)[1]


def test_the_state_is_known_by_the_instant_at_which_its_window_ends() -> None:
    """What is kept is (end, used) in ns since 1970: two processes with another idea of the date still agree."""
    rule = Limit("daily", "3/day in America/Los_Angeles").rule
    now = at("2026-11-01T00:30-07:00")
    state, _ = rule.decide(None, now, 2)
    assert state == Window(at("2026-11-02T00:00-08:00"), 2)
    assert rule.load(rule.dump(state)) == state
    assert rule.expires_at(state) == state.end
    refused = rule.decide(state, now, 2)[1]
    assert isinstance(refused, Refused)
    assert refused.retry_after == state.end - now == int(24.5 * HOUR)


def test_a_quota_s_text_names_the_zone() -> None:
    """``Quota.parse`` reads it, prints it and refuses a zone that is not known, naming it and what to install."""
    quota = Quota.parse("11/day in America/Los_Angeles")
    assert (quota.count, quota.zone, quota.calendar) == (11, "America/Los_Angeles", "day")
    assert str(quota) == "11/day in America/Los_Angeles"
    assert Quota.parse("11 per day in America/Los_Angeles") == quota
    with pytest.raises(QuotaError, match=r"America/Los_Angelos.*pip install 'headway\[tz\]'"):
        Quota.parse("11/day in America/Los_Angelos")


@pytest.mark.parametrize(
    "name",
    ["localtime", "posixrules", "LOCALTIME", "posix/Europe/Berlin", "right/Europe/Berlin", "Right/UTC", "Factory",
     "zone.tab", "Europe", "../Europe/Berlin", "/usr/share/zoneinfo/UTC", "", " ", "x" * 5000, "UTC\0", "Europe/Berlin "],
)  # fmt: skip
def test_a_name_that_is_no_zone_of_every_host_is_refused(name: str) -> None:
    """This host's own setting, copies with other rules, folders, other files, paths: each would mean something else elsewhere."""
    with pytest.raises(QuotaError, match="no time zone of that name is known"):
        zone_of(name)
    with pytest.raises(QuotaError, match="no time zone of that name is known"):
        Quota(5, 24 * HOUR, zone=name, calendar="day")


@pytest.mark.parametrize("name", [5, b"UTC", ("UTC",), UTC])
def test_a_zone_is_a_name(name: Any) -> None:
    """Anything else is a ``QuotaError`` that says so."""
    with pytest.raises(QuotaError, match="a time zone is a name such as Europe/Berlin, not a"):
        Quota(5, 24 * HOUR, zone=name, calendar="day")


@pytest.mark.parametrize("name", ["UTC", "utc", "Etc/GMT+5", "GMT", "EST5EDT", "America/Argentina/Buenos_Aires"])
def test_every_zone_of_iana_is_one(name: str) -> None:
    """Also those without a city."""
    assert Quota.parse(f"5/day in {name}").zone == name


def test_without_time_zone_data_construction_fails_and_says_what_to_install() -> None:
    """In a process that finds no data the limit cannot be made: it does not fail at the first request."""
    program = """
        import sys
        sys.modules["tzdata"] = None
        import zoneinfo
        zoneinfo.reset_tzpath(to=())
        from headway import Limit
        try:
            Limit("daily", "11/day in America/Los_Angeles")
        except Exception as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("QuotaError"), done.stderr
    assert "America/Los_Angeles" in done.stdout
    assert "pip install 'headway[tz]'" in done.stdout


def test_a_clock_set_back_over_midnight_neither_refills_nor_locks() -> None:
    """A small step keeps the new day's count; a large one is capped at the day that is open then."""
    rule = Limit("daily", "2/day in UTC").rule
    midnight = at("2026-05-05T00:00+00:00")
    state, _ = rule.decide(None, midnight, 2)
    after, outcome = rule.decide(state, midnight - 5 * SECOND, 1)
    assert after is state
    assert outcome == Refused(0, 24 * HOUR + 5 * SECOND, 24 * HOUR + 5 * SECOND, 24 * HOUR + 5 * SECOND)
    after, outcome = rule.decide(state, midnight - 11 * SECOND, 1)
    assert after == Window(midnight, 2)
    assert outcome == Refused(0, 11 * SECOND, 11 * SECOND, 11 * SECOND)


def test_a_rule_takes_everything_from_its_quota_and_whether_refusals_count() -> None:
    """Count, zone, unit and first weekday; refusals do not count unless asked for."""
    quota = Quota.parse("2/week starting sunday in UTC")
    assert CalendarWindow.of(quota) == CalendarWindow(2, ZoneInfo("UTC"), "week", 6, count_refused=False)
    assert CalendarWindow.of(quota, count_refused=True) == CalendarWindow(
        2, ZoneInfo("UTC"), "week", 6, count_refused=True
    )
    assert CalendarWindow.of(quota).count_refused is False


def test_the_first_instant_of_the_calendar_is_in_it_and_the_one_after_its_last_is_not() -> None:
    """Months begin on their first day from -62 000 000 000 s on, and are of the nominal length from 221 000 000 000 s on."""
    first, beyond = -62_000_000_000 * SECOND, 221_000_000_000 * SECOND
    months = [CalendarWindow(1, ZoneInfo("UTC"), "month") for _ in range(4)]
    assert [
        months[index].window(now)[0] % (30 * DAY_S * SECOND) == 0
        for index, now in enumerate((first - 1, first, beyond - 1, beyond))
    ] == [True, False, False, True]


def _zone(rule: str) -> ZoneInfo:
    """A zone of nothing but a POSIX rule (RFC 9636 §3.3): clocks that no real zone has at present."""
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    block = b"TZif2" + bytes(15) + counts + struct.pack(">lbb", 0, 0, 0) + b"AAA\0"
    return ZoneInfo.from_file(io.BytesIO(block + block + b"\n" + rule.encode() + b"\n"))


@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("AAA0BBB-1,J59/23:30,J200/12", 7),  # springs from 23:30 on the last of February to 00:30 on the first of March
        ("AAA0BBB-1,J20/12,J60/0:30", 6),  # falls from 00:30 on the first of March back to 23:30
        ("AAA0BBB-1,J20/12,J60/0", 6),  # falls back at midnight itself
    ],
)
def test_windows_follow_one_another_where_the_clock_leaps_over_midnight(unit: str, rule: str, days: int) -> None:
    """Every instant is in one window, which begins when its first date, or a later one, first shows; whichever was asked before."""
    zone = _zone(rule)
    edge = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * SECOND
    moments = [edge + minutes * 60 * SECOND for minutes in range(-3 * 1440, 3 * 1440, 10)]
    spans = [CalendarWindow(1, zone, unit).window(now) for now in moments]
    for now, (start, end), (next_start, next_end) in zip(moments, spans, spans[1:], strict=False):
        assert start <= now < end
        assert (next_start, next_end) == (start, end) or next_start == end
    assert len(set(spans)) == (days if unit == "day" else 2)
    dates = accumulate((datetime.fromtimestamp(now // SECOND, zone).date() for now in moments), max)
    firsts = [first_day(unit, latest) for latest in dates]
    assert [one == other for one, other in pairwise(spans)] == [one == other for one, other in pairwise(firsts)]
    fresh = CalendarWindow(1, zone, unit)
    assert [fresh.window(now) for now in reversed(moments)] == spans[::-1]


@pytest.mark.parametrize(
    "leap", ["23:00", "23:00:01", "23:20:03", "23:30", "23:30:02", "23:45:05", "23:59:58", "23:59:59"]
)
def test_a_window_begins_at_the_very_second_at_which_the_clock_leaps_over_its_midnight(leap: str) -> None:
    """An hour forward from that time on the last of February: it is March from then on, neither earlier nor later."""
    zone = _zone(f"AAA0BBB-1,J59/{leap},J200/12")
    rule = CalendarWindow(1, zone, "month")
    start = at(f"2026-02-28T{leap}+00:00")
    assert rule.window(start) == (start, at("2026-03-31T23:00+00:00"))
    assert rule.window(start - 1) == (at("2026-02-01T00:00+00:00"), start)


def test_a_rule_with_another_unit_remembers_no_window_of_the_first() -> None:
    """``dataclasses.replace`` makes a rule of its own."""
    now = at("2026-05-05T12:00+00:00")
    day = CalendarWindow(1, ZoneInfo("UTC"))
    assert day.window(now) == (at("2026-05-05T00:00+00:00"), at("2026-05-06T00:00+00:00"))
    assert replace(day, unit="month").window(now) == (at("2026-05-01T00:00+00:00"), at("2026-06-01T00:00+00:00"))


@given(
    name=st.sampled_from(sorted(available_timezones() - {"Factory", "localtime"})),
    unit=st.sampled_from(["day", "week", "month"]),
    week_start=st.integers(0, 6),
    second=st.integers(*(int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1900, 2100))),
)
def test_in_every_zone_a_window_begins_when_its_first_date_first_shows(
    name: str, unit: Any, week_start: int, second: int
) -> None:
    """It holds the instant, the one before ends where it begins, and no clock has shown its date before (1900 to 2100)."""
    zone = ZoneInfo(name)
    rule = CalendarWindow(1, zone, unit, week_start)
    start, end = rule.window(second * SECOND)
    assert start <= second * SECOND < end
    assert rule.window(start - 1)[1] == start
    assert rule.window(end)[0] == end
    for edge in (start // SECOND, end // SECOND):
        first = first_day(unit, datetime.fromtimestamp(edge, zone).date(), week_start)
        assert all(datetime.fromtimestamp(edge - ago, zone).date() < first for ago in (1, *range(900, 2 * DAY_S, 900)))
