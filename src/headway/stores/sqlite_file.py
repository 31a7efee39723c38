"""A SQLite file of ours: opened, made if it is not there, recognized; one clear error for a file that cannot serve."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from headway.errors import StoreUnavailable, StoreUnusable

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be deleted
    fcntl = None  # type: ignore[assignment]  # what is not there

__all__ = [
    "APPLICATION_ID",
    "LOCK_WAIT_S",
    "SCHEMA_VERSION",
    "beside",
    "clear_beside",
    "identity",
    "is_busy",
    "leave_behind",
    "open_file",
    "roll_back",
]

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x68647779
"""``hdwy``: marks the file as ours (SQLite's ``application_id``)."""

LOCK_WAIT_S: Final = 5.0
"""How long a caller waits for other writers of the file."""

_TROUBLE_S: Final = 0.3
"""How long a file that cannot be read is tried: somebody may just be taking it away, or its log and index."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS headway_state (
    key     BLOB PRIMARY KEY,
    state   TEXT NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
"""


def identity(path: str) -> tuple[int, int] | None:
    """Which file the path names now; None where there is none, or an empty one."""
    try:
        found = os.stat(path)  # noqa: PTH116  # on every decision, and Path.stat() costs twice as much
    except (OSError, ValueError):  # a ValueError for a NUL in the name
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


def beside(path: str) -> list[int | None]:
    """Which log and index SQLite has beside the file now, as it names them."""
    found: list[int | None] = []
    for name in (path + "-wal", path + "-shm"):
        try:
            found.append(os.stat(name).st_ino)  # noqa: PTH116  # as in identity
        except (OSError, ValueError):
            found.append(None)
    return found


def leave_behind(connection: sqlite3.Connection) -> None:
    """Let go of a file that was taken away under its connection, without closing that.

    SQLite's closing deletes the log and the index by their names, and by now those may be of another file, under
    processes that use it. What is left behind is a few descriptors, once for each file that was taken away; as long as
    they are open, no other file can have the numbers by which ``_clear`` knows what belonged to it.
    """
    import ctypes  # slow to import, and a file is rarely taken away

    with suppress(sqlite3.Error):
        roll_back(connection)

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # not even the interpreter's end closes it


def open_file(path: Path, left: list[int | None] | None = None) -> sqlite3.Connection:
    """A connection to the file, in autocommit, for any thread; the schema is made where there is none.

    Args:
        path: the file.
        left: what was beside a file of ours that is not there any more; see ``beside``.

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
        before = identity(str(path))
        try:
            if left is None and before is not None:
                opened = _opened(path, give_up)
            else:
                with _alone(path.parent, give_up):
                    _clear(path, left)
                    opened = _opened(path, give_up)
        except StoreUnusable:
            if identity(str(path)) == before or time.monotonic() > give_up:
                raise
            continue  # it was taken away meanwhile
        if before in (None, identity(str(path))) or left is not None:
            return opened
        leave_behind(opened)


@contextmanager
def _alone(folder: Path, give_up: float) -> Iterator[None]:
    """While nobody else begins a file there, where the system can see to that."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may not be listed
        yield
        return
    try:
        while time.monotonic() < give_up:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(random.uniform(0.001, 0.01))  # noqa: S311  # spreads waiters, guards no secret
            except OSError:  # a file system without
                break
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile has it open too
        os.close(descriptor)


def clear_beside(name: str, ours: list[int | None]) -> None:
    """Of a file's log and index, if one was taken away, take the other away too: apart from it, it only misleads.

    Args:
        name: the file's.
        ours: which we have open; see ``beside``. Others may be in use.
    """
    found = beside(name)
    if found != ours:
        _unlink(name, [number if number in ours else None for number in found])


def _unlink(name: str, which: list[int | None]) -> None:
    for place, number in zip(("-wal", "-shm"), which, strict=True):
        if number is not None:
            with suppress(OSError):
                Path(name + place).unlink()


def _clear(path: Path, left: list[int | None] | None) -> None:
    """Take away what a file that is gone has left: SQLite would take its log for the new file's.

    A file of ours that somebody has emptied goes too, so that everybody who has it open sees that.
    """
    name = str(path)
    gone = identity(name) is None
    if gone and left is not None:
        with suppress(OSError):
            path.unlink()
    _unlink(name, [number if gone or number in (left or ()) else None for number in beside(name)])


def _opened(path: Path, give_up: float) -> sqlite3.Connection:
    """A connection to whichever file the path names."""
    before = identity(str(path))
    while True:
        try:
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, ValueError) as error:  # a ValueError for a NUL in the name
            raise StoreUnusable(f"SQLite store {path}: cannot be opened for writing ({error})") from error
        try:
            _prepare(connection, path)
            return connection
        except sqlite3.OperationalError as error:
            if before in (None, identity(str(path))):
                connection.close()
            else:
                leave_behind(connection)
            trouble = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
            if not is_busy(error) and not (trouble and time.monotonic() < give_up - LOCK_WAIT_S + _TROUBLE_S):
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
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
"""The last where many open the same file at once, and each other's locks hide who is the first."""
