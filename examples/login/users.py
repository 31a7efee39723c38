"""Accounts and their passwords, as scrypt hashes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

_NOBODY = b"\0" * 16


class Users:
    """Accounts.

    Args:
        path: the SQLite database.
        work: scrypt's n, a power of two: how much work one password is.
    """

    def __init__(self, path: Path, work: int = 2**14) -> None:
        self._path = path
        self._work = work
        with closing(self._open()) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS users (account TEXT PRIMARY KEY, salt BLOB, hash BLOB)")

    def add(self, account: str, password: str) -> None:
        """Make an account, or give it another password."""
        salt = secrets.token_bytes(16)
        with closing(self._open()) as database, database:
            database.execute(
                "INSERT OR REPLACE INTO users VALUES (?, ?, ?)", (account, salt, self._hashed(password, salt))
            )

    def check(self, account: str, password: str) -> bool:
        """Whether the password is right. One of nobody's is hashed too, so that the time taken tells nothing."""
        with closing(self._open()) as database:
            row = database.execute("SELECT salt, hash FROM users WHERE account = ?", (account,)).fetchone()
        salt, right = row or (_NOBODY, _NOBODY)
        return hmac.compare_digest(self._hashed(password, salt), right)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=5)

    def _hashed(self, password: str, salt: bytes) -> bytes:
        return hashlib.scrypt(password.encode(), salt=salt, n=self._work, r=8, p=1)
