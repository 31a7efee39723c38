"""The refusal cache: what stands is answered here, exactly as long as it stands and as the cap says, in bounded memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from headway.core.bill import settle
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.core.outcome import Refused
from headway.core.quota import SECOND
from headway.core.rule import State
from headway.stores.base import Answer
from headway.stores.refusal_cache import RefusalCache
from headway.testing.clock import ManualClock

TIGHT = Limit("tight", "1 per 10s", by="id")
LOOSE = Limit("loose", "9 per 10s", by="id")


class Told:
    """A store that is the core, and a cache in front of it."""

    def __init__(self, clock: ManualClock, cap: float) -> None:
        self.clock = clock
        self.states: dict[bytes, State | None] = {}
        self.cache = RefusalCache(cap, clock)
        self.asked = 0

    def hit(self, *limits: Limit, cost: int = 1, key: str = "k") -> Answer:
        charges = [Charge("n", limit, key, cost) for limit in limits]
        keys = [f"{limit.name} {key}".encode() for limit in limits]
        known = self.cache.answer(keys, charges)
        if known is not None:
            return known
        self.asked += 1
        sent = self.cache.ticks()
        states = [self.states.get(stored) for stored in keys]
        shadows = [limit.shadow for limit in limits]
        rules = [limit.rule for limit in limits]
        settled = settle(rules, states, [cost] * len(limits), self.clock.now, shadows=shadows)
        for index, state in settled.writes:
            self.states[keys[index]] = state
        answer = Answer(settled.allowed, self.clock.now, settled.outcomes, (cost,) * len(limits))
        if settled.writes:
            self.cache.forget(keys)
        else:
            self.cache.learn(sent, keys, charges, answer, states)
        return answer


def wait(answer: Answer) -> int:
    outcome = answer.outcomes[0]
    assert isinstance(outcome, Refused)
    return outcome.retry_after


def test_a_refusal_is_answered_here_until_it_ends(clock: ManualClock) -> None:
    """The waits count down as the store's would; at the end of the wait, and not before, the store is asked, and admits."""
    told = Told(clock, cap=60)
    told.hit(TIGHT)
    assert wait(told.hit(TIGHT)) == 10 * SECOND
    for left in range(9, 0, -1):
        clock.advance(1)
        assert wait(told.hit(TIGHT)) == left * SECOND
    clock.advance(ns=SECOND - 1000)
    assert not told.hit(TIGHT).allowed
    assert told.asked == 2
    clock.advance(ns=1000)
    assert told.hit(TIGHT).allowed
    assert told.asked == 3


def test_the_cap_bounds_how_late_a_change_is_seen(clock: ManualClock) -> None:
    """What somebody else resets is seen after the cap; 0 asks each time."""
    told = Told(clock, cap=1)
    told.hit(TIGHT)
    told.hit(TIGHT)
    told.states.clear()
    clock.advance(ns=SECOND - 1)
    assert not told.hit(TIGHT).allowed
    clock.advance(ns=1)
    assert told.hit(TIGHT).allowed
    never = Told(clock, cap=0)
    for _ in range(5):
        never.hit(TIGHT)
    assert never.asked == 5


def test_only_the_same_or_a_higher_cost_is_refused_here(clock: ManualClock) -> None:
    """A cost of 5 that was refused says nothing about a cost of 1, and all about 5, 6 and what can never pass."""
    told = Told(clock, cap=60)
    told.hit(LOOSE, cost=6)
    assert not told.hit(LOOSE, cost=5).allowed
    asked = told.asked
    assert [told.hit(LOOSE, cost=cost).allowed for cost in (5, 6, 10**20)] == [False] * 3
    assert told.asked == asked
    assert told.hit(LOOSE, cost=1).allowed
    assert wait(told.hit(LOOSE, cost=5)) > 0
    assert told.asked == asked + 2


def test_other_limits_are_shown_as_they_stood(clock: ManualClock) -> None:
    """A remembered refusal lists every limit, the refusing one with its wait, the others uncharged."""
    told = Told(clock, cap=60)
    told.hit(TIGHT, LOOSE)
    first = told.hit(TIGHT, LOOSE)
    assert told.hit(TIGHT, LOOSE) == first
    assert [type(outcome).__name__ for outcome in first.outcomes] == ["Refused", "Admitted"]
    assert first.outcomes[1].remaining == 8
    assert not told.hit(LOOSE, TIGHT).allowed
    assert told.asked == 2
    assert told.hit(LOOSE).allowed


def test_what_is_charged_given_back_or_reset_here_is_asked_again(clock: ManualClock) -> None:
    """Any key of a remembered bill that changes through this store ends what is remembered of it."""
    told = Told(clock, cap=60)
    told.hit(TIGHT, LOOSE)
    told.hit(TIGHT, LOOSE)
    told.hit(LOOSE)
    assert told.hit(TIGHT, LOOSE).outcomes[1].remaining == 7
    told.cache.given_back([b"tight k"])
    assert len(told.cache) == 0
    told.hit(TIGHT, LOOSE)
    assert len(told.cache) == 1
    told.cache.forget([b"loose k"])
    assert len(told.cache) == 0


def test_a_refusal_that_was_on_its_way_when_units_were_given_back_is_not_remembered(clock: ManualClock) -> None:
    """Whoever was refused before a giving back, and is told after it, has learnt nothing of what holds from then on."""
    told = Told(clock, cap=60)
    charges = [Charge("n", TIGHT, "k", 1)]
    told.hit(TIGHT)

    def learn(sent: int) -> bool:
        states = [told.states.get(b"tight k")]
        settled = settle([TIGHT.rule], states, [1], clock.now)
        answer = Answer(False, clock.now, settled.outcomes, (1,))
        return told.cache.learn(sent, [b"tight k"], charges, answer, states) is not None

    sent = clock.now
    clock.advance(ns=1000)
    told.cache.given_back([b"loose k"])
    assert learn(sent)
    told.cache.given_back([b"tight k"])
    assert not learn(sent)
    assert learn(clock.now)
    for number in range(2_000):
        told.cache.given_back([b"other %d" % number])
    assert not learn(sent)
    clock.advance(ns=1000)
    assert learn(clock.now)
    told.cache.clear()
    assert not learn(sent)
    assert learn(clock.now)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_another_thread_remembers_is_not_stuck(clock: ManualClock) -> None:
    """Nobody in the child holds the lock that somebody in the parent held."""
    told = Told(clock, cap=60)
    told.hit(TIGHT)
    told.hit(TIGHT)
    with told.cache._family.lock:
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            told.cache.given_back([b"tight k"])
            os._exit(len(told.cache))
    assert os.waitpid(child, 0)[1] == 0


def test_a_changed_limit_is_asked_again(clock: ManualClock) -> None:
    """A refusal by a quota that was raised meanwhile stands for nothing."""
    told = Told(clock, cap=60)
    told.hit(TIGHT)
    told.hit(TIGHT)
    assert told.hit(Limit("tight", "10 per 10s burst 100", by="id")).allowed


def test_memory_is_bounded(clock: ManualClock) -> None:
    """Twenty thousand refused keys are not all remembered, and forgetting them leaves nothing."""
    told = Told(clock, cap=60)
    for number in range(10_100):
        for _ in range(2):
            told.hit(TIGHT, key=f"{number}")
    assert len(told.cache) == 10_000
    told.cache.clear()
    assert (len(told.cache), len(told.cache._involving)) == (0, 0)


def test_what_is_over_does_not_stay(clock: ManualClock) -> None:
    """Refusals that ended make room as others come, long before the bound: no more is kept than stands."""
    told = Told(clock, 1.0)
    for number in range(200):
        told.hit(TIGHT, key=f"early {number}")
        told.hit(TIGHT, key=f"early {number}")
    assert len(told.cache) == 200
    clock.advance(2)
    for number in range(110):
        told.hit(TIGHT, key=f"late {number}")
        told.hit(TIGHT, key=f"late {number}")
    assert len(told.cache) == 110


def test_what_may_end_at_any_time_is_not_remembered(clock: ManualClock) -> None:
    """A lease may be given back; a shadow limit refuses nobody."""
    held = Limit("held", "1 at once for 10s", by="id")
    told = Told(clock, cap=60)
    told.hit(held)
    for _ in range(3):
        assert not told.hit(held).allowed
    assert told.asked == 4
    shadow = Limit("shadow", "1 per 10s", by="id", shadow=True)
    asked: Sequence[bool] = [told.hit(shadow).allowed for _ in range(3)]
    assert asked == [True] * 3
    assert told.asked == 7
