"""The tables of ``tests/cases`` replayed by every store, bare and through both limiters."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from headway.core.limit import Limit
from headway.core.outcome import Never, Refused
from headway.core.verdict import Verdict
from headway.testing.clock import ManualClock
from ways import WAYS, opened

CASES = [
    (file.stem, case)
    for file in sorted((Path(__file__).parents[1] / "cases").glob("*.toml"))
    for case in tomllib.loads(file.read_text())["case"]
]


def nanoseconds(text: str) -> int:
    return ceil(Fraction(text) * 10**9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("table", "case"), CASES, ids=lambda part: part["title"] if isinstance(part, dict) else part)
def test_every_way_through_a_store_keeps_the_tables(
    table: str, case: dict[str, Any], way: str, clock: ManualClock, tmp_path: Path
) -> None:
    """Each step of each table: the kind of outcome, what remains, the exact wait, the reset and who binds."""
    described = case.get("limits") or [{"name": "l", **case["limit"]}]
    limits = tuple(
        Limit(one.get("name", "l"), one["quota"], by="id", algorithm=one.get("algorithm")) for one in described
    )
    start = clock.now
    with opened(way, clock, tmp_path, *limits) as ask:
        for number, step in enumerate(case["steps"]):
            clock.now = start + nanoseconds(step["at"])
            cost = step.get("cost", 1)
            looked = ask(cost, commit=False)
            allowed, outcomes = ask(cost)
            where = f"step {number}: {step}"
            assert looked == (allowed, outcomes), where
            verdict = Verdict(limits, tuple(outcomes.values()), allowed, clock.now)
            bound = verdict.binding
            assert bound is not None
            kind = "admitted" if allowed else "never" if isinstance(bound, Never) else "refused"
            assert kind == step["is"], where
            if "left" in step:
                assert bound.remaining == step["left"], where
            if "wait" in step:
                assert isinstance(bound, Refused)
                assert bound.retry_after == nanoseconds(step["wait"]), where
            if "reset" in step:
                assert bound.reset_after == nanoseconds(step["reset"]), where
            if "by" in step:
                assert verdict.limit is not None
                assert verdict.limit.name == step["by"], where
