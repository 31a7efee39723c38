"""A store that waits (SQLite) for asyncio: its calls run in one worker thread, so the event loop never blocks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.stores.base import Answer, Store

__all__ = ["ThreadedStore"]

_Result = TypeVar("_Result")


class ThreadedStore:
    """``AsyncStore`` over a ``Store``. Usable from several event loops, and after a fork.

    A caller that is cancelled before its turn is not charged; one that is cancelled during it may be.

    Args:
        store: the store whose calls may wait.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._worker: ThreadPoolExecutor | None = None
        self._owner = 0

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy has a worker of its own."""
        return (ThreadedStore, (self.store,))

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        return await self._run(lambda: self.store.advance(charges, commit=commit))

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        return await self._run(lambda: self.store.change(changes))

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``."""
        return await self._run(lambda: self.store.requota(namespace, old, new))

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        return await self._run(lambda: self.store.clear(namespace, limit))

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        return await self._run(lambda: self.store.clears_after(charge))

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        await self._run(lambda: self.store.reset(charges))

    async def close(self) -> None:
        """Close the store and end the worker."""
        await self._run(self.store.close)
        if self._worker is not None:
            self._worker.shutdown(wait=False)
            self._worker = None

    async def _run(self, call: Callable[[], _Result]) -> _Result:
        if self._worker is None or self._owner != os.getpid():
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="headway-store")
            self._owner = os.getpid()
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)
