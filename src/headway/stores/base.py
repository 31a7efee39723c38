"""``Store`` and ``AsyncStore``: how state is advanced, atomically, on the store's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headway.core.charge import Charge
from headway.core.outcome import Outcome

__all__ = ["Answer", "AsyncStore", "Store"]


class Answer(NamedTuple):
    """What a store says to a bill.

    Attributes:
        allowed: every charge was admitted (and, unless it was a peek, written).
        now: the store's clock when it decided, ns since 1970.
        outcomes: one per charge, in order; see ``core.bill.Settlement``.
    """

    allowed: bool
    now: int
    outcomes: tuple[Outcome, ...]


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

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        ...

    async def close(self) -> None:
        """See ``Store.close``."""
        ...
