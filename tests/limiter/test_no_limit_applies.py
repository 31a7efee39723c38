"""A request that no limit applies to: an unlimited tier, a condition that is not met, a limiter without limits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headway import AsyncLimiter, Limit, Limiter, Overridden, TieredLimit, When
from headway.errors import StoreUnavailable
from headway.policy.choice import Choice

AWAY = {
    "redis": "redis://127.0.0.1:1",
    "cluster": "redis+cluster://127.0.0.1:1",
    "sentinel": "redis+sentinel://127.0.0.1:1/main",
    "postgres": "postgresql://u@127.0.0.1:1/db",
}
FREE: dict[str, list[Limit | Choice]] = {
    "tier": [TieredLimit("api", {"free": "1/min", "partner": "unlimited"}, tier="plan", by="id")],
    "override": [Overridden(Limit("api", "1/min", by="id"), {"x": "unlimited"})],
    "condition": [
        When({"plan": "free"}, Limit("api", "1/min", by="id")),
        When({"plan": "free"}, Limit("all", "1/min")),
    ],
    "at once": [When({"plan": "free"}, Limit("api", "1 at once for 10 s", by="id"))],
    "none": [],
}


@pytest.mark.parametrize("limits", FREE.values(), ids=FREE)
@pytest.mark.parametrize("url", AWAY.values(), ids=AWAY)
def test_a_store_that_is_away_is_not_asked(url: str, limits: list[Limit | Choice]) -> None:
    """Nothing has to be counted, so every call is admitted as if no store were needed, and none is degraded."""
    with Limiter(*limits, store=url) as limiter:
        asked = {"id": "x", "plan": "partner"}
        held = limiter.reserve(asked)
        decisions = [
            limiter.hit(asked),
            limiter.hit(asked, cost=5),
            limiter.hit(asked, cost=0),
            limiter.hit(asked, up_to=5),
            limiter.peek(asked),
            limiter.wait(asked, deadline=0),
            held.decision,
        ]
        assert [(made.allowed, made.degraded, made.limit) for made in decisions] == [(True, None, None)] * 7
        assert not limiter.refund(decisions[0])
        held.commit(3)
        assert limiter.explain(asked).decision.allowed


@pytest.mark.parametrize("limits", FREE.values(), ids=FREE)
@pytest.mark.parametrize("url", AWAY.values(), ids=AWAY)
def test_a_store_that_is_away_is_not_awaited(url: str, limits: list[Limit | Choice]) -> None:
    """The same in an event loop."""

    async def main() -> list[tuple[bool, str | None, str | None]]:
        async with AsyncLimiter(*limits, store=url) as limiter:
            asked = {"id": "x", "plan": "partner"}
            held = await limiter.reserve(asked)
            decisions = [
                await limiter.hit(asked),
                await limiter.hit(asked, cost=0),
                await limiter.hit(asked, up_to=5),
                await limiter.peek(asked),
                await limiter.wait(asked, deadline=0),
                held.decision,
            ]
            assert not await limiter.refund(decisions[0])
            await held.commit(3)
            assert (await limiter.explain(asked)).decision.allowed
            return [(made.allowed, made.degraded, made.limit) for made in decisions]

    assert asyncio.run(main()) == [(True, None, None)] * 6


def test_those_whom_a_limit_applies_to_still_need_the_store(tmp_path: Path) -> None:
    """The same limiter refuses them while the store is away, and counts them where it is not."""
    limit = TieredLimit("api", {"free": "1/min", "partner": "unlimited"}, tier="plan", by="id")
    with Limiter(limit, store=AWAY["redis"]) as away:
        assert away.hit(id="x", plan="partner").degraded is None
        assert away.hit(id="x", plan="free").degraded
        with pytest.raises(StoreUnavailable):
            away.reset(id="x", plan="free")
    for store in ("memory://", f"sqlite:///{tmp_path}/limits.db"):
        with Limiter(limit, store=store) as there:
            plans = ("partner", "free", "partner", "free")
            assert [there.hit(id="x", plan=plan).allowed for plan in plans] == [True, True, True, False]
