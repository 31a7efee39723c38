"""A store that is away at the end of what a limiter admitted: nobody's work is lost, and a stand-in's places come back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from headway import AsyncLimiter, Limit, Limiter, MemoryStore, StoreUnavailable
from headway.core.change import Change
from headway.core.charge import Charge
from headway.stores.base import Answer
from headway.testing.clock import ManualClock


class Leaving(MemoryStore):
    """A memory store that is away whenever the test says so; a limiter's stand-in for it is another store."""

    away = False

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        self._ask()
        return super().advance(charges, commit=commit)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        self._ask()
        return super().change(changes)

    def lane(self, *_: Any) -> Any:
        return None

    def _ask(self) -> None:
        if self.away:
            raise StoreUnavailable("pulled the plug")


KINDS: list[Any] = [Limiter, AsyncLimiter]


def done(answer: Any) -> Any:
    return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer


def worked(limiter: Any, store: Leaving, *, fails: bool = False) -> str:
    """What comes of a block at whose end the store is away."""

    def work() -> str:
        store.away = True
        if fails:
            raise ZeroDivisionError
        return "done"

    if isinstance(limiter, Limiter):
        with limiter.admitted(id="k"):
            return work()

    async def later() -> str:
        async with limiter.admitted(id="k"):
            return work()

    return asyncio.run(later())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [True, False], ids=["away before", "away at the end"])
def test_a_block_s_work_is_not_lost_because_its_place_cannot_be_given_back(
    clock: ManualClock, kind: Any, before: bool
) -> None:
    """``allow`` lets it in, nobody takes the place back, it expires by itself; an error of the block's own comes out."""
    store = Leaving(clock=clock)
    limiter = kind(Limit("slots", "1 at once for 60 s", by="id", on_store_failure="allow"), store=store)
    for fails in (False, True):
        store.away = before
        if fails:
            with pytest.raises(ZeroDivisionError):
                worked(limiter, store, fails=True)
        else:
            assert worked(limiter, store) == "done"
        store.away = False
        assert done(limiter.hit(id="k")).allowed is before
        clock.advance(60)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fails", [False, True])
def test_a_reservation_s_block_ends_well_although_the_store_is_away(clock: ManualClock, kind: Any, fails: bool) -> None:
    """The estimate stays charged, never too little."""
    store = Leaving(clock=clock)
    limiter = kind(Limit("tokens", "10 per hour", by="id"), store=store)

    def work() -> None:
        store.away = True
        if fails:
            raise ZeroDivisionError

    async def later() -> None:
        async with await limiter.reserve(id="k", cost=4):
            work()

    def now() -> None:
        with limiter.reserve(id="k", cost=4):
            work()

    run = now if kind is Limiter else lambda: asyncio.run(later())
    if fails:
        with pytest.raises(ZeroDivisionError):
            run()
    else:
        run()
    store.away = False
    assert done(limiter.peek(id="k", cost=0)).remaining == 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [1, Fraction(1, 2)])
def test_a_stand_in_s_places_and_units_come_back(clock: ManualClock, kind: Any, share: Any) -> None:
    """Decided ``local``: what was held is free when it is given back, a refund and a commit find what they charged."""
    store = Leaving(clock=clock)
    limits = (
        Limit("slots", "2 at once for 1 hour", by="id", on_store_failure="local"),
        Limit("units", "20 per 365 days", by="id", on_store_failure="local"),
    )
    limiter = kind(*limits, store=store)
    limiter.store.share = share
    store.away = True
    units = 20 * share
    for _ in range(5):
        hit = done(limiter.hit(id="k", cost={"units": 4}))
        assert hit.degraded == "pulled the plug"
        assert hit.allowed
        assert done(limiter.renew(hit))
        assert done(limiter.refund(hit))
        assert not done(limiter.refund(hit))
        reserved = done(limiter.reserve(id="k", cost={"units": 6}))
        assert done(reserved.commit({"units": 0}))
        assert not done(limiter.release(hit))
    assert done(limiter.peek(id="k", cost=0)).outcomes["units"].remaining == units
    held = [done(limiter.hit(id="k")) for _ in range(2 if share == 1 else 1)]
    assert not done(limiter.hit(id="k")).allowed
    store.away = False
    assert done(limiter.release(held[0])), "the stand-in has it, wherever others are decided by now"
    store.away = True
    assert done(limiter.hit(id="k")).allowed


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_give_back_asks_no_store(clock: ManualClock, kind: Any) -> None:
    """Of a refusal, and of what passed without the store, there is nothing: False, whether it is away or not."""
    store = Leaving(clock=clock)
    limiter = kind(Limit("l", "1 at once for 60 s", by="id", on_store_failure="allow"), store=store)
    store.away = True
    passed = done(limiter.hit(id="k"))
    assert passed.degraded
    for call in (limiter.refund, limiter.release, limiter.renew):
        assert done(call(passed)) is False


class Mumbling(MemoryStore):
    """As a networked store whose answer gets lost: what is changed is changed, and nobody is told."""

    share = 1

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        super().change(changes)
        raise StoreUnavailable("no answer within 100 ms")


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-window", "sliding-log"])
@pytest.mark.parametrize("settle", ["refund", "cancel", "commit"])
def test_what_a_lost_answer_gave_back_is_not_given_back_twice(clock: ManualClock, algorithm: str, settle: str) -> None:
    """The error comes out; another try gives nothing that was charged by others, and a lease of GCRA's is ended once."""
    limiter = Limiter(Limit("l", "100 per hour", by="id", algorithm=algorithm), store=Mumbling(clock=clock))

    def attempt() -> bool:
        if settle == "refund":
            return limiter.refund(made.decision)
        return made.cancel() if settle == "cancel" else made.commit(0)

    limiter.hit(id="k", cost=30)
    made = limiter.reserve(id="k", cost=20)
    limiter.hit(id="k", cost=30)
    for _ in range(3):
        try:
            assert not attempt()
        except StoreUnavailable:
            continue
    assert limiter.peek(id="k", cost=0).remaining == 40


class Waiting:
    """An asynchronous store that is asked, and is away when the test lets it answer."""

    def __init__(self, short: bool) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        if short:
            self.short = lambda namespace, limits: lambda keys, costs: None
            self.trip = lambda namespace, limits: self.fail

    async def fail(self, *_: Any, **__: Any) -> Any:
        self.asked.set()
        await self.go.wait()
        raise StoreUnavailable("pulled the plug")

    advance = change = requota = clear = clears_after = reset = fail

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("short", [True, False])
def test_what_changes_while_a_store_is_asked_is_not_what_the_stand_in_decides(short: bool) -> None:
    """The stand-in charges the attributes, cost and limits of the call, whatever they have become when the store fails."""

    async def main() -> None:
        store = Waiting(short)
        limiter = AsyncLimiter(Limit("l", "5 per day", by="id", on_store_failure="local"), store=store)
        for change in ("clear", "quota"):
            store.asked.clear()
            store.go.clear()
            facts: dict[str, object] = {"id": change}
            asked = asyncio.ensure_future(limiter.hit(facts, cost=5))
            await store.asked.wait()
            if change == "clear":
                facts.clear()
            else:
                await limiter.change_quota("l", "2 per day")
            store.go.set()
            decision = await asked
            assert (decision.allowed, decision.local) == (True, True), change
            assert decision.outcomes["l"].remaining == 0
            assert limiter._stand_in.advance([Charge("default", limiter.limits[0], change, 1)]).allowed is False

    asyncio.run(main())
