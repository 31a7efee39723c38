"""Tiers and overrides: which limit a request gets, and what cannot be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway import AllowList, Limiter, ProvidedLimit, When
from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import AttributeMissing, AttributeUnexpected, AttributeUnusable, LimitError, QuotaError
from headway.policy.choice import Choice
from headway.policy.overrides import Overridden
from headway.policy.tiers import TieredLimit

QUOTAS = {"free": "60/min", "pro": Quota.parse("600/min"), "vip": "unlimited", "eve": "block", "7": "7/min"}


def tiers(**options: Any) -> TieredLimit:
    return TieredLimit("api", QUOTAS, by="account", tier="plan", **options)


def quota(choice: Choice, **attributes: object) -> str | None:
    """The quota a request gets; None where it is not limited."""
    limit = choice.choose(attributes)
    assert limit is None or isinstance(limit, Limit)
    assert limit is None or (limit.name, limit.by) == (choice.name, choice.limits[0].by)
    return None if limit is None else str(limit.quota)


def test_each_tier_has_its_quota() -> None:
    """A tier is known by its text, ``unlimited`` does not limit, and ``block`` admits nothing."""
    limit = tiers()
    assert isinstance(limit, Choice)
    assert [quota(limit, plan=plan) for plan in ("free", "pro", "vip", "eve", 7, "7")] == [
        "60/minute", "600/minute", None, "0/minute", "7/minute", "7/minute",
    ]  # fmt: skip
    assert limit.attributes == ("plan",)
    assert str(limit.limits[0].quota) == "60/minute"


@pytest.mark.parametrize("plan", ["gold", "Free", "", 8, True, b"free", ("free",)])
def test_an_unknown_tier_is_a_stated_choice(plan: object) -> None:
    """It is an error, a refusal, unlimited or another tier, as was said; by default an error that names the tiers."""
    with pytest.raises(AttributeUnexpected, match="is no tier; expected one of free, pro, vip, eve, 7") as caught:
        tiers().choose({"plan": plan})
    assert (caught.value.attribute, caught.value.limit) == ("plan", "api")
    assert quota(tiers(unknown="refuse"), plan=plan) == "0/minute"
    assert quota(tiers(unknown="unlimited"), plan=plan) is None
    assert quota(tiers(unknown="pro"), plan=plan) == "600/minute"
    assert quota(tiers(unknown="vip"), plan=plan) is None


def test_a_missing_tier_is_a_stated_choice_of_its_own() -> None:
    """What is said of unknown tiers is not taken for missing ones; by default it is an error."""
    for given in ({}, {"plan": None}):
        with pytest.raises(AttributeMissing, match="limit 'api' takes its tier from 'plan'"):
            tiers(unknown="free").choose(given)
        assert quota(tiers(missing="free"), **given) == "60/minute"
        assert quota(tiers(missing="refuse"), **given) == "0/minute"
        assert quota(tiers(missing="unlimited"), **given) is None
    with pytest.raises(AttributeUnexpected):
        tiers(missing="free").choose({"plan": "gold"})


def test_a_tier_may_be_called_like_a_choice() -> None:
    """A tier of that name comes first."""
    limit = TieredLimit("api", {"error": "1/min", "refuse": "2/min"}, tier="plan", unknown="error", missing="refuse")
    assert quota(limit, plan="x") == "1/minute"
    assert quota(limit) == "2/minute"


@pytest.mark.parametrize(
    ("quotas", "options"),
    [
        ({"a": "5/day in UTC", "b": "9/month in UTC", "c": "0/day", "d": "block"}, {}),
        ({"a": "3 at once", "b": "9 at once for 5 s", "c": "block"}, {}),
        ({"a": "block", "b": "10/s burst 20", "c": "5/s"}, {"algorithm": "token-bucket"}),
        ({"a": "10/s burst 20", "c": "block"}, {"algorithm": "leaky-bucket-queue", "undelayed": 4}),
        ({"a": "10/s", "b": "5/s burst 3", "c": "block"}, {"algorithm": "growing-wait"}),
        ({"a": "10/s", "b": "5/hour", "c": "block"}, {"algorithm": "sliding-log"}),
        ({"a": "10/s", "c": "block"}, {"algorithm": "fixed-window", "count_refused": True}),
        ({"a": "block"}, {}),
    ],
)  # fmt: skip
def test_every_algorithm_has_tiers(quotas: dict[str, str], options: dict[str, Any]) -> None:
    """All limits of a choice keep their state under one key, blocked ones too."""
    limit = TieredLimit("api", quotas, by="account", tier="plan", **options)
    assert len({one.algorithm.stored for one in limit.limits}) == 1
    assert all(limit.choose({"plan": plan}) is not None for plan in quotas)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"quotas": {}}, "there is no tier"),
        ({"quotas": {"a": "1/s", "b": "5/day in UTC"}}, "tier 'b': .*calendar-window, not by gcra.*keeps its state"),
        ({"quotas": {"b": "5/day in UTC", "a": "1/s"}}, "tier 'a': .*needs a quota 'in ZONE'"),
        ({"quotas": {"a": "1/s", "b": "3 at once"}}, "tier 'b': .*counted by concurrency, not by gcra"),
        ({"quotas": {"b": "3 at once", "a": "1/s"}}, "tier 'a': .*how many at once"),
        ({"quotas": {"c": "block", "b": "3 at once", "a": "1/s"}}, "tier 'a': .*how many at once"),
        ({"quotas": {"": "1/s"}}, "tier '' has no name; expected a string such as 'free'"),
        ({"quotas": {"a": "1/s", " ": "2/s"}}, "tier ' ' has no name"),
        ({"quotas": {None: "1/s"}}, "tier None has no name"),
        ({"quotas": {7: "1/s"}}, "tier 7 has no name"),
        ({"tier": "my-plan"}, "tier names 'my-plan'"),
        ({"unknown": "refused"}, "unknown is 'refused'; expected a tier or one of .*did you mean 'refuse'"),
        ({"missing": None}, "missing is None"),
        ({"cost": 0}, "cost is 0"),
    ],
)
def test_what_cannot_be_right_is_said_at_once(arguments: dict[str, Any], says: str) -> None:
    """A choice is judged when it is made, not by the request that meets it."""
    with pytest.raises(LimitError, match=f"limit 'api': {says}"):
        TieredLimit(**{"name": "api", "quotas": {"a": "1/s"}, "tier": "plan", **arguments})


def test_a_quota_that_cannot_be_read_says_whose_it_is() -> None:
    """The message names the limit, and the tier or the key."""
    for quotas in ({"a": "1/s", "b": "1/mn"}, {"b": "1/mn", "a": "1/s"}):
        with pytest.raises(QuotaError, match=r"^limit 'api': tier 'b': quota '1/mn': at character 3, 'mn'"):
            TieredLimit("api", quotas, tier="plan")
    with pytest.raises(QuotaError, match=r"^limit 'api': override 'x': quota '1/mn'"):
        Overridden(Limit("api", "1/s", by="a"), {"x": "1/mn"})
    with pytest.raises(QuotaError, match=r"^limit 'api': default: quota '1/mn'"):
        ProvidedLimit("api", lambda _: None, default="1/mn")
    with pytest.raises(QuotaError, match="did you mean 'unlimited'"):
        Overridden(Limit("api", "1/s", by="a"), {"x": "Unlimited"})


_tiered: Any = TieredLimit  # as somebody without a type checker may call it
_overridden: Any = Overridden
_when: Any = When
_limiter: Any = Limiter


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: _tiered("api", {"a": 5}, tier="plan"),
            "^limit 'api': tier 'a' is 5, an integer; expected a quota",
        ),
        (
            lambda: _tiered("api", "1/s", tier="plan"),
            "^limit 'api': quotas are '1/s', a string; expected a mapping",
        ),
        (lambda: _tiered("api", [("a", "1/s")], tier="plan"), "quotas are an array; expected a mapping"),
        (lambda: _tiered("api", {"a": "1/s"}, tier=None), "tier is None; expected the name of an attribute"),
        (
            lambda: _overridden(Limit("api", "1/s", by="a"), {"x": ["1/s"]}),
            "override 'x' is an array; expected a quota",
        ),
        (lambda: _overridden(Limit("api", "1/s", by="a"), {"x": None}), "override 'x' is None; expected a quota"),
        (lambda: _overridden(Limit("api", "1/s", by="a"), ["x"]), "overrides are an array; expected a mapping"),
        (lambda: _overridden("api", {"x": "1/s"}), "^Overridden is given 'api', a string; expected a limit such as"),
        (lambda: _when({"a": "b"}, "1/s"), "^When is given '1/s', a string; expected a limit such as"),
        (lambda: _limiter(AllowList({"a": "b"})), "is no Limit; .*; who passes unlimited is said with exempt="),
        (lambda: _limiter(exempt={"ip": "10.0.0.0/8"}), "^exempt is a table; expected AllowList"),
        (lambda: _limiter(exempt=AllowList), "^exempt is .*; expected AllowList"),
    ],
)
def test_what_is_of_another_type_is_named(make: Callable[[], object], says: str) -> None:
    """A wrong argument is refused where it is given, in words."""
    with pytest.raises(LimitError, match=says):
        make()


def test_an_override_does_not_reach_beyond_a_condition() -> None:
    """However the two are put together, who has a quota of their own is limited where the limit applies, and only there."""
    plain = Limit("api", "1/min", by="account")
    post = {"method": "POST"}
    for limit in (
        When(post, Overridden(plain, {"acme": "9/min"})),
        Overridden(When(post, plain), {"acme": "9/min"}),
        Overridden(Overridden(When(post, plain), {"acme": "9/min"}), {"eve": "2/min"}),
    ):
        assert quota(limit, account="acme", method="POST") == "9/minute"
        assert quota(limit, account="x", method="POST") == "1/minute"
        assert quota(limit, account="acme", method="GET") is None
        assert quota(limit, method="GET") is None
        with pytest.raises(AttributeMissing, match="'method'"):
            limit.choose({"account": "acme"})
    tiers_apart = Overridden(
        TieredLimit("api", {"vip": "unlimited", "free": "1/min"}, by="account", tier="plan"), {"acme": "9/min"}
    )
    assert quota(tiers_apart, account="acme", plan="vip") == "9/minute"


def test_keys_with_a_quota_of_their_own() -> None:
    """An override is the key's, by the text of its value, and comes before what else the limit depends on."""
    limit = Overridden(
        Limit("api", "1/min", by="account"), {"acme": "9/min", 42: "8/min", "eve": "block", "x": "unlimited"}
    )
    found = [quota(limit, account=account) for account in ("acme", "42", 42, "eve", "x", "other", b"acme")]
    assert found == ["9/minute", "8/minute", "8/minute", "0/minute", None, "1/minute", "1/minute"]
    tiered = Overridden(tiers(), {"acme": "9/min"})
    assert quota(tiered, account="acme") == "9/minute"
    assert quota(tiered, account="other", plan="pro") == "600/minute"
    assert tiered.attributes == ("plan",)
    for missing in ({}, {"account": "other"}):
        with pytest.raises(AttributeMissing):
            tiered.choose(missing)
    with pytest.raises(AttributeUnusable):
        limit.choose({"account": 1.5})


def test_keys_of_several_attributes() -> None:
    """An override names all of them, in the order of ``by``."""
    limit = Overridden(Limit("api", "1/min", by=("account", "region")), {("acme", "eu"): "9/min", ("acme", 1): "8/min"})
    assert quota(limit, account="acme", region="eu") == "9/minute"
    assert quota(limit, account="acme", region="1") == "8/minute"
    assert quota(limit, account="eu", region="acme") == "1/minute"


@pytest.mark.parametrize(
    ("by", "overrides", "says"),
    [
        ((), {"a": "1/s"}, "is keyed by nothing"),
        (("a", "b"), {"x": "1/s"}, "override 'x'; expected a tuple of a, b"),
        (("a", "b"), {("x",): "1/s"}, "expected a tuple of a, b"),
        ("a", {1.5: "1/s"}, "override 1.5: attribute 'a' is a float"),
        ("a", {42: "1/s", "42": "2/s"}, "'42' is overridden twice"),
        ("a", {"x": "5/day in UTC"}, "override 'x': .*keeps its state"),
    ],
)
def test_overrides_that_cannot_be_right(by: Any, overrides: Any, says: str) -> None:
    """They are judged when they are made."""
    with pytest.raises(LimitError, match=says):
        Overridden(Limit("api", "1/min", by=by), overrides)


def test_an_override_of_places_is_no_rate() -> None:
    """In both directions: what is held at once and what comes in a time are not counted alike."""
    for own, other in (("3 at once", "60/min"), ("60/min", "3 at once")):
        with pytest.raises(LimitError, match=r"override 'x': .*keeps its state"):
            Overridden(Limit("api", own, by="a"), {"x": other})


def test_choices_say_what_they_depend_on() -> None:
    """One line for people."""
    assert str(Overridden(tiers(unknown="free"), {"acme": "9/min", "b": "block"})) == (
        "free 60/minute, pro 600/minute, vip unlimited, eve block, 7 7/minute by plan (unknown: free, missing: error); "
        "2 account with a quota of their own"
    )


def test_very_many_overrides_are_looked_through_once() -> None:
    """What stands for them all is worked out when they are made: a request that lacks an attribute must not pay for it."""
    limit = Overridden(Limit("api", "1/min", by="account"), {str(n): f"{n % 7 + 2}/min" for n in range(5000)})
    assert [str(one.quota) for one in limit.limits[:3]] == ["1/minute", "2/minute", "3/minute"]
    assert len(limit.limits) == 8
    assert limit.limits is limit.limits
