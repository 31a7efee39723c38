"""Accounts, their plans and overrides: rows that an application has anyway."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE IF NOT EXISTS plans (name TEXT PRIMARY KEY, daily TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS accounts (
    id INTEGER PRIMARY KEY, key_hash BLOB UNIQUE NOT NULL, plan TEXT NOT NULL REFERENCES plans, override TEXT
);
"""


@dataclass(frozen=True, slots=True)
class Account:
    """A row: who, and on which plan."""

    id: int
    plan: str


class Accounts:
    """The database at ``path``. API keys are long and random, so a plain hash hides them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(self._open()) as database, database:
            database.executescript(_TABLES)

    def set_plan(self, name: str, daily: str) -> None:
        """Make a plan, or change its quota."""
        self._write(
            "INSERT INTO plans VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET daily = excluded.daily", name, daily
        )

    def add(self, api_key: str, plan: str) -> None:
        """Make an account."""
        self._write("INSERT INTO accounts (key_hash, plan) VALUES (?, ?)", _hashed(api_key), plan)

    def change(self, account: int, plan: str | None, override: str | None) -> bool:
        """Give an account another plan, or a quota of its own ("" takes it away); False where there is no such account."""
        return self._write(
            "UPDATE accounts SET plan = coalesce(?, plan), override = nullif(coalesce(?, override), '') WHERE id = ?",
            plan,
            override,
            account,
        )

    def of_key(self, api_key: str) -> Account | None:
        """Whose key it is."""
        row = self._read("SELECT id, plan FROM accounts WHERE key_hash = ?", _hashed(api_key))
        return None if row is None else Account(int(row[0]), row[1])

    def quota_of(self, account: int) -> str | None:
        """The account's own quota, or its plan's."""
        row = self._read(
            "SELECT coalesce(override, daily) FROM accounts JOIN plans ON plans.name = plan WHERE id = ?", account
        )
        return None if row is None else str(row[0])

    def _read(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with closing(self._open()) as database:
            row: tuple[Any, ...] | None = database.execute(query, values).fetchone()
        return row

    def _write(self, query: str, *values: object) -> bool:
        with closing(self._open()) as database, database:
            return database.execute(query, values).rowcount > 0

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=5)
        database.execute("PRAGMA foreign_keys = ON")
        return database


def _hashed(api_key: str) -> bytes:
    return sha256(api_key.encode()).digest()
