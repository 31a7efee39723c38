"""``Limiter``: decide, look, forget. For threads; ``AsyncLimiter`` is its twin with ``await``."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from headway.core.change import Change
from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import RateLimited, StoreError
from headway.limiter.arguments import check_store, facts_of, lease_of, merged, settled_answer
from headway.limiter.base import BaseLimiter, Exempt, Keep
from headway.limiter.decision import Decision, OneDecision
from headway.limiter.effects import Advance, Apply, Call, Clears, Effect, Flow, Pause, Turn
from headway.limiter.flows import degraded
from headway.limiter.plan import Cost
from headway.limiter.queue import Ticket
from headway.limiter.reservation import Reservation
from headway.limiter.timer import Timer
from headway.policy.choice import Choice
from headway.stores.base import Store
from headway.stores.url import open_store

if TYPE_CHECKING:
    from headway.limiter.decorate import AttributeSource, CostSource
    from headway.limiter.explain import Explanation

__all__ = ["Limiter"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Limiter(BaseLimiter):
    """Several named limits, checked together: all or nothing.

    Args:
        limits: plain ones, or ``Choice``s that depend on the request (tiers, overrides, bans), in the order in which
            outcomes and header fields list them.
        store: a store, or a URL: ``memory://``, ``sqlite:///relative/file.db``, ``redis://…``, ``postgresql://…`` and kin.
        namespace: two limiters share a counter only with the same namespace, limit name and attributes.
        secret_key: at least 16 bytes (text as UTF-8) that values of secret attributes are hashed with; default: the
            environment variable HEADWAY_SECRET_KEY, and with a memory store a random one.
        exempt: says of a request's attributes whether it passes unlimited and uncounted.
        timer: how waiting callers wait; default: real time, or the store's ``ManualClock``.

    Raises:
        LimitError: two limits of one name, secret attributes without a key.
        ConfigError: what is no store nor names one, a secret_key that is too short.
        StoreUnusable: a store that cannot serve.
    """

    def __init__(
        self,
        *limits: Limit | Choice,
        store: str | Store = "memory://",
        namespace: str = "default",
        secret_key: bytes | str | None = None,
        exempt: Exempt | None = None,
        timer: Timer | None = None,
    ) -> None:
        check_store(store, asynchronous=False)
        self.store: Store = open_store(store) if isinstance(store, str) else store
        self._owned = isinstance(store, str)
        super().__init__(limits, self.store, namespace, secret_key, exempt, timer)

    def hit(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = 1,
        up_to: int | None = None,
        **named: object,
    ) -> Decision:
        """Charge a request to all limits, or to none if one refuses.

        Args:
            attributes: what is known of the request; names that no limit uses are ignored.
            cost: whole units, at least 0, for every limit without a fixed cost; or a mapping by limit name (limits
                not named are asked for 1). 0 is admitted, writes nothing and reports.
            up_to: instead of ``cost``: as many units as fit all limits now, at most that many (``decision.granted``);
                refused only if not even 1 fits.
            named: attributes by keyword.

        Raises:
            AttributeMissing: a limit is keyed by an attribute that is not there.
            AttributeUnusable: a value that is no str, int, UUID, bytes or tuple of these (a TypeError).
            TypeError: a cost that is no int.
            LimitError: a negative cost (a ValueError).
        """
        facts = named if attributes is None else attributes
        if type(cost) is int and cost > 0 and up_to is None and (facts is named or (type(facts) is dict and not named)):
            try:
                if (ready := self._one) is not None:
                    one, plan = ready
                    made = one(facts, cost)
                    if made is not None:
                        decision = OneDecision()  # as ``Decision.by``, without the call
                        decision.allowed, decision._plan, decision._made = made[0], plan, made
                        return decision
                elif (way := self._quick) is not None:
                    found = way[0](facts, cost)
                    if found is not None:
                        return Decision.by(way[1], found)
            except StoreError as error:
                bill = (plan := self.plan).charges(plan.keys(facts), plan.costs(cost))
                return self._drive(degraded(plan, bill, time.time_ns(), error))
        return self._decide(attributes, named, cost, up_to=up_to)

    def peek(self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object) -> Decision:
        """What ``hit`` would answer now; nothing is written. Same arguments and errors."""
        return self._decide(facts_of(attributes, named, "up_to"), {}, cost, commit=False)

    def wait(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = 1,
        deadline: float | None = None,
        **named: object,
    ) -> Decision:
        """Block until admitted, first come first served per key.

        Args:
            attributes: as for ``hit``.
            cost: as for ``hit``.
            deadline: seconds from now; a wait that cannot end before it is refused at once, with the time it would
                take. None waits as long as it takes.
            named: attributes by keyword.

        Returns:
            The admitting decision; a refusal at the deadline; or one that no wait helps (``never``).

        Raises:
            What ``hit`` raises, and the same for ``deadline``.
        """
        facts = facts_of(attributes, named, "up_to", "timeout")
        return self._drive(self._waiting(facts, cost, deadline, _ticket))

    def reserve(
        self,
        attributes: Mapping[str, object] | None = None,
        /,
        *,
        cost: Cost = 1,
        ttl: float = 60.0,
        debt: bool = True,
        **named: object,
    ) -> Reservation:
        """Charge an estimate now, and settle for the actual cost when it is known.

        Args:
            attributes: as for ``hit``.
            cost: the estimate; as for ``hit``.
            ttl: seconds until it expires by itself; then the estimate stays charged. A place at once has its quota's time.
            debt: whether ``commit`` charges an actual cost above the estimate without asking (the limit then takes
                longer to recover); else what exceeds the estimate stays uncharged.
            named: attributes by keyword.

        Raises:
            What ``hit`` raises, and the same for ``ttl``.
        """
        facts = facts_of(attributes, named, "up_to", "deadline", "timeout")
        return Reservation(self, self._drive(self._asking(facts, cost, lease=lease_of(ttl))), debt)

    def refund(self, decision: Decision) -> bool:
        """Give a hit's units back, once; never more than leaves the limits as if it had not been charged.

        Exact for windows and logs. GCRA gives back what time has not paid since; ``reserve`` remembers enough to be
        exact there too. True when this call gave them back (or what was left of them).

        Raises:
            StoreError: the store could not do it.
        """
        return self._drive(self._refunding(decision))

    def release(self, decision: Decision) -> bool:
        """End the leases that a decision holds (concurrency), so that others may have them.

        Returns:
            False when they had expired or were ended before.

        Raises:
            StoreError: the store could not do it; they expire by themselves.
        """
        return self._drive(self._releasing(decision))

    def renew(self, decision: Decision) -> bool:
        """Let the leases that a decision holds last their whole time from now; False when one is not held any more.

        Raises:
            StoreError: the store could not do it.
        """
        return self._drive(self._renewing(decision))

    def explain(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Explanation:
        """For one request: each limit, its state in words, what it would answer, why, and when; nothing is written."""
        facts = facts_of(attributes, named, "up_to")
        return self._drive(self._explaining(facts, cost))

    def change_quota(self, name: str, quota: Quota | str, *, keep: Keep = "as-is") -> None:
        """Change a limit's quota while it runs.

        Args:
            name: the limit's.
            quota: the new one, for the same algorithm.
            keep: "as-is" keeps what every key owes (GCRA: time; windows: units), "proportional" its share of the quota,
                rounded up (of 0: as is), "reset" nothing. The latter two visit every key; one process asks for all.

        Raises:
            UnknownName: no limit of that name.
            LimitError: another algorithm's quota, or an unknown ``keep``.
            QuotaError: the quota's text.
            StoreError: the store could not do it; the quota is unchanged.
        """
        old, new = self._changed(name, quota, keep)
        if keep == "proportional" and old.quota.count and new.quota.count:  # nothing is a share of 0
            self.store.requota(self._namespace, old, new)
        elif keep == "reset":
            self.store.clear(self._namespace, old)
        self._swap(old, new)

    def reset(self, *what: str | Mapping[str, object], **named: object) -> tuple[str, ...]:
        """Forget the state of keys: of the limits named, else of those whose key is non-empty and fully given.

        Args:
            what: names of limits (a limit without a key is reset only by its name), and attributes as mappings.
            named: attributes by keyword.

        Returns:
            The names of the limits that were reset.

        Raises:
            LimitError: nothing would be reset.
            UnknownName: no limit of that name.
            AttributeMissing: a named limit's key is not fully given.
            StoreError: the store could not do it.
        """
        charges = self._resets(what, named)
        self.store.reset(charges)
        self._lines.look_again()
        return tuple(charge.limit.name for charge in charges)

    @contextmanager
    def admitted(
        self, attributes: Mapping[str, object] | None = None, /, *, cost: Cost = 1, **named: object
    ) -> Iterator[Decision]:
        """A block that runs only if the request is admitted: ``with codes.admitted(phone=…) as decision:``.

        Leases (concurrency) are held until its end; those that the store cannot take back then expire by themselves.

        Raises:
            RateLimited: refused; carries the decision. And what ``hit`` raises.
        """
        decision = self._decide(facts_of(attributes, named, "up_to", "deadline", "timeout"), {}, cost)
        if not decision.allowed:
            raise RateLimited(decision)
        try:
            yield decision
        finally:
            if self.plan.holds:
                self._drive(self._leaving(decision))

    @overload
    def limited(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def limited(
        self, /, *, cost: CostSource = 1, **attributes: AttributeSource
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def limited(
        self, function: Callable[P, R] | None = None, /, *, cost: CostSource = 1, **attributes: AttributeSource
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Ask before each call of a function: ``@codes.limited`` or ``@codes.limited(phone="number")``.

        Args:
            function: a function; an ``async def`` only with a memory store, which never waits.
            cost: units, or a function of the call's arguments by name.
            attributes: for those that no parameter is named like: a parameter's name, or a function of the call's
                arguments by name, such as ``ip=lambda call: call["request"].client``.

        Raises:
            RateLimited: by the call, when it is refused; the function does not run.
            LimitError: at once, for an attribute that nothing gives.
            TypeError: at once, for an ``async def`` on a store that waits; names AsyncLimiter.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            from headway.limiter import decorate as how  # inspect is slow to import

            how.check_kind(function, asynchronous=False, immediate=self._memory is not None, holds=self.plan.holds)
            request = how.request_of(function, self.plan.attributes, attributes, cost, looked_at=self.attributes)

            def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                facts, units = request(args, kwargs)
                with self.admitted(facts, cost=units):
                    return function(*args, **kwargs)

            async def async_wrapper(*args: P.args, **kwargs: P.kwargs) -> object:
                facts, units = request(args, kwargs)
                with self.admitted(facts, cost=units):
                    return await cast("Awaitable[object]", function(*args, **kwargs))

            return cast("Callable[P, R]", how.keep(async_wrapper if how.is_async(function) else wrapper, function))

        return decorate if function is None else decorate(function)

    def close(self) -> None:
        """Close the store, if this limiter opened it."""
        if self._owned:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _decide(
        self,
        attributes: Mapping[str, object] | None,
        named: Mapping[str, object],
        cost: Cost,
        *,
        commit: bool = True,
        up_to: int | None = None,
    ) -> Decision:
        facts = named if attributes is None else merged(attributes, named)
        way = self._way if self._fixed else self._at_hand(facts)
        if way is None or self._off or way.plan.holds or up_to is not None:
            return self._drive(self._asking(facts, cost, commit=commit, up_to=up_to))
        plan, charges = way.plan, None
        keys = plan.keys(facts)
        costs = plan.costs(cost) if self._fixed else self._costs(plan, cost)
        try:
            found = way.direct(keys, costs, commit)
            if found is None:
                charges = plan.charges(keys, costs)
                if self._advance_states is not None:
                    found = self._advance_states(charges, commit=commit)
                else:
                    answer = self.store.advance(charges, commit=commit)
                    found = answer.allowed, answer.now, answer
        except StoreError as error:
            bill = charges or plan.charges(keys, costs)
            return self._drive(degraded(plan, bill, time.time_ns(), error, commit=commit))
        decision = Decision.by(plan, (found[0], found[1], costs, keys, found[2]), charges if commit else ())
        return self._shadows.note(plan, keys, decision, facts) if commit and self._shadows else decision

    def _settle(self, decision: Decision, changes: tuple[Change, ...]) -> bool:
        return self._drive(self._settling(decision, changes))

    def _drive(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    answer = self._perform(effect)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Advance(charges, commit, local, since):
                if since is not None and not local and self._advance_late is not None:
                    return self._advance_late(charges, since)
                store = self._stand_in if local else self.store
                return store.advance(charges, commit=commit)
            case Apply(changes, local):
                return (self._stand_in if local else self.store).change(changes)
            case Clears(charge):
                return self.store.clears_after(charge)
            case Turn(ticket, at_most):
                self._timer.turn(ticket.event, at_most)
                return ticket.first
            case Pause(ticket, ns):
                return self._timer.pause(ticket.event, ns)
            case Call(function, attributes):
                return settled_answer(function(attributes))


def _ticket() -> Ticket:
    event = threading.Event()
    return Ticket(event.set, event.clear, event)
