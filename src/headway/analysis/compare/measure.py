"""Put one pattern of arrivals to several algorithms, and measure each: what passed, when, how fast, and what was told.

Memory grows with the keys (their counts) and with what is not yet recovered, not with the number of arrivals.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import Final

from headway.analysis.compare.contenders import Contender
from headway.analysis.compare.models import NaiveTokenBucket
from headway.core.gcra import Gcra
from headway.core.outcome import Admitted
from headway.core.quota import Quota

__all__ = ["Comparing", "Comparison", "Course", "Twins", "Worst"]

_MOST_SPANS: Final = 120
_MOST_LEVELS: Final = 400
_TIDY_AFTER: Final = 10_000


@dataclass(frozen=True, slots=True)
class Course:
    """How one algorithm did.

    Attributes:
        name: what people call it.
        algorithm: its name in a policy file, or "leaky-bucket-drip".
        admitted: how many requests passed.
        refused: how many did not.
        refused_others: how many of them were not the busiest key's.
        worst: the most of one key that went on within any span of one period, wherever it begins.
        worst_total: the same of all keys together.
        numbers: the most numbers it kept of one key.
        longest_wait: the longest wait that was told, in ns; 0 if none was.
        mean_wait: the mean of those told, in ns, rounded.
        hints_kept: how many of the refused would be admitted at the time they were told, if nobody else came.
        passed: (span, how many went on in it), spans without any left out.
        held_back: the same of the refused.
    """

    name: str
    algorithm: str
    admitted: int
    refused: int
    refused_others: int
    worst: int
    worst_total: int
    numbers: int
    longest_wait: int
    mean_wait: int
    hints_kept: int
    passed: tuple[tuple[int, int], ...]
    held_back: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Twins:
    """GCRA beside a token bucket told naively, on the same arrivals.

    Attributes:
        alike: requests that both decided alike, with the same wait.
        different: the others.
        levels: of the first key: (ns, tokens in the bucket, what GCRA's one instant says they are), after each request
            until there are a few hundred.
    """

    alike: int
    different: int
    levels: tuple[tuple[int, Fraction, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it.

    Attributes:
        quota: the quota.
        requests: how many were decided.
        keys: how many different keys they had.
        busiest: the key that sent most, and how many; None without requests.
        first: when the first came, in ns.
        last: when the last came, in ns.
        span: how long each span of ``Course.passed`` is, in ns; span n begins at n · span.
        courses: one for each contender.
        twins: see ``Twins``.
        partial: why it is not the whole; empty for a whole one.
    """

    quota: Quota
    requests: int
    keys: int
    busiest: tuple[str, int] | None
    first: int
    last: int
    span: int
    courses: tuple[Course, ...]
    twins: Twins
    partial: str = ""


class Worst:
    """The most instants within any half-open span of ``period`` ns; they have to come in the order of time."""

    def __init__(self, period: int) -> None:
        self._period = period
        self._recent: deque[int] = deque()
        self.most = 0

    def add(self, at: int) -> None:
        """One more."""
        recent = self._recent
        recent.append(at)
        while recent[0] <= at - self._period:
            recent.popleft()
        if len(recent) > self.most:
            self.most = len(recent)

    def over(self, now: int) -> bool:
        """Whether nothing that it holds can count together with what comes from ``now`` on."""
        return not self._recent or self._recent[-1] <= now - self._period


class _Spans:
    """How many in each span of time. Spans double their length before there are too many."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._counts: Counter[int] = Counter()
        self._low = self._high = 0

    def add(self, at: int) -> None:
        """One more."""
        place = at // self.length
        if place in self._counts:
            self._counts[place] += 1
            return
        if not self._counts:
            self._low = self._high = place
        self._low, self._high = min(self._low, place), max(self._high, place)
        self._counts[place] = 1
        while self._high - self._low >= 2 * _MOST_SPANS:
            self.lengthen(2 * self.length)

    def lengthen(self, length: int) -> None:
        """Make spans longer, by a power of two."""
        times = length // self.length
        counts: Counter[int] = Counter()
        for place, count in self._counts.items():
            counts[place // times] += count
        self._counts, self.length = counts, length
        self._low, self._high = self._low // times, self._high // times

    def all(self) -> tuple[tuple[int, int], ...]:
        """In the order of time."""
        return tuple(sorted(self._counts.items()))


class _Tally:
    def __init__(self, contender: Contender, period: int, span: int) -> None:
        self.contender = contender
        self.passed, self.held_back = _Spans(span), _Spans(span)
        self._period = period
        self._worst: dict[str, Worst] = {}
        self._total = Worst(period)
        self._queued: list[int] = []  # instants at which admitted requests of any key will go on, a heap
        self._refused: Counter[str] = Counter()
        self._most = 0  # of the keys that were tidied away
        self._admitted = self._numbers = self._longest = self._waits = self._kept = 0

    def add(self, key: str, now: int) -> None:
        answer = self.contender.offer(key, now)
        if answer.served is None:
            self._refused[key] += 1
            if answer.wait > self._longest:
                self._longest = answer.wait
            self._waits += answer.wait
            self._kept += answer.kept
            self.held_back.add(now)
            return
        self._admitted += 1
        worst = self._worst.get(key)
        if worst is None:
            worst = self._worst[key] = Worst(self._period)
        worst.add(answer.served)
        if answer.served > now or self._queued:
            heappush(self._queued, answer.served)
            self._go_on(now)
        else:
            self._total.add(answer.served)
        numbers = self.contender.numbers(key)
        if numbers > self._numbers:
            self._numbers = numbers
        self.passed.add(answer.served)

    def tidy(self, now: int) -> None:
        """Forget what cannot matter any more."""
        self.contender.tidy(now)
        for key in [key for key, worst in self._worst.items() if worst.over(now)]:
            self._most = max(self._most, self._worst.pop(key).most)

    def _go_on(self, now: int | None = None) -> None:
        while self._queued and (now is None or self._queued[0] <= now):
            self._total.add(heappop(self._queued))

    def course(self, busiest: str | None) -> Course:
        self._go_on()
        refused = self._refused.total()
        return Course(
            self.contender.name,
            self.contender.algorithm,
            self._admitted,
            refused,
            refused - (self._refused[busiest] if busiest is not None else 0),
            max([self._most, *(worst.most for worst in self._worst.values())]),
            self._total.most,
            self._numbers,
            self._longest,
            round(Fraction(self._waits, refused)) if refused else 0,
            self._kept,
            self.passed.all(),
            self.held_back.all(),
        )


class Comparing:
    """A comparison under way: ``add`` the requests in the order of time, then ask for the ``comparison``.

    Args:
        quota: what the contenders were made for; of a count above 0.
        contenders: unused ones.
        span: ns of the shortest span of the picture.
    """

    def __init__(self, quota: Quota, contenders: Sequence[Contender], span: int) -> None:
        self._quota = quota
        self._tallies = [_Tally(contender, quota.period_ns, span) for contender in contenders]
        self._rule = Gcra.of(quota)
        self._tats: dict[str, object] = {}
        self._buckets: dict[str, NaiveTokenBucket] = {}
        self._asked: Counter[str] = Counter()
        self._alike = self._different = 0
        self._levels: list[tuple[int, Fraction, Fraction]] = []
        self._shown: str | None = None  # the key whose levels are kept
        self._until_tidy = _TIDY_AFTER
        self._first: int | None = None
        self._last = 0
        self.requests = 0

    def add(self, key: str, at: int) -> None:
        """One request; one that comes with an earlier time than one before is decided at that one's time."""
        now = max(at, self._last) if self._first is not None else at
        if self._first is None:
            self._first, self._shown = now, key
        self._last = now
        self.requests += 1
        self._asked[key] += 1
        for tally in self._tallies:
            tally.add(key, now)
        self._twins(key, now)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy(now)

    def comparison(self, partial: str = "") -> Comparison:
        """What has come of it; ask once, at the end."""
        busiest = self._asked.most_common(1)[0] if self._asked else None
        spans = [spans for tally in self._tallies for spans in (tally.passed, tally.held_back)]
        longest = max((one.length for one in spans), default=1)
        for one in spans:
            if one.length < longest:
                one.lengthen(longest)
        return Comparison(
            self._quota,
            self.requests,
            len(self._asked),
            busiest,
            self._first or 0,
            self._last,
            longest,
            tuple(tally.course(busiest[0] if busiest else None) for tally in self._tallies),
            Twins(self._alike, self._different, tuple(self._levels)),
            partial,
        )

    def _twins(self, key: str, now: int) -> None:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = NaiveTokenBucket(self._quota)
        wait = bucket.take(now)
        state, outcome = self._rule.decide(self._tats.get(key), now, 1)  # type: ignore[arg-type]  # its own states
        self._tats[key] = state
        told = 0 if isinstance(outcome, Admitted) else outcome.retry_after if hasattr(outcome, "retry_after") else -1
        self._alike += wait == told
        self._different += wait != told
        if len(self._levels) < _MOST_LEVELS and key == self._shown:
            self._levels.append((now, bucket.tokens(now), self._room(state, now)))

    def _tidy(self, now: int) -> None:
        """Forget keys that are as if unused, every so often: about one look a request, however many keys there are."""
        for tally in self._tallies:
            tally.tidy(now)
        for key in [key for key, bucket in self._buckets.items() if bucket.full(now)]:
            del self._buckets[key]
            self._tats.pop(key, None)
        self._until_tidy = max(_TIDY_AFTER, len(self._buckets))

    def _room(self, state: object, now: int) -> Fraction:
        """(burst · T − what is owed) / T: GCRA's one instant read as tokens."""
        rule = self._rule
        owed = max(0, rule.ticks(state) - now * rule.scale)  # type: ignore[arg-type]  # its own state
        return Fraction(rule.depth - owed, rule.interval)
