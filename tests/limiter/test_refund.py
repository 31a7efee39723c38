"""``refund``: a hit's units given back, once, never past what "as if it had not been charged" leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway import Limit, Limiter, MemoryStore
from headway.core.limit import Algorithm
from headway.testing.clock import ManualClock
from ways import STORES

ALL = [algorithm for algorithm in Algorithm if algorithm is not Algorithm.CALENDAR_WINDOW]


def limit_of(algorithm: Algorithm) -> Limit:
    if algorithm is Algorithm.CONCURRENCY:
        return Limit("l", "6 at once for 60 s", by="id")
    quota = "1 per 10 s" if algorithm is Algorithm.MINIMUM_INTERVAL else "6 per 60 s"
    return Limit(
        "l", f"{quota} burst 6" if algorithm is Algorithm.GROWING_WAIT else quota, by="id", algorithm=algorithm
    )


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("algorithm", ALL)
def test_a_refunded_hit_was_never_made(algorithm: Algorithm, store: str, clock: ManualClock, tmp_path: Path) -> None:
    """Refunded at once, the whole burst is there again; a second refund of the same hit gives nothing."""
    limiter = Limiter(limit_of(algorithm), store=STORES[store](clock, tmp_path))
    burst = limiter.limits[0].quota.burst
    for _ in range(3):
        hit = limiter.hit(id="k", cost=burst)
        assert hit.remaining == 0
        assert limiter.refund(hit)
        assert not limiter.refund(hit)
        assert limiter.peek(id="k", cost=0).remaining == burst
    limiter.store.close()


@pytest.mark.parametrize("algorithm", ALL)
def test_a_refusal_a_peek_and_a_look_have_nothing_to_refund(algorithm: Algorithm, clock: ManualClock) -> None:
    """They charged nothing: False, and no unit appears."""
    limiter = Limiter(limit_of(algorithm), store=MemoryStore(clock=clock))
    burst = limiter.limits[0].quota.burst
    limiter.hit(id="k", cost=burst)
    for decision in (
        limiter.hit(id="k"),
        limiter.peek(id="k"),
        limiter.hit(id="k", cost=0),
        limiter.hit(id="k", cost=burst + 1),
    ):
        assert not limiter.refund(decision)
    assert limiter.peek(id="k", cost=0).remaining == 0


def test_a_refund_never_reaches_past_a_turned_window(clock: ManualClock) -> None:
    """What was charged to a window that has ended is gone with it; the new window's units stay."""
    limiter = Limiter(Limit("l", "6 per 60 s", by="id", algorithm="fixed-window"), store=MemoryStore(clock=clock))
    hit = limiter.hit(id="k", cost=6)
    clock.advance(60)
    limiter.hit(id="k", cost=4)
    limiter.refund(hit)
    assert limiter.peek(id="k", cost=0).remaining == 2


def test_a_refund_gives_back_what_time_has_not_paid_yet(clock: ManualClock) -> None:
    """GCRA: twenty of sixty seconds have passed, so forty seconds' worth is still owed and can be given back."""
    limiter = Limiter(Limit("l", "6 per 60 s", by="id"), store=MemoryStore(clock=clock))
    hit = limiter.hit(id="k", cost=6)
    clock.advance(20)
    assert limiter.peek(id="k", cost=0).remaining == 2
    assert limiter.refund(hit)
    assert limiter.peek(id="k", cost=0).remaining == 6


def test_an_emptied_window_begins_anew(clock: ManualClock) -> None:
    """An anchored window whose only hit was refunded never began: the next hit has a whole period before it."""
    limiter = Limiter(Limit("l", "1 per 60 s", by="id", algorithm="anchored-window"), store=MemoryStore(clock=clock))
    limiter.refund(limiter.hit(id="k"))
    clock.advance(50)
    limiter.hit(id="k")
    assert limiter.hit(id="k").retry_after == 60


def test_one_refund_goes_to_every_limit(clock: ManualClock) -> None:
    """All that one hit charged comes back together, each limit its own cost."""
    limits = (
        Limit("a", "10 per 60 s", by="id"),
        Limit("b", "10 per hour", by="id", cost=3),
        Limit("c", "10/day in UTC"),
    )
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    hit = limiter.hit(id="k", cost=2)
    assert hit.costs == {"a": 2, "b": 3, "c": 2}
    assert limiter.refund(hit)
    assert {
        name: outcome.remaining for name, outcome in limiter.peek(id="k", cost=0).outcomes.items()
    } == dict.fromkeys("abc", 10)


def test_units_given_back_to_a_shadow_limit_are_those_it_was_charged(clock: ManualClock) -> None:
    """A shadow limit that would have refused was not charged, so a refund lifts nothing there."""
    limits = (Limit("real", "10 per hour", by="id"), Limit("trial", "2 per hour", by="id", shadow=True))
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    limiter.hit(id="k", cost=2)
    shadowed = limiter.hit(id="k", cost=2)
    assert shadowed.shadowed == ("trial",)
    assert limiter.refund(shadowed)
    assert {name: out.remaining for name, out in limiter.peek(id="k", cost=0).outcomes.items()} == {
        "real": 8,
        "trial": 0,
    }
