"""Who is compared: each algorithm of ``headway.core``, and the leaky bucket that a process drains."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from headway.analysis.compare.models import Drip, DripBucket
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import Quota
from headway.core.sliding_log import SlidingLog

__all__ = ["DEFAULT", "NAMES", "Answer", "Contender", "contenders_for"]

NAMES: Final = {
    Algorithm.FIXED_WINDOW.value: "time-bucketed counter",
    Algorithm.ANCHORED_WINDOW.value: "time-bucketed counter, from the first hit",
    Algorithm.SLIDING_WINDOW.value: "sliding window",
    Algorithm.SLIDING_LOG.value: "sliding log",
    "leaky-bucket-drip": "leaky bucket, drip process",
    Algorithm.LEAKY_BUCKET_QUEUE.value: "leaky bucket as a queue",
    Algorithm.TOKEN_BUCKET.value: "token bucket",
    Algorithm.GCRA.value: "GCRA",
}
"""What can be compared, and what it is called."""

DEFAULT: Final = tuple(
    name for name in NAMES if name not in (Algorithm.ANCHORED_WINDOW.value, Algorithm.LEAKY_BUCKET_QUEUE.value)
)
_WITHOUT_BURST: Final = frozenset(
    (Algorithm.FIXED_WINDOW, Algorithm.ANCHORED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)
)


class Answer(NamedTuple):
    """What came of one request.

    Attributes:
        served: when it goes on, in ns; None if it was refused.
        wait: ns that a refused one was told to wait; 0 otherwise.
        kept: whether it would be admitted then, if nobody else came.
    """

    served: int | None
    wait: int = 0
    kept: bool = True


class Contender(Protocol):
    """One algorithm with the state of every key."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def algorithm(self) -> str:
        """Its name in a policy file, or "leaky-bucket-drip"."""
        ...

    def offer(self, key: str, now: int) -> Answer:
        """Decide one request. Times never go back."""
        ...

    def numbers(self, key: str) -> int:
        """How many numbers it keeps of a key."""
        ...

    def tidy(self, now: int) -> None:
        """Forget the keys that are as if unused."""
        ...


class Ruled:
    """An algorithm of the core, decided by its rule."""

    def __init__(self, limit: Limit) -> None:
        self.algorithm = limit.algorithm.value
        self.name = NAMES[self.algorithm]
        self._rule = limit.rule
        self._states: dict[str, Any] = {}

    def offer(self, key: str, now: int) -> Answer:
        """See ``Contender``."""
        state, outcome = self._rule.decide(self._states.get(key), now, 1)
        self._states[key] = state
        match outcome:
            case Admitted(delay=delay):
                return Answer(now + delay)
            case Refused(retry_after=wait):
                _, then = self._rule.decide(state, now + wait, 1)
                return Answer(None, wait, isinstance(then, Admitted))
            case Never():
                raise AssertionError("a cost of 1 fits any burst")

    def numbers(self, key: str) -> int:
        """See ``Contender``."""
        state = self._states.get(key)
        if state is None:
            return 0
        return 1 if isinstance(state, int) else len(state)

    def tidy(self, now: int) -> None:
        """See ``Contender``."""
        expires_at = self._rule.expires_at
        over = [key for key, state in self._states.items() if state is None or expires_at(state) <= now]
        for key in over:
            del self._states[key]


class Logged:
    """The sliding log, restated: ``SlidingLog.decide`` for a cost of 1 and times that never go back, in constant time.

    The rule copies a key's arrivals with each admission, which takes most of a comparison's time where they are thousands.
    """

    algorithm = Algorithm.SLIDING_LOG.value
    name = NAMES[Algorithm.SLIDING_LOG.value]

    def __init__(self, rule: SlidingLog) -> None:
        self._burst, self._period = rule.burst, rule.period
        self._arrivals: dict[str, deque[list[int]]] = {}
        """Of each key (instant, units), oldest first."""
        self._used: dict[str, int] = {}

    def offer(self, key: str, now: int) -> Answer:
        """See ``Contender``."""
        arrivals = self._arrivals.get(key)
        if arrivals is None:
            arrivals = self._arrivals[key] = deque()
        used = self._used.get(key, 0)
        while arrivals and arrivals[0][0] + self._period <= now:
            used -= arrivals.popleft()[1]
        if used >= self._burst:
            self._used[key] = used
            return Answer(None, arrivals[0][0] + self._period - now)  # the oldest makes room then, so the hint is kept
        if arrivals and arrivals[-1][0] == now:
            arrivals[-1][1] += 1
        else:
            arrivals.append([now, 1])
        self._used[key] = used + 1
        return Answer(now)

    def numbers(self, key: str) -> int:
        """See ``Contender``."""
        return 2 * len(self._arrivals.get(key, ()))

    def tidy(self, now: int) -> None:
        """See ``Contender``."""
        for key in [key for key, arrivals in self._arrivals.items() if arrivals[-1][0] + self._period <= now]:
            del self._arrivals[key], self._used[key]


class Dripping:
    """A leaky bucket a key, all of them drained by one process. A model: see ``DripBucket``."""

    algorithm = "leaky-bucket-drip"

    def __init__(self, quota: Quota, drip: Drip, what_happens: str = "process") -> None:
        self.name = f"leaky bucket, drip {what_happens}"
        self._make: Callable[[], DripBucket] = lambda: DripBucket(quota, drip)
        self._buckets: dict[str, DripBucket] = {}

    def offer(self, key: str, now: int) -> Answer:
        """See ``Contender``."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = self._make()
        wait = bucket.pour(now)
        return Answer(None, wait, bucket.fits(now + wait)) if wait else Answer(now)

    def numbers(self, key: str) -> int:
        """See ``Contender``."""
        return 1

    def tidy(self, now: int) -> None:
        """See ``Contender``."""
        for key in [key for key, bucket in self._buckets.items() if not bucket.level(now)]:
            del self._buckets[key]


def contenders_for(
    quota: Quota, algorithms: tuple[str, ...] = DEFAULT, pause: tuple[int, int] | None = None
) -> tuple[Contender, ...]:
    """The contenders, all unused.

    Args:
        quota: a count a period; windows and logs take its count for their burst.
        algorithms: of ``NAMES``.
        pause: when the drip process stands still and when it goes on, in ns; then there are three more leaky buckets, one
            for each thing that may happen.

    Raises:
        ValueError: another algorithm, or a quota that is none of a rate; says what is accepted.
    """
    if not quota.count or quota.zone is not None or quota.concurrent:
        raise ValueError(
            f"limit is '{quota}'; expected a rate above 0 without a zone, such as '10/s' or '5 per 60s burst 2'"
        )
    found: list[Contender] = []
    for name in algorithms:
        if name not in NAMES:
            raise ValueError(f"algorithm is {name!r}; expected any of {', '.join(NAMES)}")
        if name != Dripping.algorithm:
            algorithm = Algorithm(name)
            own = replace(quota, burst=quota.count) if algorithm in _WITHOUT_BURST else quota
            limit = Limit("compare", own, by="key", algorithm=algorithm)
            found.append(Logged(limit.rule) if isinstance(limit.rule, SlidingLog) else Ruled(limit))
            continue
        every = -(-quota.period_ns // quota.count)
        found.append(Dripping(quota, Drip(quota, every)))
        if pause is not None:
            stops, resumes = pause
            found.append(Dripping(quota, Drip(quota, every, stops, resumes), "stops and goes on"))
            found.append(Dripping(quota, Drip(quota, every, stops, resumes, catches_up=True), "stops and catches up"))
            found.append(Dripping(quota, Drip(quota, every, stops), "stops for good"))
    return tuple(found)
