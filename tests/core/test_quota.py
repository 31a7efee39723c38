"""Quotas as people write them: read, printed, refused with the text, the place and what is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.quota import (
    DAY,
    HOUR,
    MAX_COUNT,
    MAX_RECOVERY_NS,
    MILLISECOND,
    MINUTE,
    SECOND,
    WEEK,
    Quota,
    parse_duration,
    print_duration,
)
from headway.errors import HeadwayError, QuotaError
from properties.histories import quotas

READ = {
    "100/s": (100, SECOND, 100),
    "100/s burst 20": (100, SECOND, 20),
    "5 per 10 minutes": (5, 10 * MINUTE, 5),
    "1 per 60s": (1, MINUTE, 1),
    "11/day": (11, DAY, 11),
    "1000 per 1 hour": (1000, HOUR, 1000),
    "90 per 1.5 minutes": (90, 90 * SECOND, 90),
    "6/minute": (6, MINUTE, 6),
    " 10 / Minute ": (10, MINUTE, 10),
    "10/2minutes": (10, 2 * MINUTE, 10),
    "10 PER 2 Hours BURST 7": (10, 2 * HOUR, 7),
    "1,000,000/day": (1_000_000, DAY, 1_000_000),
    "1_000/h": (1000, HOUR, 1000),
    "3 per 0.5 s": (3, SECOND // 2, 3),
    "1 per 250ms": (1, 250 * MILLISECOND, 1),
    "1 per 0.000001 ms": (1, 1, 1),
    "1 per 365 days": (1, 365 * DAY, 1),
    "3000000/s": (3_000_000, SECOND, 3_000_000),
    "1 per 52 weeks": (1, 52 * WEEK, 1),
    "5\tper\n2 h": (5, 2 * HOUR, 5),
    "1 per 100 s burst 1000000": (1, 100 * SECOND, 1_000_000),
    "0/s": (0, SECOND, 0),
    "0 per 5 min": (0, 5 * MINUTE, 0),
}


@pytest.mark.parametrize("text", READ)
def test_what_people_write_is_read(text: str) -> None:
    """Count, period and burst are what the text says; the burst is the count where none is given."""
    quota = Quota.parse(text)
    assert (quota.count, quota.period_ns, quota.burst) == READ[text]


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (MILLISECOND, ["ms", "millisecond", "milliseconds"]),
        (SECOND, ["s", "sec", "second", "seconds"]),
        (MINUTE, ["m", "min", "minute", "minutes"]),
        (HOUR, ["h", "hour", "hours"]),
        (DAY, ["d", "day", "days"]),
        (WEEK, ["w", "week", "weeks"]),
    ],
)
def test_every_name_of_a_unit_is_known(unit: int, words: list[str]) -> None:
    """Short, singular and plural, in any case, after a slash and after "per N"."""
    for word in words:
        for spelt in (word, word.upper(), word.title()):
            assert Quota.parse(f"5/{spelt}") == Quota(5, unit)
            assert Quota.parse(f"5 per {spelt}") == Quota(5, unit)
            assert Quota.parse(f"5 per 3 {spelt}") == Quota.parse(f"5 per 3{spelt}") == Quota(5, 3 * unit)


@given(quotas())
def test_text_and_repr_come_back_as_the_same_quota(quota: Quota) -> None:
    """Whatever quota is printed reads back equal, and its repr evaluates to it."""
    assert Quota.parse(str(quota)) == quota
    assert eval(repr(quota), {"Quota": Quota}) == quota
    assert str(Quota.parse(str(quota))) == str(quota)


@pytest.mark.parametrize(
    "text", [*READ, "3 per day in Asia/Shanghai", "3/week starting sunday in UTC", "9 per month in Europe/Berlin"]
)
def test_examples_come_back_too(text: str) -> None:
    """The written forms, calendar quotas among them, survive printing."""
    quota = Quota.parse(text)
    assert Quota.parse(str(quota)) == quota
    assert eval(repr(quota), {"Quota": Quota}) == quota
    assert hash(quota) == hash(Quota.parse(str(quota)))


@pytest.mark.parametrize(
    ("text", "place", "accepted"),
    [
        ("", "at its end", "whole number"),
        ("   ", "at its end", "whole number"),
        ("lots", "'lots'", "whole number"),
        ("-3/minute", "'-3/minute'", "whole number"),
        ("nan/s", "'nan/s'", "whole number"),
        ("NaN per second", "'NaN per second'", "whole number"),
        ("inf/s", "'inf/s'", "whole number"),
        ("1e3/s", "'1e3/s'", ""),
        ("1.5/s", "'1.5/s'", "whole number"),
        ("+5/s", "'+5/s'", "whole number"),
        ("5", "at its end", "per"),
        ("5/", "at its end", "ms, s, min, h, day, week"),
        ("5/fortnight", "'fortnight'", "ms, s, min, h, day, week"),
        ("5 per 3 parsecs", "'parsecs'", "ms, s, min, h, day, week"),
        ("5 per minutes minutes", "'minutes'", ""),
        ("100/0s", "'0s'", "more than no time"),
        ("5 per 0.0 s", "'0.0 s'", "more than no time"),
        ("5 per -5 s", "'-5 s'", "unit of time"),
        ("5 per nan s", "'nan s'", "unit of time"),
        ("5 per inf days", "'inf days'", "unit of time"),
        ("5/s burst", "at its end", "whole number from 1"),
        ("5/s burst 0", "'burst 0'", "1 or more"),
        ("5/s burst -1", "'-1'", "whole number from 1"),
        ("5/s burst 1.5", "'1.5'", "whole number from 1"),
        ("5/s burst 2 burst 3", "'burst 3'", ""),
        ("5/s bursty 2", "'bursty 2'", "burst N"),
        ("0/s burst 1", "'burst 1'", "takes no burst"),
        ("10/minute, ", "', '", ""),
        ("10/minute;", "';'", ""),
        ("5 per 0.0000000001 s", "'0.0000000001 s'", "whole number of nanoseconds"),
        ("1/s burst 10000000000", "", "100 years"),
        ("1 per 101 weeks burst 1000", "", "100 years"),
        ("9999999999999/s", "'9999999999999/s'", str(MAX_COUNT)),
        ("5/month", "'month'", "in UTC"),
        ("5 per day in Nowhere/Land", "", "IANA"),
        ("٣/s", "'٣/s'", "whole number"),
        ("5/s\x00", r"'\x00'", ""),
    ],
)
def test_a_bad_quota_names_its_text_the_place_and_what_is_accepted(text: str, place: str, accepted: str) -> None:
    """The error shows the text as given, points at what does not fit, says what would, and gives an example."""
    with pytest.raises(QuotaError) as caught:
        Quota.parse(text)
    message = str(caught.value)
    assert repr(text) in message or "Nowhere" in message
    assert place in message
    assert accepted in message
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, HeadwayError)
    assert "\n" not in message
    assert "100/s burst 20" in message or "IANA" in message


def test_the_position_is_where_the_trouble_begins() -> None:
    """``position`` is an index into the text, for a caret or an editor."""
    with pytest.raises(QuotaError) as caught:
        Quota.parse("100 per 3 parsecs")
    assert caught.value.position == len("100 per 3 ")
    assert caught.value.text == "100 per 3 parsecs"


@given(st.text(max_size=60))
def test_no_text_does_anything_but_read_or_raise_a_quota_error(text: str) -> None:
    """Any text at all is a quota that prints and reads back, or one clear error."""
    try:
        quota = Quota.parse(text)
    except QuotaError as error:
        assert str(error)
    else:
        assert Quota.parse(str(quota)) == quota


@given(
    st.lists(
        st.sampled_from(
            [
                "5",
                "0",
                "-1",
                "1.5",
                " ",
                "/",
                "per",
                "s",
                "day",
                "burst",
                "in",
                "UTC",
                "nan",
                "10**9",
                ",",
                "week",
                "starting",
                "monday",
            ]
        ),
        max_size=8,
    )
)
def test_no_mixture_of_its_words_does_anything_but_read_or_raise(words: list[str]) -> None:
    """The same for texts made of what quotas are made of."""
    for text in (" ".join(words), "".join(words)):
        try:
            quota = Quota.parse(text)
        except QuotaError as error:
            assert str(error)
        else:
            assert Quota.parse(str(quota)) == quota


def test_a_very_long_text_is_refused_shortly() -> None:
    """A megabyte of digits costs no time, and the message does not repeat it."""
    with pytest.raises(QuotaError) as caught:
        Quota.parse("9" * 1_000_000 + "/s")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("text", "place", "accepted"),
    [
        ("5 parsecs", "at character 3, 'parsecs',", "expected a unit of time: ms, s, min, h, day, week;"),
        ("", "at its end,", "expected a unit of time"),
        ("5", "at its end,", "expected a unit of time"),
        ("-3 s", "at character 1,", "expected a unit of time"),
        ("0 s", "at character 1,", "the duration is 0; expected more than no time"),
        ("1.0000000001 s", "at character 1,", "the duration is no whole number of nanoseconds"),
        ("1 month", "at character 3,", "a month has no fixed length: say it in days, such as '30 days'"),
        ("2 months", "at character 3,", "a month has no fixed length: say it in days, such as '30 days'"),
        ("5 s burst 3", "at character 5,", "expected nothing more"),
        ("1 week in UTC", "at character 8,", "expected nothing more"),
        ("week starting monday", "at character 6,", "expected nothing more"),
        ("1" * 31 + " s", "at character 1,", "the duration's number is too long"),
        ("s" + " " * 200, "at its end,", "a duration is at most 200 characters long"),
    ],
)
def test_a_bad_duration_is_no_bad_quota(text: str, place: str, accepted: str) -> None:
    """It is called a duration, with its place and examples of durations; nobody is told of bursts and zones."""
    with pytest.raises(QuotaError) as caught:
        parse_duration(text)
    said = str(caught.value)
    assert said.startswith(f"duration {text if len(text) <= 120 else text[:117] + '...'!r}: {place}")
    assert accepted in said
    assert said.endswith("; for example '30 s', '1.5 minutes' or '7 days'")
    assert "quota" not in said


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30 s", 30 * SECOND),
        ("1.5 minutes", 90 * SECOND),
        ("day", DAY),
        ("1w", 7 * DAY),
        ("0.001 ms", 1000),
        ("2 h", 7200 * SECOND),
    ],
)
def test_durations_come_back(text: str, ns: int) -> None:
    """What is read is printed as something that reads the same."""
    assert parse_duration(text) == ns
    assert parse_duration(print_duration(ns)) == ns


@pytest.mark.parametrize("bad", [None, 5, 1.5, b"5/s", ["5/s"], True])
def test_only_text_is_parsed(bad: object) -> None:
    """Anything but a str is a TypeError that says what a quota is."""
    with pytest.raises(TypeError, match=r"a quota is a str"):
        Quota.parse(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "numbers",
    [
        (-1, SECOND),
        (1, 0),
        (1, -5),
        (1, SECOND, 0),
        (1, SECOND, -1),
        (0, SECOND, 1),
        (1.0, SECOND),
        (1, 1e9),
        (float("nan"), SECOND),
        (1, float("inf")),
        (True, SECOND),
        (1, SECOND, True),
        (1, SECOND, 1.5),
        ("5", SECOND),
        (MAX_COUNT + 1, SECOND),
        (1, SECOND, MAX_COUNT + 1),
        (1, MAX_RECOVERY_NS + 1),
        (2, MAX_RECOVERY_NS, 3),
    ],
)
def test_bad_numbers_are_refused_at_construction(numbers: tuple[object, ...]) -> None:
    """Negative, fractional, infinite, NaN, bool or far too large: no such quota can be made, by text or by hand."""
    with pytest.raises(QuotaError):
        Quota(*numbers)  # type: ignore[arg-type]


def test_the_largest_and_the_smallest_are_still_quotas() -> None:
    """The bounds themselves are inside: 10**12 units, one nanosecond, a recovery of exactly 100 years."""
    assert Quota(MAX_COUNT, 1).burst == Quota(5, 1, MAX_COUNT).burst == MAX_COUNT
    assert Quota(1, MAX_RECOVERY_NS).recovery_ns == MAX_RECOVERY_NS
    assert Quota(7, MAX_RECOVERY_NS, 7).recovery_ns == MAX_RECOVERY_NS


def test_a_quota_is_a_value() -> None:
    """Equal by content, usable as a key, and not to be changed."""
    assert Quota.parse("60/min") == Quota.parse("60 per 60 s") == Quota(60, MINUTE, 60)
    assert len({Quota.parse("60/min"), Quota.parse("60 per minute"), Quota.parse("1/s")}) == 2
    with pytest.raises(AttributeError):
        Quota.parse("1/s").count = 5  # type: ignore[misc]


def test_several_quotas_are_separated_by_semicolons() -> None:
    """The text "10 per 90 seconds; 100/hour" is two; an empty part is an error, not dropped."""
    assert Quota.parse_many("10 per 90 seconds; 100/hour") == (Quota(10, 90 * SECOND), Quota(100, HOUR))
    with pytest.raises(QuotaError):
        Quota.parse_many("10/s;")


@pytest.mark.parametrize(
    ("text", "window_ns", "most"),
    [
        ("0/s", 10 * SECOND, 0),
        ("1/s", 0, 1),
        ("1/day in UTC", 0, 2),
        ("10/s burst 3", 0, 3),
        ("10/s burst 3", 99 * MILLISECOND, 3),
        ("10/s burst 3", 100 * MILLISECOND, 4),
        ("10/s burst 3", 2 * SECOND, 23),
        ("4/day in UTC", 0, 8),
        ("4/day in UTC", 1, 8),
        ("4/day in UTC", DAY, 8),
        ("4/day in UTC", DAY + 1, 12),
        ("4/day in utc", DAY, 8),
        ("4/day in Etc/UTC", DAY, 8),
        ("4/day in Europe/Berlin", 23 * HOUR, 8),
        ("4/day in Europe/Berlin", 23 * HOUR + 1, 12),
        ("4/day in Antarctica/Troll", 22 * HOUR, 8),
        ("4/day in Antarctica/Troll", 22 * HOUR + 1, 12),  # a day between two others, 2026-03-29
        ("4/week in Europe/Berlin", 167 * HOUR, 8),
        ("4/week in Europe/Berlin", 167 * HOUR + 1, 12),
        ("4/month in UTC", 28 * DAY, 8),
        ("4/month in UTC", 28 * DAY + 1, 12),
        ("4/month in Europe/Berlin", 28 * DAY - HOUR + 1, 12),
    ],
)
def test_the_most_in_a_window_is_known(text: str, window_ns: int, most: int) -> None:
    """The burst and what comes back meanwhile; for calendar quotas as many windows as the time can touch."""
    assert Quota.parse(text).most_in(window_ns) == most


@pytest.mark.parametrize(
    ("text", "recovery"),
    [("3/s", SECOND), ("3/s burst 1", 333_333_334), ("3/s burst 2", 666_666_667), ("0/min", MINUTE)],
)
def test_a_spent_burst_s_recovery_is_rounded_up(text: str, recovery: int) -> None:
    """A nanosecond late rather than early; what blocks everything has its period."""
    assert Quota.parse(text).recovery_ns == recovery


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("100 per 1 second", "100/s"),
        ("100/s burst 20", "100/s burst 20"),
        ("5 per 10 min", "5 per 10 minutes"),
        ("5 per 60 s", "5/minute"),
        ("5 per 60 min", "5/hour"),
        ("5 per 24 h", "5/day"),
        ("5 per 7 days", "5/week"),
        ("5 per 14 days burst 2", "5 per 2 weeks burst 2"),
        ("5/ms", "5/ms"),
        ("5 per 250 ms", "5 per 250 ms"),
        ("5 per 1.5 ms", "5 per 1.5 ms"),
        ("11 per 1 d in America/Los_Angeles", "11/day in America/Los_Angeles"),
        ("11 per 24 h burst 11", "11/day"),
        ("3/week starting monday in UTC", "3/week in UTC"),
        ("3/WEEKS starting TUESDAY in UTC", "3/week starting tuesday in UTC"),
        ("3/months in utc", "3/month in utc"),
        ("3 AT ONCE", "3 at once for 1 minute"),
        ("3 at once for 90s", "3 at once for 90 seconds"),
    ],
)
def test_a_quota_is_printed_in_one_way(given: str, printed: str) -> None:
    """As people would write it, and with the largest unit that divides the period."""
    assert str(Quota.parse(given)) == printed
    assert repr(Quota.parse(given)) == f"Quota.parse({printed!r})"


@pytest.mark.parametrize(
    ("ns", "printed"),
    [
        (WEEK, "1 week"),
        (2 * WEEK, "2 weeks"),
        (DAY, "1 day"),
        (HOUR, "1 hour"),
        (90 * MINUTE, "90 minutes"),
        (90 * SECOND, "90 seconds"),
        (MILLISECOND, "1 ms"),
        (250 * MILLISECOND, "250 ms"),
        (1_500_000, "1.5 ms"),
        (1, "0.000001 ms"),
        (10, "0.00001 ms"),
        (1_000_001, "1.000001 ms"),
        (100_000_000_010, "100000.00001 ms"),
    ],
)
def test_a_duration_is_printed_with_the_largest_unit_that_divides_it(ns: int, printed: str) -> None:
    """In words, or in decimals of a millisecond, and it reads back as the same."""
    assert print_duration(ns) == printed
    assert parse_duration(printed) == ns


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("5/day in UTC", Quota(5, DAY, None, "UTC", "day", 0)),  # type: ignore[arg-type]  # None stands for the count
        ("5 per 1.0 weeks starting sunday in Asia/Tokyo", Quota(5, WEEK, 5, "Asia/Tokyo", "week", 6)),
        ("5/week starting  Tuesday  in UTC", Quota(5, WEEK, 5, "UTC", "week", 1)),
        ("5 per 1 month in Etc/GMT+5", Quota(5, 30 * DAY, 5, "Etc/GMT+5", "month")),
        ("5/d in America/Port-au-Prince", Quota(5, DAY, 5, "America/Port-au-Prince", "day")),
        ("3 at once", Quota(3, MINUTE, 3, concurrent=True)),
        (" 3  at  once  for  2 h ", Quota(3, 2 * HOUR, 3, concurrent=True)),
        ("0/day in UTC", Quota(0, DAY, 0, "UTC", "day")),
        (f"{MAX_COUNT}/s", Quota(MAX_COUNT, SECOND)),
        ("000000000000000000005/s", Quota(5, SECOND)),
        ("5/s burst 1", Quota(5, SECOND, 1)),
        ("1_000_000_000_000/s burst 1,000,000,000,000", Quota(MAX_COUNT, SECOND)),
        ("1,000/s burst 2_000", Quota(1000, SECOND, 2000)),
        ("1" + " " * 197 + "/s", Quota(1, SECOND)),
        (f"1 per {'0' * 29}1 s", Quota(1, SECOND)),
    ],
)
def test_every_field_of_a_quota_can_be_said(text: str, quota: Quota) -> None:
    """Zones, calendar units, the weekday, leases, bounds: nothing is lost or added."""
    assert Quota.parse(text) == quota


@pytest.mark.parametrize("word", ["secs", "mins", "hr", "hrs"])
def test_common_short_forms_are_known(word: str) -> None:
    """As people write them."""
    units = {"secs": SECOND, "mins": MINUTE, "hr": HOUR, "hrs": HOUR}
    assert parse_duration(f"3 {word}") == 3 * units[word]


def test_a_duration_may_be_200_characters_long() -> None:
    """Not one more; and 30 digits."""
    assert parse_duration("1" + " " * 198 + "s") == SECOND
    assert parse_duration("0" * 29 + "1 s") == SECOND


@pytest.mark.parametrize("start", range(7))
def test_a_week_begins_on_any_day(start: int) -> None:
    """0 is Monday; a week's own field, kept through its text."""
    quota = Quota(3, WEEK, 3, "UTC", "week", start)
    assert Quota.parse(str(quota)) == quota
    assert quota.week_start == start
