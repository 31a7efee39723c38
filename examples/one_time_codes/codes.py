"""The codes that were sent: which are open, and whether one is right. Neither a phone nor a code is kept in the clear."""

from __future__ import annotations

import hmac
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

VALID_SECONDS: Final = 600
"""NIST SP 800-63B §5.1.3.2: an out-of-band secret is valid for at most ten minutes."""

TRIES: Final = 5


class Codes:
    """One open code a phone; a new one replaces the old.

    Args:
        path: the database.
        secret_key: for the hashes.
        now: seconds since 1970.
    """

    def __init__(self, path: Path, secret_key: bytes, now: Callable[[], float]) -> None:
        self._path = path
        self._key = secret_key
        self._now = now
        with closing(self._open()) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS codes (phone TEXT PRIMARY KEY, code TEXT, ends REAL, tries INTEGER)"
            )

    def make(self, phone: str) -> str:
        """A new code for a phone: six digits."""
        code = f"{secrets.randbelow(1_000_000):06d}"
        row = (self._hash("phone", phone), self._hash("code", phone, code), self._now() + VALID_SECONDS, TRIES)
        with closing(self._open()) as database, database:
            database.execute("DELETE FROM codes WHERE ends <= ?", (self._now(),))
            database.execute("INSERT OR REPLACE INTO codes VALUES (?, ?, ?, ?)", row)
        return code

    def forget(self, phone: str) -> None:
        """No code of this phone is valid any more."""
        with closing(self._open()) as database, database:
            database.execute("DELETE FROM codes WHERE phone = ?", (self._hash("phone", phone),))

    def check(self, phone: str, code: str) -> bool:
        """Whether the code is right; a right one is used up, and so is one that was guessed at too often."""
        name = self._hash("phone", phone)
        with closing(self._open()) as database, database:
            row = database.execute(
                "UPDATE codes SET tries = tries - 1 WHERE phone = ? AND tries > 0 AND ends > ? RETURNING code",
                (name, self._now()),
            ).fetchone()
            right = row is not None and hmac.compare_digest(row[0], self._hash("code", phone, code))
            if right:
                database.execute("DELETE FROM codes WHERE phone = ?", (name,))
        return right

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=5)

    def _hash(self, *parts: str) -> str:
        return hmac.new(self._key, "\x1f".join(parts).encode(), "sha256").hexdigest()
