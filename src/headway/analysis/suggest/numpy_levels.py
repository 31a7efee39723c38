"""The smallest bursts and limits that refuse nothing, and what others refuse, from the times of one client's requests.

The arithmetic of ``core.gcra.Gcra.decide`` turned around: not "does it pass with this burst?" but "which burst does it take?",
for all requests at once. ``tests/analysis/suggest/test_numpy_levels.py`` holds it to ``decide`` on random arrivals; and
whatever is proposed from it is replayed through the core afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, Final

import numpy

__all__ = ["burst_needed", "refused_of", "smallest_limit"]

_FEW: Final = 30
"""So few requests are counted sooner one by one."""
_MOST: Final = 2**62


def burst_needed(times: Sequence[int], count: int, period: int) -> int:
    """The smallest burst with which ``count`` per ``period`` ns admits requests at all these times.

    Args:
        times: in ns, rising; at least one.
        count: at least 1.
        period: in ns.
    """
    common = gcd(count, period)
    count, period = count // common, period // common
    whole = len(times)
    if whole > _FEW and (times[-1] - times[0]) * count + whole * period < _MOST:
        return _all_at_once(numpy.asarray(times), count, period)
    level = most = 0
    before = times[0]
    for time in times:
        level = max(0, level - (time - before) * count) + period
        before = time
        most = max(most, level)
    return -(-most // period)


def _all_at_once(times: Any, count: int, period: int) -> int:
    """The level before each request is its distance from the lowest point so far: what it was never drained below."""
    drained = numpy.arange(len(times), dtype=numpy.int64) * period - (times - times[0]) * count
    most = int((drained - numpy.minimum.accumulate(drained)).max()) + period
    return -(-most // period)


def refused_of(times: Sequence[int], count: int, period: int, burst: int) -> int:
    """How many of the requests at these times ``count`` per ``period`` ns with a burst refuses; see ``burst_needed``."""
    if len(times) <= burst or burst_needed(times, count, period) <= burst:
        return 0
    level = refused = 0
    full = (burst - 1) * period
    before = times[0]
    for time in times:
        if time != before:
            level -= (time - before) * count
            if level < 0:
                level = 0
            before = time
        if level > full:
            refused += 1
        else:
            level += period
    return refused


def smallest_limit(times: Sequence[int], period: int, known: int = 1) -> int:
    """The smallest n, at least ``known``, for which n per ``period`` with a burst of n admits requests at all these times."""
    if len(times) <= known or burst_needed(times, known, period) <= known:
        return known
    low, high = known, len(times)  # not enough, enough
    while high - low > 1:
        middle = (low + high) // 2
        if burst_needed(times, middle, period) <= middle:
            high = middle
        else:
            low = middle
    return high
