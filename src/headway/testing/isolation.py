"""Isolation: for a while all limiters of this process decide on fresh memory and one manual clock.

It reaches limiters however they are held (module level, an app made long ago, a closure), because every limiter
registers itself when it is made.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Rational
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headway.core.limit import Limit
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.base import BaseLimiter, living, on_creation, shadow_counts
from headway.limiter.queue import Lines
from headway.limiter.timer import Timer
from headway.policy.choice import Choice
from headway.policy.provided import ProvidedLimit, providers_of
from headway.stores.memory import MemoryStore
from headway.stores.url import open_async_store
from headway.testing.clock import ManualClock

if TYPE_CHECKING:
    from headway.limiter.shadow import ShadowCounts

__all__ = ["Isolation", "isolated"]


@dataclass(frozen=True, slots=True)
class _Before:
    """What a limiter worked with before, to be put back."""

    store: Any
    timer: Timer
    lines: Lines
    off: bool
    parts: tuple[Limit | Choice, ...]
    shadows: ShadowCounts | None


class Isolation:
    """All limiters on fresh memory and one manual clock, from ``start`` to ``stop``; also a context manager.

    Limiters that share a store go on sharing one. A limiter that is made meanwhile is isolated too, unless it already
    decides on a ``ManualClock``: then its maker is in control, and it keeps its store. Quotas changed meanwhile are
    changed back. Provided quotas are asked for anew, and shadow limits count from nothing.

    Attributes:
        clock: what every isolated limiter decides, and waits, by.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._off = False
        self._before: weakref.WeakKeyDictionary[BaseLimiter, _Before] = weakref.WeakKeyDictionary()
        self._stores: dict[Hashable, MemoryStore] = {}
        self._kept: list[Any] = []
        self._opened: list[Any] = []
        self._providers: weakref.WeakKeyDictionary[ProvidedLimit, dict[str, Any]] = weakref.WeakKeyDictionary()

    def start(self) -> None:
        """Isolate every limiter there is, and every one to come."""
        for limiter in list(living):
            self._isolate(limiter)
        on_creation.append(self._made)

    def stop(self) -> None:
        """Give every limiter back what it had."""
        on_creation.remove(self._made)
        for limiter, before in list(self._before.items()):
            limiter._parts, limiter._shadows = before.parts, before.shadows
            _work_on(limiter, before.store, before.timer, before.lines, off=before.off)
        for provider, known in list(self._providers.items()):
            provider.go_back(known)
        for store in self._opened:  # by limiters made meanwhile: a close() of theirs reached the fresh memory only
            store.close()

    def off(self) -> None:
        """From now on every limiter admits everything and counts nothing, those still to be made too."""
        self._switch(off=True)

    def on(self) -> None:
        """Limit again."""
        self._switch(off=False)

    def reset(self) -> None:
        """Forget every key of every limiter, and what providers said. The clock and ``off`` stay as they are."""
        for provider in list(self._providers):
            provider.forget()
        for store in self._stores.values():
            store.close()  # which forgets everything
        ours = list(self._stores.values())
        for limiter in list(living):
            _forget_stand_in(limiter)
            if _inner(limiter) not in ours:
                for part in limiter._parts:
                    _inner(limiter).clear(limiter._namespace, part if isinstance(part, Limit) else part.limits[0])

    def travel(self, seconds: Rational | float) -> None:
        """Let time pass for every limiter at once, without waiting; negative: a clock that is set back."""
        self.clock.advance(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _made(self, limiter: BaseLimiter) -> None:
        if on_creation[-1] != self._made:  # an isolation within this one has it
            return
        if _decides_by_hand(limiter):
            self._before[limiter] = _before(limiter)
            if self._off:
                limiter._switch(off=True)
            return
        if limiter._owned and hasattr(_inner(limiter), "path"):
            self._opened.append(_inner(limiter))
        self._isolate(limiter)

    def _isolate(self, limiter: BaseLimiter) -> None:
        self._before[limiter] = _before(limiter)
        inner = _inner(limiter)
        self._kept.append(inner)  # an address in memory names it only as long as it lives
        place = str(inner.path) if hasattr(inner, "path") else id(inner)
        store = self._stores.get(place)
        if store is None:
            store = self._stores[place] = MemoryStore(clock=self.clock)
        for provider in (found for part in limiter._parts for found in providers_of(part)):
            if provider not in self._providers:
                self._providers[provider] = provider.begin_anew(self.clock)
        limiter._shadows = shadow_counts(limiter._parts)
        _work_on(limiter, store, self.clock, Lines(), off=self._off)

    def _switch(self, *, off: bool) -> None:
        self._off = off
        for limiter in list(living):
            limiter._switch(off=off)


@contextmanager
def isolated() -> Iterator[Isolation]:
    """A block in which all limiters are isolated; what the fixture ``headway_limits`` is made of, for other runners."""
    with Isolation() as isolation:
        yield isolation


def _before(limiter: BaseLimiter) -> _Before:
    return _Before(limiter.store, limiter._timer, limiter._lines, limiter._off, limiter._parts, limiter._shadows)


def _work_on(limiter: BaseLimiter, store: Any, timer: Timer, lines: Lines, *, off: bool) -> None:
    limiter.store = open_async_store(store) if isinstance(limiter, AsyncLimiter) else store
    limiter._timer = timer
    limiter._lines = lines
    limiter._off = off
    _forget_stand_in(limiter)
    limiter._use(limiter.store)


def _forget_stand_in(limiter: BaseLimiter) -> None:
    for name in ("_stand_in", "_async_stand_in"):
        limiter.__dict__.pop(name, None)


def _inner(limiter: BaseLimiter) -> Any:
    """The store itself, under what gives it an asynchronous shape."""
    return getattr(limiter.store, "store", limiter.store)


def _decides_by_hand(limiter: BaseLimiter) -> bool:
    return isinstance(getattr(_inner(limiter), "clock", None), ManualClock)
