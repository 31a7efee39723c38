"""How every command says in one line what is wrong, and with which exit code it ends then."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from headway.cli import exit_codes
from headway.cli.safe import safe
from headway.errors import ExtraMissing

__all__ = ["fail", "no_request", "outages_told_once", "unreadable", "unwritable"]


def fail(command: str, problem: str, code: int) -> int:
    """Say what is wrong on standard error; the exit code, for the command to return."""
    print(f"headway {command}: {safe(problem)}", file=sys.stderr)
    return code


@contextmanager
def outages_told_once() -> Iterator[None]:
    """Leave it to the command to say that the store did not decide; its log would say it beside that."""
    import logging  # slow to import, and most commands need no store

    def is_other(record: logging.LogRecord) -> bool:
        return "on_store_failure" not in record.getMessage()

    logger = logging.getLogger("headway.stores")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def unreadable(command: str, error: OSError | ValueError, name: str) -> int:
    """Say why a file could not be read.

    Args:
        command: the command's name.
        error: what came of reading: the system's error, or what is wrong with the content, with the file's name in it.
        name: the file, where the error does not name one.
    """
    match error:
        case OSError():
            problem = f"{error.filename or name}: cannot be read: {error.strerror or error}"
            return fail(command, problem, exit_codes.NO_INPUT)
        case ExtraMissing():
            return fail(command, str(error), exit_codes.UNAVAILABLE)
    return fail(command, str(error), exit_codes.CONTENT)


def unwritable(command: str, error: OSError | ValueError) -> int:
    """Say why a file that was asked for cannot be written: the system's error, a missing extra, or nothing to draw."""
    match error:
        case OSError():
            return fail(command, str(error), exit_codes.CANNOT_WRITE)
        case ExtraMissing():
            return fail(command, str(error), exit_codes.UNAVAILABLE)
    return fail(command, str(error), exit_codes.CONTENT)


def no_request(command: str, logs: Sequence[str], lines: int, unread: int, match: str | None = None) -> int:
    """Say that there is no request in some logs, so that there is nothing to report on.

    Args:
        command: the command's name.
        logs: their names.
        lines: how many they have.
        unread: how many of these could not be read.
        match: what ``--match`` asks for.
    """
    from headway.analysis.figures import counted

    if not lines:
        problem = f"{'is' if len(logs) == 1 else 'are'} empty; expected an access log"
    elif unread == lines:
        problem = "the only line could not be read" if lines == 1 else f"none of {lines:,} lines could be read"
    else:
        problem = f"no request{f' that {match!r} matches' if match else ''} in {counted(lines, 'line')}"
    return fail(command, f"{', '.join(logs)}: {problem}", exit_codes.CONTENT)
