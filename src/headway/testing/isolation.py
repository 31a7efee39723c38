"""Isolation: for a while all limiters of this process decide on fresh memory and one manual clock.

It reaches limiters however they are held (module level, an app made long ago, a closure), because every limiter
registers itself when it is made.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from numbers import Rational
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headway.core.limit import Limit
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.base import BaseLimiter, living, on_creation, shadow_counts
from headway.limiter.queue import Lines
from headway.limiter.timer import REAL_TIME, Timer
from headway.policy.choice import Choice
from headway.policy.provided import ProvidedLimit, providers_of
from headway.stores.memory import MemoryStore
from headway.stores.url import files, open_async_store
from headway.testing.clock import ManualClock
from headway.testing.untouched import untouched

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


_lock = threading.RLock()
_running: list[Isolation] = []
"""Those that have started and not stopped, the outermost first."""


class Isolation:
    """All limiters on fresh memory and one manual clock, from ``start`` to ``stop``; also a context manager.

    Limiters that share a store go on sharing one. A limiter that is made meanwhile is isolated too, unless it already
    decides on a ``ManualClock``: then its maker is in control, and it keeps its store. A SQLite file that its URL names
    is not touched before it is used outside. Quotas changed meanwhile are changed back. Provided quotas are asked for
    anew, and shadow limits count from nothing. Isolations nest, in whatever order they stop.

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
        self._originals: dict[tuple[int, bool], Any] = {}
        self._providers: weakref.WeakKeyDictionary[ProvidedLimit, dict[str, Any]] = weakref.WeakKeyDictionary()

    def start(self) -> None:
        """Isolate every limiter there is, and every one to come.

        Raises:
            RuntimeError: it has started already.
        """
        with _lock:
            if self in _running:
                raise RuntimeError("this isolation has started already; stop() it first, or make another")
            if not _running:
                on_creation.append(_made)
                files.append(untouched)
            _running.append(self)
            for limiter in _all_living():
                self._isolate(limiter)

    def stop(self) -> None:
        """Give every limiter back what it had; an isolation that is not running stays so."""
        with _lock:
            self._stop()

    def _stop(self) -> None:
        if self not in _running:
            return
        later = _running[_running.index(self) + 1 :]
        _running.remove(self)
        if not _running:
            on_creation.remove(_made)
            files.remove(untouched)
        for limiter, before in list(self._before.items()):
            other = next((isolation for isolation in later if limiter in isolation._before), None)
            if other is not None:  # it began later and goes on: what we would give back, it will
                other._before[limiter] = before
                continue
            limiter._parts, limiter._shadows = before.parts, before.shadows
            _work_on(limiter, before.store, before.timer, before.lines, off=before.off)
        for provider, known in list(self._providers.items()):
            heir = next((isolation for isolation in later if provider in isolation._providers), None)
            if heir is not None:
                heir._providers[provider] = known
            else:
                provider.go_back(known)
        for store in self._opened:  # by limiters made meanwhile: a close() of theirs reached the fresh memory only
            store.close()
        self._before.clear()
        self._providers.clear()

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
        for limiter in _all_living():
            _forget_stand_in(limiter)
            clear = getattr(_inner(limiter), "clear", None)
            if clear is not None and _inner(limiter) not in ours:
                for part in limiter._parts:
                    clear(limiter._namespace, part if isinstance(part, Limit) else part.limits[0])

    def travel(self, seconds: Rational | float | timedelta) -> None:
        """Let time pass for every limiter at once, without waiting; negative: a clock that is set back."""
        self.clock.advance(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _leave_alone(self, limiter: BaseLimiter) -> None:
        self._before[limiter] = _before(limiter)
        if self._off:
            limiter._switch(off=True)

    def _isolate(self, limiter: BaseLimiter) -> None:
        if limiter in self._before:  # made by another thread while we began
            return
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
        self._originals.setdefault((id(store), isinstance(limiter, AsyncLimiter)), limiter.store)
        limiter._shadows = shadow_counts(limiter._parts)
        _work_on(limiter, store, self.clock, Lines(), off=self._off)

    def _switch(self, *, off: bool) -> None:
        self._off = off
        for limiter in _all_living():
            limiter._switch(off=off)


@contextmanager
def isolated() -> Iterator[Isolation]:
    """A block in which all limiters are isolated; what the fixture ``headway_limits`` is made of, for other runners."""
    with Isolation() as isolation:
        yield isolation


def _made(limiter: BaseLimiter) -> None:
    """Isolate a new limiter in all that run, so that each has something to give back to the next."""
    with _lock:
        if not all(limiter in isolation._before for isolation in _running):  # else one began meanwhile and has it
            _isolate_in_all(limiter)


def _isolate_in_all(limiter: BaseLimiter) -> None:
    _give_its_own_store(limiter)
    if isinstance(getattr(_inner(limiter), "clock", None), ManualClock):
        for isolation in _running:
            isolation._leave_alone(limiter)
        return
    if limiter._owned and hasattr(_inner(limiter), "path"):
        _running[0]._opened.append(_inner(limiter))
    for isolation in _running:
        isolation._isolate(limiter)


def _give_its_own_store(limiter: BaseLimiter) -> None:
    """A limiter made on the store of an isolated one is on that one's own store when all is over."""
    for isolation in reversed(_running):
        inner = _inner(limiter)
        kind = isinstance(limiter, AsyncLimiter)
        if not isolation._originals.keys().isdisjoint({(id(inner), True), (id(inner), False)}):
            own = isolation._originals.get((id(inner), kind))
            if own is None:  # one of the other kind; made from its store as it would have been outside
                other = isolation._originals[id(inner), not kind]
                own = open_async_store(other) if kind else getattr(other, "store", other)
            clock = getattr(getattr(own, "store", own), "clock", None)
            if limiter._timer is isolation.clock:
                limiter._timer = clock if isinstance(clock, ManualClock) else REAL_TIME
            limiter.store = own


def _all_living() -> list[BaseLimiter]:
    while True:
        try:
            return list(living)
        except RuntimeError:  # another thread made a limiter meanwhile
            continue


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
