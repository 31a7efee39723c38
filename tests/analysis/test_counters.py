"""The counters decide what the core decides."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from headway.analysis.counters import Counters
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted
from headway.core.quota import SECOND
from headway.errors import LimitError

QUOTAS = ("5 per 60s", "1 per 60s", "7 per 60s", "3/s", "1/s", "0/s", "12 per 10s", "11/day", "3 per 7 ms")
BURSTS = ("5 per 60s burst 1", "7 per 60s burst 3", "3/s burst 10", "100/s burst 20")
CALENDAR = ("5/day in Europe/Berlin", "3/week starting sunday in UTC", "2/month in Asia/Kathmandu", "0/day in UTC")


def limits() -> Iterator[Limit]:
    """Every algorithm with every quota that fits it, some with a fixed cost or counting what they refuse."""
    for algorithm in Algorithm:
        fitting = 0
        for quota in (*QUOTAS, *BURSTS, *CALENDAR):
            with suppress(LimitError):
                yield Limit("a", quota, algorithm=algorithm)
                fitting += 1
        assert fitting >= 3
    yield Limit("a", "7 per 60s", cost=3)
    yield Limit("a", "2 per 60s", cost=3)
    for algorithm in (Algorithm.FIXED_WINDOW, Algorithm.SLIDING_LOG):
        yield Limit("a", "7 per 60s", cost=3, algorithm=algorithm)
        yield Limit("a", "2 per 60s", cost=3, algorithm=algorithm)
    yield Limit("a", "5 per 60s", algorithm="fixed-window", count_refused=True)
    yield Limit("a", "5/day in UTC", count_refused=True)


def history(limit: Limit, seed: int, length: int = 800) -> Iterator[tuple[str, int]]:
    """(key, time): bursts at one instant, steps of the interval and the period to the nanosecond, and long pauses."""
    chance = random.Random(seed)
    period = limit.quota.period_ns
    step = max(1, period // max(1, limit.quota.count))
    now = chance.choice([0, 1, 1_445_742_685 * SECOND])
    for _ in range(length):
        now += chance.choice([0, 0, 0, 1, step - 1, step, step + 1, step // 3, chance.randrange(2 * step), 0, 0])
        if chance.random() < 0.02:
            now += chance.choice([period - 1, period, period + 1, chance.randrange(3 * period)])
        if chance.random() < 0.02:
            now = (now // period + 1) * period - chance.randrange(2)
        for _ in range(limit.quota.burst + 2 if chance.random() < 0.01 else 1):
            yield chance.choice("abbccc") if chance.random() < 0.5 else "c", now


@pytest.mark.parametrize("limit", list(limits()), ids=lambda limit: f"{limit.algorithm}-{limit.quota}")
@pytest.mark.parametrize("tidied", [False, True])
def test_counters_equal_the_core(limit: Limit, tidied: bool) -> None:
    """On random histories each request passes exactly when the core's rule admits it, recovered keys forgotten or not."""
    passed = refused = 0
    for seed in range(2):
        counters = Counters(limit)
        states: dict[str, Any] = {}
        for key, now in history(limit, seed):
            states[key], outcome = limit.rule.decide(states.get(key), now, limit.cost or 1)
            assert counters.admit(key, now) == isinstance(outcome, Admitted), (key, now)
            passed += isinstance(outcome, Admitted)
            refused += not isinstance(outcome, Admitted)
            if tidied:
                counters.tidy(now)
        assert len(counters) == len(states) == 3
    assert refused
    assert passed or limit.rule.burst < (limit.cost or 1)


def test_histories_never_go_back() -> None:
    """The histories keep what the counters ask for."""
    times = [now for _, now in history(Limit("a", "7 per 60s"), 1)]
    assert all(before <= after for before, after in pairwise(times))


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-window", "sliding-log"])
def test_a_recovered_key_keeps_nothing_but_its_name(algorithm: str) -> None:
    """After a tidying what recovered keys hold is let go, except GCRA's one instant, and they still count as seen."""
    counters = Counters(Limit("a", "50 per 60s", algorithm=algorithm))
    for key in range(200):
        for unit in range(50):
            assert counters.admit(key, unit)
    counters.tidy(10**12)
    states = counters._states
    assert len(counters) == 200
    assert all(state is None or isinstance(state, int) for state in states.values())


def test_tidying_is_not_done_each_time() -> None:
    """With a million keys a tidying looks at them once in about a thousand times, so that it costs little a request."""
    counters = Counters(Limit("a", "1 per 60s", algorithm="sliding-log"))
    for key in range(3000):
        counters.admit(key, 0)
    counters.tidy(10**12)
    assert sum(state is not None for state in counters._states.values()) == 3000
    counters.tidy(10**12)
    counters.tidy(10**12)
    assert sum(state is not None for state in counters._states.values()) == 0
