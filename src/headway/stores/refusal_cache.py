"""``RefusalCache``: what a networked store has refused is refused here until its wait is over, without asking again.

A refusal says until when it stands, if nobody gives units back, resets the key or raises the limit. Those are seen late by
at most the cache's cap; a cap of 0 switches it off. What is remembered is the state of every key of the refused bill, so
the answer given here is worked out by ``core.bill.settle`` like any other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from headway.core.bill import settle
from headway.core.charge import Charge
from headway.core.outcome import Never, Outcome, Refused
from headway.core.rule import State
from headway.stores.base import Answer

__all__ = ["RefusalCache"]

_MOST: Final = 10_000


class _Known(NamedTuple):
    """A refusal that was told.

    Attributes:
        cost: of the refused charge.
        sent: on ``ticks``, before the store was asked.
        now: the store's clock when it decided.
        until: on ``ticks``; from then on the store is asked again.
        states: by stored key, of the whole bill.
    """

    cost: int
    sent: int
    now: int
    until: int
    states: dict[bytes, State | None]


class RefusalCache:
    """Bounded, for any number of threads.

    Args:
        cap: seconds that a refusal is remembered at most; 0 remembers nothing.
        ticks: ns that never go back; default: the monotonic clock.

    Attributes:
        answered: how many bills were refused without asking the store.
    """

    def __init__(self, cap: float, ticks: Callable[[], int] | None = None) -> None:
        self.answered = 0
        self._cap = round(cap * 1e9)
        self._ticks = ticks or time.monotonic_ns
        self._known: dict[bytes, _Known] = {}
        self._involving: dict[bytes, set[bytes]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many refusals are remembered."""
        return len(self._known)

    def stamp(self) -> int:
        """The time before a store is asked, for ``learn``."""
        return self._ticks()

    def answer(self, keys: Sequence[bytes], charges: Sequence[Charge]) -> Answer | None:
        """The refusal of a bill that is to be charged, if one of its keys is known to refuse; else None."""
        known = self._known
        if not known:
            return None
        for key, charge in zip(keys, charges, strict=True):
            found = known.get(key)
            if found is None or charge.cost < found.cost or charge.limit.shadow or charge.flexible:
                continue
            ticks = self._ticks()
            if ticks >= found.until:
                self._drop(key)
                continue
            if all(other in found.states for other in keys):
                now = (found.now + ticks - found.sent) // 1_000 * 1_000  # the grid of the clocks that stores have
                settled = settle(
                    [charge.limit.rule for charge in charges],
                    [found.states[other] for other in keys],
                    [charge.cost for charge in charges],
                    now,
                    shadows=[charge.limit.shadow for charge in charges],
                )
                if not settled.allowed:
                    self.answered += 1
                    return Answer(False, now, settled.outcomes, tuple([charge.cost for charge in charges]))
        return None

    def learn(
        self,
        sent: int,
        keys: Sequence[bytes],
        charges: Sequence[Charge],
        answer: Answer,
        states: Sequence[State | None],
    ) -> None:
        """Remember what a store refused, having written nothing.

        Args:
            sent: from ``stamp``, before the store was asked: its clock read at least as much since.
            keys: the stored keys, one per charge.
            charges: the bill.
            answer: a refusal.
            states: what the keys held, one per charge.
        """
        if not self._cap:
            return
        of_bill = dict(zip(keys, states, strict=True))
        for key, charge, outcome in zip(keys, charges, answer.outcomes, strict=True):
            wait = self._wait(charge, outcome)
            if wait:
                self._drop(key)
                with self._lock:
                    if len(self._known) >= _MOST:
                        self._drop_locked(next(iter(self._known)))
                    self._known[key] = _Known(charge.cost, sent, answer.now, sent + wait, of_bill)
                    for other in of_bill:
                        self._involving.setdefault(other, set()).add(key)

    def forget(self, keys: Sequence[bytes]) -> None:
        """Something was charged, given back or reset here: ask again whatever involves these keys."""
        if not self._known:
            return
        with self._lock:
            for key in keys:
                for refused in tuple(self._involving.get(key, ())):
                    self._drop_locked(refused)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()
            self._involving.clear()

    def _drop(self, key: bytes) -> None:
        with self._lock:
            self._drop_locked(key)

    def _drop_locked(self, key: bytes) -> None:
        found = self._known.pop(key, None)
        for other in found.states if found is not None else ():
            involved = self._involving.get(other)
            if involved is not None:
                involved.discard(key)
                if not involved:
                    del self._involving[other]

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

    def after_fork(self) -> None:
        """In the child nobody holds the lock."""
        self._lock = threading.Lock()
