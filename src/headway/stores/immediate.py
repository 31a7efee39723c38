"""A store that never waits (memory) with the asynchronous store's shape."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.charge import Charge
from headway.stores.base import Answer, Store

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

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        self.store.reset(charges)

    async def close(self) -> None:
        """See ``Store.close``."""
        self.store.close()
