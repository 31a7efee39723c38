"""``Abort``: ends every wait of the calls it was given to, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Abort"]


class Abort:
    """Once it is set, a waiting call stops with what it has, and no further attempt is made.

    Safe from a signal handler's point of view and from any thread; one may serve many calls, threads and loops.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.RLock()
        self._wakes: set[Callable[[], object]] = set()

    def set(self) -> None:
        """Stop all waits now; calls that have not begun to wait do not begin."""
        self.event.set()
        with self._lock:
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    def is_set(self) -> bool:
        """Whether it was set."""
        return self.event.is_set()

    def tell(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` when it is set; at once if it is set already."""
        with self._lock:
            self._wakes.add(wake)
        if self.event.is_set():
            wake()

    def forget(self, wake: Callable[[], object]) -> None:
        """Take ``tell`` back."""
        with self._lock:
            self._wakes.discard(wake)
