"""A SQLite file of ours: opened, made if it is not there, recognized; one clear error for a file that cannot serve."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from pathlib import Path
from typing import Final

from headway.errors import StoreUnavailable, StoreUnusable

__all__ = ["APPLICATION_ID", "LOCK_WAIT_S", "SCHEMA_VERSION", "identity", "is_busy", "open_file", "roll_back"]

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x68647779
"""``hdwy``: marks the file as ours (SQLite's ``application_id``)."""

LOCK_WAIT_S: Final = 5.0
"""How long a caller waits for other writers of the file."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS headway_state (
    key     BLOB PRIMARY KEY,
    state   TEXT NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
"""


def identity(path: str) -> tuple[int, int] | None:
    """Which file the path names now; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  # on every decision, and Path.stat() costs twice as much
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to the file, in autocommit, for any thread; the schema is made where there is none.

    Raises:
        StoreUnusable: a folder that is missing or not writable, a file that is no database of ours, a newer schema.
        StoreUnavailable: others did not let go of it for ``LOCK_WAIT_S``.
    """
    try:
        has_folder, is_folder = path.parent.is_dir(), path.is_dir()
    except OSError as error:  # such as a name that is too long
        raise StoreUnusable(f"SQLite store {path}: cannot be opened for writing ({error.strerror})") from error
    if is_folder or not has_folder:
        missing = f"the folder {path.parent} does not exist; create it first"
        raise StoreUnusable(f"SQLite store {path}: {'is a folder; expected a file' if is_folder else missing}")
    give_up = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, ValueError) as error:  # a ValueError for a NUL in the name
            raise StoreUnusable(f"SQLite store {path}: cannot be opened for writing ({error})") from error
        try:
            _prepare(connection, path)
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if not is_busy(error):
                raise StoreUnusable(f"SQLite store {path}: cannot be opened for writing ({error})") from error
            if time.monotonic() > give_up:
                raise StoreUnavailable(f"SQLite store {path}: {error}") from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise StoreUnusable(f"SQLite store {path}: is no SQLite database ({error}); name another file") from error
        except BaseException:
            connection.close()
            raise
        time.sleep(random.uniform(0.001, 0.01))  # noqa: S311  # spreads waiters, guards no secret


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Set the connection up and the schema, once per file, whoever comes first."""
    connection.execute("BEGIN")  # one look at all three: another process may be making the file right now
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    finally:
        roll_back(connection)
    if application not in (0, APPLICATION_ID) or (application == 0 and tables):
        raise StoreUnusable(f"SQLite store {path}: is another program's database; name another file")
    if application == APPLICATION_ID and version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"SQLite store {path}: has schema version {version}, written by a newer headway; this one knows {SCHEMA_VERSION}"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if application == APPLICATION_ID and version == SCHEMA_VERSION:
        try:
            connection.execute("BEGIN IMMEDIATE")  # shows at once whether the file can be written
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if not is_busy(error):  # busy: somebody is writing, so it can be written, and opening need not wait
                raise
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction, if one is open, without a trace."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Whether somebody else has the lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
