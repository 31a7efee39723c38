"""A progress bar for long work: one line of a terminal that is gone afterwards; nothing where there is no terminal."""

from __future__ import annotations

import os
import shutil
import time
from typing import Final, TextIO

__all__ = ["Progress"]

_BAR: Final = 30
_EVERY_S: Final = 0.1


class Progress:
    """How far some work has come. Use it in a ``with``; ``show`` may be called as often as one likes.

    Args:
        out: where it is drawn, usually ``sys.stderr``; nothing is drawn where that is no terminal, or a dumb one.
        unit: what is counted: "lines".
        whole: how much there is to do, in whatever ``show`` is given as ``part``; 0 where nobody knows.
    """

    def __init__(self, out: TextIO, unit: str, whole: float = 0) -> None:
        self._out = out if out.isatty() and os.environ.get("TERM") != "dumb" else None
        self._unit = unit
        self._whole = whole
        self._due = 0.0
        self._started = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._out and self._drawn:
            print("\r\x1b[K", end="", file=self._out, flush=True)

    @property
    def due(self) -> bool:
        """Whether ``show`` would draw now: at most ten times a second."""
        return self._out is not None and time.monotonic() >= self._due

    def show(self, count: int, part: float | None = None) -> None:
        """Draw it, at most ten times a second.

        Args:
            count: how many units are done.
            part: how much of the whole is done; None takes the count.
        """
        if not self._out or not self.due:
            return
        now = time.monotonic()
        self._due, self._drawn = now + _EVERY_S, True
        text = f"{count:,} {self._unit}"
        if self._whole:
            done = min(1.0, max(0.0, (count if part is None else part) / self._whole))
            text = f"{'█' * int(done * _BAR):░<{_BAR}} {done:4.0%}  {text}{self._left(done, now)}"
        width = shutil.get_terminal_size().columns
        print(f"\r{text[: width - 1]}\x1b[K", end="", file=self._out, flush=True)

    def _left(self, done: float, now: float) -> str:
        """How long the rest will take if it goes on like this; nothing in the first seconds."""
        spent = now - self._started
        if done <= 0 or spent < 2:
            return ""
        seconds = round(spent / done * (1 - done))
        return f", {seconds // 60}:{seconds % 60:02} left"
