"""What ``Pace`` and ``AsyncPace`` share: their limits, and every branch once, as flows that yield calls to make.

The arithmetic is the limiter's. A pace adds two limits to those it keeps: a pause, which a refusal of one makes a
refusal of all who share the store, and a lease for whoever writes down what a response told.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from headway.client.attempt import Reply
from headway.client.budget import Left, discovered, matching, shown_limits
from headway.client.clock import clock_of
from headway.client.rejection import Rejection
from headway.core.change import Change
from headway.core.fixed_window import Windowed
from headway.core.lease import Receipt
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted
from headway.core.quota import SECOND, Quota
from headway.errors import ConfigError, DeadlineTooSoon, RateLimited, StoreUnavailable
from headway.limiter.arguments import nanoseconds
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.limiter.timer import REAL_TIME, Timer
from headway.stores.memory import MemoryStore

__all__ = ["LONGEST_PAUSE_S", "BasePace", "Call", "Calls", "Cost", "Nap", "Quotas", "shared_memory"]

Cost = int | Mapping[str, int] | None
"""Units of every quota, or by its name (others: 1); None is 1."""

Quotas = str | Quota | Limit | Mapping[str, str | Quota]
"""One quota or several as text, or by name: ``{"requests": "500/min", "tokens": "90000/min"}``."""

LONGEST_PAUSE_S: Final = 35 * 86_400.0
"""Longer pauses are not believed: a month's quota, told by a server whose clock is off by a few days."""

_SPACING_NS: Final = 100 * 1_000_000
_LONGEST_SPACING_NS: Final = SECOND
_TURN_NS: Final = 20 * 1_000_000
_TURNS: Final = 50
_MOST_FOUND: Final = 1_024
_UNNAMEABLE: Final = re.compile(r"[^a-z0-9_.:/*-]+")

shared_memory = MemoryStore()
"""What ``memory://`` means here: paces of one name share a budget, also where each call makes its own."""

R = TypeVar("R")
Call = Callable[[], Any]
"""Something for the driver to call, and to await where it is asynchronous."""


class Nap:
    """So many ns for somebody else to finish."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns


Calls = Generator[Call | Nap, Any, R]


class BasePace:
    """Quotas to keep to, and what was learned. Not for direct use."""

    def __init__(
        self,
        quotas: tuple[Quotas, ...],
        store: Any,
        by: str | tuple[str, ...],
        name: str,
        learn: bool,
        timer: Timer | None,
        limiter: type[Limiter] | type[AsyncLimiter],
    ) -> None:
        self.name = name
        self.by = (by,) if isinstance(by, str) else tuple(by)
        self.learns = learn
        self.limits = limits_of(quotas, name, self.by)
        self.timer = timer or _timer_of(store) or REAL_TIME
        self._make = limiter
        spacing = min((_spacing(limit.quota) for limit in self.limits), default=_SPACING_NS)
        self._pause = Limit(f"{name}.pause", Quota(1, spacing), self.by)
        self._turn = Limit(f"{name}.learning", "1 at once for 5 s", self.by)
        self.store = shared_memory if store == "memory://" else store
        self._limiter = self._limiter_of(self.limits)
        self._owned = isinstance(self.store, str)
        self.store = self._limiter.store
        self._pauser = self._limiter_of((), paused=True)
        self._turns: Any = limiter(self._turn, store=self.store, namespace="pace", timer=self.timer)
        self._found: OrderedDict[tuple[object, ...], Any] = OrderedDict()

    @property
    def holds(self) -> bool:
        """Whether some quota is held (so many at once), so that it has to be given back."""
        return any(limit.algorithm is Algorithm.CONCURRENCY for limit in self.limits)

    def _limiter_of(self, limits: tuple[Limit, ...], *, paused: bool = True) -> Any:
        every = (*limits, self._pause) if paused else limits
        return self._make(*every, store=self.store, namespace="pace", timer=self.timer)

    def _limiter_for(self, attributes: Mapping[str, object]) -> Any:
        """The limiter of this key: the configured one, or one made of what was discovered."""
        return self._limiter if self.limits else self._found.get(self._key(attributes), self._limiter)

    def _key(self, attributes: Mapping[str, object]) -> tuple[object, ...]:
        return tuple(attributes.get(name) for name in self.by)

    def _costs(self, limiter: Any, cost: Cost, *, paused: bool) -> dict[str, int]:
        """A cost for each limit; the pause costs only where there is one, so that it never spaces out a free way."""
        limits = [limit for limit in limiter.limits if limit.name != self._pause.name and limit.cost is None]
        if isinstance(cost, Mapping):
            costs = {self._full_name(name, limits): units for name, units in cost.items()}
        else:
            costs = {limit.name: 1 if cost is None else cost for limit in limits if not limit.quota.concurrent}
        return {**costs, self._pause.name: int(paused)}

    def _full_name(self, name: str, limits: list[Limit]) -> str:
        return next((limit.name for limit in limits if limit.name == f"{self.name}:{name}"), name)

    def _acquiring(self, attributes: Mapping[str, object], cost: Cost, deadline: float | None) -> Calls[Decision]:
        """Wait for all quotas, and for the end of a pause."""
        until = None if deadline is None else self.timer.ticks() + nanoseconds("deadline", deadline)
        paused = False
        while True:
            limiter = self._limiter_for(attributes)
            left = None if until is None else max(0, until - self.timer.ticks()) / SECOND
            costs = self._costs(limiter, cost, paused=paused)
            decision: Decision = yield lambda: limiter.wait(attributes, cost=costs, deadline=left)  # noqa: B023  # called at once
            if decision.degraded is not None and not decision.allowed:
                raise StoreUnavailable(f"the pace {self.name!r} cannot ask its store: {decision.degraded}")
            if not decision.allowed:
                raise RateLimited(decision) if decision.never else DeadlineTooSoon(decision)
            if paused or not decision.outcomes[self._pause.name].reset_after:
                return decision
            yield lambda: limiter.refund(decision)  # noqa: B023  # called at once
            paused = True

    def _peeking(self, attributes: Mapping[str, object], cost: Cost) -> Calls[Decision]:
        """What a call would be answered now; a pause only counts where there is one."""
        limiter = self._limiter_for(attributes)
        standing: Decision = yield lambda: limiter.peek(attributes, cost=self._costs(limiter, 0, paused=False))
        paused = bool(standing.outcomes[self._pause.name].reset_after)
        costs = self._costs(limiter, cost, paused=paused and cost != 0)
        decision: Decision = yield lambda: limiter.peek(attributes, cost=costs)
        return decision

    def _remaining(self, standing: Decision) -> dict[str, int]:
        return {name: outcome.remaining for name, outcome in standing.outcomes.items() if name != self._pause.name}

    def _completing(
        self,
        attributes: Mapping[str, object],
        decision: Decision,
        since: int,
        reply: Reply[Any] | None,
        rejection: Rejection | None,
        pause: float | None,
        *,
        charged: bool,
        actual: Cost = None,
    ) -> Calls[None]:
        """Settle what was admitted, and learn from the answer.

        The other side counted the request at some time between its admission and now, so it is charged as of now: what
        a late arrival owes is owed here as long as there.
        """
        changes = self._settled(decision, self.timer.ticks() - since, charged=charged, actual=actual)
        if changes and decision.claim():
            yield lambda: self._limiter.store.change(changes)
        if any(change.charge.limit.algorithm is Algorithm.CONCURRENCY for change in changes):
            self._limiter._lines.look_again()
        if pause is not None:
            yield from self._pausing(attributes, pause)
        if reply is not None and self.learns:
            yield from self._learning(attributes, reply, decision)

    def _settled(self, decision: Decision, passed: int, *, charged: bool, actual: Cost) -> tuple[Change, ...]:
        costs = {} if actual is None else self._costs(self._limiter, actual, paused=False)
        changes = []
        for change in decision.changes(give_back=True):
            limit, units = change.charge.limit, change.receipt.cost
            if limit.name == self._pause.name:
                continue
            spent = costs.get(limit.name, units) if charged else 0
            if limit.algorithm is Algorithm.CONCURRENCY:
                changes.append(change)
            elif spent != units or not isinstance(limit.rule, Windowed) or passed >= change.receipt.outcome.reset_after:
                changes.append(replace(change, take=spent))
        return tuple(changes)

    def _learning(self, attributes: Mapping[str, object], reply: Reply[Any], decision: Decision | None) -> Calls[None]:
        """Lower the budget to what the answer says is left; never raise it."""
        shown = shown_limits(reply.headers, self._wall() / SECOND)
        if not shown:
            return
        if not self.limits:
            self._discover(attributes, discovered(shown))
        limiter = self._limiter_for(attributes)
        quotas = {limit.name: _told(limit) for limit in limiter.limits if limit.name != self._pause.name}
        outcomes = {} if decision is None else decision.outcomes
        lower = {
            name: left
            for name, left in matching(shown, quotas).items()
            if name not in outcomes or left.remaining < outcomes[name].remaining
        }
        if lower:
            yield from self._alone(attributes, lambda: self._lowering(limiter, attributes, lower))

    def _lowering(self, limiter: Any, attributes: Mapping[str, object], lower: Mapping[str, Left]) -> Calls[None]:
        """Charge what somebody else must have used; where nothing is left, pause until the reset."""
        standing: Decision = yield lambda: limiter.peek(attributes, cost=0)
        changes = []
        for name, left in lower.items():
            excess = standing.outcomes[name].remaining - left.remaining
            if excess <= 0:
                continue
            if left.remaining == 0 and left.reset is not None:
                yield from self._pause_longer(attributes, left.reset)
            else:
                changes.append(_taking(limiter, name, attributes, excess))
        if changes:
            yield lambda: limiter.store.change(tuple(changes))

    def _pausing(self, attributes: Mapping[str, object], seconds: float) -> Calls[None]:
        yield from self._alone(attributes, lambda: self._pause_longer(attributes, seconds))

    def _pause_longer(self, attributes: Mapping[str, object], seconds: float) -> Calls[None]:
        """Let nobody go for so long; a longer pause that is there already stays as it is."""
        standing: Decision = yield lambda: self._pauser.peek(attributes, cost=0)
        spacing = self._pause.quota.period_ns
        wanted = nanoseconds("pause", min(max(seconds, 0.0), LONGEST_PAUSE_S))
        units = -(-(wanted - standing.outcomes[self._pause.name].reset_after) // spacing)
        if units > 0:
            change = _taking(self._pauser, self._pause.name, attributes, units)
            yield lambda: self._pauser.store.change((change,))

    def _alone(self, attributes: Mapping[str, object], work: Callable[[], Calls[None]]) -> Calls[None]:
        """Look and write as one step among all who share the store; whoever crashes in it holds the others up for 5 s."""
        turn: Decision | None = None
        for _ in range(_TURNS):
            asked: Decision = yield lambda: self._turns.hit(attributes)
            if asked.allowed:
                turn = asked
                break
            yield Nap(_TURN_NS)
        try:
            yield from work()
        finally:
            if turn is not None:
                yield lambda: self._turns.release(turn)

    def _discover(self, attributes: Mapping[str, object], quotas: Mapping[str, Quota]) -> None:
        """Keep to the limits a service shows, where none is configured."""
        if not quotas:
            return
        key = self._key(attributes)
        limits = tuple(
            Limit(limit_name(self.name, label or "found"), quota, self.by) for label, quota in sorted(quotas.items())
        )
        known = self._found.get(key)
        if known is None or known.limits[:-1] != limits:
            self._found[key] = self._limiter_of(limits)
            while len(self._found) > _MOST_FOUND:
                self._found.popitem(last=False)

    def _wall(self) -> int:
        return clock_of(self.timer)()


def limits_of(quotas: tuple[Quotas, ...], name: str, by: tuple[str, ...]) -> tuple[Limit, ...]:
    """The limits that keep to these quotas, each named after its quota, or as it is named.

    A quota without a burst, a zone or "at once" is counted by a sliding log: no window of its period, wherever it
    begins, holds more than its count, so neither a fixed window on the other side refuses anything nor a bucket.

    Raises:
        QuotaError: a text that is no quota.
        LimitError: a name that cannot be one.
        ConfigError: two quotas of one name.
    """
    found: list[Limit] = []
    for given in quotas:
        if isinstance(given, Limit):
            found.append(given)
        elif isinstance(given, Mapping):
            found += [
                _limit(limit_name(name, label), quota if isinstance(quota, Quota) else Quota.parse(quota), by)
                for label, quota in given.items()
            ]
        else:
            parsed = (given,) if isinstance(given, Quota) else Quota.parse_many(given)
            found += [_limit(limit_name(name, str(quota)), quota, by) for quota in parsed]
    names = [limit.name for limit in found]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise ConfigError(f"the pace has two quotas named {twice!r}; name them: {{'requests': …, 'tokens': …}}")
    return tuple(found)


def limit_name(name: str, label: str) -> str:
    """A limit's name from the pace's and a quota's; shortened by a hash where it would be too long."""
    full = f"{name}:{_UNNAMEABLE.sub('-', label.lower())}"
    if len(full) <= 64:
        return full
    return f"{full[:55]}-{hashlib.blake2s(full.encode(), digest_size=4).hexdigest()}"


def _limit(name: str, quota: Quota, by: tuple[str, ...]) -> Limit:
    plain = quota.zone is None and not quota.concurrent and quota.burst == quota.count and quota.count
    return Limit(name, quota, by, algorithm=Algorithm.SLIDING_LOG if plain else None)


def _told(limit: Limit) -> Quota:
    return limit.quota


def _spacing(quota: Quota) -> int:
    """How far apart callers go after a pause: the quota's own pace, at most a second."""
    if quota.concurrent or not quota.count:
        return _SPACING_NS
    return min(-(-quota.period_ns // quota.count), _LONGEST_SPACING_NS)


def _taking(limiter: Any, name: str, attributes: Mapping[str, object], units: int) -> Change:
    """Charge without asking."""
    plan = limiter.plan
    charge = next(charge for charge in plan.charges(plan.keys(attributes), plan.costs(0)) if charge.limit.name == name)
    return Change(charge, Receipt(0, 0, 0, Admitted(0, 0, 0)), take=units)


def _timer_of(store: Any) -> Timer | None:
    clock = getattr(getattr(store, "store", store), "clock", None)
    return clock if hasattr(clock, "pause_async") else None
