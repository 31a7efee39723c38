"""Every published vector, at its exact rational times, through ``Gcra`` in units of a grid that holds them all."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import pytest

from exact_gcra import ExactGcra, vectors
from headway.core.gcra import Gcra
from headway.core.outcome import Admitted, Never, Refused

VECTORS = list(vectors())
NO_CAP = 10**30


def grid_of(vector: dict[str, Any]) -> int:
    """Units per second in which all of a vector's times, T and burst · T are whole."""
    times = [step["t"] for step in vector["steps"]]
    return lcm(*(Fraction(x).denominator for x in (*times, vector["emission_interval"], vector["limit_L"])))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_the_core_answers_every_vector_exactly(vector: dict[str, Any]) -> None:
    """Decision, remaining, wait, reset and state are the published rationals, not one unit off."""
    grid = grid_of(vector)
    interval, depth = vector["emission_interval"] * grid, vector["burst"] * vector["emission_interval"] * grid
    assert interval.denominator == depth.denominator == 1
    rule = Gcra(int(interval), int(depth), slack=0 if vector["tat_clamp"] else NO_CAP)
    state = None
    for number, step in enumerate(vector["steps"]):
        where = f"{vector['id']} step {number}"
        now = step["t"] * grid
        state, outcome = rule.decide(state, int(now), step["cost"])
        assert isinstance(outcome, Admitted) is step["allowed"], where
        assert isinstance(outcome, Never) is (step["retry_after"] == "never"), where
        assert outcome.remaining == step["remaining"], where
        assert Fraction(outcome.reset_after, grid) == step["reset_after"], where
        if isinstance(outcome, Refused):
            assert Fraction(outcome.retry_after, grid) == step["retry_after"], where
        if step["tat_after"] is None:
            assert state is None, where
        else:
            assert state == step["tat_after"] * grid, where


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_the_model_used_elsewhere_answers_every_vector_exactly(vector: dict[str, Any]) -> None:
    """The exact model that stores are compared with agrees with the published vectors itself."""
    model = ExactGcra(vector["emission_interval"], vector["burst"], Fraction(0) if vector["tat_clamp"] else None)
    for number, step in enumerate(vector["steps"]):
        where = f"{vector['id']} step {number}"
        expected = model.decide(step["t"], step["cost"])
        assert expected.allowed is step["allowed"], where
        assert expected.never is (step["retry_after"] == "never"), where
        assert expected.remaining == step["remaining"], where
        assert expected.reset == step["reset_after"], where
        assert expected.wait == (None if step["retry_after"] == "never" else step["retry_after"]), where
        assert model.tat == step["tat_after"], where
