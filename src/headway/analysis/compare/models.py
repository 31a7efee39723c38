"""Two limiters that are models, not ours: a token bucket told naively, and a leaky bucket that a process has to drain.

Everything else that is compared is decided by ``headway.core``. Nothing here reads a clock; times never go back.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from headway.core.quota import Quota

__all__ = ["Drip", "DripBucket", "NaiveTokenBucket"]


class NaiveTokenBucket:
    """A token bucket as textbooks tell it: a number of tokens, exact, and when it was last looked at.

    Args:
        quota: ``burst`` tokens fit in, ``count`` a period flow in; a new bucket is full.
    """

    def __init__(self, quota: Quota) -> None:
        self._count, self._token = quota.count, quota.period_ns
        self._full = quota.burst * quota.period_ns
        self._level = self._full  # in so small parts of a token that ``count`` of them flow in each ns
        self._seen: int | None = None

    def take(self, now: int) -> int:
        """Take a token: 0 if there was one, else ns until there is one, rounded up."""
        level = self._level_at(now)
        self._seen = now
        if level >= self._token:
            self._level = level - self._token
            return 0
        self._level = level
        return -((level - self._token) // self._count)

    def tokens(self, now: int) -> Fraction:
        """How many tokens there are."""
        return Fraction(self._level_at(now), self._token)

    def full(self, now: int) -> bool:
        """Whether it is as if unused."""
        return self._level_at(now) == self._full

    def _level_at(self, now: int) -> int:
        if self._seen is None:
            return self._level
        return min(self._full, self._level + (now - self._seen) * self._count)


@dataclass(frozen=True, slots=True)
class Drip:
    """When a process takes units out of every bucket: on a timer, and not while it stands still.

    Args:
        quota: ``count`` units a period leave.
        every: ns between two runs, at least 1.
        stops: when it stands still; None: never.
        resumes: when it runs again, after ``stops``; None: never.
        catches_up: whether its first run afterwards takes out all that should have left meanwhile.
    """

    quota: Quota
    every: int
    stops: int | None = None
    resumes: int | None = None
    catches_up: bool = False

    def drained(self, now: int) -> int:
        """How many units it has taken out of a bucket that was never empty."""
        if self.stops is None or now < self.stops:
            return self._due(now)
        before = self._due(max(0, self.stops - 1))
        if self.resumes is None or now < self.resumes:
            return before
        if not self.catches_up:
            return before + self._due(now) - self._due(self.resumes - 1)
        return self._due(now) if now // self.every > (self.resumes - 1) // self.every else before

    def next_run(self, now: int) -> int:
        """Ns until the next run that takes a unit out, if the process lives."""
        quota = self.quota
        due = self._due(now) + 1
        run = -(-due * quota.period_ns // (quota.count * self.every))
        return run * self.every - now

    def _due(self, now: int) -> int:
        """What the runs up to ``now`` take out if none is left out."""
        return now // self.every * self.every * self.quota.count // self.quota.period_ns


class DripBucket:
    """A leaky bucket: a level that a request raises by one and that only the process lowers; what would overflow is refused.

    Args:
        quota: ``burst`` is what it holds.
        drip: the process.
    """

    def __init__(self, quota: Quota, drip: Drip) -> None:
        self._capacity = quota.burst
        self._drip = drip
        self._level = 0
        self._drained = 0

    def pour(self, now: int) -> int:
        """Pour one in: 0 if it fits, else ns until it would if the process lives, which is all that the bucket can tell."""
        self._level = self.level(now)
        self._drained = self._drip.drained(now)
        if self._level < self._capacity:
            self._level += 1
            return 0
        return self._drip.next_run(now)

    def level(self, now: int) -> int:
        """How full it is."""
        return max(0, self._level - (self._drip.drained(now) - self._drained))

    def fits(self, now: int) -> bool:
        """Whether one more would fit at a later time if nobody else came."""
        return self.level(now) < self._capacity
