"""Limits that depend on the request, through both limiters: who is limited by what, and what it costs whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway import (
    AllowList,
    AsyncLimiter,
    AttributeMissing,
    AttributeUnexpected,
    BanList,
    Decision,
    Limit,
    Limiter,
    LimitError,
    MemoryStore,
    Overridden,
    ProvidedLimit,
    StoreUnavailable,
    TieredLimit,
    UnknownName,
    When,
)
from headway.policy.choice import Choice
from headway.stores.sqlite import SqliteStore
from headway.testing.clock import ManualClock

Ask = Callable[..., Decision]
Open = Callable[..., Ask]


@pytest.fixture(params=["memory", "sqlite", "async memory", "async sqlite"])
def opened(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> Iterator[Open]:
    """Makes ``ask(**attributes)`` of limits, on each store and through each limiter."""
    store: Any = MemoryStore(clock=clock) if "memory" in request.param else SqliteStore(tmp_path / "l.db", clock=clock)
    with asyncio.Runner() as runner:

        def make(*limits: Limit | Choice, **options: Any) -> Ask:
            if "async" not in request.param:
                limiter = Limiter(*limits, store=store, **options)
                return lambda method="hit", /, **given: getattr(limiter, method)(**given)
            twin = AsyncLimiter(*limits, store=store, **options)
            return lambda method="hit", /, **given: runner.run(getattr(twin, method)(**given))

        yield make
    store.close()


def test_a_key_keeps_its_state_when_its_tier_changes(opened: Open) -> None:
    """An upgrade takes what is in use along; nobody starts afresh by changing tiers."""
    ask = opened(TieredLimit("api", {"free": "2/min", "pro": "10/min"}, by="account", tier="plan"))
    assert [ask(account="a", plan="free").allowed for _ in range(3)] == [True, True, False]
    upgraded = ask(account="a", plan="pro")
    assert (upgraded.allowed, upgraded.retry_after) == (False, 6.0)  # all 60 s are owed; one unit of 10/min is 6 s
    assert ask("peek", account="b", plan="pro").remaining == 9


def test_each_tier_is_enforced_by_its_own_quota(opened: Open) -> None:
    """What a refusal and the fields say is the tier's."""
    ask = opened(TieredLimit("api", {"free": "2/min", "pro": "10/min", "vip": "unlimited"}, by="account", tier="plan"))
    for plan, admitted in (("free", 2), ("pro", 10)):
        decisions = [ask(account=plan, plan=plan) for _ in range(admitted + 1)]
        assert [decision.allowed for decision in decisions] == [True] * admitted + [False]
        assert f'"api";q={admitted};w=60' in decisions[-1].headers()["RateLimit-Policy"]
    unlimited = [ask(account="v", plan="vip") for _ in range(20)]
    assert all(decision.allowed and decision.limit is None for decision in unlimited)


def test_a_refused_tier_is_blocked(opened: Open) -> None:
    """An unknown tier that is refused is told that no wait helps, and charges nothing else."""
    ask = opened(
        TieredLimit("api", {"free": "2/min"}, by="account", tier="plan", unknown="refuse"), Limit("all", "1 per day")
    )
    decision = ask(account="a", plan="gold")
    assert (decision.allowed, decision.never, decision.blocked, decision.limit) == (False, True, True, "api")
    assert ask(account="a", plan="free").allowed


def test_a_request_that_a_choice_cannot_judge_is_an_error(opened: Open) -> None:
    """It is never silently unlimited, and charges nothing."""
    ask = opened(Limit("all", "1 per day"), TieredLimit("api", {"free": "2/min"}, by="account", tier="plan"))
    with pytest.raises(AttributeMissing, match="'plan'"):
        ask(account="a")
    with pytest.raises(AttributeUnexpected, match="'gold'"):
        ask(account="a", plan="gold")
    assert ask(account="a", plan="free").allowed


def test_overrides_change_one_key(opened: Open) -> None:
    """The key's own quota counts, everybody else keeps the limit's."""
    ask = opened(
        Overridden(Limit("api", "1/min", by="account"), {"acme": "3/min", "eve": "block", "root": "unlimited"})
    )
    admitted = {name: sum(ask(account=name).allowed for _ in range(5)) for name in ("acme", "eve", "root", "x")}
    assert admitted == {"acme": 3, "eve": 0, "root": 5, "x": 1}
    assert ask(account="eve").blocked


def test_a_limit_applies_where_its_conditions_are_met(opened: Open) -> None:
    """Elsewhere it is not asked, not charged and not shown, and its key need not be there."""
    ask = opened(Limit("all", "10/min"), When({"method": ["POST", "PUT"]}, Limit("writes", "1/min", by="account")))
    assert list(ask(method="GET").outcomes) == ["all"]
    assert ask(method="POST", account="a").allowed
    assert [ask(method=method, account="a").allowed for method in ("PUT", "GET")] == [False, True]
    with pytest.raises(AttributeMissing, match="'method'"):
        ask(account="a")


def test_a_policy_of_which_nothing_applies_admits(opened: Open) -> None:
    """No limit, no refusal, no fields."""
    decision = opened(When({"method": "POST"}, Limit("writes", "1/min")))(method="GET")
    assert (decision.allowed, decision.limit, decision.headers(), decision.outcomes) == (True, None, {}, {})


def test_a_ban_blocks_and_charges_nothing(opened: Open) -> None:
    """403, no Retry-After, the list's name, and all other limits as they were."""
    ask = opened(
        Limit("all", "1 per day"),
        BanList("banned", {"ip": "203.0.113.0/24"}, {"ip": "*", "account": "eve"}, text="Go."),
    )
    for banned in ({"ip": "203.0.113.9", "account": "a"}, {"ip": "192.0.2.1", "account": "eve"}):
        decision = ask(**banned)
        assert (decision.blocked, decision.limit, decision.retry_after_ns) == (True, "banned", None)
        assert decision.problem()["status"] == 403
        assert "Retry-After" not in decision.headers()
        assert decision.sentence() == "Go."
    assert ask(ip="192.0.2.1", account="a").allowed


def test_who_is_on_the_allow_list_is_not_limited(opened: Open) -> None:
    """Neither counted nor banned; a request that lacks the list's attributes is limited like any other."""
    ask = opened(
        BanList("banned", {"ip": "10.9.0.0/16"}),
        Limit("all", "1 per day"),
        exempt=AllowList({"ip": "10.0.0.0/8"}, {"account": "internal"}),
    )
    assert all(ask(ip="10.9.0.1").allowed for _ in range(3))
    assert all(ask(ip="192.0.2.1", account="internal").allowed for _ in range(3))
    assert [ask(ip="192.0.2.1").allowed for _ in range(2)] == [True, False]


def test_shadow_choices_refuse_nobody(opened: Open) -> None:
    """They say who would have been refused, are never shown, and charge no enforced limit."""
    ask = opened(
        Limit("all", "3/min"),
        BanList("banned", {"account": "eve"}, shadow=True),
        TieredLimit("api", {"free": "1/min"}, by="account", tier="plan", shadow=True),
    )
    decisions = [ask(account="eve", plan="free") for _ in range(4)]
    assert [decision.allowed for decision in decisions] == [True, True, True, False]
    assert [decision.shadowed for decision in decisions] == [("banned",), *[("banned", "api")] * 3]
    refused = decisions[-1]
    assert refused.limit == "all"
    assert refused.problem()["violated-policies"] == ["all"]
    assert not any("api" in value or "banned" in value for value in refused.headers().values())


def test_choices_nest(opened: Open) -> None:
    """Conditions around overrides around tiers or a provider: the first that has something to say decides."""
    tiers = TieredLimit("api", {"free": "1/min", "pro": "3/min"}, by="account", tier="plan")
    provided = ProvidedLimit("own", lambda _: "2/min", by="account", default="1/min")
    ask = opened(
        When({"kind": "api"}, Overridden(tiers, {"acme": "4/min"})),
        When({"kind": "own"}, Overridden(provided, {"acme": "5/min"})),
    )
    admitted = {
        (kind, account): sum(ask(kind=kind, account=account, plan="pro").allowed for _ in range(7))
        for kind in ("api", "own", "other")
        for account in ("acme", "b")
    }
    assert list(admitted.values()) == [4, 3, 5, 2, 7, 7]
    assert provided.calls == 1


def test_costs_by_name_of_limits_that_do_not_apply(opened: Open) -> None:
    """A caller need not know which limits apply; a name that is none, or a cost that is none, is still an error."""
    ask = opened(Limit("all", "9/min"), When({"method": "POST"}, Limit("writes", "9/min")))
    assert ask(method="GET", cost={"writes": 5, "all": 2}).costs == {"all": 2}
    assert ask(method="POST", cost={"writes": 5}).costs == {"all": 1, "writes": 5}
    with pytest.raises(UnknownName, match="known: all, writes"):
        ask(method="GET", cost={"write": 5})
    with pytest.raises(LimitError):
        ask(method="GET", cost={"writes": -1})


class Away(MemoryStore):
    """A store that cannot be reached."""

    def advance(self, charges: Any, *, commit: bool = True) -> Any:
        raise StoreUnavailable("gone")

    def lane(self, namespace: str, limits: Any) -> Any:
        """No short way: it would not ask."""


def test_a_ban_holds_while_the_store_is_away() -> None:
    """What admits nothing needs no store to say so: 403, not the 503 of a limit that could not be asked."""
    limits = (BanList("banned", {"account": "eve"}), Limit("all", "1/s", on_store_failure="allow"))
    for limiter in (Limiter(*limits, store=Away()), Limiter(*limits, Limit("paid", "1/s"), store=Away())):
        decision = limiter.hit(account="eve")
        assert (decision.allowed, decision.blocked, decision.limit) == (False, True, "banned")
        assert decision.problem()["status"] == 403
    assert Limiter(*limits, store=Away()).hit(account="a").allowed
    shadow = Limiter(BanList("banned", {"account": "eve"}, shadow=True), limits[1], store=Away()).hit(account="eve")
    assert (shadow.allowed, shadow.shadowed) == (True, ("banned",))


def test_keys_of_several_quotas_are_remembered_as_long_as_each_needs(clock: ManualClock) -> None:
    """A bounded memory store does not forget a slow tier's key because a fast tier would have recovered."""
    limit = TieredLimit("log", {"fast": "5/s", "slow": "1/hour"}, by="k", tier="plan", algorithm="sliding-log")
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    assert limiter.hit(k="slow", plan="slow").allowed
    clock.advance(10)
    for key in range(100):
        assert limiter.hit(k=key, plan="fast").allowed
        clock.advance(1)
    assert not limiter.hit(k="slow", plan="slow").allowed


def test_the_rest_of_a_limiter_knows_choices(clock: ManualClock) -> None:
    """Reset forgets a key whatever its tier; explain shows the request's own quota; changing quotas is refused."""
    limiter = Limiter(
        TieredLimit("api", {"free": "1/min", "pro": "5/min"}, by="account", tier="plan"),
        BanList("banned", {"account": "eve"}),
        store=MemoryStore(clock=clock),
        exempt=AllowList({"account": "root"}),
    )
    assert limiter.attributes == ("account", "plan")
    assert limiter.hit(account="a", plan="free").allowed
    assert limiter.reset(account="a") == ("api",)
    assert limiter.hit(account="a", plan="free").allowed
    assert "api (5/minute, gcra) for account='b'" in str(limiter.explain(account="b", plan="pro"))
    exempted = limiter.explain(account="root", plan="pro")
    assert exempted.exempt
    assert [limit.limit for limit in exempted.limits] == ["api"]
    with pytest.raises(LimitError, match="depends on the request"):
        limiter.change_quota("api", "9/min")
    with pytest.raises(LimitError, match="two limits are named 'api'"):
        Limiter(Limit("api", "1/s"), When({"a": 1}, Limit("api", "2/s")))


def test_a_decorated_function_gives_what_choices_look_at(clock: ManualClock) -> None:
    """Parameters named like a tier, a condition's attribute or an exempt one are passed on by themselves."""
    limiter = Limiter(
        TieredLimit("api", {"free": "1/min", "pro": "2/min"}, by="account", tier="plan"),
        store=MemoryStore(clock=clock),
        exempt=AllowList({"ip": "10.0.0.0/8"}),
    )

    @limiter.limited
    def work(account: str, plan: str, ip: str = "192.0.2.1") -> str:
        return f"{account} {plan} {ip}"

    assert work("a", "pro") == "a pro 192.0.2.1"
    assert all(work("b", "free", "10.0.0.1") for _ in range(3))


def test_waiting_callers_of_different_limits_stand_in_different_lines(clock: ManualClock) -> None:
    """Who waits for one limit does not wait behind another's who has the same key."""
    limiter = Limiter(
        When({"kind": "a"}, Limit("a", "1/s", by="k")),
        When({"kind": "b"}, Limit("b", "1/hour", by="k")),
        store=MemoryStore(clock=clock),
    )
    assert limiter.hit(kind="b", k="x").allowed
    waiting = threading.Event()

    class Stand:
        """A timer whose waiting callers stand still."""

        ticks = staticmethod(lambda: clock.now)

        def pause(self, event: threading.Event, ns: int) -> None:
            waiting.set()
            event.wait(20)

        turn = pause

    limiter._timer = Stand()  # type: ignore[assignment]  # all that this test needs of one
    behind = threading.Thread(target=lambda: limiter.wait(kind="b", k="x"), daemon=True)
    behind.start()
    assert waiting.wait(20)
    assert limiter.wait(kind="a", k="x", deadline=0).allowed
    clock.advance(3600)
    limiter._lines.look_again()
    behind.join(20)
    assert not behind.is_alive()


def test_choices_under_threads_admit_one_budget() -> None:
    """However many threads ask, each key gets exactly its own quota."""
    limiter = Limiter(
        Overridden(TieredLimit("api", {"free": "5/day", "pro": "9/day"}, by="account", tier="plan"), {"acme": "13/day"})
    )
    admitted: list[str] = []

    def spend() -> None:
        for _ in range(20):
            admitted.extend(
                account
                for account in ("acme", "free", "pro")
                if limiter.hit(account=account, plan=account.replace("acme", "x"))
            )

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {account: admitted.count(account) for account in set(admitted)} == {"acme": 13, "free": 5, "pro": 9}
