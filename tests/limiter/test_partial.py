"""``up_to``: as many units as fit now, all limits together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headway import AsyncLimiter, Limit, Limiter, LimitError, MemoryStore
from headway.testing.clock import ManualClock
from ways import STORES


@pytest.mark.parametrize("store", STORES)
def test_as_many_as_fit_are_granted(clock: ManualClock, tmp_path: Path, store: str) -> None:
    """At most what was asked for, then what is left, then a refusal for 1 with its wait."""
    limiter = Limiter(Limit("l", "10 per 100 s", by="id"), store=STORES[store](clock, tmp_path))
    assert limiter.hit(id="k", up_to=7).granted == 7
    decision = limiter.hit(id="k", up_to=7)
    assert (decision.allowed, decision.granted, decision.costs, decision.remaining) == (True, 3, {"l": 3}, 0)
    refused = limiter.hit(id="k", up_to=7)
    assert (refused.allowed, refused.granted, refused.costs, refused.retry_after) == (False, 0, {"l": 1}, 10)
    limiter.store.close()


def test_more_than_a_burst_is_cut_to_what_fits(clock: ManualClock) -> None:
    """Asking for more than could ever fit is no ``never``: a part of it fits."""
    limiter = Limiter(Limit("l", "10 per 100 s", by="id"), store=MemoryStore(clock=clock))
    assert limiter.hit(id="k", up_to=10**12).granted == 10


def test_the_tightest_limit_decides_for_all(clock: ManualClock) -> None:
    """All limits are charged the same number; a fixed cost stays what it is, and a shadow limit cuts nothing."""
    limits = (
        Limit("wide", "100 per hour", by="id"),
        Limit("tight", "4 per hour", by="id"),
        Limit("fixed", "10 per hour", by="id", cost=5),
        Limit("trial", "1 per hour", by="id", shadow=True),
    )
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    decision = limiter.hit(id="k", up_to=50)
    assert decision.costs == {"wide": 4, "tight": 4, "fixed": 5, "trial": 4}
    assert decision.granted == 4
    assert decision.shadowed == ("trial",)
    limiter.reset("tight", id="k")
    assert limiter.hit(id="k", up_to=50).granted == 4
    limiter.reset("tight", id="k")
    refused = limiter.hit(id="k", up_to=50)
    assert refused.limit == "fixed", "a fixed cost that does not fit refuses, whatever fits the others"


def test_a_partial_grant_is_refunded_for_what_was_granted(clock: ManualClock) -> None:
    """Not for what was asked."""
    limiter = Limiter(Limit("l", "10 per 100 s", by="id"), store=MemoryStore(clock=clock))
    limiter.hit(id="k", cost=6)
    decision = limiter.hit(id="k", up_to=9)
    assert decision.granted == 4
    assert limiter.refund(decision)
    assert limiter.peek(id="k", cost=0).remaining == 4


def test_a_blocked_limit_grants_nothing(clock: ManualClock) -> None:
    """Zero per day is never, however little is asked for."""
    assert Limiter(Limit("ban", "0/day")).hit(up_to=5).blocked


def test_the_twin_does_the_same(clock: ManualClock) -> None:
    """With ``await``."""
    limiter = AsyncLimiter(Limit("l", "10 per 100 s", by="id"), store=MemoryStore(clock=clock))
    assert asyncio.run(limiter.hit(id="k", up_to=70)).granted == 10


@pytest.mark.parametrize(
    ("up_to", "error"), [(0, LimitError), (-1, LimitError), (True, TypeError), (1.5, TypeError), ("3", TypeError)]
)
def test_a_number_that_is_none_is_an_error(up_to: Any, error: type[Exception]) -> None:
    """The message names it and what is accepted."""
    with pytest.raises(error, match=r"up_to is .*; expected a whole number from 1"):
        Limiter(Limit("l", "10 per 100 s")).hit(up_to=up_to)


@pytest.mark.parametrize("cost", [2, 0, {"l": 3}])
def test_a_cost_beside_it_is_not_silently_left_out(cost: Any) -> None:
    """One or the other says what is asked for; nothing is charged."""
    limiter = Limiter(Limit("l", "10 per 100 s"))
    with pytest.raises(TypeError, match=r"cost is .* and up_to is 5; expected one of them"):
        limiter.hit(up_to=5, cost=cost)
    assert limiter.peek(cost=0).remaining == 10
