"""What a call to PostgreSQL that failed means: by its SQLSTATE, or that nothing was said in time."""

from __future__ import annotations

from typing import Any, Final

from headway.errors import StoreError

__all__ = ["FORBIDDEN", "GONE", "again", "alone", "is_in_order", "is_outage", "is_read_only", "reason"]

_AGAIN: Final = ("40001", "40P01")
"""Serialization failure and deadlock: nothing was written, and another try may do."""

GONE: Final = ("42883", "3F000", "42P01")
"""A function, a schema or a table that was there and is not: somebody changed the database under us."""

FORBIDDEN: Final = "42501"

_OUTAGE: Final = ("08", "53", "57", "58", "XX")
"""Classes of SQLSTATE: connections, resources, an operator's intervention, the system, internal errors."""

_CANCELLED: Final = "57014"
"""A statement's time-out, or somebody who ended one statement: the server is there."""

_READ_ONLY: Final = "25006"
"""On a connection of ours: a standby, that answers nothing but refusals. Another connection may find its primary."""


def alone(connection: Any) -> bool:
    """Whether a statement is a transaction by itself there: nobody has begun one, and none begins by itself."""
    return bool(connection.autocommit) and not connection.info.transaction_status


def reason(error: BaseException) -> str:
    """An error in one line."""
    return (str(error).strip() or "no answer in time").splitlines()[0]  # a TimeoutError says nothing


def again(error: BaseException) -> bool:
    """Whether a decision that failed so, alone in its transaction, is to be tried again."""
    return getattr(error, "sqlstate", None) in _AGAIN


def is_outage(error: BaseException) -> bool:
    """Whether an error says that the server is in trouble.

    Not that it answered no (a held key, a damaged row, a right), and not what we found out ourselves: that all
    connections are in use, or that a schema is not ours.
    """
    if isinstance(error, StoreError):
        return False
    code = getattr(error, "sqlstate", None)
    return code is None or (code[:2] in _OUTAGE and code != _CANCELLED)


def is_read_only(error: BaseException) -> bool:
    """Whether whoever answered may write nothing."""
    return getattr(error, "sqlstate", None) == _READ_ONLY


def is_in_order(connection: Any, error: BaseException) -> bool:
    """Whether a connection of ours, on which a call failed so, is good for another one."""
    said_no = getattr(error, "sqlstate", None) is not None and not is_read_only(error)
    return said_no and not connection.closed and not connection.info.transaction_status
