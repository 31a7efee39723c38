"""What limiters and stores promise on random histories: the same as the core, all or nothing, in any order."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.bill import settle
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Outcome
from headway.core.quota import SECOND
from headway.core.rule import State
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.stores.base import Store
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock
from ways import STORES, Ask, bare, through_async_limiter, through_limiter

from . import histories as h

KEYS = ["a", "b", "c"]


@dataclass(frozen=True)
class Action:
    """One step of a history on several limits: what is done to which key."""

    kind: str
    key: str
    step: h.Step
    told: bool


actions = st.builds(
    Action,
    st.sampled_from(["hit"] * 6 + ["peek", "reset", "change"]),
    st.sampled_from(KEYS),
    h.steps(backwards=True),
    st.booleans(),
)


@st.composite
def policies(draw: st.DrawFn) -> list[Limit]:
    """One to four limits, mostly GCRA on whole nanoseconds: what the memory store has a short way for."""
    quick = st.sampled_from(["3/s", "5 per 10s", "100/s burst 20", "2/min", "10/min burst 3", "1 per 60s", "1000/s"])
    plain = quick.map(lambda quota: Limit("l", quota, by="id"))
    chosen = draw(st.lists(st.one_of(plain, plain, h.limits), min_size=1, max_size=4))
    return [_named(f"l{number}", limit) for number, limit in enumerate(chosen)]


def _named(name: str, limit: Limit) -> Limit:
    return Limit(name, limit.quota, by="id", algorithm=limit.algorithm)


class Reference:
    """The core alone: a dict of states and ``settle``.

    A store may forget a state that has recovered. Where the clock went back since, both answers are right: ``agrees``
    takes the one the store gave.
    """

    def __init__(self) -> None:
        self.states: dict[tuple[str, str], State] = {}
        self.latest = 0

    def agrees(
        self,
        limits: Sequence[Limit],
        key: str,
        cost: int,
        commit: bool,
        now: int,
        got: tuple[bool, Mapping[str, Outcome]],
    ) -> bool:
        """Whether the core gives this answer; the states are then as the core leaves them."""
        self.latest = max(self.latest, now)
        places = [(limit.name, key) for limit in limits]
        rules = [limit.rule for limit in limits]
        kept = [self.states.get(place) for place in places]
        choices = [
            [state, None] if state is not None and rule.expires_at(state) <= self.latest else [state]
            for rule, state in zip(rules, kept, strict=True)
        ]
        for states in product(*choices):
            settled = settle(rules, states, [cost] * len(limits), now)
            if got == (settled.allowed, {limit.name: out for limit, out in zip(limits, settled.outcomes, strict=True)}):
                for place, state in zip(places, states, strict=True):
                    self.states[place] = state
                for index, state in settled.writes if commit else ():
                    self.states[places[index]] = state
                return True
        return False


def asker(form: str, store: Store, loop: asyncio.AbstractEventLoop, limits: Sequence[Limit]) -> Ask:
    if form == "bare":
        return bare(store, *limits)
    if form == "limiter":
        return through_limiter(Limiter(*limits, store=store, namespace="n"))
    return through_async_limiter(AsyncLimiter(*limits, store=store, namespace="n"), loop)


@pytest.mark.parametrize("form", ["bare", "limiter", "async"])
@pytest.mark.parametrize("name", STORES)
@given(data=st.data(), limits=policies(), history=st.lists(actions, max_size=30))
@settings(max_examples=60)
def test_every_store_answers_as_the_core_does(
    name: str, form: str, data: st.DataObject, limits: list[Limit], history: list[Action]
) -> None:
    """Hits, peeks, resets, changed quotas, several keys and clock steps: each answer equals the core's, field by field."""
    clock = ManualClock()
    clock.now = h.EPOCH
    reference = Reference()
    changed = data.draw(policies())
    later = [_named(a.name, b) if a.algorithm is b.algorithm else a for a, b in zip(limits, changed, strict=False)]
    sets = [limits, [*later, *limits[len(later) :]]]
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder, closing(loop), closing(STORES[name](clock, Path(folder))) as store:
        asks = [asker(form, store, loop, limits) for limits in sets]
        wait, current = 0, 0
        for action in history:
            clock.now = max(1, clock.now + action.step.move(sets[0][0].quota.period_ns, wait if action.told else 0))
            if action.kind == "reset":
                Limiter(*sets[current], store=store, namespace="n").reset(id=action.key)
                for limit in limits:
                    reference.states.pop((limit.name, action.key), None)
            elif action.kind == "change":
                current = 1 - current
            else:
                commit = action.kind == "hit"
                got = asks[current](action.step.cost, action.key, commit)
                assert reference.agrees(sets[current], action.key, action.step.cost, commit, clock.now, got)
                wait = max(h.told(outcome) for outcome in got[1].values())
        for key in KEYS:
            assert reference.agrees(sets[current], key, 0, False, clock.now, asks[current](0, key))


@given(limits=policies(), history=st.lists(actions, max_size=12), cost=st.integers(1, 12))
@settings(max_examples=60)
def test_the_order_of_limits_does_not_matter(limits: list[Limit], history: list[Action], cost: int) -> None:
    """Every permutation of up to four limits gives the same decisions, outcomes and binding limit."""
    seen = []
    for order in permutations(limits):
        clock = ManualClock()
        limiter = Limiter(*order, store=MemoryStore(clock=clock))
        decisions = []
        for action in history:
            clock.now = max(1, clock.now + action.step.move(limits[0].quota.period_ns, 0))
            decision = limiter.hit(id=action.key, cost=cost if action.told else action.step.cost)
            facts = (decision.allowed, decision.limit, decision.retry_after_ns, decision.never, decision.remaining)
            decisions.append((*facts, sorted(decision.outcomes.items())))
        seen.append(decisions)
    assert all(decisions == seen[0] for decisions in seen)


@given(limits=policies(), history=st.lists(actions, max_size=12), cost=st.integers(1, 12))
@settings(max_examples=60)
def test_a_refusal_charges_no_limit(limits: list[Limit], history: list[Action], cost: int) -> None:
    """When one refuses, every key's state is the very object it was, and the others' outcomes are what a peek shows."""
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    limiter = Limiter(*limits, store=store)
    for action in history:
        clock.now += abs(action.step.move(limits[0].quota.period_ns, 0))
        before = _states(store)
        standing = limiter.peek(id=action.key, cost=0).outcomes
        decision = limiter.hit(id=action.key, cost=cost)
        if decision.allowed:
            continue
        after = _states(store)
        assert before.keys() == after.keys()
        assert all(before[place] is after[place] for place in before)
        refusing = [name for name, outcome in decision.outcomes.items() if not isinstance(outcome, Admitted)]
        assert decision.limit in refusing
        for name, outcome in decision.outcomes.items():
            if name not in refusing:
                assert outcome == standing[name]


def _states(store: MemoryStore) -> Mapping[tuple[object, ...], State]:
    return {(name, key): state for name, table in store._tables.items() for key, state in table.states.items()}


@given(limits=policies(), history=st.lists(actions, max_size=12), cost=st.integers(1, 12))
@settings(max_examples=60)
def test_the_decision_s_wait_is_enough_and_one_unit_less_is_not(
    limits: list[Limit], history: list[Action], cost: int
) -> None:
    """Over several limits the longest wait is told: at it the whole request passes, a nanosecond before it does not."""
    clock = ManualClock()
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    for action in history:
        clock.now += abs(action.step.move(limits[0].quota.period_ns, 0))
        limiter.hit(id=action.key, cost=action.step.cost)
    decision = limiter.peek(id="a", cost=cost)
    if decision.allowed or decision.never:
        return
    assert decision.retry_after_ns is not None
    start = clock.now
    clock.now = start + decision.retry_after_ns - 1
    assert not limiter.peek(id="a", cost=cost).allowed
    clock.now = start + decision.retry_after_ns
    assert limiter.hit(id="a", cost=cost).allowed
    assert decision.retry_after * SECOND >= decision.retry_after_ns


@given(limits=policies(), history=st.lists(actions, max_size=12), cost=st.integers(1, 12))
@settings(max_examples=60)
def test_a_client_that_sleeps_the_header_is_admitted(limits: list[Limit], history: list[Action], cost: int) -> None:
    """Retry-After is whole seconds, at least 1, enough, and not a whole second more than the wait."""
    clock = ManualClock()
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    for action in history:
        clock.now += abs(action.step.move(limits[0].quota.period_ns, 0))
        limiter.hit(id=action.key, cost=action.step.cost)
    decision = limiter.hit(id="a", cost=cost)
    fields = {name.lower(): value for name, value in decision.headers().items()}
    if decision.allowed or decision.never:
        assert "retry-after" not in fields
        return
    told = int(fields["retry-after"])
    assert decision.retry_after_ns is not None
    assert told >= 1
    assert 0 <= told * SECOND - decision.retry_after_ns < SECOND
    clock.advance(told)
    assert limiter.hit(id="a", cost=cost).allowed
