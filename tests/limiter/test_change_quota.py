"""``change_quota``: as is, proportional, or reset, while limiters run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import AsyncLimiter, Limit, Limiter, LimitError, MemoryStore, Quota, QuotaError, UnknownName
from headway.core.limit import Algorithm, requoted
from headway.core.quota import HOUR, SECOND
from headway.testing.clock import ManualClock
from ways import STORES

COUNTING = [
    Algorithm.GCRA,
    Algorithm.FIXED_WINDOW,
    Algorithm.ANCHORED_WINDOW,
    Algorithm.SLIDING_WINDOW,
    Algorithm.SLIDING_LOG,
    Algorithm.LEAKY_BUCKET_QUEUE,
]


def made(clock: ManualClock, algorithm: Algorithm, quota: str = "10 per hour", store: Any = None) -> Limiter:
    return Limiter(Limit("l", quota, by="id", algorithm=algorithm), store=store or MemoryStore(clock=clock))


def left(limiter: Limiter, key: str = "k") -> int | None:
    return limiter.peek(id=key, cost=0).remaining


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("algorithm", COUNTING)
@pytest.mark.parametrize(("keep", "remaining"), [("as-is", None), ("proportional", 10), ("reset", 20)])
def test_a_raised_quota(
    clock: ManualClock, tmp_path: Path, store: str, algorithm: Algorithm, keep: str, remaining: int | None
) -> None:
    """5 of 10 in use, then 20 per hour: as is keeps the units (GCRA: the time), proportional half, reset nothing."""
    limiter = made(clock, algorithm, store=STORES[store](clock, tmp_path))
    for key in ("k", "other"):
        limiter.hit(id=key, cost=5)
    limiter.change_quota("l", "20 per hour", keep=keep)
    timed = algorithm in (Algorithm.GCRA, Algorithm.LEAKY_BUCKET_QUEUE)
    expected = (10 if timed else 15) if remaining is None else remaining
    assert left(limiter) == left(limiter, "other") == expected
    assert str(limiter.limits[0].quota) == "20/hour"
    limiter.store.close()


@pytest.mark.parametrize("algorithm", COUNTING)
def test_a_lowered_quota_frightens_nobody(clock: ManualClock, algorithm: Algorithm) -> None:
    """9 of 10 in use, then 2 per hour: nothing is left, never less than nothing, and the wait ends within a recovery."""
    for keep in ("as-is", "proportional"):
        limiter = made(clock, algorithm)
        limiter.hit(id="k", cost=9)
        limiter.change_quota("l", "2 per hour", keep=keep)
        refused = limiter.hit(id="k", cost=2)
        assert not refused.allowed
        assert refused.remaining == 0
        assert refused.retry_after_ns is not None
        assert 0 < refused.retry_after_ns <= 2 * HOUR
        clock.advance(ns=refused.retry_after_ns)
        assert limiter.hit(id="k", cost=2).allowed


@given(st.sampled_from(COUNTING), st.integers(1, 12), st.integers(1, 12), st.integers(0, 12))
def test_a_proportional_change_keeps_the_share_rounded_up(algorithm: Algorithm, old: int, new: int, used: int) -> None:
    """Whatever share of the count was in use is in use, in whole units against the caller; an unused key stays unused."""
    clock = ManualClock()
    limiter = made(clock, algorithm, f"{old} per hour")
    used = min(used, old)
    limiter.hit(id="k", cost=used)
    limiter.change_quota("l", f"{new} per hour", keep="proportional")
    assert left(limiter) == new - -(-used * new // old)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("algorithm", COUNTING)
@pytest.mark.parametrize("keep", ["as-is", "proportional", "reset"])
def test_a_key_that_has_recovered_is_as_if_unused(
    clock: ManualClock, tmp_path: Path, store: str, algorithm: Algorithm, keep: str
) -> None:
    """Long after its last hit, with its state still lying in the store: a whole new quota, decided by the store itself."""
    limiter = made(clock, algorithm, store=STORES[store](clock, tmp_path))
    for key in ("k", "other"):
        limiter.hit(id=key, cost=5)
    clock.advance(3 * 3600)
    for quota, most in (("20 per hour", 20), ("7 per hour", 7)):
        limiter.change_quota("l", quota, keep=keep)
        looked = limiter.peek(id="k", cost=0)
        assert (looked.degraded, looked.remaining) == (None, most)
    taken = limiter.hit(id="k", cost=7)
    assert (taken.allowed, taken.degraded) == (True, None)
    limiter.store.close()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("algorithm", COUNTING)
def test_a_block_that_is_lifted_proportionally_remembers(
    clock: ManualClock, tmp_path: Path, store: str, algorithm: Algorithm
) -> None:
    """Nothing is a share of 0, so through a quota of 0 and back the state stays as it is, whatever ``keep`` says."""
    limiter = made(clock, algorithm, store=STORES[store](clock, tmp_path))
    limiter.hit(id="k", cost=4)
    limiter.change_quota("l", "0 per hour", keep="proportional")
    assert limiter.hit(id="k").blocked
    limiter.change_quota("l", "10 per hour", keep="proportional")
    looked = limiter.peek(id="k", cost=0)
    assert (looked.degraded, looked.remaining) == (None, 6)
    limiter.store.close()


def test_gcra_keeps_the_time_that_is_owed(clock: ManualClock) -> None:
    """As is: half an hour is owed before and after, so the reset does not move, whatever the new quota."""
    limiter = made(clock, Algorithm.GCRA)
    limiter.hit(id="k", cost=5)
    for quota in ("20 per hour", "7 per hour", "1000/s burst 3600000"):
        limiter.change_quota("l", quota)
        assert limiter.peek(id="k", cost=0).outcomes["l"].reset_after == HOUR // 2


def test_what_is_held_stays_held(clock: ManualClock) -> None:
    """Leases are as they are under any change but a reset."""
    limiter = Limiter(Limit("slots", "3 at once for 60 s"), store=MemoryStore(clock=clock))
    limiter.hit()
    for keep, expected in (("as-is", 4), ("proportional", 4), ("reset", 5)):
        limiter.change_quota("slots", "5 at once for 60 s", keep=keep)
        assert limiter.peek(cost=0).remaining == expected


def test_attempts_stay_counted(clock: ManualClock) -> None:
    """A growing wait keeps its attempts: a change is no way to begin anew."""
    limiter = Limiter(Limit("login", "1 per 30 s", by="id", algorithm="growing-wait"), store=MemoryStore(clock=clock))
    for _ in range(3):
        limiter.wait(id="k")
    limiter.change_quota("login", "1 per 60 s", keep="proportional")
    assert limiter.hit(id="k").retry_after == 240


def test_a_change_to_zero_blocks_and_back_again_remembers(clock: ManualClock) -> None:
    """A quota of 0 is a switch: what was charged before is still there when it is raised again."""
    limiter = made(clock, Algorithm.GCRA)
    limiter.hit(id="k", cost=10)
    limiter.change_quota("l", "0 per hour")
    assert limiter.hit(id="k").blocked
    limiter.change_quota("l", "10 per hour")
    assert limiter.hit(id="k").retry_after == 360


def test_only_the_named_limit_changes(clock: ManualClock) -> None:
    """Its siblings keep quota and state, through a reset too."""
    limiter = Limiter(
        Limit("a", "10 per hour", by="id"), Limit("ab", "10 per hour", by="id"), store=MemoryStore(clock=clock)
    )
    limiter.hit(id="k", cost=4)
    limiter.change_quota("a", Quota(20, HOUR), keep="reset")
    assert {name: out.remaining for name, out in limiter.peek(id="k", cost=0).outcomes.items()} == {"a": 20, "ab": 6}


def test_the_twin_does_the_same(clock: ManualClock, tmp_path: Path) -> None:
    """With ``await``, over memory and over a file."""

    async def run(store: Any) -> None:
        limiter = AsyncLimiter(Limit("l", "10 per hour", by="id"), store=store)
        for keep, expected in (("as-is", 10), ("proportional", 10), ("reset", 20)):
            await limiter.hit(id="k", cost=5)
            await limiter.change_quota("l", "20 per hour", keep=keep)
            assert (await limiter.peek(id="k", cost=0)).remaining == expected
            await limiter.change_quota("l", "10 per hour", keep="reset")
        await limiter.store.close()

    for name in STORES:
        asyncio.run(run(STORES[name](clock, tmp_path)))


@pytest.mark.parametrize(
    ("name", "quota", "keep", "error", "said"),
    [
        ("nope", "20 per hour", "as-is", UnknownName, "no limit is named 'nope'; known: l"),
        ("l", "20 per", "as-is", QuotaError, "20 per"),
        ("l", "20 per hour", "maybe", LimitError, "keep is 'maybe'; expected one of as-is, proportional, reset"),
        ("l", "20 at once", "as-is", LimitError, "'l' is counted by gcra|counted by concurrency"),
        ("l", "20/day in UTC", "as-is", LimitError, "'l' is counted by gcra|counted by calendar-window"),
    ],
)
def test_a_change_that_cannot_be_right_changes_nothing(
    clock: ManualClock, name: str, quota: str, keep: str, error: type[Exception], said: str
) -> None:
    """The message names what is wrong and what is accepted; the quota and the state are as before."""
    limiter = made(clock, Algorithm.GCRA)
    limiter.hit(id="k", cost=5)
    with pytest.raises(error, match=said):
        limiter.change_quota(name, quota, keep=keep)
    assert str(limiter.limits[0].quota) == "10/hour"
    assert left(limiter) == 5


def test_what_is_held_at_once_does_not_become_a_rate(clock: ManualClock) -> None:
    """A quota without "at once" for a limit of places is refused, by text and by value; another number of places is fine."""
    limiter = Limiter(Limit("slots", "3 at once for 10 s"), store=MemoryStore(clock=clock))
    for quota in ("60/min", Quota.parse("60/min")):
        with pytest.raises(
            LimitError, match="'slots': '60/minute' and '3 at once for 10 seconds' are not both counted by concurrency"
        ):
            limiter.change_quota("slots", quota)
    limiter.change_quota("slots", "4 at once for 10 s")
    assert limiter.hit().remaining == 3


def test_a_changed_quota_is_what_people_are_told(clock: ManualClock) -> None:
    """Fields and words after a change speak of the new one."""
    limiter = made(clock, Algorithm.GCRA)
    limiter.change_quota("l", "3 per 30 s")
    assert "q=3;w=30" in limiter.hit(id="k").headers()["RateLimit-Policy"]
    assert limiter.limits[0].quota == Quota(3, 30 * SECOND)


class Interrupting(ManualClock):
    """A clock that something else happens at, once, in the middle of a decision."""

    meanwhile: Any = None

    def __call__(self) -> int:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().__call__()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
@pytest.mark.parametrize("beside", [(), (Limit("beside", "100 per hour", by="id"),)])
@pytest.mark.parametrize(("before", "after"), [("1 per hour", "9 per hour"), ("9 per hour", "1 per hour")])
def test_a_decision_is_described_by_the_quota_that_decided_it(
    tmp_path: Path, store: str, kind: Any, beside: tuple[Limit, ...], before: str, after: str
) -> None:
    """Changed by another thread in the middle of a hit: no refusal without a limit, no admission that says it is refused."""
    clock = Interrupting()
    limiter = kind(Limit("l", before, by="id"), *beside, store=STORES[store](clock, tmp_path))

    def done(answer: Any) -> Any:
        return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer

    done(limiter.hit(id="k"))
    plain = Limiter(Limit("l", before, by="id"), *beside, store=MemoryStore(clock=ManualClock()))
    plain.hit(id="k")
    clock.meanwhile = lambda: limiter._swap(limiter.limits[0], requoted(limiter.limits[0], after))
    decision, expected = done(limiter.hit(id="k")), plain.hit(id="k")
    assert decision.to_dict() == expected.to_dict()
    assert decision.headers() == expected.headers()
    assert str(limiter.limits[0].quota) == str(Quota.parse(after))
    done(limiter.store.close())
