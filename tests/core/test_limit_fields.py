"""A limit's fields: what each may be, what it becomes, and the whole sentence of every refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.core.limit import Algorithm, FailureMode, Limit, check_name, requoted
from headway.core.quota import DAY, HOUR, MAX_COUNT, MINUTE, SECOND, Quota
from headway.errors import LimitError

HEADER = (
    " cannot go into a header: expected 1 to 64 characters, a lower-case letter or * first, "
    "then lower-case letters, digits or any of _ . : / * -"
)
ALGORITHMS = (
    "gcra, token-bucket, leaky-bucket, leaky-bucket-queue, minimum-interval, fixed-window, anchored-window, "
    "calendar-window, sliding-window, sliding-log, concurrency, growing-wait"
)
A_DURATION = "expected a duration such as '1 hour', or ns above 0"
A_SENTENCE = (
    "expected at most 500 printable characters such as 'Too many codes for this phone.', "
    "with no placeholders but {wait}, {limit} and {count}"
)


def test_what_a_limit_is_where_nothing_is_said() -> None:
    """One counter shared by all, GCRA, the call's cost, enforced, denied without its store."""
    limit = Limit("everyone", "5/s")
    assert (limit.name, limit.quota, limit.by) == ("everyone", Quota(5, SECOND), ())
    assert limit.algorithm is Algorithm.GCRA
    assert (limit.cost, limit.secret) == (None, frozenset())
    assert limit.on_store_failure is FailureMode.DENY
    assert (limit.count_refused, limit.shadow, limit.undelayed) == (False, False, 1)
    assert (limit.longest, limit.forgiven_after, limit.text) == (HOUR, DAY, None)
    assert limit.rule.burst == 5


def test_every_field_is_kept_as_it_is_said() -> None:
    """Also by another limit with one field replaced."""
    limit = Limit(
        "l", Quota(5, SECOND, 9), ["phone", "ip"], algorithm="leaky-bucket-queue", cost=3, secret="ip",
        on_store_failure="local", shadow=True, undelayed=4, longest="2 h", forgiven_after=7, text="Wait {wait}.",
    )  # fmt: skip
    assert (limit.quota, limit.by) == (Quota(5, SECOND, 9), ("phone", "ip"))
    assert limit.algorithm is Algorithm.LEAKY_BUCKET_QUEUE
    assert (limit.cost, limit.secret) == (3, frozenset({"ip"}))
    assert limit.on_store_failure is FailureMode.LOCAL
    assert (limit.count_refused, limit.shadow, limit.undelayed) == (False, True, 4)
    assert (limit.longest, limit.forgiven_after, limit.text) == (2 * HOUR, 7, "Wait {wait}.")
    assert replace(limit, name="l") == limit
    assert replace(limit, cost=None).cost is None


@pytest.mark.parametrize("name", ["a", "*", "per-phone", "a" * 64, "a1_.:/*-z", "*/9"])
def test_a_name_goes_into_a_header_as_it_is(name: str) -> None:
    """Up to 64 characters."""
    assert check_name("policy", name) == Limit(name, "5/s").name == name


@pytest.mark.parametrize("name", ["", "a" * 65, "A", "1a", "-a", "a b", "a\n", "é", "a,b", None, 5, b"a"])
def test_a_name_that_cannot_go_into_a_header(name: Any) -> None:
    """Which kind of name, the value and the alphabet."""
    with pytest.raises(LimitError) as caught:
        check_name("policy", name)
    assert str(caught.value) == f"policy name {name!r}{HEADER}"
    with pytest.raises(LimitError) as caught:
        Limit(name, "5/s")
    assert str(caught.value) == f"limit name {name!r}{HEADER}"


def _wrong(problem: str, **fields: Any) -> Any:
    return pytest.param(fields, problem, id=" ".join(f"{name}={value!r:.40}" for name, value in fields.items()))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        _wrong("by is 5; expected the name of an attribute, or several", by=5),
        _wrong("by names 'a b'; an attribute is a name like 'phone' or 'client_ip'", by="a b"),
        _wrong("by names ''; an attribute is a name like 'phone' or 'client_ip'", by=""),
        _wrong("by names '1a'; an attribute is a name like 'phone' or 'client_ip'", by=["a", "1a"]),
        _wrong("by names 'a\\n'; an attribute is a name like 'phone' or 'client_ip'", by="a\n"),
        _wrong("by names 7; an attribute is a name like 'phone' or 'client_ip'", by=["a", 7]),
        _wrong(f"by names {'a' * 65!r}; an attribute is a name like 'phone' or 'client_ip'", by="a" * 65),
        *(
            _wrong(f"by names {name!r}, which is a parameter of hit(); choose another name", by=["a", name])
            for name in ("attributes", "cost", "deadline", "up_to", "self", "limit", "timeout")
        ),
        *(
            _wrong(f"by names {name!r}, which is a parameter of reserve(); choose another name", by=name)
            for name in ("ttl", "debt")
        ),
        _wrong("by names an attribute twice: a, b, a", by=["a", "b", "a"]),
        _wrong(f"algorithm is 'gcr'; expected one of {ALGORITHMS}", algorithm="gcr"),
        _wrong("algorithm 'calendar-window' needs a quota 'in ZONE', such as '5/day in UTC'", algorithm="calendar-window"),
        _wrong("the quota '5/day in UTC' is counted by calendar-window, not by gcra", quota="5/day in UTC", algorithm="gcra"),
        _wrong("the quota '5 at once for 1 minute' is counted by concurrency, not by gcra", quota="5 at once", algorithm="gcra"),
        *(
            _wrong(f"{name} takes no burst; drop 'burst 2' or use gcra", quota="5/s burst 2", algorithm=name)
            for name in ("minimum-interval", "fixed-window", "anchored-window", "sliding-window", "sliding-log", "concurrency")
        ),
        *(
            _wrong(f"cost is {cost!r}; expected a whole number from 1 to {MAX_COUNT}", cost=cost)
            for cost in (0, -1, MAX_COUNT + 1, 1.0, True, "1")
        ),
        _wrong("secret names 'ip', which is not among by = ['phone', 'x']", by=["phone", "x"], secret=["x", "ip", "z"]),
        _wrong("secret names 'a b'; an attribute is a name like 'phone' or 'client_ip'", by="phone", secret="a b"),
        _wrong("secret is 5; expected the name of an attribute, or several", by="phone", secret=5),
        _wrong("on_store_failure is 'open'; expected one of deny, allow, local", on_store_failure="open"),
        _wrong("count_refused belongs to windows, not to gcra", count_refused=True),
        _wrong("count_refused belongs to windows, not to sliding-window", algorithm="sliding-window", count_refused=True),
        _wrong("count_refused is 0; expected True or False", algorithm="fixed-window", count_refused=0),
        _wrong("count_refused is 1; expected True or False", algorithm="fixed-window", count_refused=1),
        _wrong("shadow is 'yes'; expected True or False", shadow="yes"),
        _wrong("shadow is None; expected True or False", shadow=None),
        *(
            _wrong(f"undelayed is {units!r}; expected a whole number from 1 to the burst, 5", algorithm="leaky-bucket-queue", undelayed=units)
            for units in (0, 6, 1.0, True)
        ),
        _wrong("undelayed is 2; expected a whole number from 1 to the burst, 0", quota="0/s", undelayed=2),
        *(
            _wrong(f"{name} is {value!r}; {A_DURATION}", **{name: value})
            for name in ("longest", "forgiven_after")
            for value in (0, -1, 1.0, True, None)
        ),
        _wrong("text is 5; expected a sentence", text=5),
        *(_wrong(f"text is {text[:120]!r}; {A_SENTENCE}", text=text) for text in ("", " ", "a\nb", "{what}", "{} {wait}", "x" * 501)),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_right(fields: dict[str, Any], problem: str) -> None:
    """The limit, the field, the value and what is accepted."""
    with pytest.raises(LimitError) as caught:
        Limit("l", **{"quota": "5/s", **fields})
    assert str(caught.value) == f"limit 'l': {problem}"


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"by": "phone"}, "by", ("phone",)),
        ({"by": ("a", "_b9" + "x" * 61)}, "by", ("a", "_b9" + "x" * 61)),
        ({"by": (each for each in ("Ab", "b"))}, "by", ("Ab", "b")),
        ({"cost": 1}, "cost", 1),
        ({"cost": MAX_COUNT}, "cost", MAX_COUNT),
        ({"by": ("a", "b"), "secret": True}, "secret", frozenset({"a", "b"})),
        ({"by": ("a", "b"), "secret": False}, "secret", frozenset()),
        ({"by": ("a", "b"), "secret": ("b", "a")}, "secret", frozenset({"a", "b"})),
        ({"on_store_failure": "allow"}, "on_store_failure", FailureMode.ALLOW),
        ({"algorithm": "fixed-window", "count_refused": True}, "count_refused", True),
        ({"algorithm": "anchored-window", "count_refused": True}, "count_refused", True),
        ({"quota": "5/day in UTC", "count_refused": True}, "count_refused", True),
        ({"undelayed": 5}, "undelayed", 5),
        ({"quota": "0/s"}, "undelayed", 1),
        ({"longest": 1}, "longest", 1),
        ({"longest": "90 s"}, "longest", 90 * SECOND),
        ({"forgiven_after": "2 days"}, "forgiven_after", 2 * DAY),
        ({"text": "{count} a day for {limit}: {wait}."}, "text", "{count} a day for {limit}: {wait}."),
        ({"text": "x" * 500}, "text", "x" * 500),
        ({"quota": "5/day in UTC"}, "algorithm", Algorithm.CALENDAR_WINDOW),
        ({"quota": "5/day in UTC", "algorithm": "calendar-window"}, "algorithm", Algorithm.CALENDAR_WINDOW),
        ({"quota": "5 at once"}, "algorithm", Algorithm.CONCURRENCY),
        ({"algorithm": "concurrency"}, "algorithm", Algorithm.CONCURRENCY),
        ({"quota": "0/s", "algorithm": "minimum-interval"}, "quota", Quota(0, SECOND)),
        *(({"quota": "5/s burst 2", "algorithm": each}, "algorithm", Algorithm(each))
          for each in ("gcra", "token-bucket", "leaky-bucket", "leaky-bucket-queue", "growing-wait")),
    ],
)  # fmt: skip
def test_a_field_that_is_right(fields: dict[str, Any], name: str, value: object) -> None:
    """The bounds themselves, one name or several, text or ns."""
    assert getattr(Limit("l", **{"quota": "5/s", **fields}), name) == value


def test_gcra_and_its_views_are_one_limiter_in_a_store() -> None:
    """A limit that is called otherwise keeps its state; other algorithms have states of their own."""
    views = {"gcra", "token-bucket", "leaky-bucket", "leaky-bucket-queue", "minimum-interval"}
    assert {each.value for each in Algorithm if each.stored == "gcra"} == views
    assert all(each.stored == each.value for each in Algorithm if each.value not in views)


def test_views_take_the_words_of_their_field() -> None:
    """Capacity and refill, capacity and leak, an interval; all other options as usual."""
    tokens = Limit.token_bucket("l", capacity=4, refill="10 per 30 s", by="id", cost=2)
    assert tokens == Limit("l", "10 per 30 s burst 4", "id", algorithm="token-bucket", cost=2)
    leaky = Limit.leaky_bucket("l", capacity=4, leak="10 per 30 s", by="id", shadow=True)
    assert leaky == Limit("l", "10 per 30 s burst 4", "id", algorithm="leaky-bucket", shadow=True)
    interval = Limit.minimum_interval("l", "90 s", "id", cost=1)
    assert interval == Limit("l", Quota(1, 90 * SECOND), "id", algorithm="minimum-interval", cost=1)
    assert Limit.token_bucket("l", capacity=4, refill="1/s").by == Limit.minimum_interval("l", "1 s").by == ()


def test_another_quota_of_another_kind_says_why_not() -> None:
    """Both quotas, and what each of them counts."""
    with pytest.raises(LimitError) as caught:
        requoted(Limit("l", "3 at once"), "5/min")
    assert str(caught.value) == (
        "limit 'l': '5/minute' and '3 at once for 1 minute' are not both counted by concurrency: one says how many "
        "at once, the other how many in a time"
    )
    blocked = Limit("l", "0/s", algorithm="concurrency")
    assert requoted(blocked, "3 at once").quota == Quota(3, MINUTE, concurrent=True)
    assert requoted(Limit("l", "3 at once"), "0/s").quota.count == 0
