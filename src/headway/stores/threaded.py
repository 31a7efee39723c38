"""A store that waits (SQLite) for asyncio: its calls run in one worker thread, so the event loop never blocks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import StoreError, StoreUnavailable
from headway.stores.base import Answer, Store, late, undoing

__all__ = ["ThreadedStore"]

_TURN_WITHIN_S: Final = 4.0
"""A call whose turn comes later is not made: the calls before it wait for the file's lock, for up to 5 s each."""

_Value = TypeVar("_Value")


class ThreadedStore:
    """``AsyncStore`` over a ``Store``. Usable from several event loops, and after a fork.

    A caller that is cancelled before its turn is not charged; of one that is cancelled during it the worker gives the
    units back.

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
        return await self._charge(charges, commit, lambda: self.store.advance(charges, commit=commit))

    async def advance_late(self, charges: Sequence[Charge], since: int) -> Answer:
        """``advance`` for a caller that has stood in line since then, where the store knows how; see ``late``."""
        return await self._charge(charges, True, lambda: late(self.store, charges, since))

    async def _charge(self, charges: Sequence[Charge], commit: bool, call: Callable[[], Answer]) -> Answer:
        future = self._submit(_soon(call))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if commit and not future.cancel():
                future.add_done_callback(lambda done: self._submit(lambda: self._undo(charges, done)))
            raise

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
        await asyncio.wrap_future(self._submit(self.store.close))
        if self._worker is not None:
            self._worker.shutdown(wait=False)
            self._worker = None

    def _undo(self, charges: Sequence[Charge], done: Future[Answer]) -> None:
        """Give back what nobody was told that they have. Where the store is away it stays charged: never too little."""
        if done.exception() is None and (changes := undoing(charges, done.result())):
            with suppress(StoreError):
                self.store.change(changes)

    async def _run(self, call: Callable[[], _Value]) -> _Value:
        return await asyncio.wrap_future(self._submit(_soon(call)))

    def _submit(self, call: Callable[[], _Value]) -> Future[_Value]:
        if self._worker is None or self._owner != os.getpid():
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="headway-store")
            self._owner = os.getpid()
        return self._worker.submit(call)


def _soon(call: Callable[[], _Value]) -> Callable[[], _Value]:
    """A call that is not made any more when its turn comes too late: behind others that wait for the file's lock.

    Each of them may wait as long as the store does; without this they would do so one after the other.
    """
    asked = time.monotonic()

    def made() -> _Value:
        if time.monotonic() - asked > _TURN_WITHIN_S:
            raise StoreUnavailable(f"the store gave no turn within {_TURN_WITHIN_S:g} s")
        return call()

    return made
