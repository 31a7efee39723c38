"""The standard streams: there whatever the caller closed, and given up where nobody reads any more."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["give_up_output", "ready"]


def ready() -> None:
    """Make all three streams usable: one that the caller closed reads and writes nothing, and no character fails.

    Without it, Python has None for a closed one, and the next file that is opened takes its number: a database would be
    written over by whoever writes to the "standard output" below Python.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):  # as on standard error: no character is a reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")


def give_up_output() -> None:
    """Let what is still in the buffer go nowhere, so that the end of the process does not fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
