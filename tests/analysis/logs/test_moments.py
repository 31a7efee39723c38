"""Times as logs write them."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headway.analysis.logs.moments import LAST, moment, moments, seconds

AT = 1_445_742_685_000_000_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("25/Oct/2015:04:11:25 +0100", AT),
        ("[25/Oct/2015:04:11:25 +0100]", AT),
        ("2015-10-25T04:11:25+01:00", AT),
        ("2015-10-25T04:11:25+0100", AT),
        ("2015-10-25T04:11:25+01", AT),
        ("2015-10-25T03:11:25Z", AT),
        ("2015-10-25 03:11:25", AT),
        ("2015-10-25 03:11:25 UTC", AT),
        ("2015-10-25 03:11:25,5", AT + 500_000_000),
        ("2015-10-25T03:11:25.123456789Z", AT + 123_456_789),
        ("2015-10-25T03:11:25.1234567899Z", AT + 123_456_789),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000_000_000),
        ("1445742685", AT),
        ("1445742685.123", AT + 123_000_000),
        ("1.445742685e9", AT),
        (1445742685, AT),
        (1445742685.25, AT + 250_000_000),
        (1445742685123, AT + 123_000_000),
        (1445742685123456, AT + 123_456_000),
        (1445742685123456789, AT + 123_456_789),
        ("1445742685123", AT + 123_000_000),
        (0, 0),
    ],
)
def test_a_time_is_read_however_it_is_written(value: object, expected: int) -> None:
    """Stamps, ISO 8601 and counts in any unit are the instant that they say, to the nanosecond."""
    assert moment(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "-",
        "never",
        "2015-02-30T00:00:00Z",
        "2015-10-25T24:00:00Z",
        "2015-10-25T00:00:61Z",
        "2015-10-25T00:00:00+24:00",
        "1969-12-31T23:59:59Z",
        "2262-01-01T00:00:00Z",
        "25/Okt/2015:04:11:25 +0100",
        "9" * 5000,
        "9" * 19,
        "1e99",
        "-1",
        -1,
        10**30,
        1e300,
        math.nan,
        math.inf,
        True,
        None,
        [1445742685],
    ],
)
def test_what_is_no_time_is_none(value: object) -> None:
    """What no clock shows, or what is no time at all, is None and no error."""
    assert moment(value) is None


def test_iso_times_are_the_calendars() -> None:
    """A time with its zone is the instant that the calendar says, across years and leap days."""
    chance = random.Random(8)
    for _ in range(500):
        zone = timezone(timedelta(minutes=chance.randrange(-12 * 60, 14 * 60)))
        at = datetime.fromtimestamp(chance.randrange(86_400, 9_000_000_000), UTC).astimezone(zone)
        assert moment(at.isoformat()) == int(at.timestamp()) * 10**9
    assert moment("2261-12-31T23:59:59.999999999Z") == LAST - 1


def test_many_times_are_each_ones() -> None:
    """Neighbours share work, not values: a text and a number that are alike are told apart."""
    values = ["1", 1, True, "1", "1", None, "x", "2"]
    assert moments(values) == [moment(value) for value in values]


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("0.017", 10**9, 17_000_000),
        (0.017, 10**9, 17_000_000),
        (17, 10**6, 17_000_000),
        ("17", 1, 17),
        ("-1", 10**9, None),
        (-1, 1, None),
        ("-", 1, None),
        (None, 1, None),
        ("1e99", 1, None),
        (10**30, 1, None),
        (math.nan, 1, None),
    ],
)
def test_durations_are_whole_nanoseconds(value: object, unit: int, expected: int | None) -> None:
    """A duration in its unit is exact; what is none is None."""
    assert seconds(value, unit) == expected
