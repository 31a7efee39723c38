"""Every algorithm again, slow and exact, from its definition: a list of what was charged, fractions, and searching.

Nothing here knows how headway counts. A model says how many units fit at an instant, looking at its whole history; every
wait is found by bisection, as the first instant at which enough fit. Times are nanoseconds since 1970, ints or fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any
from zoneinfo import ZoneInfo

from headway.core.limit import Algorithm, Limit

SLACK = 10 * 10**9


@dataclass
class Charged:
    """Units that were admitted at an instant, and what is left of them after what was given back."""

    at: int
    units: int
    weight: Fraction = Fraction(0)
    expires: int = 0


@dataclass
class Model:
    """One key of one limit. ``history`` is all it knows."""

    limit: Limit
    history: list[Charged] = field(default_factory=list)

    @property
    def most(self) -> int:
        return self.limit.quota.burst

    def fits(self, now: int) -> int:
        """Units that fit at ``now``, by definition."""
        raise NotImplementedError

    def unused(self, now: int) -> bool:
        """Nothing that was charged matters any more, unless more comes."""
        raise NotImplementedError

    def horizon(self) -> int:
        """No wait is longer."""
        return 2 * self.limit.quota.period_ns + 40 * 86_400 * 10**9

    def charge(self, now: int, units: int) -> Charged:
        self.history.append(Charged(now, units))
        return self.history[-1]

    def refuse(self, now: int, cost: int) -> None:
        """A request that this limit refused; with ``count_refused`` it uses the limit up."""
        if self.limit.count_refused and cost <= self.most:
            self.charge(now, self.fits(now))

    def give_back(self, charged: Charged, units: int, now: int) -> None:
        charged.units -= units

    def quota(self, limit: Limit) -> None:
        """The quota is another one from now on, and what was charged stays."""
        self.limit = limit

    def wait(self, now: int, cost: int) -> int:
        """Ns until ``cost`` units fit, if nobody else comes."""
        return first(lambda wait: self.fits(now + wait) >= cost, self.horizon())

    def reset(self, now: int) -> int:
        return first(lambda wait: self.unused(now + wait), self.horizon())


def first(holds: Callable[[int], bool], horizon: int) -> int:
    """The smallest whole number from 0 at which something holds that, once it holds, holds on."""
    if holds(0):
        return 0
    low, high = 0, 1
    while not holds(high):
        low, high = high, high * 2
        assert high < 8 * horizon + 2**34, "nothing ever fits"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class GcraModel(Model):
    """Units arrive at a queue that is served one each T; a unit fits while no more than the burst would be queued."""

    @property
    def interval(self) -> Fraction:
        return Fraction(self.limit.quota.period_ns, self.limit.quota.count)

    def charge(self, now: int, units: int) -> Charged:
        charged = super().charge(now, units)
        charged.weight = units * self.interval
        return charged

    def owed(self, now: int) -> Fraction:
        """Ns of service that are queued at ``now``; an idle server earns nothing."""
        owed, seen = Fraction(0), 0
        for charged in filter(lambda charged: charged.weight, self.history):
            owed, seen = max(Fraction(0), owed - (charged.at - seen)) + charged.weight, charged.at
        return max(Fraction(0), owed - (now - seen))

    def give_back(self, charged: Charged, units: int, now: int) -> None:
        each = charged.weight / charged.units if charged.units else 0
        super().give_back(charged, units, now)
        charged.weight = each * charged.units

    def fits(self, now: int) -> int:
        return max(0, floor(self.most - self.owed(now) / self.interval))

    def unused(self, now: int) -> bool:
        return self.owed(now) == 0

    def horizon(self) -> int:
        return int(self.owed(0)) + self.limit.quota.recovery_ns

    def delay(self, now: int) -> Fraction:
        """How long the unit charged last has to wait in the queue, beyond the undelayed ones."""
        return max(Fraction(0), self.owed(now) - self.limit.undelayed * self.interval)


class WindowModel(Model):
    """Units count in the window they were charged in. Where windows begin is the sub-classes' business.

    A window in which something was charged stays open when the clock is set back a little; emptied, it never was.
    """

    def window(self, at: int) -> Any:
        raise NotImplementedError

    def open(self, now: int) -> Any:
        return max([self.window(now), *(self.window(charged.at) for charged in self.history[-1:])])

    def inside(self, now: int) -> list[Charged]:
        window = self.open(now)
        return [charged for charged in self.history if self.window(charged.at) == window]

    def charge(self, now: int, units: int) -> Charged:
        return super().charge(max([now, *(charged.at for charged in self.history[-1:])]), units)

    def give_back(self, charged: Charged, units: int, now: int) -> None:
        inside = self.inside(now)
        if any(charged is each for each in inside):
            super().give_back(charged, units, now)
            if not any(each.units for each in inside):
                self.history.clear()

    def fits(self, now: int) -> int:
        return max(0, self.most - sum(charged.units for charged in self.inside(now)))

    def unused(self, now: int) -> bool:
        return not any(charged.units for charged in self.inside(now))


class FixedModel(WindowModel):
    def window(self, at: int) -> int:
        return at // self.limit.quota.period_ns


class CalendarModel(WindowModel):
    """The window of an instant is the latest local date (its Monday, its first) that has begun by then."""

    _begun: dict[tuple[str, int], Any] = {}  # noqa: RUF012  # a cache for all of them

    def window(self, at: int) -> Any:
        zone = self.limit.quota.zone
        assert zone is not None
        quarter = at // (15 * 60 * 10**9)
        day = self._begun.get((zone, quarter))
        if day is None:  # a date that has begun stays so, though a clock set back over midnight shows the one before
            looks = (quarter - back for back in range(8))
            day = max(local(zone, look).date() for look in looks)
            self._begun[zone, quarter] = day
        if self.limit.quota.calendar == "month":
            return day.replace(day=1)
        if self.limit.quota.calendar == "week":
            return day - timedelta(days=(day.weekday() - self.limit.quota.week_start) % 7)
        return day


def local(zone: str, quarter: int) -> datetime:
    return datetime.fromtimestamp(quarter * 15 * 60, UTC).astimezone(ZoneInfo(zone))


class AnchoredModel(Model):
    """A window begins with the first unit that comes when none is open; once everything in it is given back it never was."""

    def give_back(self, charged: Charged, units: int, now: int) -> None:
        super().give_back(charged, units, now)
        emptied = self.open(now)
        if not any(inside.units for inside in emptied):
            self.history = [kept for kept in self.history if not any(kept is inside for inside in emptied)]

    def open(self, now: int) -> list[Charged]:
        begun: int | None = None
        inside: list[Charged] = []
        for charged in self.history:
            if begun is None or charged.at >= begun + self.limit.quota.period_ns:
                begun, inside = charged.at, []
            inside.append(charged)
        return inside if begun is not None and now < begun + self.limit.quota.period_ns else []

    def fits(self, now: int) -> int:
        return max(0, self.most - sum(charged.units for charged in self.open(now)))

    def unused(self, now: int) -> bool:
        return not self.open(now)


class LogModel(Model):
    """A unit counts for exactly one period. A clock that was set back a little does not make it older than the one before."""

    def charge(self, now: int, units: int) -> Charged:
        begun = now - self.limit.quota.period_ns
        self.history = [
            kept for kept in self.history if kept.at > begun
        ]  # what has ended comes not back with the clock
        return super().charge(max([now, *(charged.at for charged in self.history)]), units)

    def fits(self, now: int) -> int:
        begun = now - self.limit.quota.period_ns
        return max(0, self.most - sum(c.units for c in self.history if c.at > begun))

    def unused(self, now: int) -> bool:
        return not any(c.units for c in self.history if c.at > now - self.limit.quota.period_ns)


class SlidingModel(Model):
    """The window before counts by the share of it that is less than one period ago.

    A clock that was set back over a boundary stands at it, once something was charged behind it.
    """

    def charge(self, now: int, units: int) -> Charged:
        return super().charge(self.standing(now), units)

    def standing(self, now: int) -> int:
        period = self.limit.quota.period_ns
        return max([now, *(charged.at // period * period for charged in self.history[-1:])])

    def used(self, now: int) -> Fraction:
        period = self.limit.quota.period_ns
        now = self.standing(now)
        index = now // period
        current = sum(c.units for c in self.history if c.at // period == index)
        previous = sum(c.units for c in self.history if c.at // period == index - 1)
        return current + previous * (1 - Fraction(now % period, period))

    def fits(self, now: int) -> int:
        return max(0, floor(self.most - self.used(now)))

    def unused(self, now: int) -> bool:
        return self.used(now) == 0


class ConcurrencyModel(Model):
    """A unit is held for a period, or until it is given back."""

    def charge(self, now: int, units: int) -> Charged:
        self.history = [kept for kept in self.history if kept.expires > now]  # what has ended comes not back
        charged = super().charge(now, units)
        charged.expires = now + self.limit.quota.period_ns
        return charged

    def fits(self, now: int) -> int:
        return max(0, self.most - sum(c.units for c in self.history if c.expires > now))

    def unused(self, now: int) -> bool:
        return not any(c.units for c in self.history if c.expires > now)


class GrowingModel(Model):
    """Free attempts, then one after each wait, doubling; a quiet time forgives. Giving back keeps the latest's time."""

    def give_back(self, charged: Charged, units: int, now: int) -> None:
        if now < charged.at + self.limit.forgiven_after:
            super().give_back(charged, units, now)

    def quiet(self) -> list[Charged]:
        """The attempts since the latest quiet time, each no earlier than the one before."""
        since: list[Charged] = []
        for charged in self.history:
            at = max([charged.at, *(before.at for before in since[-1:])])
            if since and at >= since[-1].at + self.limit.forgiven_after:
                since = []
            since.append(Charged(at, charged.units))
        return since

    def fits(self, now: int) -> int:
        since = self.quiet()
        made = sum(charged.units for charged in since)
        if not made or now >= since[-1].at + self.limit.forgiven_after:
            return self.most
        if made < self.most:
            return self.most - made
        first = ceil(Fraction(self.limit.quota.period_ns, self.limit.quota.count))  # a whole number of ns by definition
        return 1 if now >= since[-1].at + min(self.limit.longest, first * 2 ** (made - self.most)) else 0

    def unused(self, now: int) -> bool:
        since = self.quiet()
        return not sum(c.units for c in since) or now >= since[-1].at + self.limit.forgiven_after

    def horizon(self) -> int:
        return 2 * self.limit.forgiven_after


MODELS: dict[Algorithm, type[Model]] = {
    Algorithm.GCRA: GcraModel,
    Algorithm.TOKEN_BUCKET: GcraModel,
    Algorithm.LEAKY_BUCKET: GcraModel,
    Algorithm.LEAKY_BUCKET_QUEUE: GcraModel,
    Algorithm.MINIMUM_INTERVAL: GcraModel,
    Algorithm.FIXED_WINDOW: FixedModel,
    Algorithm.ANCHORED_WINDOW: AnchoredModel,
    Algorithm.CALENDAR_WINDOW: CalendarModel,
    Algorithm.SLIDING_WINDOW: SlidingModel,
    Algorithm.SLIDING_LOG: LogModel,
    Algorithm.CONCURRENCY: ConcurrencyModel,
    Algorithm.GROWING_WAIT: GrowingModel,
}


def model_of(limit: Limit) -> Model:
    return MODELS[limit.algorithm](limit)
