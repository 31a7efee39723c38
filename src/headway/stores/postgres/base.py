"""What ``PostgresStore`` and ``AsyncPostgresStore`` share: settings, and what goes with a trip."""

from __future__ import annotations

import math
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from headway.core.quota import parse_duration
from headway.errors import ConfigError
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.postgres.flows import Trip
from headway.stores.postgres.schema import check_schema

__all__ = ["BasePostgresStore", "Statement"]

Statement = tuple[str, tuple[Any, ...]]

DEADLINE_S: Final = 0.1
CLEAN_EVERY: Final = 64
_OURS: Final = ("deadline", "schema", "unlogged", "install")


class BasePostgresStore:
    """Settings of a PostgreSQL store. Not for direct use."""

    def __init__(
        self,
        where: object,
        deadline: float | None,
        schema: str | None,
        unlogged: bool | None,
        install: bool | None,
        clock: Clock | None,
    ) -> None:
        options: dict[str, str] = {}
        if isinstance(where, str):
            where, options = _read_url(where)
        self.where = where
        said = parse_duration(options["deadline"]) / 1e9 if "deadline" in options else DEADLINE_S
        self.deadline = said if deadline is None else deadline
        if isinstance(self.deadline, bool) or not (0 < self.deadline < math.inf):
            raise ConfigError(f"deadline is {self.deadline!r}; expected seconds above 0")
        self.schema = check_schema(options.get("schema", "headway") if schema is None else schema)
        self.unlogged = _flag(options, "unlogged", False) if unlogged is None else unlogged
        self.install = _flag(options, "install", True) if install is None else install
        self.breaker = Breaker(f"PostgreSQL {shown(where)}")
        self._ready = False
        self.clock = clock
        self._until_clean = CLEAN_EVERY
        self._cleaned_to = b""

    def _at(self) -> int | None:
        """The time to decide by, whole microseconds in ns: None, the server's, but in tests."""
        return None if self.clock is None else self.clock() // 1_000 * 1_000

    def _around(self, trip: Trip, *, opened: bool) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What begins and ends a trip's transaction, on a connection that commits by itself."""
        several = len(trip.statements) > 1
        begins = not opened and (several or not trip.ends)
        ends = trip.ends and (opened or several)
        return (
            (("BEGIN ISOLATION LEVEL READ COMMITTED", ()),) if begins else (),
            (("COMMIT", ()),) if ends else (),
        )

    def _time_to_clean(self) -> bool:
        self._until_clean -= 1
        if self._until_clean > 0:
            return False
        self._until_clean = CLEAN_EVERY
        return True


def shown(where: object) -> str:
    """Where a store is, without a password."""
    if not isinstance(where, str):
        return f"through a {type(where).__name__}"
    parts = urlsplit(where)
    host = parts.netloc.rsplit("@", 1)[-1]
    return f"{parts.scheme}://{host}{parts.path}"


def _read_url(url: str) -> tuple[str, dict[str, str]]:
    """The URL for libpq, and the store's own options among its query.

    Raises:
        ConfigError: what is no ``postgresql://`` URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"store URL {url!r} is no URL ({error})") from error
    if parts.scheme not in ("postgresql", "postgres"):
        raise ConfigError(
            f"store URL {url!r} is not of PostgreSQL; expected postgresql://[user[:password]@][host][:port]/database"
        )
    query = parse_qsl(parts.query, keep_blank_values=True)
    options = {name: value for name, value in query if name in _OURS}
    rest = urlencode([(name, value) for name, value in query if name not in _OURS])
    return urlunsplit(("postgresql", parts.netloc, parts.path, rest, "")), options


def _flag(options: dict[str, str], name: str, default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text not in ("true", "false"):
        raise ConfigError(f"store URL: {name} is {text!r}; expected true or false")
    return text == "true"
