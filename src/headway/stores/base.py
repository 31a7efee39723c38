"""``Store`` and ``AsyncStore``: how state is advanced, atomically, on the store's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from headway.core.bill import Settlement, grant, settle
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.gcra import Gcra
from headway.core.lease import Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Outcome, Refused
from headway.core.rule import State

__all__ = ["LATE_NS", "Answer", "AsyncStore", "Store", "late", "late_way", "settled_bill", "settled_late", "undoing"]

LATE_NS: Final = 50_000_000
"""How late a caller that stands in line may come to its turn and still have it: what a busy machine's timers need."""


class Answer(NamedTuple):
    """What a store says to a bill.

    Attributes:
        allowed: every charge was admitted (and, unless it was a peek, written).
        now: the store's clock when it decided, ns since 1970.
        outcomes: one per charge, in order; see ``core.bill.Settlement``.
        costs: what was asked for in the end, one per charge; less than the charge's where that was flexible.
    """

    allowed: bool
    now: int
    outcomes: tuple[Outcome, ...]
    costs: tuple[int, ...]


class Store(Protocol):
    """Where state lives and whose clock decides.

    The contract is what ``headway.testing.conformance`` checks: all charges or none, atomically under any number of
    threads and processes that share the store, in one round trip; keys expire by themselves, no earlier than they
    have recovered; nothing is written on a refusal but a capped or counted state of a refusing limit.
    """

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """Decide the charges, all or none; with ``commit=False`` answer the same and write nothing.

        The charges name different counters.

        Raises:
            StoreError: the store could not decide; nothing was written.
        """
        ...

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """Give back, add to or renew charges that were made, all in one step; for each whether it was in time.

        Raises:
            StoreError: the store could not do it; nothing was written.
        """
        ...

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """Bring every key of a limit from its old quota to the same share of the new one; how many keys there were.

        Not for the call path: it visits every key of the limit.

        Raises:
            StoreError: the store could not do it; nothing was written.
        """
        ...

    def clear(self, namespace: str, limit: Limit) -> int:
        """Forget every key of a limit; how many there were. Not for the call path.

        Raises:
            StoreError: the store could not do it.
        """
        ...

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        """(ns until that many units have all been admitted, the store's clock); nothing is written.

        Raises:
            StoreError: the store could not say.
        """
        ...

    def reset(self, charges: Sequence[Charge]) -> None:
        """Forget the state of the charges' keys (their costs do not matter), all in one step.

        Raises:
            StoreError: the store could not do it.
        """
        ...

    def close(self) -> None:
        """Release what the store holds open; calling it again does nothing."""
        ...


class AsyncStore(Protocol):
    """The same contract with ``await``; never blocks the event loop."""

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        ...

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        ...

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``."""
        ...

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        ...

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        ...

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        ...

    async def close(self) -> None:
        """See ``Store.close``."""
        ...


def settled_bill(
    charges: Sequence[Charge], states: Sequence[State | None], now: int
) -> tuple[Settlement, tuple[int, ...]]:
    """``core.bill`` for a store in the process: the settlement, and what was asked for in the end."""
    rules = [charge.limit.rule for charge in charges]
    costs = tuple([charge.cost for charge in charges])
    shadows = [charge.limit.shadow for charge in charges]
    flexible = [charge.flexible for charge in charges]
    if True in flexible:
        costs = grant(rules, states, costs, now, flexible=flexible, shadows=shadows)
    leases = [charge.lease for charge in charges]
    return settle(rules, states, costs, now, leases=leases, shadows=shadows), costs


def settled_late(
    charges: Sequence[Charge], states: Sequence[State | None], now: int, since: int
) -> tuple[Settlement, tuple[int, ...], int]:
    """``settled_bill`` for a caller that has stood in line since then, and the moment for which it was decided.

    That is the earliest at which the bill could have passed, at most ``LATE_NS`` ago: a turn is not lost by a timer that
    rings late, so a line moves at the quota's pace. Where other rules than GCRA are asked it is now.

    Args:
        charges: the bill.
        states: one per charge.
        now: the store's clock.
        since: the store's clock when the caller came.
    """
    at = now
    if all(isinstance(charge.limit.rule, Gcra) for charge in charges):
        at = max(min(since, now), now - LATE_NS)
    while True:
        settled, costs = settled_bill(charges, states, at)
        if settled.allowed or at == now:
            return settled, costs, at
        lines = zip(charges, settled.outcomes, strict=True)
        waits = [out.retry_after for charge, out in lines if isinstance(out, Refused) and not charge.limit.shadow]
        at = min(now, at + max(waits)) if waits else now


def late(store: Store, charges: Sequence[Charge], since: int) -> Answer:
    """A store's answer to one that has stood in line since then; as to anybody else, where it has no ``late_way``."""
    way = late_way(store)
    answer: Answer = store.advance(charges) if way is None else way(charges, since)
    return answer


def late_way(store: object) -> Any:
    """A store's ``advance_late``; None where it has none, or where a subclass says by ``advance`` alone how it decides."""
    for kind in type(store).__mro__:
        if "advance_late" in vars(kind):
            return getattr(store, "advance_late")  # noqa: B009  # no protocol has it
        if "advance" in vars(kind):
            return None
    return None


def undoing(charges: Sequence[Charge], answer: Answer) -> tuple[Change, ...]:
    """What giving a whole bill back asks of a store; nothing where it was refused."""
    if not answer.allowed:
        return ()
    lines = zip(charges, answer.costs, answer.outcomes, strict=True)
    return tuple(
        Change(charge, Receipt(answer.now, cost, charge.lease.token if charge.lease else 0, outcome), give_back=cost)
        for charge, cost, outcome in lines
        if cost and isinstance(outcome, Admitted)
    )
