"""SQLite files that isolated limiters name by their URLs: nobody creates or opens one before it is used outside."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from headway.stores.base import Store
    from headway.stores.sqlite import SqliteStore

__all__ = ["untouched"]


def untouched(path: Path) -> Store:
    """A store for that file, opened by its first decision."""
    return _kind()(path)


@cache
def _kind() -> type[SqliteStore]:
    from sqlite3 import Cursor  # slow to import; only its users pay

    from headway.stores.sqlite import SqliteStore

    class UntouchedStore(SqliteStore):
        """One that does not look at its file when it is made."""

        _made = False

        def _connect(self) -> Cursor:
            if self._made:
                return super()._connect()
            self._made = True
            return None  # type: ignore[return-value]  # __init__ drops it, and the first decision asks again

    return UntouchedStore
