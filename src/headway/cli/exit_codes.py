"""Exit codes of the ``headway`` command: sysexits' numbers where they fit, so that scripts can branch on them."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BLOCKED",
    "CANNOT_WRITE",
    "CONFIGURATION",
    "CONTENT",
    "FOUND",
    "INTERRUPTED",
    "IO_ERROR",
    "NEVER",
    "NO_INPUT",
    "OF_LOGS",
    "OK",
    "REFUSED",
    "STORE",
    "UNAVAILABLE",
    "USAGE",
]

OK: Final = 0
"""Done; of a decision: allowed."""
FOUND: Final = 1
"""A check has found what it was asked to fail on."""
USAGE: Final = 64
"""An option or a word that cannot be."""
NEVER: Final = 65
"""Of a decision: the cost can never fit."""
CONTENT: Final = 65
"""A file that is not what it should be, or that holds nothing to report on, such as an empty log."""
NO_INPUT: Final = 66
"""A file that cannot be read."""
STORE: Final = 69
"""The store could not decide."""
UNAVAILABLE: Final = 69
"""Something else that is needed is not there: an extra, a free port, an answer of a URL."""
CANNOT_WRITE: Final = 73
"""A file that was asked for cannot be written."""
IO_ERROR: Final = 74
"""The output cannot be written, such as to a full disk."""
REFUSED: Final = 75
"""Of a decision: refused for now; try again later."""
BLOCKED: Final = 77
"""Of a decision: blocked; waiting does not help."""
CONFIGURATION: Final = 78
"""A policy file, a store's URL or a setting is wrong."""
INTERRUPTED: Final = 130
"""Ctrl-C; a report is of what was read until then."""

OF_LOGS: Final = (
    "Exit status: 0; 64 for an option that cannot be; 65 for a log without a request, in no known format, or damaged; 66 for a "
    "file that cannot be read; 69 for an extra that is not installed; 73 for a file that cannot be written; 130 after "
    "Ctrl-C, with a report on what was read until then."
)
"""What the commands that read logs say of themselves."""
