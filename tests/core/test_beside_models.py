"""Each rule by itself beside the slow exact model of its algorithm: every field of every outcome, on random histories."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_models import Charged, GcraModel, model_of
from headway.core.lease import Lease, Receipt
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted
from headway.core.quota import SECOND
from headway.core.rule import State
from properties.test_model import LIKE_GCRA, admitted, limits, refused

MANY = settings.default.max_examples if settings.default else 100
steps = st.tuples(
    st.sampled_from(["hit", "hit", "hit", "look", "back", "take"]),
    st.one_of(st.just(0.0), st.floats(0, 0.4), st.floats(0, 2.5)),
    st.integers(0, 7),
    st.integers(0, 99),
)


@pytest.mark.parametrize("algorithm", list(Algorithm))
@given(data=st.data())
@settings(max_examples=MANY * 3 // 10)
def test_a_rule_says_what_its_definition_says(algorithm: Algorithm, data: st.DataObject) -> None:
    """Hits, looks, units given back, debt; states come back from their numbers and say when they may be forgotten."""
    limit = data.draw(limits("l", [algorithm], whole=True))
    rule, model = limit.rule, model_of(limit)
    state: State | None = None
    now, wait, token = 1_800_000_000 * SECOND, 0, 0
    given: list[tuple[Receipt, Charged]] = []
    for kind, share, cost, number in data.draw(st.lists(steps, max_size=12)):
        now += wait - number % 2 if wait and number % 3 == 0 else int(limit.quota.period_ns * share)
        if kind == "back":
            if given and not isinstance(model, GcraModel):
                receipt, charged = given.pop(number % len(given))
                units = charged.units if algorithm is Algorithm.CONCURRENCY else min(charged.units, max(1, cost))
                state = rule.give_back(state, now, units, receipt)
                model.give_back(charged, units, now)
        elif kind == "take":
            if cost and algorithm is not Algorithm.CONCURRENCY:
                state = rule.take(state, now, cost)
                model.charge(now, cost)
        else:
            cost = 0 if kind == "look" else cost
            fits = model.fits(now) >= cost
            token += 1
            after, outcome = rule.decide(state, now, cost, Lease(token, 10**18))
            if fits:
                held = model.charge(now, cost) if cost else None
                assert outcome == admitted(model, now, bool(held))
                if held and isinstance(outcome, Admitted):
                    given.append((Receipt(now, cost, token, outcome), held))
            else:
                if limit.count_refused:
                    model.refuse(now, cost)
                assert outcome == refused(model, now, cost, counted=False)
                assert after is state or limit.count_refused
            assert cost or after is state
            state = after
            wait = getattr(outcome, "retry_after", 0) or outcome.replenish_after
        if state is not None and algorithm not in LIKE_GCRA:
            assert rule.load(rule.dump(state)) == state
            reset = rule.decide(state, now, 0)[1].reset_after
            if reset:
                assert rule.expires_at(state) >= now + reset
                assert rule.expires_at(state) == now + reset or algorithm is Algorithm.SLIDING_WINDOW


@pytest.mark.parametrize("algorithm", [each for each in Algorithm if each not in LIKE_GCRA])
@given(data=st.data())
@settings(max_examples=MANY * 2 // 10)
def test_a_proportional_change_uses_the_same_share(algorithm: Algorithm, data: st.DataObject) -> None:
    """Windows and logs: of every count in use the same share, rounded up; places and attempts stay as they are."""
    limit = data.draw(limits("l", [algorithm]))
    count = data.draw(st.integers(1, 12))
    burst = limit.quota.burst if algorithm is Algorithm.GROWING_WAIT else count
    counted = limit.quota.count if algorithm is Algorithm.GROWING_WAIT else count
    new = replace(limit, quota=replace(limit.quota, count=counted, burst=burst))
    now, state = 1_800_000_000 * SECOND, None
    for cost in data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
        state = limit.rule.decide(state, now, cost)[0]
    used = limit.quota.burst - limit.rule.decide(state, now, 0)[1].remaining
    if state is None:
        return
    left = new.rule.decide(new.rule.scaled(state, now, limit.rule), now, 0)[1].remaining
    if algorithm in (Algorithm.CONCURRENCY, Algorithm.GROWING_WAIT):
        assert left == max(0, new.quota.burst - used) or algorithm is Algorithm.GROWING_WAIT
    else:
        assert left == max(0, count - -(-used * count // limit.quota.count))


def test_the_models_are_of_every_algorithm() -> None:
    """None is left out."""
    assert all(model_of(Limit("l", _plain(each), algorithm=each)) for each in Algorithm)


def _plain(algorithm: Algorithm) -> str:
    return {"calendar-window": "5/day in UTC", "concurrency": "5 at once"}.get(algorithm.value, "5/s")
