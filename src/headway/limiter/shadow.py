"""``ShadowReport``: what a limiter's shadow limits would have refused, counted beside the enforced ones.

Counting happens where the decision is made, after it: it changes nothing that is decided, and asks no store. Memory is
bounded: a few numbers and two ``Distinct`` for each shadow limit and tier, whatever the number of keys.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, Final
from weakref import WeakSet

from headway.core.key import Key, key_part
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.errors import AttributeMissing, UnknownName
from headway.limiter.decision import Decision
from headway.limiter.distinct import Distinct
from headway.limiter.plan import Plan
from headway.policy.choice import Ask, Choice, choose, limits_of

__all__ = ["ShadowCount", "ShadowCounts", "ShadowReport", "no_shadows"]

_MISSING: Final = "(missing)"
_UNKNOWN: Final = "(unknown)"


@dataclass(frozen=True, slots=True)
class ShadowCount:
    """What one shadow limit would have refused.

    Attributes:
        limit: its name.
        tier: of which tier's requests this is said; None for all of them together.
        requests: how many the limit was asked for: hits, reservations and waits with a cost above 0; no peeks.
        would_refuse: how many of them it would have refused, were it enforced.
        newly_refused: how many of those the enforced limits let pass: what enforcing it would change.
        callers: different keys among the requests; None for a limit without a key.
        callers_refused: different keys among those it would have refused; None for a limit without a key.
        exact: ``callers`` and ``callers_refused`` are exact; else each is right within about 3 % (standard error).
        undecided: requests beside those, of which the limit could not be asked: they lack an attribute, or have a value
            that it cannot take, or its provider failed. Enforced, the limit would have raised an error.
    """

    limit: str
    tier: str | None
    requests: int
    would_refuse: int
    newly_refused: int
    callers: int | None
    callers_refused: int | None
    exact: bool
    undecided: int = 0

    @property
    def share(self) -> float:
        """The part of the requests that would have been refused, 0.0 to 1.0."""
        return self.would_refuse / self.requests if self.requests else 0.0

    @property
    def callers_share(self) -> float | None:
        """The part of the callers that would have been refused at least once, 0.0 to 1.0; None without a key."""
        if self.callers is None or self.callers_refused is None:
            return None
        return min(1.0, self.callers_refused / self.callers) if self.callers else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The count as JSON-able values, with both shares."""
        return {**asdict(self), "share": self.share, "callers_share": self.callers_share}

    def __str__(self) -> str:
        whose = f" of tier {self.tier}" if self.tier is not None else ""
        beside = f"; could not say of {self.undecided:,} more" if self.undecided else ""
        if not self.requests:
            return f"{self.limit}: no request{whose} so far{beside}"
        said = f"{self.limit}: would have refused {_share(self.would_refuse, self.requests)} of the requests{whose}"
        if self.callers is not None and self.callers_refused is not None:
            about = "" if self.exact else "about "
            said += f" and {about}{_share(min(self.callers_refused, self.callers), self.callers)} of the callers"
        if self.newly_refused < self.would_refuse:
            said += f"; refused anyway: {self.would_refuse - self.newly_refused:,}"
        return said + beside


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What all shadow limits of a limiter would have refused.

    Attributes:
        since: when counting began (UTC, the host's clock).
        counts: for each shadow limit, in the policy's order, all of its requests and then each tier's, where tiers are
            known: the limit's own, or those of the first limit of the policy that has tiers.
    """

    since: datetime
    counts: tuple[ShadowCount, ...]

    def of(self, limit: str, tier: str | None = None) -> ShadowCount:
        """The count of that limit and tier.

        Raises:
            UnknownName: no shadow limit of that name, or no request of that tier so far.
        """
        found = {count.tier: count for count in self.counts if count.limit == limit}
        if not found:
            raise UnknownName("shadow limit", limit, tuple(dict.fromkeys(count.limit for count in self.counts)))
        if tier not in found:
            raise UnknownName("tier", str(tier), tuple(name for name in found if name is not None))
        return found[tier]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-able values."""
        return {"since": self.since.isoformat(), "counts": [count.to_dict() for count in self.counts]}

    def __str__(self) -> str:
        """One line for each count."""
        return "\n".join(map(str, self.counts))


class _Cell:
    """The counts of one shadow limit and tier."""

    __slots__ = ("newly", "refused", "requests", "seen", "undecided", "would_refuse")

    def __init__(self) -> None:
        self.requests = self.would_refuse = self.newly = self.undecided = 0
        self.seen, self.refused = Distinct(), Distinct()

    def __or__(self, other: _Cell) -> _Cell:
        both = _Cell()
        both.requests = self.requests + other.requests
        both.would_refuse = self.would_refuse + other.would_refuse
        both.newly = self.newly + other.newly
        both.undecided = self.undecided + other.undecided
        both.seen, both.refused = self.seen | other.seen, self.refused | other.refused
        return both

    def count(self, limit: Limit, tier: str | None) -> ShadowCount:
        callers, refused = (len(self.seen), len(self.refused)) if limit.by else (None, None)
        exact = self.seen.exact and self.refused.exact
        asked = (self.requests, self.would_refuse, self.newly)
        return ShadowCount(limit.name, tier, *asked, callers, refused, exact, self.undecided)


class _Watched:
    """A shadow limit, whose tier its requests are of, their counts by tier, and whether an error of its was said."""

    def __init__(self, part: Limit | Choice, parts: Sequence[Limit | Choice]) -> None:
        self.part = part
        self.limit = limits_of(part)[0]
        self.warned = False
        tiered = next((found for one in (part, *parts) if (found := _tiered(one)) is not None), None)
        self.tier_of: Callable[[Mapping[str, object]], str | None] = (
            _no_tier if tiered is None else _tier_reader(tiered.tier, tiered.tiers)
        )
        self.cells: dict[str | None, _Cell] = {}

    def cell_of(self, attributes: Mapping[str, object]) -> _Cell:
        tier = self.tier_of(attributes)
        cell = self.cells.get(tier)
        if cell is None:
            cell = self.cells[tier] = _Cell()
        return cell

    def counts(self) -> Iterator[ShadowCount]:
        cells = self.cells
        yield reduce(or_, cells.values(), _Cell()).count(self.limit, None)
        for tier in sorted(tier for tier in cells if tier is not None):
            yield cells[tier].count(self.limit, tier)


class ShadowCounts:
    """Counts for a limiter what its shadow limits would have refused; for threads.

    Args:
        parts: the limiter's limits.
        now: the host's clock in ns since 1970.
    """

    def __init__(self, parts: Sequence[Limit | Choice], now: int) -> None:
        self._since = now
        self._watched = {part.name: _Watched(part, parts) for part in parts if limits_of(part)[0].shadow}
        self.lock = threading.Lock()
        _alive.add(self)

    def choose(self, part: Limit | Choice, attributes: Mapping[str, object]) -> Limit | Ask | None:
        """``choose``, but a shadow limit that cannot say of a request is none: it must not fail what it only watches."""
        if part.name not in self._watched:
            return choose(part, attributes)
        try:
            return self.with_key(choose(part, attributes), attributes)
        except Exception as error:
            self.excuses(part.name, error)
            return None

    def with_key(self, found: Limit | Ask | None, attributes: Mapping[str, object]) -> Limit | Ask | None:
        """A limit as it is; where it is a shadow, only if the request has a key of it.

        Raises:
            AttributeMissing: an attribute of the key is not there.
            AttributeUnusable: a value that cannot be part of a key.
        """
        if isinstance(found, Limit) and found.shadow:
            for name in found.by:
                if name not in attributes:
                    raise AttributeMissing(name, found.name, tuple(attributes))
                key_part(name, attributes[name])
        return found

    def excuses(self, name: str, error: Exception) -> bool:
        """Whether an error is a shadow limit's, so that the request goes on without it; the first is logged."""
        watched = self._watched.get(name)
        if watched is None:
            return False
        with self.lock:
            first, watched.warned = not watched.warned, True
        if first:
            import logging  # slow to import, and few shadow limits fail

            logging.getLogger("headway").warning(
                "shadow limit %s cannot say of a request (%s: %s); such requests go on without it and are counted as "
                "undecided", name, type(error).__name__, error,
            )  # fmt: skip
        return True

    def note(self, plan: Plan, keys: Sequence[Key], decision: Decision, attributes: Mapping[str, object]) -> Decision:
        """Count one decision that was made for good; returns it."""
        for index, shadow in enumerate(plan.shadows):
            if not shadow:
                continue
            outcome, cost = decision.at(index)
            if outcome is None or not cost:
                continue  # the store was away, or only looked
            watched = self._watched[plan.limits[index].name]
            with self.lock:
                cell = watched.cell_of(attributes)
                cell.requests += 1
                cell.seen.add(keys[index])
                if not isinstance(outcome, Admitted):
                    cell.would_refuse += 1
                    cell.newly += decision.allowed
                    cell.refused.add(keys[index])
        for name, watched in self._watched.items():
            if name not in plan.by_name and self._undecided(watched.part, attributes):
                with self.lock:
                    watched.cell_of(attributes).undecided += 1
        return decision

    def _undecided(self, part: Limit | Choice, attributes: Mapping[str, object]) -> bool:
        """Whether a limit that was not asked could not be; else it does not apply."""
        try:
            return isinstance(self.with_key(choose(part, attributes), attributes), Ask)
        except Exception:
            return True

    def changed(self, limit: Limit) -> None:
        """Count a limit anew, whose quota is another one now."""
        with self.lock:
            watched = self._watched.get(limit.name)
            if watched is not None:
                watched.part = watched.limit = limit
                watched.cells.clear()

    def report(self) -> ShadowReport:
        """What was counted so far."""
        with self.lock:
            counts = tuple(count for watched in self._watched.values() for count in watched.counts())
        return ShadowReport(_instant(self._since), counts)


def no_shadows(now: int) -> ShadowReport:
    """The report of a limiter without shadow limits; ``now`` in ns since 1970."""
    return ShadowReport(_instant(now), ())


def _tiered(part: Any) -> Any:
    """The limit with tiers that a limit is or wraps (a condition, overrides), or None."""
    while part is not None and not hasattr(part, "tiers"):
        part = getattr(part, "limit", None)
    return part


def _no_tier(_: Mapping[str, object]) -> None:
    return None


def _tier_reader(attribute: str, known: Mapping[str, object]) -> Callable[[Mapping[str, object]], str]:
    from headway.policy.values import text_of  # whoever has tiers has loaded it

    def tier_of(attributes: Mapping[str, object]) -> str:
        value = attributes.get(attribute)
        if value is None:
            return _MISSING
        tier = text_of(value)
        return tier if tier is not None and tier in known else _UNKNOWN

    return tier_of


def _share(part: int, whole: int) -> str:
    """``0.4 % (12 of 3,000)``: below 0.1 % and above 99.9 % as such, so that few are not said to be none."""
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        shown = "less than 0.1"
    elif 99.9 < percent < 100:
        shown = "more than 99.9"
    else:
        shown = f"{percent:.1f}".removesuffix(".0")
    return f"{shown} % ({part:,} of {whole:,})"


def _instant(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1_000)


_alive: WeakSet[ShadowCounts] = WeakSet()


def _after_fork_in_child() -> None:
    """Another thread may have held a lock at the moment of the fork; in the child nobody does."""
    for counts in _alive:
        counts.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
