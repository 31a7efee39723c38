"""``Most``: the most requests of one client in any half-open window, from times that come a piece at a time.

What is held is a piece and the fullest window before it, however long the log is.
"""

from __future__ import annotations

from typing import Any

import numpy

__all__ = ["Most"]


class Most:
    """Give it all requests by ``add``, in the order of clients and their times; then ``found`` is right.

    Args:
        window: in ns, from 1; requests this far apart are not in one window.
    """

    def __init__(self, window: int) -> None:
        self.found = 0
        self._window = window
        self._clients = self._times = numpy.empty(0, dtype=numpy.int64)

    def add(self, clients: Any, times: Any) -> None:
        """Take the next piece: two arrays of whole numbers, the times in ns."""
        if not len(times):
            return
        clients = numpy.concatenate((self._clients, clients))
        times = numpy.concatenate((self._times, times))
        step = 1
        while self._fits(clients, times, self.found + step):  # what fits ``n`` times fits fewer times too
            self.found += step
            step *= 2
        while step > 1:
            step //= 2
            if self._fits(clients, times, self.found + step):
                self.found += step
        # A window that goes on in the next piece is of the last client, and holds no more until here than were found.
        first = max(int(numpy.searchsorted(clients, clients[-1])), len(times) - self.found)
        self._clients, self._times = clients[first:].copy(), times[first:].copy()

    def _fits(self, clients: Any, times: Any, count: int) -> bool:
        """Whether so many requests of one client are in a window."""
        whole = len(times)
        if count > whole:
            return False
        last, first = slice(count - 1, whole), slice(0, whole - count + 1)
        return bool(((clients[last] == clients[first]) & (times[last] - times[first] < self._window)).any())
