"""State in one SQLite file, shared by any number of threads and processes on one host.

Each decision is one ``BEGIN IMMEDIATE`` transaction: read, decide with the pure rules, write, commit. The write lock
makes it atomic between processes; WAL keeps a killed process from leaving anything half applied. ``synchronous=NORMAL``
means that a power cut (not a killed process) may lose the last decisions, never damage the file.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakSet

from headway.core.bill import settle
from headway.core.charge import Charge
from headway.core.rule import State
from headway.errors import StoreUnavailable, StoreUnusable
from headway.stores.base import Answer
from headway.stores.clock import Clock, wall_clock

__all__ = ["SCHEMA_VERSION", "SqliteStore"]

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x68647779
"""``hdwy``: marks the file as ours (SQLite's ``application_id``)."""

_LOCK_WAIT_S: Final = 5.0
_CLEAN_EVERY: Final = 64
_CLEAN_BATCH: Final = 256

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS headway_state (
    key     BLOB PRIMARY KEY,
    state   TEXT NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS headway_state_expires ON headway_state (expires);
"""
_SELECT: Final = "SELECT state FROM headway_state WHERE key = ?"
_UPSERT: Final = (
    "INSERT INTO headway_state (key, state, expires) VALUES (?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires"
)
_DELETE: Final = "DELETE FROM headway_state WHERE key = ?"
_CLEAN: Final = (
    "DELETE FROM headway_state WHERE key IN (SELECT key FROM headway_state WHERE expires <= ? ORDER BY expires LIMIT ?)"
)
_LATEST: Final = 2**63 - 1

_Result = TypeVar("_Result")


class SqliteStore:
    """One SQLite file.

    Args:
        path: the file; it is created, its folder is not.
        clock: nanoseconds since 1970; default: the host's wall clock, which all processes share.

    Raises:
        StoreUnusable: a folder that is missing or not writable, a file that is no database of ours, a newer schema.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Clock = wall_clock) -> None:
        self.path = Path(path).absolute()
        self.clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._file: tuple[int, int] | None = None
        self._until_clean = _CLEAN_EVERY
        with self._lock:
            self._connect()
        _alive.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy opens the same file for itself."""
        return (_restore, (str(self.path), None if self.clock is wall_clock else self.clock))

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``. Waits up to 5 s for the file's lock."""
        keys = [charge.stored_key() for charge in charges]

        def decide(connection: sqlite3.Connection) -> Answer:
            now = self.clock()
            states = [_read(connection, charge, key) for charge, key in zip(charges, keys, strict=True)]
            settled = settle(
                [charge.limit.rule for charge in charges], states, [charge.cost for charge in charges], now
            )
            for index, state in settled.writes if commit else ():
                rule = charges[index].limit.rule
                text = ":".join(map(str, rule.dump(state)))
                connection.execute(_UPSERT, (keys[index], text, min(rule.expires_at(state), _LATEST)))
            if commit and settled.writes:
                self._clean_now_and_then(connection, now)
            return Answer(settled.allowed, now, settled.outcomes)

        return self._transact(decide, "BEGIN IMMEDIATE" if commit else "BEGIN")

    def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        keys = [(charge.stored_key(),) for charge in charges]
        self._transact(lambda connection: connection.executemany(_DELETE, keys), "BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the file. A later decision opens it again."""
        with self._lock:
            self._disconnect()

    def _transact(self, work: Callable[[sqlite3.Connection], _Result], begin: str) -> _Result:
        """Run ``work`` in one transaction; wait for other writers, open again after a fork or a file that was replaced."""
        give_up = time.monotonic() + _LOCK_WAIT_S
        if not self._lock.acquire(timeout=_LOCK_WAIT_S):
            raise StoreUnavailable(f"SQLite store {self.path}: no turn within {_LOCK_WAIT_S:g} s")
        try:
            while True:
                connection = self._connection
                if connection is None or self._owner != os.getpid() or self._file != _identity(self.path):
                    connection = self._connect()
                try:
                    connection.execute(begin)
                    try:
                        result = work(connection)
                        connection.execute("COMMIT")
                    except BaseException:
                        _roll_back(connection)
                        raise
                    return result
                except sqlite3.OperationalError as error:
                    if not _is_busy(error):
                        self._disconnect()  # a new connection may find the disk or the file mended
                        raise StoreUnavailable(f"SQLite store {self.path}: {error}") from error
                    if time.monotonic() > give_up:
                        raise StoreUnavailable(f"SQLite store {self.path}: {error}") from error
                except sqlite3.Error as error:
                    self._disconnect()
                    raise StoreUnavailable(f"SQLite store {self.path}: {error}") from error
                time.sleep(random.uniform(0.0001, 0.002))  # noqa: S311  # spreads waiters, guards no secret
        finally:
            self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._owner == os.getpid():
                self._disconnect()
            else:
                _left_to_the_parent.append(self._connection)  # closing it here would disturb the parent's
        self._connection, self._owner = None, os.getpid()
        self._connection = _open(self.path)
        self._file = _identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None and self._owner == os.getpid():
            self._connection.close()
            self._connection = None

    def _clean_now_and_then(self, connection: sqlite3.Connection, now: int) -> None:
        self._until_clean -= 1
        if self._until_clean <= 0:
            self._until_clean = _CLEAN_EVERY
            connection.execute(_CLEAN, (now, _CLEAN_BATCH))


_left_to_the_parent: list[sqlite3.Connection] = []


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file the path names now; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  # on every decision, and Path.stat() costs twice as much
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read(connection: sqlite3.Connection, charge: Charge, key: bytes) -> State | None:
    row = connection.execute(_SELECT, (key,)).fetchone()
    return None if row is None else charge.limit.rule.load(tuple(map(int, row[0].split(":"))))


def _open(path: Path) -> sqlite3.Connection:
    if not path.parent.is_dir():
        raise StoreUnusable(f"SQLite store {path}: the folder {path.parent} does not exist; create it first")
    if path.is_dir():
        raise StoreUnusable(f"SQLite store {path}: is a folder; expected a file")
    give_up = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StoreUnusable(f"SQLite store {path}: cannot be opened for writing ({error})") from error
        try:
            _prepare(connection, path)
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if not _is_busy(error):
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
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application not in (0, APPLICATION_ID) or (application == 0 and tables):
        raise StoreUnusable(f"SQLite store {path}: is another program's database; name another file")
    if application == APPLICATION_ID and version > SCHEMA_VERSION:
        raise StoreUnusable(
            f"SQLite store {path}: has schema version {version}, written by a newer headway; this one knows {SCHEMA_VERSION}"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if application == APPLICATION_ID and version == SCHEMA_VERSION:
        connection.execute("BEGIN IMMEDIATE")  # shows at once whether the file can be written
        connection.execute("ROLLBACK")
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _restore(path: str, clock: Clock | None) -> SqliteStore:
    return SqliteStore(path, clock=wall_clock if clock is None else clock)


_alive: WeakSet[SqliteStore] = WeakSet()
_forking = threading.Lock()
_held_for_fork: list[SqliteStore] = []


def _before_fork() -> None:
    """Finish what is under way and close: SQLite's own memory of its file locks must not cross a fork.

    A child that inherits it believes that it holds locks it does not, and the parent's closing then takes the log away
    under it. Both open the file again when they next decide.
    """
    _forking.acquire()
    for store in list(_alive):
        if store._lock.acquire(timeout=2 * _LOCK_WAIT_S):
            _held_for_fork.append(store)
            store._disconnect()


def _after_fork_in_parent() -> None:
    while _held_for_fork:
        _held_for_fork.pop()._lock.release()
    _forking.release()


def _after_fork_in_child() -> None:
    """Only this thread lives on, so nobody holds these locks."""
    _held_for_fork.clear()
    for store in list(_alive):
        store._lock._at_fork_reinit()  # type: ignore[attr-defined]  # what the standard library's own locks do
    _forking._at_fork_reinit()  # type: ignore[attr-defined]  # the same


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
