"""Exit codes of the ``headway`` command: sysexits' numbers where they fit, so that scripts can branch on them."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BLOCKED",
    "CONFIGURATION",
    "FOUND",
    "INTERRUPTED",
    "IO_ERROR",
    "NEVER",
    "OK",
    "REFUSED",
    "STORE",
    "UNAVAILABLE",
    "USAGE",
]

OK: Final = 0
"""Done; allowed."""
FOUND: Final = 1
"""A check has found what it was asked to fail on."""
USAGE: Final = 64
"""The command was called wrongly."""
NEVER: Final = 65
"""The cost can never fit; data that cannot be read."""
STORE: Final = 69
"""The store could not decide."""
UNAVAILABLE: Final = 69
"""Something else that is needed is not there: a free port, an extra."""
IO_ERROR: Final = 74
"""The output cannot be written, such as to a full disk."""
REFUSED: Final = 75
"""Refused for now: try again later."""
BLOCKED: Final = 77
"""Blocked: waiting does not help."""
CONFIGURATION: Final = 78
"""A policy file or a setting is wrong."""
INTERRUPTED: Final = 130
"""Ctrl-C."""
