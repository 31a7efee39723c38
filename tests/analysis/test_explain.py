"""What a quota admits: the numbers, against the definition, and the words."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import pytest

from headway.analysis.explain import WINDOWS, explain_quota, say_duration
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Refused
from headway.core.quota import Quota


def explained(text: str) -> dict[str, object]:
    """The JSON of a quota, there and back again."""
    found: dict[str, object] = json.loads(json.dumps(explain_quota(Quota.parse(text)).as_json()))
    return found


def test_a_hundred_a_second_with_a_burst_of_twenty() -> None:
    """The numbers of "100/s burst 20"."""
    assert explained("100/s burst 20") == {
        "emission_interval_s": 0.01,
        "tolerance_s": 0.19,
        "burst": 20,
        "recovery_s": 0.2,
        "most_in": {"1s": 120, "1m": 6_020, "1h": 360_020, "1d": 8_640_020},
    }


def test_numbers_that_are_whole_are_ints_and_others_the_nearest_doubles() -> None:
    """Nothing is rounded before it becomes a double, and a third is the double nearest to a third."""
    third = explained("3/s")
    assert (third["emission_interval_s"], third["tolerance_s"], third["recovery_s"]) == (1 / 3, 2 / 3, 1)
    assert isinstance(third["recovery_s"], int)
    assert explained("1000000000000 per 1 s burst 1")["emission_interval_s"] == 1e-12
    assert explained("7 per day burst 2")["tolerance_s"] == 86_400 / 7
    assert explained("1 per 60s")["tolerance_s"] == 0


def test_a_count_of_zero_blocks_everything() -> None:
    """A quota of 0 has no interval, no tolerance and no recovery, admits 0 in any window, and the words say so."""
    assert explained("0/s") == {
        "emission_interval_s": None,
        "tolerance_s": None,
        "burst": 0,
        "recovery_s": None,
        "most_in": {"1s": 0, "1m": 0, "1h": 0, "1d": 0},
    }
    assert "blocks everything" in explain_quota(Quota.parse("0/day in UTC")).sentence()


def test_a_calendar_quota_has_no_interval() -> None:
    """A quota "in ZONE" comes back at once, at midnight, and twice its count can come around that."""
    found = explained("11/day in America/Los_Angeles")
    assert (found["emission_interval_s"], found["tolerance_s"], found["burst"]) == (None, None, 11)
    assert found["recovery_s"] == 86_400
    assert found["most_in"] == {"1s": 22, "1m": 22, "1h": 22, "1d": 33}  # a day of 23 hours fits into a day
    assert explained("11/day in UTC")["most_in"]["1d"] == 22


def test_units_held_at_once_have_no_pace() -> None:
    """A quota "at once" bounds what is held, so it has no interval and no most in a window."""
    found = explained("3 at once for 30 s")
    assert found == {
        "emission_interval_s": None,
        "tolerance_s": None,
        "burst": 3,
        "recovery_s": 30,
        "most_in": {"1s": None, "1m": None, "1h": None, "1d": None},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "100/s burst 20",
            "20 may come at once; after that, one more every 10 ms. A spent burst is whole again after 200 ms",
        ),
        ("5 per 60s", "5 may come at once; after that, one more every 12 s. A spent burst is whole again after 1 min "),
        ("1 per 60s", "One may come every 1 min: never two at once"),
        ("100/s burst 1", "One may come every 10 ms: never two at once"),
        ("3 at once for 30 s", "3 may be held at once, each for at most 30 s unless renewed."),
        ("11/day in Europe/Berlin", "11 may come in each day of Europe/Berlin, all at once if need be."),
        ("3/week starting sunday in UTC", "The next week begins at midnight there, when Sunday begins;"),
        ("3/week in UTC", "The next week begins at midnight there, when Monday begins;"),
        (
            "3/month in UTC",
            "when the first of the month begins; what is left of the old one is lost. Around that moment up to 6",
        ),
    ],
)
def test_words(text: str, words: str) -> None:
    """The words give the same numbers in the units that people use."""
    assert words in explain_quota(Quota.parse(text)).sentence()


@pytest.mark.parametrize(
    "text", ["100/s burst 20", "3/s", "5 per 60s", "1 per 60s", "7 per minute burst 3", "11/day", "13 per 7 h burst 40"]
)
def test_the_greediest_client_gets_the_most_and_no_more(text: str) -> None:
    """A client that asks again at every hint gets, in each window that is explained, exactly what the table says."""
    limit = Limit("a", text)
    explanation = explain_quota(limit.quota)
    for (_, window), (_, most) in zip(WINDOWS, explanation.most_in, strict=True):
        if most > 20_000:
            continue
        state, now, admitted = None, 10**15, 0
        while now <= 10**15 + window:
            state, outcome = limit.rule.decide(state, now, 1)
            match outcome:
                case Admitted():
                    admitted += 1
                case Refused(retry_after=wait):
                    now += wait
        assert admitted == most


@pytest.mark.parametrize("text", ["100/s burst 20", "3/s", "7 per minute burst 3", "11/day"])
def test_interval_and_recovery_are_what_the_core_does(text: str) -> None:
    """After a spent burst the next unit comes one interval later, and the whole burst after the recovery."""
    limit = Limit("a", text)
    explanation = explain_quota(limit.quota)
    assert explanation.emission_interval is not None and explanation.recovery is not None
    state, outcome = limit.rule.decide(None, 10**15, explanation.burst)
    assert isinstance(outcome, Admitted)
    _, refused = limit.rule.decide(state, 10**15, 1)
    assert isinstance(refused, Refused)
    assert refused.retry_after == -(-explanation.emission_interval * 10**9 // 1)
    assert refused.reset_after == -(-explanation.recovery * 10**9 // 1)
    assert explanation.tolerance == explanation.recovery - explanation.emission_interval


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (Fraction(0), "0 s"),
        (Fraction(1, 100), "10 ms"),
        (Fraction(1, 3), "about 333.333 ms"),
        (Fraction(3, 2), "1.5 s"),
        (Fraction(1), "1 s"),
        (Fraction(10), "10 s"),
        (Fraction(100), "1 min 40 s"),
        (Fraction(60), "1 min"),
        (Fraction(90_000), "1 d 1 h"),
        (Fraction(86_400, 11), "about 2 h 10 min 55 s"),
        (Fraction(3_600), "1 h"),
        (Fraction(1, 4_000_000), "250 ns"),
        (Fraction(1, 400_000), "2.5 µs"),
        (Fraction(1, 10**12), "0.001 ns"),
        (Fraction(1, 3 * 10**12), "less than 0.001 ns"),
        (Fraction(599_999, 10_000), "about 1 min"),
        (Fraction(599_999_999, 10_000_000), "about 1 min"),
        (Fraction(9_999_999, 10_000_000), "about 1 s"),
        (Fraction(86_399_999, 1000), "about 1 d"),
    ],
)
def test_durations(seconds: Fraction, said: str) -> None:
    """A duration is said in the units that people use, and with "about" exactly when it was rounded."""
    assert say_duration(seconds) == said


def test_durations_are_near() -> None:
    """What is said is never further from the duration than half of the last digit that it shows."""
    chance = random.Random(3)
    units = {
        "d": 86_400,
        "h": 3600,
        "min": 60,
        "s": 1,
        "ms": Fraction(1, 1000),
        "µs": Fraction(1, 10**6),
        "ns": Fraction(1, 10**9),
    }
    for _ in range(2000):
        seconds = Fraction(chance.randrange(1, 10**6), 10 ** chance.randrange(0, 11))
        text = say_duration(seconds)
        if text.startswith("less than"):
            assert seconds < Fraction(1, 10**12)
            continue
        words = text.removeprefix("about ").split()
        parts = zip(words[::2], words[1::2], strict=True)
        said = sum((Fraction(amount) * units[unit] for amount, unit in parts), Fraction(0))
        assert (said == seconds) == (not text.startswith("about"))
        assert abs(said - seconds) <= (Fraction(1, 2) if seconds >= 60 else min(units["s"], seconds) / 2000)
