"""Ctrl-C in long work over a log: the reading ends, and what was found until then is still reported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TypeVar

__all__ = ["Interruptible"]

T = TypeVar("T")


class Interruptible:
    """Use it in a ``with`` around the work: the first Ctrl-C sets ``stopped``, and ends a read that waits; the second raises.

    Attributes:
        stopped: Ctrl-C came.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._reading = False
        self._before: signal.Handlers | int | Callable[[int, FrameType | None], object] | None = None

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def read(self, read: Callable[[int], bytes], size: int) -> bytes:
        """What ``read(size)`` gives; nothing, as at the end, once Ctrl-C came."""
        if self.stopped:
            return b""
        try:
            self._reading = True
            found = read(size)
            self._reading = False
            return found
        except KeyboardInterrupt:
            self.stopped = True
            return b""
        finally:
            self._reading = False

    def blocks(self, blocks: Iterable[T]) -> Iterator[T]:
        """What comes out of an iterator, until Ctrl-C comes."""
        source = iter(blocks)
        while not self.stopped:
            try:
                self._reading = True
                block = next(source)
                self._reading = False
            except KeyboardInterrupt:
                self.stopped = True
                return
            except StopIteration:
                return
            finally:
                self._reading = False
            yield block

    def _heard(self, *_: object) -> None:
        again, self.stopped = self.stopped, True
        if again or self._reading:
            raise KeyboardInterrupt
