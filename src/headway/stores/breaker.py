"""``Breaker``: after repeated failures a store is left alone, and tried again by one call now and then.

Shared by all networked stores. While it is open a call costs a comparison, not a deadline.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

from headway.errors import StoreUnavailable

__all__ = ["Breaker"]

FAILURES: Final = 3
PAUSE_S: Final = 1.0
_TELL_S: Final = 60.0


class Breaker:
    """Guards one server. For any number of threads.

    Args:
        name: of the server, for messages.
        failures: so many in a row open it, at least 1.
        pause: seconds between two tries while it is open.
        ticks: seconds that never go back.

    Attributes:
        open: calls are refused without trying.
        failed_count: how many calls failed.
        skipped_count: how many were refused without trying.
        outages: how often it opened.
    """

    __slots__ = ("__weakref__", "_in_a_row", "_lock", "_next_told", "_next_try", "_pause", "_ticks", "_told", "_until_open", "failed_count", "last_error",
                 "name", "open", "outages", "skipped_count")  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        failures: int = FAILURES,
        pause: float = PAUSE_S,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.open = False
        self.failed_count = 0
        self.skipped_count = 0
        self.outages = 0
        self.last_error = ""
        self._until_open = failures
        self._pause = pause
        self._ticks = ticks
        self._in_a_row = 0
        self._told = 0
        self._next_try = 0.0
        self._next_told = float("-inf")
        self._lock = threading.Lock()
        _alive.add(self)

    def enter(self) -> None:
        """Ask to make a call; one call a pause is let through an open breaker.

        Raises:
            StoreUnavailable: it is open.
        """
        if not self.open:
            return
        now = self._ticks()
        with self._lock:
            if not self.open:
                return
            if now >= self._next_try:
                self._next_try = now + self._pause
                return
            self.skipped_count += 1
        raise StoreUnavailable(f"{self.name} is away ({self.last_error}); it is tried again every {self._pause:g} s")

    def succeeded(self) -> None:
        """A call was answered."""
        if self._in_a_row == 0:
            return
        with self._lock:
            self._in_a_row = 0
            was_open, self.open = self.open, False
            skipped, self._told = self.skipped_count - self._told, self.skipped_count
        if was_open:
            untried = f"; {skipped} calls were not tried" if skipped else ""
            _log("%s is back%s", self.name, untried, warning=False)

    def failed(self, error: BaseException) -> None:
        """A call was not answered as it should."""
        with self._lock:
            self.failed_count += 1
            self._in_a_row += 1
            self.last_error = self._reason(error)
            opens = not self.open and self._in_a_row >= self._until_open
            if opens:
                self.open = True
                self.outages += 1
                self._next_try = self._ticks() + self._pause
        if opens:
            _log("%s is away: %s; on_store_failure decides until it is back", self.name, self.last_error, warning=True)

    def answered(self, error: BaseException) -> None:
        """A call was answered, but did not decide: the server is there. Said once a minute at most, for as long as it goes on."""
        self.succeeded()
        now = self._ticks()
        with self._lock:
            if now < self._next_told:
                return
            self._next_told = now + _TELL_S
        _log("%s does not decide: %s; on_store_failure does", self.name, self._reason(error), warning=True)

    def _reason(self, error: BaseException) -> str:
        """What went wrong; our own name is said once."""
        return (str(error) or type(error).__name__).removeprefix(f"{self.name}: ")

    def after_fork(self) -> None:
        """In the child nobody holds the lock."""
        self._lock = threading.Lock()


_alive: WeakSet[Breaker] = WeakSet()


def _after_fork_in_child() -> None:
    for breaker in list(_alive):
        breaker.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _log(message: str, *details: object, warning: bool) -> None:
    import logging  # slow to import, and a store is rarely away

    logger = logging.getLogger("headway.stores")
    (logger.warning if warning else logger.info)(message, *details)
