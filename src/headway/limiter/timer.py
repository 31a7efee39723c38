"""How a waiting caller waits: real time, or a manual clock's in tests."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    import threading

__all__ = ["REAL_TIME", "Timer"]

_SECOND = 1_000_000_000
_LONGEST_S = 86_400.0
"""The longest single wait that every platform's primitives take."""


class Timer(Protocol):
    """The clock that deadlines run on, and the way to let it pass."""

    def ticks(self) -> int:
        """Nanoseconds that never go back."""
        ...

    def pause(self, event: threading.Event, ns: int) -> None:
        """Return when ``event`` is set or ``ns`` nanoseconds have passed, not earlier."""
        ...

    def turn(self, event: threading.Event, ns: int) -> None:
        """Return when ``event`` is set, or others have let ``ns`` nanoseconds pass."""
        ...

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        """``pause`` for an event loop."""
        ...

    async def turn_async(self, event: asyncio.Event, ns: int) -> None:
        """``turn`` for an event loop."""
        ...


class _RealTime:
    """The monotonic clock."""

    ticks = staticmethod(time.monotonic_ns)

    def pause(self, event: threading.Event, ns: int) -> None:
        """See ``Timer``."""
        end = time.monotonic_ns() + ns
        while (left := end - time.monotonic_ns()) > 0 and not event.wait(min(left / _SECOND, _LONGEST_S)):
            pass

    turn = pause

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        """See ``Timer``."""
        import asyncio

        end = time.monotonic_ns() + ns
        while (left := end - time.monotonic_ns()) > 0 and not event.is_set():
            with suppress(TimeoutError):  # a loop's clock may be coarser than the wait, so the clock is asked again
                async with asyncio.timeout(min(left / _SECOND, _LONGEST_S)):  # wait_for may swallow a cancellation
                    await event.wait()

    turn_async = pause_async


REAL_TIME: Timer = _RealTime()
