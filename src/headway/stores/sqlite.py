"""State in one SQLite file, shared by any number of threads and processes on one host.

A decision is one transaction: read the states, decide with the pure rules, write. It takes the write lock only when there
is something to write, and SQLite refuses the write if another writer came between, so nothing is decided on old states.
WAL keeps a killed process from leaving anything half applied. ``synchronous=NORMAL`` means that a power cut (not a
killed process) may lose the last decisions, never damage the file.
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

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import key_prefix
from headway.core.limit import Limit
from headway.core.rule import State
from headway.errors import StoreError, StoreUnavailable, StoreUnusable
from headway.stores.base import Answer, settled_late
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock, wall_clock
from headway.stores.sqlite_file import (
    APPLICATION_ID,
    LOCK_WAIT_S,
    SCHEMA_VERSION,
    beside,
    clear_beside,
    identity,
    is_busy,
    leave_behind,
    open_file,
    roll_back,
)
from headway.stores.sqlite_lane import LATEST, Row, ShortWay, SqliteLane, numbers_of, row_key, row_of

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "SqliteStore"]

_CALM_S: Final = 1.0
"""Without a failure for so long, the file serves again: on a full disk refusals succeed between charges that do not."""

_LOOK_S: Final = 0.05
_CLEAN_EVERY: Final = 64
_CLEAN_BATCH: Final = 256

_SELECT: Final = "SELECT state FROM headway_state WHERE key = ?"
_UPSERT: Final = (
    "INSERT INTO headway_state (key, state, expires) VALUES (?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires"
)
_FORGET: Final = "DELETE FROM headway_state WHERE key = ? AND expires = ?"
_SELECT_LIMIT: Final = "SELECT key, state FROM headway_state WHERE key > ? AND key < ?"
_DELETE_LIMIT: Final = "DELETE FROM headway_state WHERE key > ? AND key < ?"
_DELETE: Final = "DELETE FROM headway_state WHERE key = ?"
_PASSED: Final = "SELECT key, expires FROM headway_state WHERE key > ? ORDER BY key LIMIT ?"

_Value = TypeVar("_Value")


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
        if self.path.name == ":memory:":
            raise StoreUnusable("SQLite store ':memory:': is no file that processes could share; use memory://")
        self._name = str(self.path)
        self.clock = clock
        self.breaker = Breaker(f"SQLite store {self.path}", failures=1)  # tells and counts; nobody asks it to be let in
        self._lock = threading.RLock()  # says whose it is
        self._connection: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None  # one for all transactions: a new one for each costs a tenth of it
        self._owner = 0
        self._file: tuple[int, int] | None = None
        self._beside: list[int | None] = []
        self._look_again = self._calm_at = 0.0
        self._until_clean = _CLEAN_EVERY
        self._cleaned_to = b""
        with self._lock:
            self._connect()
        _alive.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy opens the same file for itself."""
        return (_restore, (str(self.path), None if self.clock is wall_clock else self.clock))

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``. Waits up to 5 s for the file's lock; a refusal or a peek needs none.

        First in a transaction that only reads until there is something to write; when another writer was quicker, once
        more under the write lock.
        """
        return self._advance(charges, commit, None)

    def advance_late(self, charges: Sequence[Charge], since: int) -> Answer:
        """``advance`` for a caller that has stood in line since then; see ``settled_late``."""
        return self._advance(charges, True, since)

    def _advance(self, charges: Sequence[Charge], commit: bool, since: int | None) -> Answer:
        keys = [_key(charge) for charge in charges]

        def decide(cursor: sqlite3.Cursor) -> Answer:
            texts = _texts(cursor, keys)
            now = self.clock()  # as in sqlite_lane
            states = [
                None if text is None else charge.limit.rule.load(numbers_of(text))
                for charge, text in zip(charges, texts, strict=True)
            ]
            settled, costs, at = settled_late(charges, states, now, now if since is None else since)
            if commit and settled.writes:
                for index, state in settled.writes:
                    self._put(cursor, charges[index].limit, keys[index], state)
                self._clean_now_and_then(cursor, len(settled.writes), now)
            return Answer(settled.allowed, at, settled.outcomes, costs)

        return self._decided(decide, "BEGIN")

    def short(self, namespace: str, limits: Sequence[Limit]) -> ShortWay | None:
        """A limiter's short way: from one key and one cost above 0 per limit to a decision; see ``SqliteLane``."""
        if any(limit.shadow for limit in limits):
            return None
        return SqliteLane(namespace, limits, self.clock, self._decided, _texts, self._write)

    def _write(self, cursor: sqlite3.Cursor, rows: Sequence[Row], now: int) -> None:
        for row in rows:
            if row[1] is None:
                cursor.execute(_DELETE, row[:1])
            else:
                cursor.execute(_UPSERT, row)
        self._clean_now_and_then(cursor, len(rows), now)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""

        def work(cursor: sqlite3.Cursor) -> tuple[bool, ...]:
            now = self.clock()
            in_times = []
            for change in changes:
                key = _key(change.charge)
                state = _read(cursor, change.charge, key)
                new, in_time = change.applied(state, now)
                in_times.append(in_time)
                if new is not state:
                    self._put(cursor, change.charge.limit, key, new)
            return tuple(in_times)

        return self._decided(work, "BEGIN IMMEDIATE")

    def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``Store.requota``. One transaction: other writers wait for it."""

        def work(cursor: sqlite3.Cursor) -> int:
            now = self.clock()
            rows = cursor.execute(_SELECT_LIMIT, _range(namespace, new)).fetchall()
            for key, text in rows:
                state = new.rule.load(numbers_of(text))
                scaled = None if state is None else new.rule.scaled(state, now, old.rule)
                self._put(cursor, new, key, scaled)
            return len(rows)

        return self._decided(work, "BEGIN IMMEDIATE")

    def clear(self, namespace: str, limit: Limit) -> int:
        """See ``Store.clear``."""
        bounds = _range(namespace, limit)
        return self._decided(lambda cursor: cursor.execute(_DELETE_LIMIT, bounds).rowcount, "BEGIN IMMEDIATE")

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""

        def work(cursor: sqlite3.Cursor) -> tuple[int, int]:
            state = _read(cursor, charge, _key(charge))
            now = self.clock()
            return charge.limit.rule.clears_after(state, now, charge.cost), now

        return self._decided(work, "BEGIN")

    def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        keys = [(_key(charge),) for charge in charges]
        self._decided(lambda cursor: cursor.executemany(_DELETE, keys), "BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the file. A later decision opens it again."""
        with self._lock:
            self._disconnect()

    def _decided(self, work: Callable[[sqlite3.Cursor], _Value], begin: str) -> _Value:
        """``_transact``; that the file serves nobody is logged and counted, once and again when it does."""
        try:
            value = self._transact(work, begin)
        except StoreError as error:
            if error.__cause__ is None or isinstance(
                error.__cause__, sqlite3.Error | OSError
            ):  # not of one damaged row
                self._calm_at = time.monotonic() + _CALM_S
                self.breaker.failed(error)
            raise
        if self.breaker.open and time.monotonic() >= self._calm_at:
            self.breaker.succeeded()
        return value

    def _transact(self, work: Callable[[sqlite3.Cursor], _Value], begin: str) -> _Value:
        """Run ``work`` in one transaction; wait for other writers, open again after a fork or a file that was replaced."""
        give_up = time.monotonic() + LOCK_WAIT_S
        if self._lock._is_owned():  # type: ignore[attr-defined]  # RLock's own
            raise StoreUnavailable(f"SQLite store {self.path}: asked by a signal's handler while this thread asks")
        try:  # an exception may come between any two steps, from a signal's handler
            if not self._lock.acquire(timeout=LOCK_WAIT_S):
                raise StoreUnavailable(f"SQLite store {self.path}: no turn within {LOCK_WAIT_S:g} s")
            while True:
                cursor = self._cursor
                if cursor is None or self._owner != os.getpid() or self._is_taken_away():
                    cursor = self._connect()
                try:
                    if cursor.connection.in_transaction:  # the last rolling back was interrupted
                        roll_back(cursor.connection)
                    try:
                        cursor.execute(begin)
                        value = work(cursor)
                        cursor.execute("COMMIT")
                    except BaseException:
                        roll_back(cursor.connection)
                        raise
                    return value
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or time.monotonic() > give_up:
                        self._look_again = 0.0
                        if self._is_taken_away() and time.monotonic() < give_up:
                            self._look_again = 0.0
                            continue
                        self._disconnect()  # a new connection may find the disk or the file mended
                        raise StoreUnavailable(f"SQLite store {self.path}: {error}") from error
                    if begin == "BEGIN":
                        begin = "BEGIN IMMEDIATE"
                        continue
                except sqlite3.Error as error:
                    self._disconnect()
                    raise StoreUnavailable(f"SQLite store {self.path}: {error}") from error
                except (ValueError, TypeError, ArithmeticError, IndexError) as error:
                    raise StoreUnavailable(f"SQLite store {self.path}: holds a state nobody wrote ({error})") from error
                time.sleep(random.uniform(0.0001, 0.002))  # noqa: S311  # spreads waiters, guards no secret
        finally:
            try:  # noqa: SIM105  # suppress() would be another step
                self._lock.release()
            except RuntimeError:  # we did not get it
                pass

    def _connect(self) -> sqlite3.Cursor:
        ours = self._owner == os.getpid()
        left = self._beside if ours and self._file not in (None, identity(self._name)) else None
        if self._connection is not None:
            if ours:
                if left is None:
                    clear_beside(self._name, self._beside)
                self._disconnect()
            else:
                _left_to_the_parent.append(self._connection)  # closing it here would disturb the parent's
        self._connection, self._cursor, self._owner = None, None, os.getpid()
        self._connection = open_file(self.path, left)
        self._cursor = self._connection.cursor()
        self._file, self._beside = identity(self._name), beside(self._name)
        return self._cursor

    def _is_taken_away(self) -> bool:
        """Whether the file that we had open is not the one that the path names.

        Now and then also whether its log and index are: who takes those away parts processes that share the file, until
        all have opened it again.
        """
        if self._file is None or self._file != identity(self._name):
            return self._file is not None
        ticks = time.monotonic()
        if ticks < self._look_again:
            return False
        self._look_again = ticks + _LOOK_S
        return self._beside != beside(self._name)

    def _disconnect(self) -> None:
        if self._connection is not None and self._owner == os.getpid():
            if self._file not in (None, identity(self._name)):
                leave_behind(self._connection)
            else:
                self._connection.close()
                self._file, self._beside = None, []  # others may have these numbers from now on
            self._connection, self._cursor = None, None

    def _clean_now_and_then(self, cursor: sqlite3.Cursor, writes: int, now: int) -> None:
        """After every so many writes pass over some keys, and on from there the next time; forget those that have recovered.

        An index by expiry would find them at once, and cost every decision a second page to write.
        """
        self._until_clean -= writes
        if self._until_clean <= 0:
            self._until_clean = _CLEAN_EVERY
            passed = cursor.execute(_PASSED, (self._cleaned_to, _CLEAN_BATCH)).fetchall()
            self._cleaned_to = passed[-1][0] if len(passed) == _CLEAN_BATCH else b""
            recovered = [(key, expires) for key, expires in passed if expires <= now and expires < LATEST]
            cursor.executemany(_FORGET, recovered)

    def _put(self, cursor: sqlite3.Cursor, limit: Limit, key: bytes, state: State | None) -> None:
        if state is None:
            cursor.execute(_DELETE, (key,))
        else:
            cursor.execute(_UPSERT, (key, *row_of(limit.rule, state)))


_left_to_the_parent: list[sqlite3.Connection] = []


def _texts(cursor: sqlite3.Cursor, keys: Sequence[bytes]) -> list[str | None]:
    """The stored states of some keys, read in one statement and so at one moment."""
    if len(keys) == 1:
        row = cursor.execute(_SELECT, keys).fetchone()
        return [None if row is None else row[0]]
    places = ",".join("?" * len(keys))
    found = dict(cursor.execute(f"SELECT key, state FROM headway_state WHERE key IN ({places})", keys))  # noqa: S608  # marks
    return [found.get(key) for key in keys]


def _key(charge: Charge) -> bytes:
    return row_key(charge.namespace, charge.limit, charge.key)


def _read(cursor: sqlite3.Cursor, charge: Charge, key: bytes) -> State | None:
    row = cursor.execute(_SELECT, (key,)).fetchone()
    return None if row is None else charge.limit.rule.load(numbers_of(row[0]))


def _range(namespace: str, limit: Limit) -> tuple[bytes, bytes]:
    """The bounds of a limit's keys: its prefix is followed by a part, whose first byte is a tag below 0xff."""
    prefix = key_prefix(namespace, limit.name, limit.algorithm.stored, limit.by)
    return prefix, prefix + b"\xff"


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
        mine = store._lock._is_owned()  # type: ignore[attr-defined]  # a signal's handler forks in the middle of a decision
        if not mine and store._lock.acquire(timeout=2 * LOCK_WAIT_S):
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
