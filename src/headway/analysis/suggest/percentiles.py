"""Percentiles by nearest rank: the smallest value that at least so many of all are at or below. No value is made up."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

__all__ = ["PERCENTILES", "WINDOWS", "Histogram"]

PERCENTILES: Final = (
    ("p50", Fraction(1, 2)),
    ("p95", Fraction(95, 100)),
    ("p99", Fraction(99, 100)),
    ("p99.9", Fraction(999, 1000)),
)
WINDOWS: Final = (("1s", 10**9), ("10s", 10 * 10**9), ("60s", 60 * 10**9), ("1h", 3600 * 10**9))
"""Name and ns of the windows that are counted, aligned to the clock: they begin at multiples of their length since 1970."""


class Histogram:
    """How often each number of requests came.

    Args:
        pairs: (requests, how many non-empty windows had so many), in any order.
    """

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self.pairs = sorted(pairs)
        self.whole = sum(count for _, count in self.pairs)

    def rank(self, share: Fraction) -> int:
        """The value at a share of all, by nearest rank; 0 of nothing."""
        left = -(-share.numerator * self.whole // share.denominator)
        for value, count in self.pairs:
            left -= count
            if left <= 0:
                return value
        return 0

    @property
    def most(self) -> int:
        """The largest value; 0 of nothing."""
        return self.pairs[-1][0] if self.pairs else 0

    def summary(self) -> dict[str, int]:
        """``windows`` (how many are not empty), the percentiles, and ``max``."""
        return {"windows": self.whole} | {name: self.rank(share) for name, share in PERCENTILES} | {"max": self.most}
