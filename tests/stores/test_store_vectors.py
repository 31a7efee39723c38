"""The published vectors on every store: times floored to whole nanoseconds, expectations recomputed by the exact model."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest

from exact_gcra import ExactGcra, vectors
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import SECOND, Quota
from headway.testing.clock import ManualClock
from ways import WAYS, opened

EPOCH = 1_800_000_000
VECTORS = [vector for vector in vectors() if not vector.get("scope", "").startswith("core only")]


def quota_of(vector: dict[str, Any]) -> Quota:
    rate = vector["rate"]
    return Quota(int(rate["count"]), int(Fraction(rate["period_s"]) * SECOND), int(vector["burst"]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("company", [0, 1], ids=["alone", "with another limit"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_every_way_through_a_store_answers_the_vectors(
    vector: dict[str, Any], company: int, way: str, clock: ManualClock, tmp_path: Path
) -> None:
    """A store changes nothing about the arithmetic: every field is the exact one, rounded up to the nanosecond."""
    model = ExactGcra(vector["emission_interval"], vector["burst"], Fraction(10))
    limits = [Limit("l", quota_of(vector), by="id"), *[Limit("loose", "1000000000/s", by="id")] * company]
    with opened(way, clock, tmp_path, *limits) as ask:
        for number, step in enumerate(vector["steps"]):
            clock.now = EPOCH * SECOND + floor(step["t"] * SECOND)
            expected = model.decide(Fraction(clock.now, SECOND), step["cost"])
            peeked = ask(step["cost"], commit=False)
            allowed, outcomes = ask(step["cost"])
            where = f"{vector['id']} step {number}"
            assert peeked == (allowed, outcomes), f"{where}: peek said {peeked}, hit {outcomes}"
            assert allowed is expected.allowed, where
            _compare(outcomes["l"], expected, where)


def _compare(outcome: Outcome, expected: Any, where: str) -> None:
    kind = Admitted if expected.allowed else Never if expected.never else Refused
    assert type(outcome) is kind, where
    assert outcome.remaining == expected.remaining, where
    assert outcome.reset_after == ceil(expected.reset * SECOND), where
    assert outcome.replenish_after == ceil(expected.replenish * SECOND), where
    if isinstance(outcome, Refused):
        assert outcome.retry_after == ceil(expected.wait * SECOND), where
