"""GCRA on exact fractions, written from the definition (ITU-T I.371 Annex A) and nothing of headway: what tests compare with.

Times are seconds as ``Fraction``. ``vectors`` reads the published vectors, ``tests/data/gcra_vectors.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Expected:
    """One exact answer; ``wait`` is None when allowed or never."""

    allowed: bool
    never: bool
    remaining: int
    wait: Fraction | None
    replenish: Fraction
    reset: Fraction


@dataclass
class ExactGcra:
    """GCRA(T, τ) with T = ``interval`` and τ = (``burst`` − 1)·T; a TAT beyond ``slack`` more than the depth is capped."""

    interval: Fraction
    burst: Fraction
    slack: Fraction | None
    tat: Fraction | None = None

    def decide(self, now: Fraction, cost: int, *, commit: bool = True) -> Expected:
        depth = self.burst * self.interval
        tat = max(now, self.tat if self.tat is not None else now)
        capped = self.slack is not None and tat > now + depth + self.slack
        if capped:
            tat = now + depth
        wanted = tat + cost * self.interval
        allowed = wanted <= now + depth or cost == 0
        if commit and cost and (allowed or capped):
            self.tat = wanted if allowed else tat
        if allowed and cost:
            tat = wanted
        owed = tat - now
        remaining = min(max(floor((depth - owed) / self.interval), 0), floor(self.burst))
        # More than `remaining` can be spent once owed ≤ depth − (remaining + 1)·T, or, on a full bucket, never: then 0.
        more = depth - (remaining + 1) * self.interval
        never = cost > self.burst
        return Expected(
            allowed,
            never and not allowed,
            remaining,
            None if allowed or never else wanted - depth - now,
            owed - more if more >= 0 else owed,
            owed,
        )


def vectors() -> Iterator[dict[str, Any]]:
    """The published vectors, with their rationals as ``Fraction``."""
    for vector in json.loads((DATA / "gcra_vectors.json").read_text())["vectors"]:
        for step in vector["steps"]:
            for name in ("t", "reset_after", "retry_after", "tat_after"):
                if step[name] not in (None, "never"):
                    step[name] = Fraction(step[name])
        for name in ("emission_interval", "burst", "limit_L"):
            vector[name] = Fraction(vector[name])
        yield vector
