"""An ``AsyncStore`` with the shape of a ``Store``, so that one conformance suite serves both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.stores.base import Answer, AsyncStore, Store

__all__ = ["blocking"]

_Value = TypeVar("_Value")


def blocking(store: AsyncStore) -> Store:
    """The store's calls run on an event loop of its own, in a thread of its own, until it is closed; for tests.

    May be called from any number of threads at once; their calls then meet in the loop as tasks.
    """
    return _Blocking(store)


class _Blocking:
    """See ``blocking``."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headway-testing", daemon=True)
        self._thread.start()

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        return self._run(self._store.advance(charges, commit=commit))

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        return self._run(self._store.change(changes))

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        return self._run(self._store.requota(namespace, old, new))

    def clear(self, namespace: str, limit: Limit) -> int:
        return self._run(self._store.clear(namespace, limit))

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        return self._run(self._store.clears_after(charge))

    def reset(self, charges: Sequence[Charge]) -> None:
        self._run(self._store.reset(charges))

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._run(self._store.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, call: Coroutine[Any, Any, _Value]) -> _Value:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
