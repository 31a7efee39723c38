"""What shadow limits would have refused is counted alike, whichever way a decision on Redis takes."""

from __future__ import annotations

import asyncio

import pytest

from headway import AsyncLimiter, Limit, Limiter
from servers import Server


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "sliding-log"])
def test_shadow_limits_are_counted_on_redis(redis: Server, algorithm: str) -> None:
    """Five hits of one key and one of another: alone in shadow all pass, beside an enforced limit that limit decides."""
    trial = Limit("trial", "2 per hour", by="id", shadow=True, algorithm=algorithm)
    for namespace, limits, passed, newly in (
        ("alone", [trial], 6, 3),
        ("beside", [trial, Limit("real", "3 per hour", by="id")], 4, 1),
    ):
        with Limiter(*limits, store=redis.url, namespace=namespace) as limiter:
            decisions = [limiter.hit(id=key) for key in "aaaaab"]
            count = limiter.shadow_report().of("trial")
        assert sum(decision.allowed for decision in decisions) == passed
        assert (count.requests, count.would_refuse, count.newly_refused) == (6, 3, newly)
        assert (count.callers, count.callers_refused) == (2, 1)


def test_hits_that_travel_together_are_each_counted(redis: Server) -> None:
    """Concurrent hits on an event loop, which are sent as one batch, count as many."""

    async def main() -> tuple[int, int]:
        limits = Limit("trial", "2 per hour", by="id", shadow=True), Limit("real", "30 per hour", by="id")
        async with AsyncLimiter(*limits, store=redis.url) as limiter:
            await asyncio.gather(*(limiter.hit(id="a") for _ in range(20)))
            count = limiter.shadow_report().of("trial")
        return count.requests, count.would_refuse

    assert asyncio.run(main()) == (20, 18)
