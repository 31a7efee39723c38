"""What is said of a quota that cannot be right: the whole sentence, and the place it points at."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.quota import DAY, MAX_COUNT, MAX_RECOVERY_NS, WEEK, Quota, parse_duration
from headway.errors import QuotaError

EXAMPLES = "; for example '100/s', '100/s burst 20', '5 per 10 minutes' or '11/day in America/Los_Angeles'"
COUNT = "expected a count, a whole number from 0"
BETWEEN = "expected '/' or 'per' between the count and the period (or 'at once')"
UNIT = "expected a unit of time: ms, s, min, h, day, week (month with 'in ZONE')"
CALENDAR = "'in ZONE' counts per one day, one week or one month"
NO_BURST = "a calendar quota takes no burst: its whole count may come at once"
WEEKDAY = "expected a day of the week: monday, tuesday, wednesday, thursday, friday, saturday, sunday"
ONE_MONTH = "a month has no fixed length: a calendar quota counts per one month"
NO_ZONE = (
    "no time zone of that name is known here; expected an IANA name such as UTC, Europe/Berlin or Asia/Shanghai "
    "(a system without time-zone data needs `pip install 'headway[tz]'`)"
)
TOO_LONG = "burst · period / count is above 100 years of 365 days; shorten the period or the burst"


@pytest.mark.parametrize(
    ("text", "before", "problem"),
    [
        ("", "", COUNT),
        ("  ", "  ", COUNT),
        (" lots", " ", f"{COUNT}, not 'lots'"),
        ("1.5/s", "", f"{COUNT}, not '1.5'"),
        ("/s", "", COUNT),
        ("9999999999999/s", "", "the count is above 1000000000000"),
        ("1000000000001/s", "", "the count is above 1000000000000"),
        ("9" * 150, "", "the count is above 1000000000000"),
        ("5", "5", BETWEEN),
        ("5 pero s", "5 ", BETWEEN),
        ("5 atonce", "5 ", BETWEEN),
        ("5 at", "5 at", "expected 'once' after 'at'"),
        ("5 at  twice", "5 at  ", "expected 'once' after 'at'"),
        ("5 at once for", "5 at once for", UNIT),
        ("5 at once now", "5 at once ", "expected 'for [AMOUNT] UNIT' or the end"),
        ("5 at once for 5 s now", "5 at once for 5 s ", "expected 'for [AMOUNT] UNIT' or the end"),
        ("5 at once in UTC", "5 at once ", "expected 'for [AMOUNT] UNIT' or the end"),
        ("5/", "5/", UNIT),
        ("5 per  3  parsecs", "5 per  3  ", UNIT),
        ("5 per  0 s", "5 per  ", "the period is 0; expected more than no time"),
        ("5 per  0.0000000001 s", "5 per  ", "the period is no whole number of nanoseconds"),
        ("5 per  1.0000000001 s", "5 per  ", "the period is no whole number of nanoseconds"),
        (f"5 per  {'1' * 31} s", "5 per  ", "the period's number is too long"),
        ("5/s burst", "5/s burst", "expected a burst, a whole number from 1"),
        ("5/s burst  1.5", "5/s burst  ", "expected a burst, a whole number from 1, not '1.5'"),
        ("5/s burst  9999999999999", "5/s burst  ", "the burst is above 1000000000000"),
        ("5/s  burst 0", "5/s  ", "a burst of 0 would admit nothing; expected 1 or more (a count of 0 blocks everything)"),
        ("0/s  burst 1", "0/s  ", "a count of 0 blocks everything and takes no burst"),
        ("5/s bursty 2", "5/s ", "expected 'burst N', 'in ZONE' or the end"),
        ("5/s starting monday", "5/s ", "expected 'burst N', 'in ZONE' or the end"),
        ("5/2 weeks starting monday in UTC", "5/2 weeks ", "expected 'burst N', 'in ZONE' or the end"),
        ("5/s burst 2 x", "5/s burst 2 ", "expected nothing more"),
        ("5/s burst 2 burst 3", "5/s burst 2 ", "expected nothing more"),
        ("5/day in UTC x", "5/day in UTC ", "expected nothing more"),
        ("5/day in UTC burst 3", "5/day in UTC ", "expected nothing more"),
        ("5/day in UTC in UTC", "5/day in UTC ", "expected nothing more"),
        ("5/s burst 2 in UTC", "5/", CALENDAR),
        ("5/hour in UTC", "5/", CALENDAR),
        ("5/ 2  days in UTC", "5/ 2  ", CALENDAR),
        ("5/2 weeks in UTC", "5/2 ", CALENDAR),
        ("5/day burst 3  in UTC", "5/day burst 3  ", NO_BURST),
        ("5/day in", "5/day in", "expected the name of a time zone, such as UTC or Asia/Shanghai"),
        ("5/day in  5", "5/day in  ", "expected the name of a time zone, such as UTC or Asia/Shanghai"),
        ("5/ month", "5/ ", "a month has no fixed length: say 'per 30 days', or 'per month in UTC'"),
        ("5 per 1 months burst 2", "5 per 1 ", "a month has no fixed length: say 'per 30 days', or 'per month in UTC'"),
        ("5 per 2  months in UTC", "5 per 2  ", ONE_MONTH),
        ("5 per 2 month", "5 per 2 ", ONE_MONTH),
        ("5/week starting sunday", "5/week starting sunday", "'starting' belongs to a calendar week: add 'in ZONE'"),
        ("5/week starting monday", "5/week starting monday", "'starting' belongs to a calendar week: add 'in ZONE'"),
        ("5/week starting", "5/week starting", WEEKDAY),
        ("5/week starting  noday in UTC", "5/week starting  ", WEEKDAY),
        ("1/s burst 10000000000", "", TOO_LONG),
        ("1 per 36501 days", "", TOO_LONG),
        ("1" + " " * 198 + "/s", "1" + " " * 198 + "/", "a quota is at most 200 characters long"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_quota(text: str, before: str, problem: str) -> None:
    """The text, the character at which the trouble begins, what is accepted there, and examples."""
    with pytest.raises(QuotaError) as caught:
        Quota.parse(text)
    error = caught.value
    assert error.text == text
    assert error.position == len(before)
    assert str(error) == str(QuotaError(text, problem + EXAMPLES, position=len(before)))
    assert str(error).startswith(f"quota {text if len(text) <= 120 else text[:117] + '...'!r}: at ")


def test_a_zone_that_is_not_known() -> None:
    """The place is the name's, and the message says what to install."""
    text = "5/day in  Nowhere/Land"
    with pytest.raises(QuotaError) as caught:
        Quota.parse(text)
    assert str(caught.value) == str(QuotaError(text, NO_ZONE, position=10))
    assert (caught.value.text, caught.value.position) == (text, 10)


WHOLE = f"expected a whole number from 1 to {MAX_COUNT}"
STARTS = "expected 0 (Monday) to 6, for a calendar week only"


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ((1.0, 1), "1.0 per 1 ns': the count is a float; a whole number is expected"),
        ((True, 1), "True per 1 ns': the count is a bool; a whole number is expected"),
        ((1, "x"), "1 per x ns': the period is a str; a whole number is expected"),
        ((-1, 1), "-1 per 1 ns': the count is -1; expected 0 to 1000000000000"),
        ((MAX_COUNT + 1, 1), "1000000000001 per 1 ns': the count is 1000000000001; expected 0 to 1000000000000"),
        ((1, 0), "1 per 0 ns': the period is 0 ns; expected at least 1 ns"),
        ((1, DAY, None, "UTC"), f"1 per {DAY} ns': zone and calendar go together: give both or neither"),
        ((1, DAY, None, None, "day"), f"1 per {DAY} ns': zone and calendar go together: give both or neither"),
        ((1, 7, None, "UTC", "day"), "1 per 7 ns': a calendar quota counts per one day, one week or one month"),
        ((1, DAY, None, "UTC", "year"), f"1 per {DAY} ns': a calendar quota counts per one day, one week or one month"),
        ((1, DAY, None, "UTC", "day", 1), f"1 per {DAY} ns': week_start is 1; {STARTS}"),
        ((1, WEEK, None, "UTC", "week", 7), f"1 per {WEEK} ns': week_start is 7; {STARTS}"),
        ((1, WEEK, None, "UTC", "week", -1), f"1 per {WEEK} ns': week_start is -1; {STARTS}"),
        ((1, WEEK, None, None, None, 1), f"1 per {WEEK} ns': week_start is 1; {STARTS}"),
        ((0, 1, 1), "0 per 1 ns': a count of 0 blocks everything and takes no burst"),
        ((1, 1, 0), f"1 per 1 ns': the burst is 0; {WHOLE}"),
        ((5, 1, 1.5), f"5 per 1 ns': the burst is 1.5; {WHOLE}"),
        ((5, 1, True), f"5 per 1 ns': the burst is True; {WHOLE}"),
        ((0, 1, False), f"0 per 1 ns': the burst is False; {WHOLE}"),
        ((1, 1, MAX_COUNT + 1), f"1 per 1 ns': the burst is 1000000000001; {WHOLE}"),
        ((2, 1, 1, None, None, 0, True), "2 per 1 ns': a quota 'at once' takes neither a burst nor a zone"),
        ((1, DAY, None, "UTC", "day", 0, True), f"1 per {DAY} ns': a quota 'at once' takes neither a burst nor a zone"),
        ((2, DAY, 1, "UTC", "day"), f"2 per {DAY} ns': {NO_BURST}"),
        ((1, MAX_RECOVERY_NS + 1), f"1 per {MAX_RECOVERY_NS + 1} ns': {TOO_LONG}"),
        ((2, MAX_RECOVERY_NS, 3), f"2 per {MAX_RECOVERY_NS} ns': {TOO_LONG}"),
    ],
)
def test_numbers_that_are_no_quota(numbers: tuple[Any, ...], problem: str) -> None:
    """The count and the period, which field cannot be right, and what it may be."""
    with pytest.raises(QuotaError) as caught:
        Quota(*numbers)
    assert str(caught.value) == f"quota '{problem}"
    assert caught.value.position is None


def test_what_is_no_text_at_all() -> None:
    """A TypeError that names the type and gives examples."""
    with pytest.raises(TypeError) as caught:
        Quota.parse(5)  # type: ignore[arg-type]  # as a user may write it
    assert str(caught.value) == f"a quota is a str or a Quota, not an int{EXAMPLES}"
    with pytest.raises(TypeError) as caught:
        parse_duration(5)  # type: ignore[arg-type]  # as a user may write it
    assert str(caught.value) == "a duration is text such as '30 s' or '1 hour', not an int"


DURATIONS = "; for example '30 s', '1.5 minutes' or '7 days'"


@pytest.mark.parametrize(
    ("text", "before", "problem"),
    [
        ("5  parsecs", "5  ", "expected a unit of time: ms, s, min, h, day, week"),
        ("  0 s", "  ", "the duration is 0; expected more than no time"),
        ("1.0000000001 s", "", "the duration is no whole number of nanoseconds"),
        ("1 month", "1 ", "a month has no fixed length: say it in days, such as '30 days'"),
        ("2 months", "2 ", "a month has no fixed length: say it in days, such as '30 days'"),
        ("5 s  burst 3", "5 s  ", "expected nothing more"),
        ("week starting monday", "week ", "expected nothing more"),
        ("1" * 31 + " s", "", "the duration's number is too long"),
        ("1" + " " * 199 + "s", "1" + " " * 199, "a duration is at most 200 characters long"),
    ],
)
def test_a_text_that_is_no_duration(text: str, before: str, problem: str) -> None:
    """The same, in words of a duration."""
    with pytest.raises(QuotaError) as caught:
        parse_duration(text)
    assert caught.value.position == len(before)
    assert str(caught.value) == str(QuotaError(text, problem + DURATIONS, position=len(before), kind="duration"))
    assert str(caught.value).startswith("duration ")
