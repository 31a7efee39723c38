"""Header fields that show limits: the grammar of their names, and the forms of their values."""

import pytest

from headway.client._field_names import field_name
from headway.client._headers import HeaderFields
from headway.client._limit_fields import limits_from_fields

NOW = 1785542400.0


@pytest.mark.parametrize(
    ("name", "label", "quantity"),
    [
        ("X-RateLimit-Limit", "", "limit"),
        ("x-rate-limit-remaining", "", "remaining"),
        ("RateLimit-Reset", "", "reset"),
        ("x-ratelimit-limit-requests", "requests", "limit"),
        ("X-RateLimit-Requests-Remaining", "Requests", "remaining"),
        ("anthropic-ratelimit-input-tokens-reset", "input-tokens", "reset"),
        ("X-RateLimit-Remaining-Hour", "Hour", "remaining"),
        ("X-DayLimit-Remaining", "Day", "remaining"),
        ("X-Rate-Limit-Problem", "", "reason"),
        ("X-RateLimit-Reset-After", "", "reset"),
        ("RateLimit-ResetTime", "", "reset"),
        ("X-RateLimit-Next", "", "wait"),
        ("x-rate-limit-api-token-max", "api-token", "limit"),
        ("X-Sentry-Rate-Limit-ConcurrentLimit", "Concurrent", "limit"),
        ("x-user-limit-24hour-reset", "user-limit-24hour", "reset"),
        ("X-App-Rate-Limit-Count", "App", "used"),
        ("X-HubSpot-RateLimit-Daily", "Daily", "implied"),
    ],
)
def test_names_are_read_as_words(name: str, label: str, quantity: str) -> None:
    """A field's name gives its quantity and its label, in any order and spelling."""
    read = field_name(name)
    assert read is not None
    assert (read.label, read.quantity) == (label, quantity)


@pytest.mark.parametrize("name", ["RateLimit", "RateLimit-Policy", "Content-Type", "X-RateLimit-Bucket", "Date", ""])
def test_other_names_show_no_limit(name: str) -> None:
    """Fields that show no number of a limit are left alone."""
    assert field_name(name) is None


@pytest.mark.parametrize(
    ("fields", "limit", "remaining", "reset", "window"),
    [
        ({"X-RateLimit-Limit": "10, 10;w=1, 1000;w=3600", "X-RateLimit-Remaining": "0"}, 10, 0, None, 1),
        ({"ratelimit-limit": "100;w=21600", "ratelimit-remaining": "0;w=21600"}, 100, 0, None, 21600),
        ({"X-Call-Limit": "40/40"}, 40, 0, None, None),
        ({"X-RateLimit-Limit": "1 per 5 second", "X-RateLimit-Remaining": "0"}, 1, 0, None, 5),
        ({"X-RateLimit-Limit": "60/minute", "X-RateLimit-Remaining": "0"}, 60, 0, None, 60),
        ({"X-RateLimit-Remaining": "-3"}, None, 0, None, None),
        ({"X-RateLimit-Remaining": "0.0", "X-RateLimit-Reset": "58.31"}, None, 0, 58.31, None),
        ({"X-RateLimit-Used": "7", "X-RateLimit-Limit": "5"}, 5, 0, None, None),
        ({"X-RateLimit-Left": "0", "X-RateLimit-Period": "60"}, None, 0, None, 60),
        ({"X-Quota": "total=9; remaining=0; resets=41"}, 9, 0, 41, None),
    ],
)
def test_values_in_every_seen_form(
    fields: dict[str, str], limit: int | None, remaining: int | None, reset: float | None, window: float | None
) -> None:
    """Lists, fractions, pairs, quotas in words, decimals and overdrafts give the numbers of one limit."""
    warnings: list[str] = []
    (shown,), _ = limits_from_fields(HeaderFields(fields), NOW, warnings)
    assert (shown.limit, shown.remaining, shown.reset, shown.window) == (limit, remaining, reset, window)
    assert not warnings


def test_lists_are_paired_by_window_or_place() -> None:
    """`200,2000` pairs with its sibling by place, `20:1,100:120` by window."""
    by_place = {"X-RateLimit-Limit": "200,2000", "X-RateLimit-Usage": "201,950"}
    shown, _ = limits_from_fields(HeaderFields(by_place), NOW, [])
    assert [(one.limit, one.remaining) for one in shown] == [(200, 0), (2000, 1050)]
    by_window = {"X-App-Rate-Limit": "20:1,100:120", "X-App-Rate-Limit-Count": "100:120,3:1"}
    shown, _ = limits_from_fields(HeaderFields(by_window), NOW, [])
    assert [(one.limit, one.remaining) for one in shown] == [(20, 17), (100, 0)]
