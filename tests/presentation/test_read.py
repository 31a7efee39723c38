"""Reading fields: strict, and with the place and the expectation in every error."""

from __future__ import annotations

import pytest

from headway.presentation.read import LimitItem, QuotaItem, Reading, read_fields


def test_a_reading_of_the_drafts_own_examples() -> None:
    """The examples of draft -11 are read, with parameters in any order and unknown ones ignored."""
    headers = [
        ("ratelimit-policy", '"permin";q=50;w=60,"perhr";q=1000;w=3600'),
        ("RateLimit-Policy", '"peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:'),
        ("RateLimit", '"default";t=60;r=300000000;pk=:QXBwLTk5OQ==:;acme-x="y"'),
        ("Retry-After", "20"),
    ]
    assert read_fields(headers) == Reading(
        (
            QuotaItem("permin", 50, 60),
            QuotaItem("perhr", 1000, 3600),
            QuotaItem("peruser", 65535, 10, None, "content-bytes"),
        ),
        (LimitItem("default", 300_000_000, 60, partition_key=b"App-999"),),
        20,
    )


def test_absent_fields_are_nothing() -> None:
    """No fields, nothing read, in any dialect."""
    for dialect in ("draft11", "draft12-preview", "draft7", "draft6", "x-ratelimit-epoch", "x-ratelimit-delta", "none"):
        assert read_fields([("Date", "x")], dialect) == Reading()


@pytest.mark.parametrize(
    ("dialect", "name", "value", "problem"),
    [
        ("draft11", "RateLimit", '"x"', "r is None"),
        ("draft11", "RateLimit", '"x";r=-1', "r is -1"),
        ("draft11", "RateLimit", '"x";r=1.0', "r is Decimal"),
        ("draft11", "RateLimit", '"x";r', "r is True"),
        ("draft11", "RateLimit", '"x";r=1;t=30.5', "t is Decimal"),
        ("draft11", "RateLimit", '"x";r=1;t=-1', "t is -1"),
        ("draft11", "RateLimit", '"x";r=1;pk="a"', "pk is 'a'"),
        ("draft11", "RateLimit", "7;r=1", "item is 7"),
        ("draft11", "RateLimit", '("x");r=1', "inner list"),
        ("draft11", "RateLimit", "limit=1, remaining=1", "expected"),
        ("draft11", "RateLimit", '"x";r=1,', "expected a member after the comma"),
        ("draft11", "RateLimit", "", "is empty"),
        ("draft11", "RateLimit-Policy", '"x";w=1', "q is None"),
        ("draft11", "RateLimit-Policy", '"x";q=1;w=0', "w is 0"),
        ("draft11", "RateLimit-Policy", '"x";q=1;qu=3', "qu is 3"),
        ("draft11", "RateLimit-Policy", '"x";Q=1', "expected a lower-case key"),
        ("draft12-preview", "RateLimit", '"x";r=1', "a is None"),
        ("draft7", "RateLimit", "limit=1, remaining=1", "reset is None"),
        ("draft7", "RateLimit", "limit=(1), remaining=1, reset=1", "limit is None"),
        ("draft7", "RateLimit", '"x";r=1', "expected"),
        ("draft7", "RateLimit-Policy", "10", "w is None"),
        ("draft7", "RateLimit-Policy", '"x";q=1', "the quota is 'x'"),
        ("draft6", "RateLimit-Limit", "10", "RateLimit-Limit is sent without RateLimit-Remaining"),
        ("x-ratelimit-delta", "X-RateLimit-Reset", "1", "sent without X-RateLimit-Limit"),
        ("none", "Retry-After", "1.5", "Retry-After is '1.5'"),
        ("none", "Retry-After", "-1", "Retry-After"),
        ("none", "Retry-After", "١", "Retry-After"),
        ("none", "Retry-After", "", "Retry-After"),
    ],
)
def test_a_malformed_field_is_an_error_that_names_it(dialect: str, name: str, value: str, problem: str) -> None:
    """What a dialect does not allow is refused as a whole, and the message says what was found."""
    with pytest.raises(ValueError, match=problem):
        read_fields([(name, value)], dialect)
