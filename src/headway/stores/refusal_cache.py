"""``RefusalCache``: what a networked store has refused is refused here until its wait is over, without asking again.

A refusal says until when it stands, if nobody gives units back, resets the key or raises the limit. Where another process
does, it is seen late by at most the cache's cap; where this one does, at once. A cap of 0 switches it off. What is remembered is the state of every key of the refused bill, so
the answer given here is worked out by ``core.bill.settle`` like any other. A refusal that may end at any time (a lease
that is given back) is never remembered.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Final

from headway.core.bill import settle
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.core.outcome import Never, Outcome, Refused
from headway.core.rule import State
from headway.stores.base import Answer

__all__ = ["Known", "RefusalCache"]

_MOST: Final = 10_000
_MOST_GIVEN_BACK: Final = 1_000
_GRID_NS: Final = 1_000
"""The clocks of networked stores count microseconds."""


class Known:
    """A refusal that was told.

    Attributes:
        cost: of the refused charge.
        limit: that refused.
        since: added to the cache's clock, gives the store's: never behind it.
        until: on the cache's clock; from then on the store is asked again. 0 once it was forgotten.
        states: by stored key, of the whole bill.
    """

    __slots__ = ("cost", "limit", "since", "states", "until")

    def __init__(self, cost: int, limit: Limit, since: int, until: int, states: dict[bytes, State | None]) -> None:
        self.cost = cost
        self.limit = limit
        self.since = since
        self.until = until
        self.states = states


class Family:
    """The caches in front of one networked store, of all limiters of a process: what one gives back, none refuses any longer."""

    __slots__ = ("__weakref__", "caches", "given_back", "lock", "unknown_until")

    def __init__(self) -> None:
        self.caches: weakref.WeakSet[RefusalCache] = weakref.WeakSet()
        self.given_back: dict[bytes, int] = {}
        self.unknown_until = float("-inf")
        self.lock = threading.Lock()
        _alive.add(self)

    def after_fork(self) -> None:
        """In the child nobody holds the lock."""
        self.lock = threading.Lock()


class RefusalCache:
    """Bounded, for any number of threads.

    Args:
        cap: seconds that a refusal is remembered at most; 0 remembers nothing.
        ticks: ns that never go back; default: the monotonic clock.
        family: caches with the same clock in front of the same store; default: none but this one.

    Attributes:
        ticks: the clock.
    """

    def __init__(self, cap: float, ticks: Callable[[], int] | None = None, family: Family | None = None) -> None:
        self.ticks = ticks or time.monotonic_ns
        self._cap = round(cap * 1e9)
        self._known: dict[bytes, Known] = {}
        self._involving: dict[bytes, set[bytes]] = {}
        self._family = family = family or Family()
        if cap:
            with family.lock:
                family.caches.add(self)

    def __len__(self) -> int:
        """How many refusals are remembered."""
        return len(self._known)

    def find(self, keys: Sequence[bytes], limits: Sequence[Limit], costs: Sequence[int]) -> Known | None:
        """A refusal that stands for these charges, none of them flexible; it knows the states of all their keys."""
        for key, limit, cost in zip(keys, limits, costs, strict=True):
            found = self._known.get(key)
            if found is None or cost < found.cost or found.limit is not limit:
                continue
            if self.ticks() >= found.until:
                self._drop(key)
            elif all(other in found.states for other in keys):
                return found
        return None

    def answer(self, keys: Sequence[bytes], charges: Sequence[Charge]) -> Answer | None:
        """The refusal of a bill that is to be charged, where one stands; else None."""
        if any(charge.flexible for charge in charges):
            return None
        limits = [charge.limit for charge in charges]
        costs = tuple([charge.cost for charge in charges])
        found = self.find(keys, limits, costs)
        if found is None:
            return None
        now = (found.since + self.ticks()) // _GRID_NS * _GRID_NS
        settled = settle(
            [limit.rule for limit in limits],
            [found.states[key] for key in keys],
            costs,
            now,
            shadows=[limit.shadow for limit in limits],
        )
        if settled.allowed:
            return None
        return Answer(False, now, settled.outcomes, costs)

    def learn(
        self,
        sent: int,
        keys: Sequence[bytes],
        charges: Sequence[Charge],
        answer: Answer,
        states: Sequence[State | None],
    ) -> Known | None:
        """Remember what a store refused, having written nothing.

        Args:
            sent: the cache's clock before the store was asked, so the store's clock has moved on by no more since.
            keys: the stored keys, one per charge.
            charges: the bill.
            answer: a refusal.
            states: what the keys held, one per charge.

        Returns:
            What is known from now on of the refusal that lasts longest; None where it cannot be remembered.
        """
        if not self._cap:
            return None
        of_bill = dict(zip(keys, states, strict=True))
        best = None
        for key, charge, outcome in zip(keys, charges, answer.outcomes, strict=True):
            wait = self._wait(charge, outcome)
            if wait:
                made = Known(charge.cost, charge.limit, answer.now - sent, sent + wait, of_bill)
                if not self._put(key, made, sent):
                    return None
                best = made if best is None or made.until > best.until else best
        return best

    def forget(self, keys: Sequence[bytes]) -> None:
        """Something was charged here: ask again whatever involves these keys."""
        if not self._known:
            return
        with self._family.lock:
            self._forget_locked(keys)

    def given_back(self, keys: Sequence[bytes]) -> None:
        """Units of these keys were given back here, or they were reset, or nobody knows: ask again whatever involves them.

        A refusal that was on its way at that time may be of before: it is not remembered.
        """
        family = self._family
        if not family.caches:
            return
        with family.lock:
            for cache in family.caches:
                if cache._known:
                    cache._forget_locked(keys)
            now = self.ticks()
            for key in keys:
                family.given_back.pop(key, None)
                family.given_back[key] = now
            while len(family.given_back) > _MOST_GIVEN_BACK:
                family.unknown_until = family.given_back.pop(next(iter(family.given_back)))

    def clear(self) -> None:
        """Forget everything, also what is on its way."""
        family = self._family
        with family.lock:
            family.unknown_until = self.ticks()
            family.given_back.clear()
            for cache in family.caches:
                for known in cache._known.values():
                    known.until = 0
                cache._known.clear()
                cache._involving.clear()

    def _wait(self, charge: Charge, outcome: Outcome) -> int:
        """How long a refusal may be remembered; 0 for what is none, or may end at any time."""
        if charge.limit.shadow or charge.flexible:
            return 0
        match outcome:
            case Refused(retry_after=wait, at_most=False):
                return min(wait, self._cap)
            case Never():
                return self._cap
            case _:
                return 0

    def _put(self, key: bytes, known: Known, sent: int) -> bool:
        """Whether it could be: not where units were given back since it was asked for."""
        family = self._family
        with family.lock:
            if sent < family.unknown_until:
                return False
            if family.given_back and any(family.given_back.get(other, sent) > sent for other in known.states):
                return False
            self._drop_locked(key)
            now = self.ticks()
            for _ in range(2):  # what is over goes sooner than others come
                oldest = next(iter(self._known), None)
                if oldest is None or (now < self._known[oldest].until and len(self._known) < _MOST):
                    break
                self._drop_locked(oldest)
            self._known[key] = known
            for other in known.states:
                self._involving.setdefault(other, set()).add(key)
            return True

    def _drop(self, key: bytes) -> None:
        with self._family.lock:
            self._drop_locked(key)

    def _forget_locked(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            for refused in tuple(self._involving.get(key, ())):
                self._drop_locked(refused)

    def _drop_locked(self, key: bytes) -> None:
        found = self._known.pop(key, None)
        if found is None:
            return
        found.until = 0
        for other in found.states:
            involved = self._involving.get(other)
            if involved is not None:
                involved.discard(key)
                if not involved:
                    del self._involving[other]


_alive: weakref.WeakSet[Family] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for family in list(_alive):
        family.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
