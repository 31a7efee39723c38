"""What ``Limiter`` and ``AsyncLimiter`` share: everything that never waits."""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Lease
from headway.core.limit import Limit, requoted
from headway.core.quota import Quota
from headway.core.verdict import Verdict
from headway.errors import ConfigError, LimitError, StoreError, StoreUnavailable, UnknownName, kind_of
from headway.limiter.arguments import at_least_one, check_exempt, lease_of, merged, nanoseconds, secret_bytes
from headway.limiter.decision import Decision, decided
from headway.limiter.effects import Apply, Call, Flow
from headway.limiter.flows import decide, give_back, wait
from headway.limiter.plan import Cost, Plan
from headway.limiter.queue import Lines, Ticket
from headway.limiter.timer import REAL_TIME, Timer
from headway.limiter.ways import Way, plain_bill, quick_way
from headway.policy.choice import Ask, Choice, attributes_of, choose, limits_of
from headway.stores.base import AsyncStore, Store, late_way
from headway.stores.immediate import ImmediateStore
from headway.stores.lane import OneWay
from headway.stores.memory import MemoryStore

if TYPE_CHECKING:
    from headway.limiter.explain import Explanation
    from headway.limiter.shadow import ShadowCounts, ShadowReport

__all__ = ["BaseLimiter", "Exempt", "Keep", "living", "on_creation", "shadow_counts"]

Exempt: TypeAlias = Callable[[Mapping[str, object]], bool]
"""Says of a request's attributes whether it passes unlimited and uncounted."""

Keep: TypeAlias = str
"""What becomes of the state when a quota changes: "as-is", "proportional" or "reset"."""

_KEEPS = ("as-is", "proportional", "reset")
_MOST_WAYS = 1_024

living: weakref.WeakSet[BaseLimiter] = weakref.WeakSet()
"""All limiters of this process, for test tools that isolate them."""

on_creation: list[Callable[[BaseLimiter], None]] = []
"""Called with every new limiter, for the same tools."""


class BaseLimiter:
    """Limits made ready, and the short ways through their store. Not for direct use."""

    store: Store | AsyncStore
    _owned: bool

    def __init__(
        self,
        limits: Sequence[Limit | Choice],
        store: Store | AsyncStore,
        namespace: str,
        secret_key: bytes | str | None,
        exempt: Exempt | None,
        timer: Timer | None,
    ) -> None:
        if not isinstance(namespace, str):
            raise ConfigError(f"namespace is {namespace!r}, {kind_of(namespace)}; expected text")
        self._parts = tuple(_part(limit) for limit in limits)
        self._namespace = namespace
        clock = getattr(getattr(store, "store", store), "clock", None)
        self._timer = timer or (cast(Timer, clock) if hasattr(clock, "pause_async") else REAL_TIME)
        self._lines = Lines()
        check_exempt(exempt)
        self._exempt = exempt
        self._off = False
        secret = any(limit.secret for part in self._parts for limit in limits_of(part))
        self._secret_key = secret_bytes(secret_key, secret, _memory(store) is not None)
        self._shadows = shadow_counts(self._parts)
        self._use(store)
        living.add(self)
        for tell in on_creation:
            tell(self)

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy works on what its store's copy works on: the same file or server, a memory of its own."""
        store = self.store.store if isinstance(self.store, ImmediateStore) else self.store
        facts = (self._parts, store, self._namespace, self._secret_key, self._exempt, self._owned)
        return (_rebuilt, (type(self), *facts))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits, in order; of one that depends on the request, the first it may choose."""
        return self.plan.limits

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names that some limit is keyed by or depends on, or that ``exempt`` says it looks at; in order of first use."""
        asked = (name for part in self._parts for name in (*limits_of(part)[0].by, *attributes_of(part)))
        return tuple(dict.fromkeys((*asked, *getattr(self._exempt, "attributes", ()))))

    def shadow_report(self) -> ShadowReport:
        """What the shadow limits would have refused so far, in this process; touches no store."""
        from headway.limiter.shadow import no_shadows

        return no_shadows(time.time_ns()) if self._shadows is None else self._shadows.report()

    def _use(self, store: Store | AsyncStore) -> None:
        """Work on this store from now on."""
        self._memory = _memory(store)
        self._advance_states = getattr(store, "advance_states", None)  # an answer whose outcomes nobody has worked out
        self._advance_late = late_way(store)  # for a caller that has stood in line
        self._ways: OrderedDict[tuple[int, ...], Way] = OrderedDict()
        self._prepare()

    def _prepare(self) -> None:
        """Make the plan of the limits as they are now, and the short way if there is one."""
        plan = Plan([limits_of(part)[0] for part in self._parts], self._namespace, self._secret_key)
        way = Way(plan, self._memory, self.store)
        self._depends = self._shadows is not None or not all(isinstance(part, Limit) for part in self._parts)
        self._fixed = not self._depends and self._exempt is None
        self._way, self.plan = way, plan
        ready, single = self._fixed and not self._off, plan.single
        quick = quick_way(way) if ready else None
        one: OneWay | None = way.lane.one(single) if way.lane and single and ready else None
        if way.lane is None and single and quick is not None:
            shortest = getattr(self.store, "one", None)
            one = shortest and shortest(plan.namespace, plan.limits[0], single)
        self._one = one and (one, plan)  # with its plan: a quota may change between two looks
        self._quick = quick and (quick, plan)
        self._trip = (plain_bill(plan), way.trip, plan) if ready and way.trip and plan.takes_any_cost else None

    def _switch(self, *, off: bool) -> None:
        """Admit everything and count nothing, or stop doing so."""
        self._off = off
        self._prepare()

    def _choose(self, attributes: Mapping[str, object]) -> Flow[Way | None]:
        """The way of this request; None where it is exempt."""
        return None if self._passes(attributes) else (yield from self._apply(attributes))

    def _passes(self, attributes: Mapping[str, object]) -> bool:
        """Whether the request is exempt, or everything is."""
        return self._off or (self._exempt is not None and bool(self._exempt(attributes)))

    def _apply(self, attributes: Mapping[str, object]) -> Flow[Way]:
        """The way of a request that is not exempt."""
        if not self._depends:
            return self._way
        chosen: list[Limit] = []
        for part, limit in zip(self._parts, self._candidates(attributes), strict=True):
            if isinstance(limit, Ask):
                try:
                    limit = limit.then((yield Call(limit.function, attributes)))
                    if self._shadows is not None:
                        self._shadows.with_key(limit, attributes)
                except Exception as error:
                    if self._shadows is None or not self._shadows.excuses(part.name, error):
                        raise
                    continue
            if limit is not None:
                chosen.append(limit)
        return self._way_of(chosen)

    def _at_hand(self, attributes: Mapping[str, object]) -> Way | None:
        """The way of a request that is not exempt and for which nobody has to be asked; else None."""
        if self._exempt is not None and self._exempt(attributes):
            return None
        if not self._depends:
            return self._way
        found = self._candidates(attributes)
        chosen = [limit for limit in found if type(limit) is Limit]
        return self._way_of(chosen) if len(chosen) + found.count(None) == len(found) else None

    def _candidates(self, attributes: Mapping[str, object]) -> list[Limit | Ask | None]:
        if self._shadows is not None:
            return [self._shadows.choose(part, attributes) for part in self._parts]
        return [part if type(part) is Limit else choose(part, attributes) for part in self._parts]

    def _way_of(self, limits: Sequence[Limit]) -> Way:
        """The way of some limits, known by their identities: comparing limits by what they say takes far longer.

        A way holds its limits, so no other object has one's identity while it is here.
        """
        ways = self._ways
        which = tuple([id(limit) for limit in limits])
        way = ways.get(which)
        if way is None:
            way = ways[which] = Way(Plan(limits, self._namespace, self._secret_key), self._memory, self.store)
            while len(ways) > _MOST_WAYS:
                ways.popitem(last=False)
        return way

    @cached_property
    def _stand_in(self) -> MemoryStore:
        """Where ``on_store_failure = local`` decides while the store is away, by the store's ``share`` of each limit."""
        share: Any = getattr(self.store, "share", 1)
        if share == 1:
            return MemoryStore()
        from headway.stores.share import ShareStore  # fractions are slow to import, and few need them

        return ShareStore(share)

    @cached_property
    def _async_stand_in(self) -> ImmediateStore:
        return ImmediateStore(self._stand_in)

    def _resets(self, what: Sequence[str | Mapping[str, object]], named: Mapping[str, object]) -> tuple[Charge, ...]:
        names = [part for part in what if isinstance(part, str)]
        attributes: Mapping[str, object] = named
        for part in what:
            if not isinstance(part, str):
                attributes = merged(part, attributes)
        return self.plan.resets(names, attributes)

    def _changed(self, name: str, quota: Quota | str, keep: Keep) -> tuple[Limit, Limit]:
        """The limit of that name before and after a change of its quota, both checked.

        Raises:
            UnknownName: no limit of that name.
            LimitError: a limit that depends on the request, another algorithm's quota, or an unknown ``keep``.
            QuotaError: the quota's text.
        """
        if keep not in _KEEPS:
            raise LimitError(f"keep is {keep!r}; expected one of {', '.join(_KEEPS)}")
        part = next((part for part in self._parts if part.name == name), None)
        if part is None:
            raise UnknownName("limit", name, tuple(part.name for part in self._parts))
        if not isinstance(part, Limit):
            raise LimitError(f"limit {name!r} depends on the request; change where its quotas come from")
        new = requoted(part, quota)
        if new.algorithm.stored != part.algorithm.stored:
            raise LimitError(
                f"limit {name!r} is counted by {part.algorithm.value}; '{new.quota}' needs {new.algorithm.value}"
            )
        return part, new

    def _swap(self, old: Limit, new: Limit) -> None:
        self._parts = tuple(new if part is old else part for part in self._parts)
        if self._shadows is not None:
            self._shadows.changed(new)
        self._prepare()
        self._lines.look_again()

    def _current(self, plan: Plan) -> Plan:
        """The plan of the same limits with the quotas that they have by now."""
        now = {part.name: part for part in self._parts if isinstance(part, Limit)}
        limits = [now.get(limit.name, limit) for limit in plan.limits]
        same = all(old is new for old, new in zip(plan.limits, limits, strict=True))
        return plan if same else self._way_of(limits).plan

    def _asking(
        self,
        attributes: Mapping[str, object],
        cost: Cost,
        *,
        commit: bool = True,
        lease: Lease | None = None,
        up_to: int | None = None,
    ) -> Flow[Decision]:
        """Everything ``hit``, ``peek`` and ``reserve`` do."""
        way = yield from self._choose(attributes)
        if way is None:
            return self._exempted()
        plan = way.plan
        if up_to is not None and cost != 1:
            raise TypeError(f"cost is {cost!r} and up_to is {up_to!r}; expected one of them")
        costs = self._costs(plan, cost if up_to is None else at_least_one("up_to", up_to))
        keys, held = plan.keys(attributes), lease_of(0, of_limit=True) if plan.holds else None
        decision = yield from decide(
            plan, keys, costs, time.time_ns(), commit=commit, lease=lease, held=held, flexible=up_to is not None
        )
        return self._shadows.note(plan, keys, decision, attributes) if commit and self._shadows else decision

    def _waiting(
        self, attributes: Mapping[str, object], cost: Cost, deadline: float | None, ticket_of: Callable[[], Ticket]
    ) -> Flow[Decision]:
        """Everything ``wait`` does."""
        until = None if deadline is None else self._timer.ticks() + nanoseconds("deadline", deadline)
        way = yield from self._choose(attributes)
        if way is None:
            return self._exempted()
        plan = way.plan
        costs = self._costs(plan, cost)
        keys, held = plan.keys(attributes), lease_of(0, of_limit=True) if plan.holds else None
        decision = yield from wait(
            plan,
            keys,
            costs,
            time.time_ns(),
            held=held,
            lines=self._lines,
            ticket=ticket_of(),
            ticks=self._timer.ticks,
            deadline=until,
            current=self._current,
        )
        return self._shadows.note(plan, keys, decision, attributes) if self._shadows else decision

    def _costs(self, plan: Plan, cost: Cost) -> tuple[int, ...]:
        """See ``Plan.costs``; a cost for a limit that does not apply to this request is judged and left out."""
        if isinstance(cost, Mapping) and plan is not self.plan:
            self.plan.costs(cost)
            cost = {name: units for name, units in cost.items() if name in plan.by_name}
        return plan.costs(cost)

    def _refunding(self, decision: Decision) -> Flow[bool]:
        local = decided(decision).local
        return (yield from self._settling(decision, decision.changes(give_back=True, local=local)))

    def _settling(self, decision: Decision, changes: tuple[Change, ...]) -> Flow[bool]:
        if not changes or not decision.claim():
            return False
        try:
            return (yield from give_back(changes, self._lines, local=decision.local))
        except StoreError as error:
            lost = isinstance(error, StoreUnavailable) and hasattr(self.store, "share") and not decision.local
            if not lost or all(change.ends_a_lease for change in changes):  # else only the answer may have been lost
                decision.unclaim()
            raise

    def _releasing(self, decision: Decision) -> Flow[bool]:
        local = decided(decision).local
        held = decision.changes(give_back=True, holds_only=True, local=local)
        return (yield from give_back(held, self._lines, local=local))

    def _leaving(self, decision: Decision) -> Flow[None]:
        """The end of a block: what the store cannot take back now expires by itself, and is no reason to lose its work."""
        with suppress(StoreError):
            yield from self._releasing(decision)

    def _renewing(self, decision: Decision) -> Flow[bool]:
        local = decided(decision).local
        held = decision.changes(give_back=False, holds_only=True, local=local)
        return bool(held) and all((yield Apply(tuple(replace(change, renew=True) for change in held), local)))

    def _explaining(self, attributes: Mapping[str, object], cost: Cost) -> Flow[Explanation]:
        from headway.limiter.explain import explained

        exempt = self._passes(attributes)
        try:
            plan = (yield from self._apply(attributes)).plan
            keys = plan.keys(attributes)
        except (ValueError, TypeError):  # an attribute that is missing or cannot be used
            if not exempt:
                raise
            plan, keys = self._way_of(()).plan, ()  # it passes, whatever it lacks
        decision = yield from decide(plan, keys, self._costs(plan, cost), time.time_ns(), commit=False)
        standing = yield from decide(plan, keys, plan.costs(0), time.time_ns(), commit=False)
        away = (part for part in self._parts if part.name not in plan.by_name)
        others = {
            part.name: f"keyed by {', '.join(part.by)}" if isinstance(part, Limit) else str(part) for part in away
        }
        return explained(plan, attributes, decision, standing, exempt=exempt, others=others)

    @staticmethod
    def _exempted() -> Decision:
        return Decision.of(Verdict((), (), True, time.time_ns()))


def _rebuilt(
    kind: Callable[..., BaseLimiter],
    parts: Sequence[Limit | Choice],
    store: Store | AsyncStore,
    namespace: str,
    secret_key: bytes | None,
    exempt: Exempt | None,
    owned: bool,
) -> BaseLimiter:
    limiter = kind(*parts, store=store, namespace=namespace, secret_key=secret_key, exempt=exempt)
    limiter._owned = owned
    return limiter


def _part(limit: Any) -> Limit | Choice:
    if isinstance(limit, Limit | Choice):
        return limit
    hint = "; who passes unlimited is said with exempt=" if callable(limit) else ""
    raise LimitError(f"{repr(limit)[:80]} is no Limit; expected Limit(name, quota, by=…){hint}")


def shadow_counts(parts: Sequence[Limit | Choice]) -> ShadowCounts | None:
    """What counts for limits some of which are shadows; None where none is."""
    if not any(limits_of(part)[0].shadow for part in parts):
        return None
    from headway.limiter.shadow import ShadowCounts  # few limiters have any

    return ShadowCounts(parts, time.time_ns())


def _memory(store: Store | AsyncStore) -> MemoryStore | None:
    inner = store.store if isinstance(store, ImmediateStore) else store
    return inner if isinstance(inner, MemoryStore) else None
