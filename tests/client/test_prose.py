"""Sentences: which announce a wait, and which name a period."""

import pytest

from headway.client._prose import period_of_name, periods, quota_in_words, wait

NOW = 1785542400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Too Many Requests: retry after 35", 35),
        ("Please try again in 7m12s.", 432),
        ("more requests available in 46472 seconds", 46472),
        ("Take a break for 7 minutes before trying again.", 420),
        ("Expected available in 37 seconds.", 37),
        ("Limit may reset in 12 seconds.", 12),
        ("Your rate limit resets in ~3s.", 3),
        ("IP banned until 1785542520000. Use streams.", 120),
        ("retry after 2026-08-01 00:12:11 UTC: see the docs", 731),
        ("Please try again after Sat, 01 Aug 2026 00:07:17 GMT", 437),
        ("Please wait at least one minute before trying again", 60),
        ("30 seconds left", 30),
        ("retry after 1343.2 minutes", 80592),
        ("wait 15 minutes and try again in 5 seconds", 900),
        ("Please retry your request in 58.9 s", 58.9),
        ("Quota will be replenished in 15.07:02:29.", 1321349),
    ],
)
def test_an_announced_wait_is_read(text: str, seconds: float) -> None:
    """A wait after words that announce one is read; of several the longest."""
    assert wait(text, NOW, None) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "5 requests per 10 seconds",
        "Only 2500 requests are allowed per 1 hour.",
        "Please wait a few minutes before you try again.",
        "Try again later.",
        "You have exceeded 40 calls in the last 5 minutes",
        "Limits reset every 24 hours",
        "too many failed logins (5) in the last 1h0m0s",
        "You can retry 5 times",
        "Wait a moment",
        "Expected quota reset within 24h.",
        "error 429 at line 30",
    ],
)
def test_what_announces_nothing_is_no_wait(text: str) -> None:
    """Periods, counts and vague words are no wait."""
    assert wait(text, NOW, None) is None


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("25 requests per day", False, True),
        ("in the last 168h0m0s", False, True),
        ("in the last 24 hours", False, True),
        ("100 requests over a 24 hour period", False, True),
        ("the MONTHLY quota", False, True),
        ("10 API calls / minute", True, False),
        ("in the last 1h0m0s", True, False),
        ("5 calls per minute and 500 calls per day", True, True),
        ("try again in 1 day", False, False),
        ("try again in 12 minutes (more than 100, free-per-day)", False, True),
        ("have a nice Sunday", False, False),
    ],
)
def test_periods_in_sentences(text: str, *, short: bool, long: bool) -> None:
    """A sentence's periods are told into shorter than a day and a day or longer; a wait is no period."""
    assert periods(text) == (short, long)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("ReadRequestsPerMinutePerUser", 60),
        ("DefaultPublishRequestsPerDayPerProject", 86400),
        ("TEN_SECONDLY_ROLLING", 1),
        ("Hour", 3600),
        ("user-limit-24hour", 86400),
        ("10-in-1min", 60),
        ("Monthly", 2592000),
        ("requests", None),
        ("jira-burst-based", None),
    ],
)
def test_periods_in_names(name: str, seconds: float | None) -> None:
    """A limit's own name states its period in words of any spelling."""
    assert period_of_name(name) == seconds


def test_a_printed_quota_is_a_name() -> None:
    """A message that ends with a quota as limiters print it names that quota."""
    assert quota_in_words("Rate limit exceeded: 5 per 1 minute") == "5 per 1 minute"
    assert quota_in_words("You made 5 per 1 minute of noise") is None
