"""Quotas that a function says: how long an answer counts, how many are remembered, and what a failure means."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import AttributeMissing, LimitError, QuotaError
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.policy.choice import Choice
from headway.policy.provided import ProvidedLimit
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock


class Plans:
    """A database of quotas by account, which remembers what it was asked."""

    def __init__(self, **quotas: Any) -> None:
        self.quotas: dict[str, Any] = quotas
        self.asked: list[Mapping[str, object]] = []

    def __call__(self, attributes: Mapping[str, object]) -> object:
        self.asked.append(attributes)
        quota = self.quotas.get(str(attributes["account"]))
        if isinstance(quota, Exception):
            raise quota
        return quota

    async def slowly(self, attributes: Mapping[str, object]) -> object:
        await asyncio.sleep(0)
        return self(attributes)


def provided(plans: Any, clock: ManualClock, **options: Any) -> ProvidedLimit:
    return ProvidedLimit("api", plans, by="account", **{"default": "1/min", "clock": clock, **options})


def quota(limit: ProvidedLimit, account: object, **others: object) -> str | None:
    """The quota that a limiter gives a request; None where it is not limited."""
    decision = Limiter(limit, store=MemoryStore(clock=ManualClock())).hit(account=account, **others)
    found = decision.verdict.limits
    return str(found[0].quota) if found else None


def test_what_a_provider_may_answer(clock: ManualClock) -> None:
    """A quota, its text, ``block``, ``unlimited``, or None for the default."""
    limit = provided(Plans(a="5/min", b=Quota.parse("6/min"), c="block", d="unlimited"), clock)
    assert isinstance(limit, Choice)
    assert [quota(limit, account) for account in "abcde"] == ["5/minute", "6/minute", "0/minute", None, "1/minute"]
    assert limit.failures == 0


@pytest.mark.parametrize(("default", "expected"), [("unlimited", None), ("block", "0/s"), ("0/s", "0/s")])
def test_a_default_may_be_a_word(clock: ManualClock, default: str, expected: str | None) -> None:
    """Whoever the provider says nothing of can be blocked or unlimited."""
    assert quota(provided(Plans(), clock, default=default), "x") == expected


def test_an_answer_counts_for_its_time(clock: ManualClock) -> None:
    """The provider is asked again exactly when ``cache_seconds`` have passed."""
    plans = Plans(a="5/min")
    limit = provided(plans, clock, cache_seconds=30)
    assert quota(limit, "a") == "5/minute"
    plans.quotas["a"] = "9/min"
    clock.advance(30, ns=-1)
    assert quota(limit, "a") == "5/minute"
    assert limit.calls == 1
    clock.advance(ns=1)
    assert quota(limit, "a") == "9/minute"
    assert limit.calls == 2


def test_without_a_cache_every_request_asks(clock: ManualClock) -> None:
    """``cache_seconds=0`` asks each time, and the answer is the request's own."""
    plans = Plans(a="5/min")
    limit = provided(plans, clock, cache_seconds=0, cache_entries=1)
    for expected in ("5/minute", "6/minute", "7/minute"):
        plans.quotas["a"] = expected
        assert quota(limit, "a") == expected


def test_the_cache_is_bounded(clock: ManualClock) -> None:
    """The answers used last are remembered, however many keys there are."""
    plans = Plans()
    limit = provided(plans, clock, cache_entries=3)
    for account in range(1000):
        quota(limit, account)
        quota(limit, 0)
    assert len(limit) == 3
    assert [attributes["account"] for attributes in plans.asked].count(0) == 1
    assert bool(limit)


def test_an_answer_is_for_those_who_are_alike_in_what_is_read(clock: ManualClock) -> None:
    """The provider gets the attributes it reads and no others, so nobody is given another's quota."""
    asked = []

    def by_region(attributes: Mapping[str, object]) -> str:
        asked.append(dict(attributes))
        return "5/min" if attributes["region"] == "eu" else "6/min"

    limit = provided(by_region, clock, reads=("region",))
    assert quota(limit, "a", region="eu", plan="x") == "5/minute"
    assert quota(limit, "b", region="eu") == "5/minute"
    assert quota(limit, "a", region="us") == "6/minute"
    assert asked == [{"region": "eu"}, {"region": "us"}]
    with pytest.raises(AttributeMissing, match="limit 'api' takes its quota from 'region'"):
        quota(limit, "a")


def test_forgetting_asks_anew(clock: ManualClock) -> None:
    """After a change in the database the next request asks, for one key or for all."""
    plans = Plans(a="5/min", b="5/min")
    limit = provided(plans, clock)
    quota(limit, "a"), quota(limit, "b")
    plans.quotas = {"a": "6/min", "b": "6/min"}
    limit.forget(account="a")
    assert (quota(limit, "a"), quota(limit, "b")) == ("6/minute", "5/minute")
    limit.forget()
    assert quota(limit, "b") == "6/minute"


BROKEN = [RuntimeError("down"), "60/mn", 60, True, 1.5, b"5/min", "5/day in UTC", ["5/min"]]


@pytest.mark.parametrize("broken", BROKEN, ids=repr)
def test_a_failure_leaves_the_last_answer(clock: ManualClock, broken: object) -> None:
    """Whether it raises or answers what is no quota: what was said last counts, else the default, and it is counted."""
    plans = Plans(a="5/min", b=broken)
    limit = provided(plans, clock, cache_seconds=30)
    assert quota(limit, "a") == "5/minute"
    assert quota(limit, "b") == "1/minute"
    plans.quotas["a"] = broken
    clock.advance(30)
    assert quota(limit, "a") == "5/minute"
    assert limit.failures == 2


def test_after_a_failure_it_is_asked_again_soon(clock: ManualClock) -> None:
    """Not by every request, and not only when an answer would have been old: after a second."""
    plans = Plans(a=RuntimeError("down"))
    limit = provided(plans, clock, cache_seconds=30)
    for _ in range(3):
        assert quota(limit, "a") == "1/minute"
    assert limit.calls == 1
    clock.advance(1, ns=-1)
    quota(limit, "a")
    assert limit.calls == 1
    plans.quotas["a"] = "5/min"
    clock.advance(ns=1)
    assert quota(limit, "a") == "5/minute"


def test_a_last_answer_outlives_several_failures(clock: ManualClock) -> None:
    """A stand-in does not become the last answer, nor does it replace it."""
    plans = Plans(a="5/min", b=RuntimeError("down"))
    limit = provided(plans, clock, cache_seconds=30)
    quota(limit, "a")
    plans.quotas["a"] = RuntimeError("down")
    for _ in range(5):
        clock.advance(30)
        assert quota(limit, "a") == "5/minute"
        assert quota(limit, "b") == "1/minute"


def test_a_failure_can_mean_the_default_or_an_error(clock: ManualClock) -> None:
    """``on_error`` is a choice."""
    plans = Plans(a="5/min")
    for on_error in ("default", "raise"):
        plans.quotas["a"] = "5/min"
        limit = provided(plans, clock, on_error=on_error, cache_seconds=0)
        assert quota(limit, "a") == "5/minute"
        plans.quotas["a"] = RuntimeError("down")
        if on_error == "default":
            assert quota(limit, "a") == "1/minute"
            continue
        with pytest.raises(RuntimeError, match="down"):
            quota(limit, "a")
        plans.quotas["a"] = "60/mn"
        with pytest.raises(QuotaError):
            quota(limit, "a")
        assert limit.failures == 2


def test_an_outage_is_logged_once(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    """The first failure says what failed and what decides; the next outage says so again."""
    plans = Plans(a=RuntimeError("down"))
    limit = provided(plans, clock, cache_seconds=0)
    with caplog.at_level(logging.WARNING, "headway"):
        quota(limit, "a"), quota(limit, "a")
        (said,) = caplog.messages
        assert said.startswith("limit api: the quota provider failed (RuntimeError: down); on_error = last decides")
        plans.quotas["a"] = "5/min"
        quota(limit, "a")
        plans.quotas["a"] = RuntimeError("down")
        quota(limit, "a")
    assert len(caplog.messages) == 2


def test_an_async_provider_is_awaited(clock: ManualClock) -> None:
    """Under ``AsyncLimiter``; answers, failures and the cache are the same."""
    plans = Plans(a="2/min", b=RuntimeError("down"), c="unlimited")
    limit = provided(plans.slowly, clock)

    async def ask() -> list[bool]:
        limiter = AsyncLimiter(limit, store=MemoryStore(clock=clock))
        return [(await limiter.hit(account=account)).allowed for account in "aaabbcc"]

    assert asyncio.run(ask()) == [True, True, False, True, False, True, True]
    assert (limit.calls, limit.failures) == (3, 1)


def test_a_cancelled_request_is_no_failure(clock: ManualClock) -> None:
    """Whoever gives up waiting for the provider leaves nothing behind."""

    async def never(_: Mapping[str, object]) -> object:
        await asyncio.Event().wait()
        return None

    limit = provided(never, clock)

    async def give_up() -> None:
        limiter = AsyncLimiter(limit, store=MemoryStore(clock=clock))
        hit = asyncio.ensure_future(limiter.hit(account="a"))
        await asyncio.sleep(0)
        hit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hit

    asyncio.run(give_up())
    assert (limit.failures, len(limit)) == (0, 0)


def test_an_async_provider_under_limiter_names_the_other(clock: ManualClock) -> None:
    """``Limiter`` cannot wait for it: a TypeError, no warning of a coroutine that was never awaited."""
    limit = provided(Plans(a="5/min").slowly, clock)
    with pytest.raises(TypeError, match="use AsyncLimiter"):
        Limiter(limit).hit(account="a")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cache_seconds": -1}, "cache_seconds is -1; expected seconds from 0"),
        ({"cache_seconds": float("nan")}, "cache_seconds is nan"),
        ({"cache_seconds": True}, "cache_seconds is True"),
        ({"answer_seconds": 0}, "answer_seconds is 0; expected seconds up to 3600"),
        ({"answer_seconds": True}, "answer_seconds is True"),
        ({"answer_seconds": None}, "answer_seconds is None"),
        ({"cache_seconds": "30"}, "cache_seconds is '30'"),
        ({"answer_seconds": float("nan")}, "answer_seconds is nan"),
        ({"cache_entries": 0}, "cache_entries is 0; expected a whole number from 1"),
        ({"cache_entries": 1.5}, "cache_entries is 1.5"),
        ({"on_error": "ignore"}, "on_error is 'ignore'; expected one of last, default, raise"),
        ({"reads": "my-plan"}, "reads names 'my-plan'"),
        ({"cost": 0}, "cost is 0"),
    ],
)
def test_options_that_cannot_be_right(clock: ManualClock, options: dict[str, Any], says: str) -> None:
    """They are judged when the limit is made."""
    with pytest.raises(LimitError, match=f"limit 'api': {says}"):
        provided(Plans(), clock, **options)
    with pytest.raises(LimitError, match="provider is 'x'; expected a function"):
        provided("x", clock)


def test_it_says_what_it_depends_on(clock: ManualClock) -> None:
    """One line for people, and the default where no request is at hand."""
    limit = provided(Plans(), clock)
    assert str(limit) == "asked for by account; default 1/minute"
    assert limit.limits == (Limit("api", "1/min", by="account"),)
    assert limit.attributes == ("account",)
