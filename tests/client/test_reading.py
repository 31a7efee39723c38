"""Reading: every recorded refusal, and the rules that no recorded one shows alone."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from email.message import Message
from zoneinfo import ZoneInfo

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.corpus import Case, cases

from headway.client import Rejection, RejectionKind, read
from headway.client._moments import instant

NOW = datetime(2026, 8, 1, tzinfo=UTC)
DATE = ("Date", "Sat, 01 Aug 2026 00:00:00 GMT")


def reading(status: int = 429, *headers: tuple[str, str], body: object = "", **options: object) -> Rejection:
    """Read a response sent at NOW that must be a refusal."""
    text = body if isinstance(body, str) else json.dumps(body)
    rejection = read(status, [DATE, *headers], text, received_at=NOW, **options)  # type: ignore[arg-type]
    assert rejection is not None
    return rejection


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_recorded_response_is_read_right(case: Case) -> None:
    """A recorded response gives the right kind, wait, limit, remaining, reset and limit name."""
    rejection = read(case.status, case.headers, case.body, received_at=case.received_at)
    expected = case.expected
    if expected["kind"] is None:
        assert rejection is None
        return
    assert rejection is not None
    wait, reset = expected["retry_after_s"], expected["reset_at"]
    assert (rejection.kind, rejection.limit_name) == (expected["kind"], expected["limit_name"])
    assert rejection.retry_after == (wait if wait is None else pytest.approx(wait, abs=1e-6))
    assert (rejection.limit, rejection.remaining) == (expected["limit"], expected["remaining"])
    assert rejection.reset_at == (reset if reset is None else datetime.fromisoformat(reset))
    assert rejection.body is case.body


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_headers_may_come_in_any_container(case: Case) -> None:
    """Pairs of text, pairs of bytes, and a mapping of lists are read alike, and so are a body's text and its bytes."""
    pairs = read(case.status, case.headers, case.body, received_at=case.received_at)
    raw = [(name.encode(), value.encode("latin-1")) for name, value in case.headers]
    lists: dict[str, list[str]] = {}
    for name, value in case.headers:
        lists.setdefault(name, []).append(value)
    for headers, body in ((raw, case.body), (lists, case.body), (case.headers, case.body.encode())):
        other = read(case.status, headers, body, received_at=case.received_at)
        assert (pairs is None) == (other is None)
        if pairs is not None and other is not None:
            for name in ("kind", "retry_after", "limit", "remaining", "reset_at", "limit_name", "window", "source"):
                assert getattr(pairs, name) == getattr(other, name)


def test_header_containers_of_libraries_keep_every_line() -> None:
    """Httpx's headers, an email message and a plain object with items() give all lines of a field."""
    message = Message()
    message["Retry-After"] = "10"
    message["Retry-After"] = "120"
    for headers in (httpx.Headers([("Retry-After", "10"), ("Retry-After", "120")]), message):
        rejection = read(429, headers, "", received_at=NOW)
        assert rejection is not None
        assert rejection.retry_after == 120


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0.493", 0.493),
        ("Mon, 03 Jun 2019 11:30:12 GMT", 1812),
        ("Monday, 03-Jun-19 11:30:12 GMT", 1812),
        ("Mon Jun  3 11:30:12 2019", 1812),
        ("Mon, 3 Jun 2019 12:00:00 UTC", 3600),
        ("Mon Jun 03 2019 11:30:12 GMT+0000", 1812),
        ("Mon, 03 Jun 2019 10:00:00 GMT", 0),
        ("2019-06-03T14:00:30+03:00", 30),
        ("2019-06-03T11:00", 0),
        ("1559559660", 60),
        ("1559559660000", 60),
        ("1m30s", 90),
        ("PT1M30S", 90),
        ("00:01:30", 90),
        ("90 seconds", 90),
        (" 7 ", 7),
        ("99999999999", 99999999999),
        ("1000000000", 1000000000),
        ("10, Mon, 03 Jun 2019 11:30:12 GMT", 1812),
        ("Mon, 03 Jun 2019 11:30:12 GMT, Mon, 03 Jun 2019 11:30:13 GMT", 1813),
    ],
)
def test_retry_after_in_every_seen_form(value: str, seconds: float) -> None:
    """Retry-After is read as digits, decimals, dates, ISO 8601, an epoch or a duration (FS-35, docker/hub-feedback#2459)."""
    sent = [("Date", "Mon, 03 Jun 2019 11:00:00 GMT"), ("Retry-After", value)]
    rejection = read(429, sent, received_at=NOW)
    assert rejection is not None
    assert rejection.retry_after == pytest.approx(seconds)
    assert rejection.warnings == ()


@pytest.mark.parametrize("value", ["-5", "", "soon", "NaN", "1e999", "inf", "١٢", "+5", "0x10", "1e3", "-0", "30-40"])
def test_malformed_retry_after_is_no_hint(value: str) -> None:
    """A malformed, negative, infinite or empty Retry-After is ignored with a warning, and nothing is waited for."""
    rejection = reading(429, ("Retry-After", value))
    assert rejection.retry_after is None
    assert rejection.retry_at is None
    assert len(rejection.warnings) == 1


@given(st.integers(min_value=0, max_value=10**400))
def test_digits_are_always_a_hint(seconds: int) -> None:
    """Digits, however many, are a finite wait that is never shorter than told, unless they are an instant near now."""
    wait = reading(429, ("Retry-After", str(seconds))).retry_after
    assert wait is not None
    assert math.isfinite(wait)
    near = any(abs(seconds // scale - int(NOW.timestamp())) < 500 * 86_400 for scale in (1, 10**3, 10**6, 10**9))
    assert near or wait >= float(min(seconds, 2**1023))


def test_a_wait_beyond_the_calendar_has_no_instant() -> None:
    """A wait that ends after the year 9999 is kept as seconds; `retry_at` is None."""
    rejection = reading(429, ("Retry-After", "9" * 30))
    assert rejection.retry_after == pytest.approx(1e30)
    assert rejection.retry_at is None
    assert "years" in rejection.sentence()


def test_skewed_clock_changes_only_retry_at() -> None:
    """The server's Date gives the wait; `retry_at` is on the caller's clock, `reset_at` on the server's (FS-34)."""
    headers = [
        ("Date", "Mon, 23 Oct 2023 21:47:42 GMT"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1698097722"),
    ]
    for local in (1698097752, 1698094062):
        rejection = read(403, headers, received_at=local)
        assert rejection is not None
        assert rejection.retry_after == 60
        assert rejection.retry_at == datetime.fromtimestamp(local + 60, UTC)
        assert rejection.reset_at == datetime.fromtimestamp(1698097722, UTC)
    undated = read(403, headers[1:], received_at=1698097700)
    assert undated is not None
    assert undated.retry_after == 22


def test_a_cached_response_dates_itself() -> None:
    """With Age, the server's time is Date plus Age, and limits on the cached response are ignored."""
    cached = read(
        503,
        [DATE, ("Age", "30"), ("Retry-After", "Sat, 01 Aug 2026 00:01:00 GMT"), ("RateLimit", '"a";r=0;t=9')],
        received_at=NOW,
    )
    assert cached is not None
    assert cached.retry_after == 30
    assert cached.limit_name is None
    assert cached.remaining is None


@pytest.mark.parametrize("hour", range(24))
@pytest.mark.parametrize("minute", [0, 13, 44, 59])
def test_tomorrow_without_a_zone_is_tomorrow_everywhere(hour: int, minute: int) -> None:
    """At the wait for a bare "tomorrow", every time zone has passed the midnight that was its next one, and no later."""
    sent = datetime(2026, 6, 10, hour, minute, tzinfo=UTC)
    rejection = read(429, [], "Daily limit reached, try again tomorrow.", received_at=sent)
    assert rejection is not None
    assert rejection.retry_at is not None
    midnights = []
    for quarters in range(-48, 57):
        zone = timezone(timedelta(minutes=15 * quarters))
        day = sent.astimezone(zone).date() + timedelta(days=1)
        midnights.append(datetime(day.year, day.month, day.day, tzinfo=zone))
    assert rejection.retry_at >= max(midnights[::4])
    assert rejection.retry_at <= max(midnights)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("Quota used up. Try again tomorrow.", "Asia/Shanghai", "2026-08-01T16:00:00Z"),
        ("Quota used up. Try again tomorrow (UTC).", "Asia/Shanghai", "2026-08-02T00:00:00Z"),
        ("Daily quota used up; it resets at midnight Pacific Time.", None, "2026-08-01T07:00:00Z"),
        ("Daily quota used up; it resets at 00:00 UTC.", None, "2026-08-02T00:00:00Z"),
        ("You've hit your limit · resets 9pm (America/New_York)", None, "2026-08-01T01:00:00Z"),
        ("Limit reached. Try again on 2026-08-02.", None, "2026-08-02T12:00:00Z"),
    ],
)
def test_a_day_is_somebodys(text: str, zone: str | None, expected: str) -> None:
    """A zone in the text counts, else the configured one, else the latest midnight anywhere."""
    rejection = reading(429, body=text, zone=zone)
    assert rejection.retry_at == datetime.fromisoformat(expected)


def test_a_known_services_zone_is_used() -> None:
    """A "tomorrow" from a service whose documentation names its zone is that zone's."""
    body = {
        "error": {"errors": [{"domain": "usageLimits", "reason": "x"}], "message": "Quota exceeded, retry tomorrow."}
    }
    rejection = reading(403, body=body)
    pacific = datetime(2026, 8, 1, tzinfo=ZoneInfo("America/Los_Angeles"))
    assert rejection.retry_at == pacific


def test_several_waits_are_the_longest_unless_they_are_one() -> None:
    """The longest of the Retry-After family counts; a body's wait within two seconds of it is the same hint, finer."""
    assert reading(429, ("retry-after-ms", "60000"), ("Retry-After", "30")).retry_after == 60
    assert reading(429, ("Retry-After", "30"), body={"retry_after": 31.5}).retry_after == 31.5
    assert reading(429, ("Retry-After", "30"), body={"retry_after": 300}).retry_after == 30


def test_decoys_are_not_believed() -> None:
    """A limit with something left gives neither its numbers nor its reset (FS-33)."""
    rejection = reading(
        403,
        ("X-RateLimit-Limit", "5000"),
        ("X-RateLimit-Remaining", "4999"),
        ("X-RateLimit-Reset", "3500"),
        body={"message": "You have exceeded a secondary rate limit."},
    )
    assert rejection.kind is RejectionKind.RATE_LIMITED
    assert (rejection.retry_after, rejection.limit, rejection.reset_at) == (None, None, None)


def test_the_named_limit_is_the_violated_one() -> None:
    """A limit that a problem document names is violated whatever is left of it: the request may have cost more."""
    rejection = reading(
        429,
        ("RateLimit", '"tokens";r=12;t=7, "calls";r=0;t=90'),
        body={
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "violated-policies": ["tokens"],
        },
    )
    assert (rejection.limit_name, rejection.remaining, rejection.retry_after) == ("tokens", 12, 7)


@pytest.mark.parametrize(
    "field", ['"a";r=-1;t=5', '"a";r=0;t=1.5', '"a";r=0;t=5,', '"a";R=0', "a=?", '"a";t=5', "5;r=0"]
)
def test_malformed_ratelimit_is_ignored_as_a_whole(field: str) -> None:
    """One bad member kills the field, with a warning; Retry-After beside it still counts."""
    rejection = reading(429, ("RateLimit", field), ("Retry-After", "3"))
    assert (rejection.remaining, rejection.limit_name, rejection.retry_after) == (None, None, 3)
    assert rejection.warnings


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "rate_limited"),
        (503, "transient"),
        (529, "overloaded"),
        (403, "forbidden"),
        (402, "quota_exhausted"),
        (200, None),
        (400, None),
        (401, None),
        (404, None),
        (500, None),
    ],
)
def test_a_bare_status(status: int, kind: str | None) -> None:
    """A status without a word is read as what it is defined for; one that isn't a refusal by itself is none."""
    rejection = read(status, [], "", received_at=NOW)
    assert (rejection and rejection.kind) == kind


@pytest.mark.parametrize(
    "body",
    [
        {"articles": [{"title": "Rate limit exceeded"}]},
        {"data": {"search": "too many requests, retry after 5 seconds"}},
        {"rateLimit": {"limit": 5000, "remaining": 0, "resetAt": "2026-08-01T01:00:00Z"}},
        "A long page about how rate limits, quotas and too many requests are told apart. " * 20,
        "<html><body>Rate limit exceeded</body></html>",
    ],
)
def test_an_answer_that_speaks_of_limits_is_no_refusal(body: object) -> None:
    """With status 200, only a body that declares itself an error can be a refusal."""
    text = body if isinstance(body, str) else json.dumps(body)
    assert read(200, [DATE, ("RateLimit", '"a";r=0;t=5')], text, received_at=NOW) is None


def test_arrival_is_aware_or_a_number() -> None:
    """A naive arrival or one that is no number is the caller's mistake, and the error names it."""
    with pytest.raises(ValueError, match="no time zone"):
        read(429, [], "", received_at=datetime(2026, 8, 1))  # noqa: DTZ001 - the mistake under test
    with pytest.raises(ValueError, match="finite"):
        read(429, [], "", received_at=math.nan)


def test_retry_at_is_in_the_callers_zone() -> None:
    """`retry_at` keeps the zone of the arrival."""
    berlin = NOW.astimezone(ZoneInfo("Europe/Berlin"))
    rejection = read(429, [("Retry-After", "60")], received_at=berlin)
    assert rejection is not None
    assert rejection.retry_at == berlin + timedelta(seconds=60)
    assert rejection.retry_at.tzinfo is berlin.tzinfo


def test_source_names_the_evidence() -> None:
    """`source` says where the wait comes from, or else the kind."""
    assert reading(429, ("Retry-After", "1")).source == "retry-after"
    assert reading(429, body={"retry_after": 1}).source == "body: retry_after"
    assert reading(429, body="try again in 5 seconds").source == "body text"
    assert reading(429).source == "status"
    assert reading(429, body={"code": "slow_down_please"}).source == "body code"


def test_http_dates_do_not_depend_on_the_machine() -> None:
    """A date without a zone is UTC, whatever the zone of the process."""
    assert instant("Mon Jun  3 11:30:12 2019") == datetime(2019, 6, 3, 11, 30, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, '{"status":"0","info":"DAILY_QUERY_OVER_LIMIT","infocode":"10003"}', RejectionKind.QUOTA_EXHAUSTED),
        (
            400,
            '{"message":"Please wait a few minutes before you try again.","status":"fail"}',
            RejectionKind.RATE_LIMITED,
        ),
        (403, '{"error":"Developer Over Rate"}', RejectionKind.RATE_LIMITED),
        (200, '{"errcode":40001,"errmsg":"请求过于频繁，请60秒后重试"}', RejectionKind.RATE_LIMITED),
        (400, '{"message":"The name is too long, choose a shorter one and try again"}', None),
        (200, '{"code":"LIMIT_50","discount":50,"currency":"EUR"}', None),
        (200, '{"code":"RATE_LIMITED","data":null,"trace":"a","took":1}', RejectionKind.RATE_LIMITED),
        (200, '{"status_code":1,"status_message":"Success."}', None),
        (200, '{"data":{"error_code":0,"description":"Too many requests were answered"}}', None),
        (400, '{"message":"The attachment limit has been exceeded."}', None),
        (404, '{"message":"NotFound"}', None),
        (503, "Down for maintenance. Please wait a few minutes before you try again.", RejectionKind.TRANSIENT),
    ],
)
def test_statuses_that_say_little_are_read_by_their_words(status: int, body: str, kind: RejectionKind | None) -> None:
    """A limit under a status for something else is found by its code or its words; maintenance and mistakes stay what they are."""
    rejection = read(status, {}, body, received_at=0.0)
    assert (rejection.kind if rejection else None) is kind
