"""How a user writes it, for type checkers: never run. Each ``assert_type`` is a promise about what an editor shows."""

# what each function shows is its name

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, assert_type
from uuid import UUID

from headway import (
    Admitted,
    AllowList,
    AsyncLimiter,
    BanList,
    Decision,
    Limit,
    Limiter,
    MemoryStore,
    Never,
    Outcome,
    Overridden,
    ProvidedLimit,
    Quota,
    RateLimited,
    Refused,
    ShadowCount,
    ShadowReport,
    TieredLimit,
    When,
    open_async_limiter,
    open_limiter,
    open_store,
)
from headway.stores.base import AsyncStore, Store
from headway.testing import ManualClock, StoreConformance, blocking

quota = Quota.parse("100/s burst 20")
assert_type(quota, Quota)
assert_type(quota.count, int)
assert_type(quota.most_in(1), int)
assert_type(Quota.parse_many("1/s; 2/min"), tuple[Quota, ...])

limits = [
    Limit("resend", "1 per 60s", by="phone"),
    Limit("per-phone", Quota.parse("5 per day"), by=["phone", "country"], algorithm="sliding-log"),
    Limit("secret", "5/min", by="account", secret=True, on_store_failure="allow"),
    Limit("all", "1000 per day", cost=3),
]
codes = Limiter(*limits, store="sqlite:///limits.db", namespace="codes", secret_key=b"0123456789abcdef")
later = AsyncLimiter(*limits, store=MemoryStore(max_keys=10, clock=ManualClock()))
assert_type(open_store("memory://"), Store)
assert_type(open_limiter("limits.toml", "codes", store="memory://"), Limiter)
assert_type(open_async_limiter("limits.toml"), AsyncLimiter)


def decisions() -> None:
    decision = codes.hit(phone="+49", country="DE", account=UUID(int=1), cost=2)
    assert_type(decision, Decision)
    assert_type(decision.allowed, bool)
    assert_type(decision.limit, str | None)
    assert_type(decision.retry_after, float)
    assert_type(decision.retry_after_ns, int | None)
    assert_type(decision.retry_at, datetime | None)
    assert_type(decision.never, bool)
    assert_type(decision.remaining, int | None)
    assert_type(decision.degraded, str | None)
    assert_type(decision.outcomes, Mapping[str, Outcome])
    assert_type(decision.sentence(), str)
    assert_type(codes.peek({"phone": "+49", "country": "DE"}, account=42), Decision)
    assert_type(codes.reset("all", phone="+49"), tuple[str, ...])
    codes.hit({"phone": "+49"}, cost={"resend": 2})


def outcomes(outcome: Outcome) -> int:
    match outcome:
        case Admitted(remaining=left):
            return left
        case Refused(retry_after=wait):
            return wait
        case Never(burst=burst):
            return burst


async def awaited() -> None:
    assert_type(await later.hit(phone="+49"), Decision)
    assert_type(await later.peek(phone="+49", cost=0), Decision)
    assert_type(await later.reset(phone="+49"), tuple[str, ...])
    async with later.admitted(phone="+49") as decision:
        assert_type(decision, Decision)
    async with AsyncLimiter(*limits) as limiter:
        assert_type(limiter, AsyncLimiter)


@codes.limited
def send(phone: str, *, text: str = "") -> int:
    return len(phone + text)


@codes.limited(account="user", cost=lambda call: len(call["text"]))
def charge(user: int, text: str) -> list[str]:
    return [text] * user


@later.limited
async def send_later(phone: str) -> int:
    return len(phone)


@later.limited(account=lambda call: call["user"])
async def charge_later(user: int, *texts: str) -> dict[str, int]:
    return dict.fromkeys(texts, user)


def signatures_are_kept() -> None:
    assert_type(send("+49", text="x"), int)
    assert_type(charge(1, "x"), list[str])
    calls = [
        assert_type(send_later("+49"), Coroutine[Any, Any, int]),
        assert_type(charge_later(1, "a", "b"), Coroutine[Any, Any, dict[str, int]]),
        send_later(phone=49),  # type: ignore[arg-type]  # an async function's too
    ]
    print(len(calls))
    send(49)  # type: ignore[arg-type]  # the parameters' types are checked
    charge(1)  # type: ignore[call-arg]  # and their number


def refusals() -> float:
    try:
        with codes.admitted(phone="+49", cost=3) as decision:
            assert_type(decision, Decision)
        send("+49")
    except RateLimited as refused:
        assert_type(refused.decision, Decision)
        return refused.decision.retry_after
    return 0.0


def mistakes() -> None:
    codes.hit(phone="+49", cost="3")  # type: ignore[arg-type]
    codes.hit(phone="+49", cost=1.5)  # type: ignore[arg-type]
    quota.count = 5  # type: ignore[misc]
    Limiter("5/min")  # type: ignore[arg-type]
    Limit("l", 5)  # type: ignore[arg-type]
    codes.reset(5)  # type: ignore[arg-type]


class Suite(StoreConformance):
    """An author's conformance suite."""

    grid_ns = 1000
    shared = False

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        """A store."""
        return MemoryStore(clock=clock)


async def quota_of(request: Mapping[str, object]) -> str | None:
    return {"acme": "1000/min"}.get(str(request["account"]))


async def choices() -> None:
    tiers = TieredLimit("api", {"free": "60/min", "pro": quota}, by="account", tier="plan", unknown="free", shadow=True)
    own = ProvidedLimit("own", quota_of, by="account", default="60/min", cache_seconds=5)
    limiter = AsyncLimiter(
        BanList("banned", {"ip": ["203.0.113.0/24"]}, {"account": "eve"}),
        Overridden(tiers, {"acme": "1000/min", 42: "block"}),
        When({"method": ["POST", "PUT"], "size": {"at_least": 10, "missing": True}}, own),
        When([{"plan": "free"}, {"trial": True}], Limit("free", "5/day")),
        exempt=AllowList({"ip": "10.0.0.0/8"}),
    )
    decision = await limiter.hit(ip="192.0.2.1", account=42, method="POST", plan="free", trial=False)
    assert_type(decision.shadowed, tuple[str, ...])
    report = limiter.shadow_report()
    assert_type(report, ShadowReport)
    assert_type(report.of("api", tier="free"), ShadowCount)
    assert_type(report.of("api").callers_share, float | None)
    own.forget(account=42)
    assert_type(own.failures, int)


def stores(asynchronous: AsyncStore, clock: ManualClock) -> None:
    assert_type(blocking(asynchronous), Store)
    assert_type(clock(), int)
    assert_type(clock.advance(1.5), int)
    store: Store = MemoryStore(clock=clock)
    AsyncLimiter(*limits, store=store)
    AsyncLimiter(*limits, store=asynchronous)
    Limiter(*limits, store=asynchronous)  # type: ignore[arg-type]  # a Limiter cannot wait for it
