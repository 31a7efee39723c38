"""``reserve``, ``commit``, ``cancel`` and ``refund`` through both limiters: settled once, for the actual cost."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway import AsyncLimiter, Decision, Limit, Limiter, LimitError, MemoryStore, RateLimited, StoreUnavailable
from headway.core.change import Change
from headway.limiter.reservation import Reservation
from headway.stores.base import Store
from headway.testing.clock import ManualClock
from ways import STORES

TOKENS = Limit("tokens", "1000 per 100 s", by="key")
REQUESTS = Limit("requests", "5 per 100 s", by="key", cost=1)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](clock, tmp_path)
    yield opened
    opened.close()


def left(limiter: Limiter, key: str = "k") -> dict[str, int]:
    return {name: outcome.remaining for name, outcome in limiter.peek(key=key, cost=0).outcomes.items()}


def test_a_commit_settles_for_less(store: Store) -> None:
    """What was reserved too much comes back; a limit with a fixed cost keeps its own."""
    limiter = Limiter(TOKENS, REQUESTS, store=store)
    estimate = limiter.reserve(key="k", cost=800)
    assert estimate
    assert left(limiter) == {"tokens": 200, "requests": 4}
    assert estimate.commit(300)
    assert left(limiter) == {"tokens": 700, "requests": 4}


def test_nothing_used_is_no_reason_to_forget_the_request(store: Store) -> None:
    """A commit of 0 gives the whole estimate back, and a fixed cost stays charged; a cancellation gives that back too."""
    limiter = Limiter(TOKENS, REQUESTS, store=store)
    assert limiter.reserve(key="k", cost=800).commit(0)
    assert left(limiter) == {"tokens": 1000, "requests": 4}
    assert limiter.reserve(key="k", cost=800).cancel()
    assert left(limiter) == {"tokens": 1000, "requests": 4}


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "sliding-window", "sliding-log", "growing-wait"])
@pytest.mark.parametrize("estimate", [0, {"l": 0}, {"l": 0, "beside": 2}])
def test_what_was_used_is_charged_although_nothing_was_estimated(store: Store, algorithm: str, estimate: Any) -> None:
    """Once, as debt, whatever a sibling reserved; with ``debt=False`` it stays uncharged."""
    quota = "10 per hour burst 10" if algorithm == "growing-wait" else "10 per hour"
    limits = (Limit("l", quota, by="key", algorithm=algorithm), Limit("beside", "10 per hour", by="key"))
    limiter = Limiter(*limits, store=store)
    reserved = limiter.reserve(key="k", cost=estimate)
    assert reserved.commit({"l": 3})
    assert not reserved.commit({"l": 3})
    kept = 10 - (estimate["beside"] if estimate and "beside" in estimate else 1 if estimate else 0)
    assert left(limiter) == {"l": 7, "beside": kept}
    limiter.reserve(key="k", cost=estimate, debt=False).commit({"l": 3})
    assert left(limiter)["l"] == 7


def test_a_commit_for_more_is_charged_as_debt(store: Store, clock: ManualClock) -> None:
    """Without asking, so the balance is owed: nothing is left, and the wait is longer by exactly what was exceeded."""
    limiter = Limiter(TOKENS, store=store)
    estimate = limiter.reserve(key="k", cost=800)
    assert estimate.commit(1500)
    refused = limiter.hit(key="k", cost=1)
    assert refused.remaining == 0
    assert refused.retry_after == 50.1
    clock.advance(50)
    assert not limiter.hit(key="k").allowed
    clock.advance(0.1)
    assert limiter.hit(key="k").allowed


def test_without_debt_what_exceeds_the_estimate_stays_uncharged(store: Store) -> None:
    """By the caller's choice."""
    limiter = Limiter(TOKENS, store=store)
    estimate = limiter.reserve(key="k", cost=800, debt=False)
    assert estimate.commit(1500)
    assert left(limiter) == {"tokens": 200}


def test_a_cancelled_reservation_was_never_charged(store: Store, clock: ManualClock) -> None:
    """Everything comes back to every limit, as if it had never been, and nothing more."""
    limiter = Limiter(TOKENS, REQUESTS, store=store)
    limiter.hit(key="k", cost=500)
    estimate = limiter.reserve(key="k", cost=400)
    clock.advance(10)
    assert estimate.cancel()
    assert left(limiter) == {"tokens": 600, "requests": 4}


@pytest.mark.parametrize("again", ["commit", "cancel"])
def test_settling_twice_is_settling_once(store: Store, again: str) -> None:
    """The first settles, every further one answers False and changes nothing, from any thread."""
    limiter = Limiter(TOKENS, store=store)
    estimate = limiter.reserve(key="k", cost=800)
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(estimate.commit(300))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False] * 7 + [True]
    assert not getattr(estimate, again)()
    assert not limiter.refund(estimate.decision)
    assert left(limiter) == {"tokens": 700}


def test_a_reservation_expires_by_itself(store: Store, clock: ManualClock) -> None:
    """After its time the estimate stays charged: a worker that died is not a way to get units for nothing."""
    limiter = Limiter(TOKENS, Limit("daily", "1000/day in UTC", by="key"), store=store)
    estimate = limiter.reserve(key="k", cost=800, ttl=5)
    late = limiter.reserve(key="k", cost=100, ttl=5)
    clock.advance(ns=5_000_000_000 - 1)
    assert estimate.commit(0)
    clock.advance(ns=1)
    assert not late.cancel()
    assert left(limiter)["daily"] == 900


def test_a_refused_reservation_has_nothing_to_settle(store: Store) -> None:
    """Nothing was charged, so nothing is given back; the decision says when to come again."""
    limiter = Limiter(TOKENS, store=store)
    limiter.hit(key="k", cost=500)
    refused = limiter.reserve(key="k", cost=600)
    assert not refused.allowed
    assert not refused
    assert refused.decision.retry_after == 10
    assert not refused.commit(0)
    assert not refused.cancel()
    assert left(limiter) == {"tokens": 500}
    assert limiter.reserve(key="k", cost=1001).decision.never


def test_costs_are_reserved_and_settled_by_limit(store: Store) -> None:
    """Estimate and actual may be mappings; limits that are not named stay as reserved."""
    limiter = Limiter(TOKENS, Limit("images", "10 per 100 s", by="key"), REQUESTS, store=store)
    estimate = limiter.reserve(key="k", cost={"tokens": 800, "images": 4})
    assert left(limiter) == {"tokens": 200, "images": 6, "requests": 4}
    assert estimate.commit({"tokens": 300})
    assert left(limiter) == {"tokens": 700, "images": 6, "requests": 4}
    with pytest.raises(LimitError, match="'requests' has a fixed cost of 1"):
        limiter.reserve(key="k").commit({"requests": 2})


def test_a_block_commits_the_estimate_or_cancels(store: Store) -> None:
    """``with``: commits at its end, cancels when it raises, leaves alone what was settled inside, raises when refused."""
    limiter = Limiter(TOKENS, store=store)
    with limiter.reserve(key="k", cost=100):
        pass
    with limiter.reserve(key="k", cost=100) as estimate:
        estimate.commit(10)
    with pytest.raises(ZeroDivisionError), limiter.reserve(key="k", cost=100):
        raise ZeroDivisionError
    assert left(limiter) == {"tokens": 890}
    with pytest.raises(RateLimited) as refusal, limiter.reserve(key="k", cost=900):
        pytest.fail("the block does not run")
    assert refusal.value.decision.limit == "tokens"


def test_a_held_slot_ends_with_its_reservation(store: Store) -> None:
    """Concurrency beside tokens: the work is over, so the slot is free, whatever the actual cost."""
    limiter = Limiter(TOKENS, Limit("slots", "2 at once for 60 s", by="key"), store=store)
    estimate = limiter.reserve(key="k", cost={"tokens": 100, "slots": 1})
    assert left(limiter) == {"tokens": 900, "slots": 1}
    assert estimate.commit({"tokens": 100})
    assert left(limiter) == {"tokens": 900, "slots": 2}


def test_the_twin_does_the_same(store: Store, clock: ManualClock) -> None:
    """Every call again, with ``await`` and ``async with``."""

    async def run() -> None:
        limiter = AsyncLimiter(TOKENS, store=store)

        async def remaining() -> int | None:
            return (await limiter.peek(key="k", cost=0)).remaining

        estimate = await limiter.reserve(key="k", cost=800)
        assert await estimate.commit(300)
        assert not await estimate.commit(300)
        assert not await estimate.cancel()
        async with await limiter.reserve(key="k", cost=100):
            assert await remaining() == 600
        with pytest.raises(ZeroDivisionError):
            async with await limiter.reserve(key="k", cost=100):
                raise ZeroDivisionError
        assert await remaining() == 600
        with pytest.raises(RateLimited):
            async with await limiter.reserve(key="k", cost=700):
                pytest.fail("the block does not run")
        hit = await limiter.hit(key="k", cost=100)
        assert await limiter.refund(hit)
        assert not await limiter.refund(hit)
        assert await remaining() == 600

    asyncio.run(run())


class Away(MemoryStore):
    """A memory store that can be told to fail when charges are changed."""

    away = False

    def change(self, changes: Any) -> tuple[bool, ...]:
        if self.away:
            raise StoreUnavailable("pulled the plug")
        return super().change(changes)


@pytest.mark.parametrize(
    "settle",
    [
        lambda limiter, made: made.commit(0),
        lambda limiter, made: made.cancel(),
        lambda limiter, made: limiter.refund(made.decision),
    ],
)
def test_a_settlement_that_the_store_could_not_do_may_be_tried_again(
    clock: ManualClock, settle: Callable[[Limiter, Reservation], bool]
) -> None:
    """The error comes out, the estimate stays charged, and the next try settles it, once."""
    store = Away(clock=clock)
    limiter = Limiter(TOKENS, store=store)
    made = limiter.reserve(key="k", cost=800)
    store.away = True
    with pytest.raises(StoreUnavailable):
        settle(limiter, made)
    assert left(limiter) == {"tokens": 200}
    store.away = False
    assert settle(limiter, made)
    assert not settle(limiter, made)
    assert left(limiter) == {"tokens": 1000}


@pytest.mark.parametrize(
    ("ttl", "error"),
    [
        (-1, LimitError),
        (0, LimitError),
        (0.0, LimitError),
        ("60", TypeError),
        (float("inf"), LimitError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_a_time_that_is_none_is_an_error(ttl: Any, error: type[Exception], clock: ManualClock) -> None:
    """The message names it and what is accepted; nothing is charged."""
    limiter = Limiter(TOKENS, store=MemoryStore(clock=clock))
    with pytest.raises(error, match=r"ttl is .*; expected seconds"):
        limiter.reserve(key="k", ttl=ttl)
    with pytest.raises(error, match=r"ttl is .*; expected seconds"):
        asyncio.run(AsyncLimiter(TOKENS, store=MemoryStore(clock=clock)).reserve(key="k", ttl=ttl))
    with pytest.raises(LimitError, match="cost is -1"):
        limiter.reserve(key="k").commit(-1)


def test_a_copy_of_a_decision_gives_nothing_back(clock: ManualClock) -> None:
    """What crossed a process boundary is a record, not a claim: refunding it cannot refund twice."""
    limiter = Limiter(TOKENS, store=MemoryStore(clock=clock))
    hit = limiter.hit(key="k", cost=100)
    copy: Decision = pickle.loads(pickle.dumps(hit))
    assert not limiter.refund(copy)
    assert limiter.refund(hit)


def test_a_change_under_a_quota_of_before_says_so(clock: ManualClock) -> None:
    """A reservation made before a quota was changed settles by what it was charged, in time or not."""
    limiter = Limiter(TOKENS, store=MemoryStore(clock=clock))
    estimate = limiter.reserve(key="k", cost=500)
    limiter.change_quota("tokens", "100 per 100 s")
    assert estimate.cancel()
    assert left(limiter) == {"tokens": 100}
    assert isinstance(estimate.decision.changes(give_back=True)[0], Change)


@pytest.mark.parametrize("call", ["refund", "release", "renew"])
def test_what_is_no_decision_is_named(call: str) -> None:
    """A reservation is settled by its own methods, and anything else was returned by nobody."""
    limiter = Limiter(TOKENS)
    with pytest.raises(TypeError, match=r"is a Reservation; expected the Decision .* commit\(\) and cancel\(\)"):
        getattr(limiter, call)(limiter.reserve(key="k"))
    with pytest.raises(TypeError, match="'k' is a str; expected the Decision"):
        getattr(limiter, call)("k")
