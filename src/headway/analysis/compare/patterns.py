"""Named patterns of arrivals, made for a quota: the same pattern, quota, length and seed always give the same arrivals."""

from __future__ import annotations

from enum import StrEnum
from random import Random
from typing import Final, NamedTuple

from headway.core.quota import Quota

__all__ = ["MOST_ARRIVALS", "MOST_PERIODS", "Arrival", "Pattern", "arrivals_of", "explain_pattern"]

MOST_ARRIVALS: Final = 1_000_000
MOST_PERIODS: Final = 1_000
_CLIENT: Final = "client"
_HONEST: Final = 5
_GREEDY_TIMES: Final = 5
_HERD_TIMES: Final = 5


class Arrival(NamedTuple):
    """One request: when it comes, in ns from the pattern's beginning (or since 1970, from a log), and whose it is."""

    at: int
    key: str


class Pattern(StrEnum):
    """How requests come. ``explain_pattern`` says it in words."""

    STEADY = "steady"
    WINDOW_EDGE = "window-edge"
    HERD = "herd"
    GREEDY = "greedy"
    DRIP_PAUSE = "drip-pause"


_EXPLAINED: Final = {
    Pattern.STEADY: "One client asks evenly, half as often again as the quota allows.",
    Pattern.WINDOW_EDGE: "One client sends the whole count just before the end of a window and the whole count again just after it.",
    Pattern.HERD: "After a quiet period, as an outage leaves one, five times the count of clients come back at once; before and "
    "after, requests come at half the quota's rate.",
    Pattern.GREEDY: "One greedy client sends five times the quota, five honest ones half of it each.",
    Pattern.DRIP_PAUSE: "One client stays at nine tenths of the quota. In the middle third the process that drains the leaky bucket "
    "stands still; when that is over, the whole count comes once more at once.",
}


def explain_pattern(pattern: Pattern) -> str:
    """The pattern in a sentence or two."""
    return _EXPLAINED[pattern]


def arrivals_of(pattern: Pattern, quota: Quota, periods: int = 6, seed: int = 0) -> list[Arrival]:
    """The pattern's arrivals in the order of time.

    Args:
        pattern: which.
        quota: its count and period set the scale; its burst does not matter. A count of at least 1.
        periods: how long it lasts, 1 to 1,000 periods of the quota.
        seed: another one shifts each arrival a little.

    Raises:
        ValueError: a length out of range, or more than a million arrivals.
    """
    if not 1 <= periods <= MOST_PERIODS:
        raise ValueError(f"length is {periods}; expected 1 to {MOST_PERIODS} periods of the quota")
    most = max(_GREEDY_TIMES + _HONEST, _HERD_TIMES + 1) * quota.count * periods
    if most > MOST_ARRIVALS:
        raise ValueError(
            f"{periods} periods of {quota} are up to {most:,} arrivals; expected at most {MOST_ARRIVALS:,}: "
            "take a smaller count or length"
        )
    found: list[Arrival] = []
    random, period, end = Random(seed), quota.period_ns, periods * quota.period_ns  # noqa: S311  # no secret
    match pattern:
        case Pattern.STEADY:
            found = _evenly(random, 0, end, 3 * quota.count * periods // 2, _CLIENT)
        case Pattern.DRIP_PAUSE:
            again = 2 * end // 3 + period // 10
            found = _evenly(random, 0, end, 9 * quota.count * periods // 10, _CLIENT)
            found += _evenly(random, again, again + max(1, period // 50), quota.count, _CLIENT)
        case Pattern.WINDOW_EDGE:
            near = max(1, period // 50)
            for edge in range(period, end, 2 * period):
                found += _evenly(random, edge - near, edge, quota.count, _CLIENT)
                found += _evenly(random, edge, edge + near, quota.count, _CLIENT)
        case Pattern.HERD:
            back = (periods // 2) * period or period // 2
            before, herd = max(0, back - period), max(1, period // 20)
            found = _spread(_evenly(random, 0, before, quota.count * before // (2 * period), ""))
            found += _spread(_evenly(random, back, back + herd, _HERD_TIMES * quota.count, ""))
            after = end - back - herd
            found += _spread(_evenly(random, back + herd, end, quota.count * after // (2 * period), ""))
        case Pattern.GREEDY:
            found = _evenly(random, 0, end, _GREEDY_TIMES * quota.count * periods, "greedy")
            for number in range(1, _HONEST + 1):
                found += _evenly(random, 0, end, max(1, quota.count * periods // 2), f"honest-{number}")
    return sorted(found)


def _evenly(random: Random, start: int, end: int, count: int, key: str) -> list[Arrival]:
    """``count`` arrivals in [start, end), each somewhere in its own share of it."""
    span = end - start
    return [
        Arrival(start + min(span - 1, int((n + random.random()) * span / count)), key) for n in range(count) if span > 0
    ]


def _spread(arrivals: list[Arrival]) -> list[Arrival]:
    """Each arrival a client of its own."""
    return [Arrival(at, f"{_CLIENT}-{n}") for n, (at, _) in enumerate(arrivals, 1)]
