"""Header fields: exact text in every dialect, rounding, and what is left out."""

from __future__ import annotations

import hmac
import json
from itertools import pairwise
from pathlib import Path

import pytest

from headway.core.key import encode_key
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import DAY, HOUR, SECOND, Quota
from headway.core.verdict import Verdict
from headway.errors import ConfigError, LimitError
from headway.presentation.dialect import Dialect
from headway.presentation.facts import advertised_quota, retry_after_seconds
from headway.presentation.fields import expose, fields
from headway.presentation.partition import partition_key

from .verdicts import NOW, one_refusal, random_verdicts

REPORTS = Path(__file__).parents[1] / "data" / "field_reports.jsonl"
MINUTELY = Limit("permin", "50 per minute", by="account")
HOURLY = Limit("perhr", "1000 per hour burst 200", by="account")
TWO = Verdict((MINUTELY, HOURLY), (Admitted(49, 1_200_000_000, 1_200_000_001), Admitted(199, 1, 3 * SECOND)), True, NOW)


def report(name: str) -> dict[str, object]:
    """One public report, as its file has it."""
    lines = REPORTS.read_text("utf-8").splitlines()
    return next(found for found in map(json.loads, lines) if found["id"] == name)


def shown(limit: Limit, outcome: Outcome, dialect: str = "draft11", **options: object) -> dict[str, str]:
    """The fields for one outcome."""
    verdict = Verdict((limit,), (outcome,), isinstance(outcome, Admitted), NOW, None, (1,))
    return dict(fields(verdict, dialect, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dialects", "expected"),
    [
        (
            "draft11",
            {
                "RateLimit-Policy": '"permin";q=50;w=60, "perhr";q=1000;w=3600;headway-burst=200',
                "RateLimit": '"permin";r=49;t=2, "perhr";r=199;t=1',
            },
        ),
        (
            "draft12-preview",
            {
                "RateLimit-Policy": '"permin";q=50;w=60, "perhr";q=1000;w=3600;headway-burst=200',
                "RateLimit": '"permin";a=49;w=2, "perhr";a=199;w=1',
            },
        ),
        (
            "draft7",
            {
                "RateLimit-Policy": "50;w=60, 1000;w=3600;burst=200",
                "RateLimit": "limit=50, remaining=49, reset=2",
            },
        ),
        (
            "draft6",
            {
                "RateLimit-Policy": "50;w=60, 1000;w=3600;burst=200",
                "RateLimit-Limit": "50",
                "RateLimit-Remaining": "49",
                "RateLimit-Reset": "2",
            },
        ),
        (
            "x-ratelimit-epoch",
            {
                "X-RateLimit-Limit": "50",
                "X-RateLimit-Remaining": "49",
                "X-RateLimit-Reset": str(NOW // SECOND + 2),
            },
        ),
        (
            "x-ratelimit-delta",
            {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "49", "X-RateLimit-Reset": "2"},
        ),
        ("none", {}),
    ],
)
def test_every_dialect_as_it_is_written(dialects: str, expected: dict[str, str]) -> None:
    """An admitted request of two limits gets exactly these fields in each dialect, rounded up, the tightest shown."""
    assert dict(fields(TWO, dialects)) == expected


def test_several_dialects_share_one_answer() -> None:
    """Several dialects at once write every field once; -11 and the -12 preview share their items."""
    verdict = Verdict((MINUTELY,), (Admitted(49, SECOND, SECOND),), True, NOW, None, (3,))
    assert dict(fields(verdict, ("draft11", "draft12-preview", "draft6", "x-ratelimit-delta"))) == {
        "RateLimit-Policy": '"permin";q=50;w=60',
        "RateLimit": '"permin";r=49;t=1;a=49;w=1;c=3',
        "RateLimit-Limit": "50",
        "RateLimit-Remaining": "49",
        "RateLimit-Reset": "1",
        "X-RateLimit-Limit": "50",
        "X-RateLimit-Remaining": "49",
        "X-RateLimit-Reset": "1",
    }


def test_t_is_replenish_after_and_not_the_time_to_full() -> None:
    """The parameter t says when one more unit is there; the time until all of them are is nowhere in the list dialects."""
    half_spent = Admitted(25, SECOND // 5, 30 * SECOND)
    assert shown(MINUTELY, half_spent)["RateLimit"] == '"permin";r=25;t=1'
    assert shown(MINUTELY, half_spent, "draft7")["RateLimit"] == "limit=50, remaining=25, reset=30"


def test_t_is_left_out_where_nothing_is_owed() -> None:
    """An unused limit has no t: there is nothing to wait for, and 0 would say that more comes at once."""
    assert shown(MINUTELY, Admitted(50, 0, 0))["RateLimit"] == '"permin";r=50'


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("5 per 250 ms", (20, 1)),
        ("2 per 1.5 s", (4, 3)),
        ("100/s burst 20", (100, 1)),
        ("11/day", (11, 86400)),
        ("1/month in UTC", (1, 30 * 86400)),
        ("0/s", (0, 1)),
        ("7 per 333 ms", (7000, 333)),
        ("3 per 0.001 ms", (3_000_000, 1)),
    ],
)
def test_the_policy_is_whole_seconds_in_the_same_ratio(quota: str, expected: tuple[int, int]) -> None:
    """A period that is no whole number of seconds is scaled together with its count."""
    assert advertised_quota(Quota.parse(quota)) == expected


def test_a_ratio_beyond_fifteen_digits_is_rounded_down() -> None:
    """Where no 15 digits hold the exact ratio, the field promises less than the quota, never more."""
    assert advertised_quota(Quota(10**12, 1)) == (999_999_999_999_999, 1)
    quota = Quota(10**12, 10**18 + 1)
    count, window = advertised_quota(quota)
    assert max(count, window) <= 999_999_999_999_999
    assert count * quota.period_ns <= quota.count * window * SECOND


def test_a_day_is_not_offered_for_a_second() -> None:
    """A client that divides r by t never gets more than a sixtieth of a day's quota a second (draft -11, server rules)."""
    daily = Limit("daily", "5000 per day in UTC")
    for seconds in (1, 10, 59):
        assert shown(daily, Admitted(4999, seconds * SECOND, seconds * SECOND))["RateLimit"] == (
            f'"daily";r={max(60, 5000 * seconds // 60)};t={seconds}'
        )
    assert shown(daily, Admitted(4999, 60 * SECOND, 60 * SECOND))["RateLimit"] == '"daily";r=4999;t=60'
    small = Limit("small", "5 per day in UTC")
    assert shown(small, Admitted(4, 1, 1))["RateLimit"] == '"small";r=4;t=1'
    assert shown(HOURLY, Admitted(199, 1, 1))["RateLimit"] == '"perhr";r=199;t=1'


def test_what_is_held_at_once_has_no_window() -> None:
    """A concurrency limit is advertised with its unit and without a window, and its offer is never capped."""
    limit = Limit("uploads", Quota(500, DAY, concurrent=True))
    assert shown(limit, Admitted(499, SECOND, SECOND)) == {
        "RateLimit-Policy": '"uploads";q=500;qu="concurrent-requests"',
        "RateLimit": '"uploads";r=499;t=1',
    }


@pytest.mark.parametrize(
    ("wait", "said"),
    [(1, "1"), (SECOND - 1, "1"), (SECOND, "1"), (SECOND + 1, "2"), (HOUR + 1, "3601"), (DAY * 36500, "3153600000")],
)
def test_retry_after_is_rounded_up(wait: int, said: str) -> None:
    """Retry-After is whole seconds, rounded up, at least 1, however short or long the wait."""
    assert dict(fields(one_refusal(wait)))["Retry-After"] == said


def test_retry_after_covers_t_of_the_violated_limits_only() -> None:
    """Retry-After is never less than t of a violated limit, and a limit that did not refuse never lengthens it."""
    limits = (MINUTELY, HOURLY, Limit("daily", "5 per day"))
    outcomes = (Refused(0, SECOND, SECOND, 50 * SECOND), Refused(3, 2, 5 * SECOND, HOUR), Admitted(2, HOUR, DAY))
    assert retry_after_seconds(Verdict(limits, outcomes, False, NOW)) == 5


@pytest.mark.parametrize("outcome", [Never(50, 50, 0, 0), Never(0, 0, 0, 0), Admitted(0, SECOND, SECOND)])
def test_no_retry_after_where_waiting_does_not_help(outcome: Outcome) -> None:
    """A request that can never pass, one that is blocked, and one that passed have no Retry-After."""
    assert "Retry-After" not in shown(MINUTELY, outcome)


def test_degraded_answers_say_what_is_known() -> None:
    """Admitted without the store: no field at all. Refused without it: the policy and a wait, but no balance."""
    away = "connection refused"
    assert fields(Verdict((MINUTELY,), (None,), True, NOW, away)) == ()
    assert fields(Verdict((MINUTELY,), (Admitted(1, 1, 1),), True, NOW, away), "x-ratelimit-epoch") == ()
    refused = Verdict((MINUTELY,), (None,), False, NOW, away)
    assert dict(fields(refused)) == {"RateLimit-Policy": '"permin";q=50;w=60', "Retry-After": "1"}
    assert dict(fields(refused, ("draft6", "x-ratelimit-epoch"))) == {
        "RateLimit-Policy": "50;w=60",
        "Retry-After": "1",
    }


def test_a_request_without_limits_has_no_fields() -> None:
    """No limits, no fields: both lists are non-empty by their draft."""
    assert fields(Verdict((), (), True, NOW), ("draft11", "draft6")) == ()


def test_shadow_limits_are_not_shown() -> None:
    """A shadow limit is nobody's business: it is in no field and lengthens no wait."""
    shadow = Limit("tried-out", "1 per day", by="account", shadow=True)
    verdict = Verdict((shadow, MINUTELY), (Refused(0, DAY, DAY, DAY), Admitted(49, SECOND, SECOND)), True, NOW)
    assert dict(fields(verdict)) == {
        "RateLimit-Policy": '"permin";q=50;w=60',
        "RateLimit": '"permin";r=49;t=1',
    }
    refusing = (Refused(0, 1, DAY, DAY), Refused(0, SECOND, SECOND, SECOND))
    assert retry_after_seconds(Verdict((shadow, MINUTELY), refusing, False, NOW)) == 1


def test_partition_keys_are_tags_without_a_way_back() -> None:
    """The parameter pk is a keyed hash: the same for the same key, another for another limit, key or secret, and never the key."""
    tags = {
        (secret, limit, key): partition_key(secret, limit, ("phone",), key)
        for secret in (b"a" * 16, b"b" * 32)
        for limit in ("one", "two")
        for key in ("+491700000000", b"+491700000000", "+491700000001")
    }
    assert len(set(tags.values())) == len(tags)
    assert all(len(tag) == 12 and b"49170" not in tag for tag in tags.values())
    tag = tags[b"a" * 16, "one", "+491700000000"]
    other_purpose = encode_key("", "one", "", ("phone",), ("+491700000000",))
    assert tag != hmac.digest(b"a" * 16, other_purpose, "sha256")[:12]
    assert tag == partition_key(b"a" * 16, "one", ("phone",), "+491700000000")
    assert partition_key(b"a" * 16, "one", ("a", "b"), ("x", "yz")) != partition_key(
        b"a" * 16, "one", ("a", "b"), ("xy", "z")
    )
    sent = shown(MINUTELY, Admitted(49, SECOND, SECOND), partition_keys=[b"\x00\xff tag"])
    assert sent["RateLimit"] == '"permin";r=49;t=1;pk=:AP8gdGFn:'
    assert "pk" not in sent["RateLimit-Policy"]


def test_partition_keys_need_a_secret_and_one_each() -> None:
    """A short secret and a number of tags that is not the limits' are refused; the secret is not shown."""
    with pytest.raises(ConfigError, match="15 bytes long; expected at least 16") as raised:
        partition_key(b"hunter2-hunter2", "one", (), ())
    assert "hunter2" not in str(raised.value)
    with pytest.raises(LimitError, match="1 partition keys for 2 limits"):
        fields(TWO, partition_keys=[b"x"])


def test_exposed_headers_name_what_is_sent() -> None:
    """For CORS the fields are listed, beside what the application exposes already, each once."""
    sent = fields(one_refusal(SECOND), cors=True)
    assert dict(sent)["Access-Control-Expose-Headers"] == "RateLimit-Policy, RateLimit, Retry-After"
    assert expose(sent, "X-Mine, ratelimit") == (
        "Access-Control-Expose-Headers",
        "X-Mine, ratelimit, RateLimit-Policy, Retry-After",
    )
    assert expose((), "*")[1] == "*"
    assert fields(one_refusal(1), "none", cors=True) == (
        ("Retry-After", "1"),
        ("Access-Control-Expose-Headers", "Retry-After"),
    )


def test_fs22_waiting_the_advertised_seconds_is_enough() -> None:
    """FS-22 (flask-limiter#62): Retry-After is rounded up and at least 1, never 0 and never negative."""
    told = report("FS-22")
    arrivals = told["reproduction"]["arrivals"]  # type: ignore[index]
    expected = told["expected_right_behaviour"]["Retry-After"]  # type: ignore[index]
    limit, state, said = Limit("x", "1 per 2 s", algorithm="sliding-log"), None, []
    for seconds, cost in arrivals:
        at = NOW + round(seconds * 10_000) * (SECOND // 10_000)
        state, outcome = limit.rule.decide(state, at, cost)
        said.append(shown(limit, outcome).get("Retry-After"))
    assert said == expected


def test_fs23_remaining_stays_between_zero_and_the_limit() -> None:
    """FS-23 (laravel#13756): after exhaustion and after a refill the fields stay within 0 and the limit."""
    expected = report("FS-23")["expected_right_behaviour"]
    limit, state, rows = Limit("x", "3 per 60 s", algorithm="fixed-window"), None, []
    base = NOW - NOW % (60 * SECOND)
    for seconds in (0, 1, 2, 3, 4, 1000):
        state, outcome = limit.rule.decide(state, base + seconds * SECOND, 1)
        sent = shown(limit, outcome, "x-ratelimit-delta")
        rows.append((int(sent["X-RateLimit-Remaining"]), int(sent["X-RateLimit-Reset"])))
        assert 0 <= rows[-1][0] <= int(sent["X-RateLimit-Limit"])
    assert [row[0] for row in rows] == expected["remaining"]  # type: ignore[index]
    assert [row[1] for row in rows] == expected["reset_seconds"]  # type: ignore[index]


def test_the_reset_is_on_the_deciding_clock() -> None:
    """The epoch dialect counts from the store's clock and rounds the moment itself up."""
    moments = [
        int(
            dict(
                fields(
                    Verdict((MINUTELY,), (Admitted(49, SECOND, SECOND),), True, NOW + shift),
                    Dialect.X_RATELIMIT_EPOCH,
                )
            )["X-RateLimit-Reset"]
        )
        for shift in (0, 1, SECOND - 1, SECOND, SECOND + 1)
    ]
    assert [after - before for before, after in pairwise(moments)] == [1, 0, 0, 1]


def test_the_short_way_says_what_the_long_way_says() -> None:
    """The default dialect's fields, made from prepared parts, are those of the general way, verdict by verdict."""
    for verdict in random_verdicts(7, 2_000):
        for _ in range(2):  # the first makes the parts, the second uses them
            assert fields(verdict) == fields(verdict, ("draft11",))


def test_prepared_parts_belong_to_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are never those of other limits, though many more come by than are kept, and memory is used again."""
    monkeypatch.setattr("headway.presentation.fields._MOST_READY", 3)
    for number in range(50):
        limit = Limit(f"limit-{number}", f"{number + 1} per minute")
        verdict = Verdict((limit,), (Admitted(number, SECOND, SECOND),), True, NOW, None, (1,))
        assert dict(fields(verdict))["RateLimit"] == f'"limit-{number}";r={number};t=1'
