"""What an account may use: a day's quota from the database, and a pace that its plan's name decides."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool

from examples.tiers.accounts import Accounts
from headway import AsyncLimiter, ProvidedLimit, TieredLimit
from headway.stores.base import AsyncStore

ANONYMOUS = "anonymous"
"""The plan of whoever has no valid key: counted by address."""

PLANS = {"free": "10 per day in UTC", "pro": "1000 per day in UTC", "partner": "unlimited", "suspended": "block"}
"""What a new database begins with."""


def daily_quota(accounts: Accounts) -> ProvidedLimit:
    """The day's quota: the account's own, or its plan's; remembered for ten seconds, or until ``forget``."""

    async def quota_of(request: Mapping[str, object]) -> str | None:
        account = request["account"]
        return await run_in_threadpool(accounts.quota_of, account) if isinstance(account, int) else None

    return ProvidedLimit("daily", quota_of, by="account", default="5 per day in UTC", cache_seconds=10)


def usage(daily: ProvidedLimit, store: AsyncStore | str) -> AsyncLimiter:
    """Both limits, all or nothing."""
    pace = TieredLimit(
        "pace",
        {"free": "5 per second", "pro": "50 per second", "partner": "500 per second", ANONYMOUS: "1 per second"},
        by="account",
        tier="plan",
        unknown="free",
    )
    return AsyncLimiter(daily, pace, store=store, namespace="tiers")
