"""Counts per period that people write: round numbers a second, a minute, an hour or a day, between two rates."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Final

from headway.core.quota import DAY, HOUR, MINUTE, SECOND

__all__ = ["Sustained", "rounded_up", "sustained_between"]

Sustained = tuple[int, int]
"""(count, period in ns)."""

_STEPS: Final = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
_PER_SECOND_FROM: Final = 20
"""So many a second and more are written by the second."""


def rounded_up(number: Fraction | int) -> int:
    """The next round whole number: 1 to 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120 and so on."""
    whole = max(1, ceil(number))
    if whole <= 10:
        return whole
    scale = 10 ** (len(str(whole)) - 2)
    found: int = next(step * scale for step in (*_STEPS, 100) if step * scale >= whole)
    return found


def sustained_between(low: Fraction, high: Fraction, most: int = 12) -> list[Sustained]:
    """Up to ``most`` of them from one rate to another, both in requests a ns; none below ``low``, evenly spread.

    Args:
        low: above 0.
        high: at least ``low``.
        most: at least 2.
    """
    ratio = float(high / low) ** (1 / (most - 1))
    found: dict[Fraction, Sustained] = {}
    for step in range(most):
        per_ns = low * Fraction(ratio**step) if step else low
        count, period = _written(per_ns)
        found.setdefault(Fraction(count, period), (count, period))
    return [found[per_ns] for per_ns in sorted(found)]


def _written(per_ns: Fraction) -> Sustained:
    for period, least in ((SECOND, _PER_SECOND_FROM), (MINUTE, 1), (HOUR, 1)):
        if per_ns * period >= least:
            return rounded_up(per_ns * period), period
    return rounded_up(per_ns * DAY), DAY
