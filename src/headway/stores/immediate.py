"""A store that never waits (memory) with the asynchronous store's shape."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.stores.base import Answer, Store, late

__all__ = ["ImmediateStore"]


class ImmediateStore:
    """``AsyncStore`` over a ``Store`` whose calls return at once.

    Args:
        store: the store, in this process.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        return self.store.advance(charges, commit=commit)

    async def advance_late(self, charges: Sequence[Charge], since: int) -> Answer:
        """``advance`` for a caller that has stood in line since then, where the store knows how; see ``late``."""
        return late(self.store, charges, since)

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        return self.store.change(changes)

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``."""
        return self.store.requota(namespace, old, new)

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        return self.store.clear(namespace, limit)

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return self.store.clears_after(charge)

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        self.store.reset(charges)

    async def close(self) -> None:
        """See ``Store.close``."""
        self.store.close()
