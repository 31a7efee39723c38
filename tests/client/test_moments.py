"""Written times: what they mean, and what is none."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.client._moments import FAR, duration, instant, next_clock, next_midnight, number, offset

NOW = datetime(2026, 8, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7m12s", 432),
        ("2m59.56s", 179.56),
        ("850ms", 0.85),
        ("1h0m0s", 3600),
        ("10 minutes and 5 seconds", 605),
        ("one hour", 3600),
        ("half an hour", 1800),
        ("10-15 minutes", 900),
        ("2 hours, 3 minutes", 7380),
        ("P1DT2H", 93600),
        ("1.00:00:05", 86405),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """Durations are read as programs and people write them; `ms` is never minutes."""
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "a few minutes", "5 parsecs", "P", "PT", "and try", "10 : 20 minutes x"])
def test_what_is_no_duration(text: str) -> None:
    """Vague or foreign words are no duration."""
    assert duration(text) is None


@given(st.integers(min_value=0, max_value=999_999_999))
def test_small_numbers_are_seconds(seconds: int) -> None:
    """A number below a thousand million is that many seconds, in a reset too."""
    assert offset(str(seconds), NOW) == offset(str(seconds), NOW, reset=True) == seconds


@given(st.integers(min_value=-6 * 86_400_000, max_value=300 * 86_400_000))
def test_an_instant_near_now_is_one_in_every_unit(milliseconds: int) -> None:
    """An instant within days of now is recognised in seconds, ms, µs and ns since 1970."""
    at = int(NOW) * 1000 + milliseconds
    for text in (f"{at / 1000:.3f}", str(at), str(at * 1000), str(at * 10**6)):
        assert offset(text, NOW) == pytest.approx(milliseconds / 1000, abs=1e-3)


def test_an_old_reset_is_past_and_no_wait_of_decades() -> None:
    """A reset years ago is an instant; the same digits in Retry-After are seconds (withcoral/coral#89)."""
    old = offset("1234567890", NOW, reset=True)
    assert old is not None
    assert old < 0
    assert offset("1234567890", NOW) == 1234567890


@pytest.mark.parametrize(
    ("text", "value"), [("0" * 500 + "5", 5), ("0" * 500 + ".", 0), ("5." + "0" * 500, 5), ("9" * 5000, FAR), ("5.", 5)]
)
def test_long_numbers_keep_their_size(text: str, value: float) -> None:
    """A number of any length is read for what it is worth; one too large for a float is the largest."""
    assert number(text) == value


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "Sat, 31 Feb 2026 00:00:00 GMT", "2026-08-01T25:00:00Z"])
def test_an_impossible_date_is_malformed(text: str) -> None:
    """A date that no calendar has is no date."""
    assert instant(text) is None
    assert offset(text, NOW) is None


def test_midnight_follows_the_zone_through_a_clock_change() -> None:
    """Tomorrow begins at the zone's own midnight, 25 hours after the last one when the clocks go back."""
    zone = ZoneInfo("America/Los_Angeles")
    before = datetime(2026, 11, 1, 0, 0, tzinfo=zone).timestamp()
    assert next_midnight(before, zone) - before == 25 * 3600


def test_a_clock_time_is_the_next_one() -> None:
    """A time of day is the next moment at which that zone's clock shows it; without a zone, the last one on Earth."""
    zone = ZoneInfo("America/New_York")
    assert next_clock(NOW, 21, 0, zone) - NOW == 3600
    assert next_clock(NOW, 19, 0, zone) - NOW == 23 * 3600
    assert 23 * 3600 <= next_clock(NOW, 12, 0, None) - NOW <= 24 * 3600
