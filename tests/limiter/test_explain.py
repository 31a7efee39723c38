"""``explain``: for a key, each limit, its state in words, what it would answer, why and when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from headway import AsyncLimiter, BanList, Limit, Limiter, MemoryStore, StoreUnavailable, TieredLimit, When
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import SECOND
from headway.testing.clock import ManualClock

LIMITS = (
    Limit("per-phone", "5 per day", by="phone", secret=True),
    Limit("per-ip", "2 per 60 s", by=["ip", "port"]),
    Limit("everyone", "1000 per day"),
)
CALL = {"phone": "+447700900123", "ip": "192.0.2.1", "port": 443}


def limiter(clock: ManualClock, *limits: Limit) -> Limiter:
    return Limiter(*(limits or LIMITS), store=MemoryStore(clock=clock))


def test_an_unused_key_is_said_to_be_unused(clock: ManualClock) -> None:
    """Each limit: how many of how many are left, and that it admits."""
    explanation = limiter(clock).explain(CALL)
    assert explanation.decision.allowed
    assert [row.limit for row in explanation.limits] == ["per-phone", "per-ip", "everyone"]
    phone, ip, everyone = explanation.limits
    assert phone.key == "phone=(secret)", "a secret value is not shown, nor its hash"
    assert ip.key == "ip='192.0.2.1', port='443'"
    assert everyone.key == "everyone"
    assert phone.state == "unused, 5 of 5 left"
    assert phone.answer == "admits 1 unit, leaving 4"
    assert phone.outcome == Admitted(4, phone.outcome.replenish_after, phone.outcome.reset_after)  # type: ignore[union-attr]  # it is admitted
    assert phone.ready_at == datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert (phone.quota, phone.algorithm) == ("5/day", "gcra")


def test_a_refusal_says_why_and_until_when(clock: ManualClock) -> None:
    """The wait in words and the instant; siblings that would admit say so."""
    codes = limiter(clock)
    codes.hit(CALL)
    codes.hit(CALL)
    explanation = codes.explain(CALL)
    _, ip, _ = explanation.limits
    assert ip.state == "0 of 2 left, as if unused in 0:01:00 (at 2027-01-15T08:01:00.000Z)"
    assert ip.answer == "refuses 1 unit: wait 30 s (until 2027-01-15T08:00:30.000Z)"
    assert ip.ready_at == datetime(2027, 1, 15, 8, 0, 30, tzinfo=UTC)
    assert isinstance(ip.outcome, Refused)
    assert str(explanation).splitlines()[0].startswith("would be refused by per-ip: ")
    assert str(explanation).splitlines()[2].strip() == str(ip)


def test_a_sibling_of_the_limit_that_refuses_does_not_say_what_it_would_leave(clock: ManualClock) -> None:
    """Nothing is charged, so there is nothing to count down: it would admit, and stands as it is."""
    codes = limiter(clock, Limit("one", "1 per hour"), Limit("ten", "10 per hour"), Limit("try", "5/s", shadow=True))
    codes.hit()
    _, ten, trial = codes.explain(cost=1).limits
    assert (ten.state.split(",")[0], ten.answer) == ("9 of 10 left", "would admit 1 unit")
    assert trial.answer == "would admit 1 unit"


def test_limits_that_do_not_apply_say_on_what_they_depend(clock: ManualClock) -> None:
    """An unlimited tier, a condition that is not met, a ban that means somebody else: named, with the reason."""
    api = Limiter(
        BanList("banned", {"account": "eve"}),
        TieredLimit("api", {"free": "60/min", "staff": "unlimited"}, by="account", tier="plan"),
        When({"method": "POST"}, Limit("writes", "10/min", by="account")),
        store=MemoryStore(clock=clock),
    )
    explanation = api.explain(account="ada", plan="staff", method="GET")
    assert list(explanation.others) == ["banned", "api", "writes"]
    assert str(explanation).splitlines() == [
        "would be admitted",
        "  banned does not apply to this request: blocks 1 entry by account",
        "  api does not apply to this request: free 60/minute, staff unlimited by plan (unknown: error, missing: error)",
        "  writes does not apply to this request: when method is POST",
    ]
    assert not api.explain(account="eve", plan="free", method="POST").others


def test_nothing_is_written(clock: ManualClock) -> None:
    """Explaining any cost leaves every key as it was."""
    codes = limiter(clock)
    for cost in (0, 1, 2, 3, 1001):
        codes.explain(CALL, cost=cost)
    assert codes.peek(CALL, cost=0).outcomes["per-ip"].reset_after == 0


@pytest.mark.parametrize(
    ("limit", "cost", "state", "answer"),
    [
        (Limit("l", "2 per 60 s"), 3, "unused, 2 of 2 left", "never admits 3 units: at most 2 fit at once"),
        (Limit("l", "0 per day"), 1, "everything is blocked", "never admits 1 unit: it blocks everything"),
        (Limit("l", "2 per 60 s"), 0, "unused, 2 of 2 left", "admits 0 units, leaving 2"),
        (Limit("l", "3 at once for 60 s"), 1, "unused, 3 of 3 left", "admits 1 unit, leaving 2"),
    ],
)
def test_every_kind_of_answer_has_words(clock: ManualClock, limit: Limit, cost: int, state: str, answer: str) -> None:
    """Never, blocked and looking too."""
    (row,) = limiter(clock, limit).explain(cost=cost).limits
    assert (row.state, row.answer) == (state, answer)
    assert (row.ready_at is None) is isinstance(row.outcome, Never)


def test_bounds_delays_and_shadows_are_said_to_be_such(clock: ManualClock) -> None:
    """A lease says "at most", a queue "after a delay", a shadow "not enforced": each is said to be what it is."""
    slots = limiter(clock, Limit("slots", "1 at once for 60 s"))
    slots.hit()
    assert slots.explain().limits[0].answer.startswith("refuses 1 unit: wait at most 0:01:00 (until ")
    queue = limiter(clock, Limit("queue", "120/min burst 5", algorithm="leaky-bucket-queue"))
    queue.hit()
    assert queue.explain().limits[0].answer == "admits 1 unit after a delay of 500 ms"
    trial = limiter(clock, Limit("trial", "1 per day", shadow=True), Limit("real", "5 per day"))
    trial.hit()
    explanation = trial.explain()
    assert explanation.decision.allowed
    assert explanation.limits[0].shadow
    assert "trial (1/day, gcra) for everyone [shadow: not enforced]: 0 of 1 left" in str(explanation)
    assert str(explanation).startswith("would be admitted, 3 left by real")


def test_an_exempt_request_is_said_to_pass(clock: ManualClock) -> None:
    """Its limits are explained all the same."""
    staff = Limiter(
        Limit("l", "1 per day", by="id"), store=MemoryStore(clock=clock), exempt=lambda call: call["id"] == "root"
    )
    explanation = staff.explain(id="root")
    assert explanation.exempt
    assert str(explanation).startswith(
        "exempt: passes unlimited and uncounted\n  l (1/day, gcra) for id='root': unused"
    )
    assert not staff.explain(id="else").exempt


class Away(MemoryStore):
    def advance(self, charges: object, *, commit: bool = True) -> object:  # type: ignore[override]  # it only raises
        raise StoreUnavailable("pulled the plug")


@pytest.mark.parametrize(("mode", "passed"), [("deny", "refused"), ("allow", "let through")])
def test_a_store_that_is_away_is_said_so(mode: str, passed: str) -> None:
    """What would happen to the request, and which choice decides it."""
    away = Limiter(Limit("l", "1 per day", on_store_failure=mode), store=Away())
    explanation = away.explain()
    assert str(explanation).startswith(f"the store cannot say (pulled the plug); the request would be {passed}")
    (row,) = explanation.limits
    assert (row.state, row.answer, row.outcome, row.ready_at) == (
        "state unknown",
        f"on_store_failure = {mode} decides",
        None,
        None,
    )


def test_durations_are_rounded_up(clock: ManualClock) -> None:
    """An operator who waits what is said is never early: ms below a second, tenths below a minute, seconds above."""
    for quota, said in (
        ("1 per 1.5 ms", "2 ms"),
        ("1 per 2.34 s", "2.4 s"),
        ("1 per 61.2 s", "0:01:02"),
        ("1 per 2 days", "2 days, 0:00:00"),
    ):
        one = limiter(clock, Limit("l", quota))
        one.hit()
        assert f"wait {said} " in one.explain().limits[0].answer


def test_the_twin_does_the_same(clock: ManualClock) -> None:
    """With ``await``."""
    twin = AsyncLimiter(*LIMITS, store=MemoryStore(clock=clock))
    explanation = asyncio.run(twin.explain(CALL, cost=2))
    assert [row.answer for row in explanation.limits] == [
        "admits 2 units, leaving 3",
        "admits 2 units, leaving 0",
        "admits 2 units, leaving 998",
    ]
    assert explanation.limits[1].outcome == Admitted(0, 30 * SECOND, 60 * SECOND)
