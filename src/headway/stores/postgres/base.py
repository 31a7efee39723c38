"""What ``PostgresStore`` and ``AsyncPostgresStore`` share: their options, and what errors mean."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from headway.core.charge import Charge
from headway.core.quota import parse_duration
from headway.errors import ConfigError, QuotaError, StoreError, StoreUnavailable, StoreUnusable, kind_of
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.postgres.codec import DAMAGED, foreign
from headway.stores.postgres.failures import FORBIDDEN, GONE, alone, is_outage, is_read_only, reason
from headway.stores.postgres.flows import Advanced, Flow, advance
from headway.stores.postgres.schema import FOREIGN, SCHEMA_VERSION, check_schema, grant_sql, quoted, schema_sql
from headway.stores.share import read_share
from headway.stores.shown import shown as shown_url
from headway.stores.shown import unwritable

__all__ = [
    "HURRIED",
    "INSTALL_LOCK",
    "INSTALL_S",
    "MOST_CONNECTIONS",
    "MOST_TRIES",
    "PATIENT_S",
    "PERSISTENCE",
    "REGAIN_S",
    "UNHURRIED",
    "VERSION",
    "BasePostgresStore",
    "is_pool",
    "lock_ms",
    "session",
    "shown",
]

DEADLINE_S: Final = 0.1
INSTALL_S: Final = 30.0
PATIENT_S: Final = 30.0
"""Seconds for each trip of what visits every key of a limit."""

INSTALL_LOCK: Final = 0x68647779
MOST_CONNECTIONS: Final = 16
REGAIN_S: Final = 1.0
"""After a server let no more in, this long no more than there are then are asked of it."""

MOST_TRIES: Final = 50
CLEAN_EVERY: Final = 256
"""Charges between two looks at 1024 keys: more are looked at than can have come. A look takes ten times as long as a decision."""

VERSION: Final = (
    "SELECT to_regclass(quote_ident(%(schema)s) || '.version') IS NOT NULL AND 'schema_version' = ANY (there.names), "
    "to_regclass(quote_ident(%(schema)s) || '.state') IS NOT NULL AND there.names @> %(functions)s::name[] "
    "FROM (SELECT array_agg(p.proname) AS names FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
    "WHERE n.nspname = %(schema)s) AS there"
)
"""Whether there is a version to be asked for, and whether nothing of it has gone."""

UNHURRIED: Final = (
    "SELECT set_config('headway.lock_timeout', current_setting('lock_timeout'), true), "
    "set_config('headway.statement_timeout', current_setting('statement_timeout'), true), "
    "set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)"
)
HURRIED: Final = (
    "SELECT set_config('lock_timeout', current_setting('headway.lock_timeout'), true), "
    "set_config('statement_timeout', current_setting('headway.statement_timeout'), true)"
)
"""Around what takes its time in a transaction that may be somebody else's."""

PERSISTENCE: Final = "SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass(%s)"

_LONGEST_S: Final = 86_400.0
"""A day: PostgreSQL counts time-outs in ms of 31 bits."""

_LOCK_SHARE: Final = 0.75
"""What part of its deadline a decision waits for a key at most: so the server gives up first, and says so in time."""


class BasePostgresStore:
    """Not for direct use; see ``PostgresStore``."""

    breaker: Breaker

    def __init__(
        self,
        where: object,
        deadline: float | None,
        schema: str | None,
        unlogged: bool | None,
        install: bool | None,
        share: Fraction | float | str | None,
        clock: Clock | None,
    ) -> None:
        chosen: dict[str, Any] = {}
        if isinstance(where, str):
            where, chosen = _read_url(where)
        given = {"deadline": deadline, "schema": schema, "unlogged": unlogged, "install": install, "share": share}
        chosen |= {name: value for name, value in given.items() if value is not None}
        self.where = where
        self.deadline: float = chosen.get("deadline", DEADLINE_S)
        if isinstance(self.deadline, bool | str) or not (0.001 <= self.deadline < math.inf):
            raise ConfigError(f"deadline is {self.deadline!r}; expected seconds from 0.001")
        self.schema = check_schema(chosen.get("schema", "headway"))
        self.inside = quoted(self.schema)
        self.unlogged: bool = chosen.get("unlogged", False)
        self.install: bool = chosen.get("install", True)
        try:
            self.share = read_share(chosen.get("share", 1))
        except ValueError as error:
            raise ConfigError(f"share is {share!r}; {error}") from None
        self.clock = clock
        self._ready = False
        self._in_doubt = False
        self._until_clean = CLEAN_EVERY
        self._cleaned_to = b""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {shown(self.where)} schema={self.schema}>"

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy connects for itself."""
        if not isinstance(self.where, str):
            raise TypeError(f"{kind_of(self)} on somebody's connection cannot be pickled; give it a URL")
        options = (self.deadline, self.schema, self.unlogged, self.install, self.share, self.clock)
        return (_restore, (type(self), self.where, *options))

    def _now(self) -> int:
        return time.time_ns() if self.clock is None else self.clock()

    def _at(self) -> int | None:
        """The time to decide by, whole microseconds in ns: None, the server's, but in tests."""
        return None if self.clock is None else self.clock() // 1_000 * 1_000

    def _advancing(self, charges: Sequence[Charge], commit: bool) -> Callable[[], Flow[Advanced]]:
        """A bill's flow; now and then it also looks for recovered keys, but never in somebody else's transaction."""
        past = None
        if commit and self._by_itself():
            self._until_clean -= len(charges)
            if self._until_clean <= 0:
                self._until_clean = CLEAN_EVERY
                past = self._cleaned_to
        now, at = self._now(), self._at()
        return lambda: advance(self.inside, charges, commit, now, at, past)

    def _judge_encoding(self, encoding: str) -> None:
        """Text in no encoding is bytes to psycopg.

        Raises:
            StoreUnusable: the connection that somebody brought has none.
        """
        if encoding == "ascii":
            raise StoreUnusable(
                f"PostgreSQL {shown(self.where)}: its client_encoding is SQL_ASCII; connect with client_encoding=utf8"
            )

    def _by_itself(self) -> bool:
        """Whether a decision ends its own transaction."""
        return isinstance(self.where, str) or hasattr(self.where, "connection") or alone(self.where)

    def _version_of(self, number: int | None, whole: bool) -> int | None:
        """The version that a schema says it has; 0 where it is ours and something in it has gone."""
        return 0 if number == SCHEMA_VERSION and not whole else number

    def _seen(self, right: bool, own: bool, begun: bool) -> None:
        """The schema is there. It is relied on from now on, unless somebody's transaction may still take it back.

        Args:
            right: it was there, and was not put in place just now.
            own: this was seen in no transaction but its own.
            begun: the transaction was open before it was looked at.
        """
        if right and not begun:
            self._in_doubt = False
        elif not right:
            self._in_doubt = not own
        self._ready = not self._in_doubt

    def _judge_version(self, version: int | None, *, installing: bool = False) -> bool:
        """Whether the schema is there and ours; else it may be put in place.

        Args:
            version: None: it is not there; 0: something in it has gone.
            installing: it may, whatever the options say.

        Raises:
            StoreUnusable: it is newer, or it is missing and may not be put in place.
        """
        if version is not None and version > SCHEMA_VERSION:
            raise StoreUnusable(
                f"PostgreSQL {shown(self.where)}: schema {self.schema} has version {version}, of a newer headway; "
                f"this one knows {SCHEMA_VERSION}"
            )
        if version != SCHEMA_VERSION and not (self.install or installing):
            state = f"has version {version}, of an older headway" if version else "is not there"
            if version == 0:
                state = "has lost its table or a function"
            raise StoreUnusable(
                f"PostgreSQL {shown(self.where)}: schema {self.schema} {state}; put version {SCHEMA_VERSION} in place "
                "with `headway store init URL`"
            )
        return version == SCHEMA_VERSION

    def init_sql(self, *, unlogged: bool | None = None, roles: Sequence[str] = ()) -> str:
        """What ``init`` runs where nothing is in place, as one transaction for ``psql``."""
        chosen = self.unlogged if unlogged is None else unlogged
        grants = "".join(f"{grant_sql(self.schema, role)};\n" for role in roles)
        return f"BEGIN;\n{schema_sql(self.schema, unlogged=chosen)}{grants}COMMIT;"

    def _done(self, made: bool, persistence: str, unlogged: bool | None, roles: Sequence[str]) -> list[str]:
        """What ``init`` did."""
        kind = "an unlogged" if persistence == "u" else "a logged"
        lines = [
            f"schema {self.schema} version {SCHEMA_VERSION} "
            f"{'was put in place' if made else 'was there already'}, with {kind} table"
        ]
        chosen = self.unlogged if unlogged is None else unlogged
        if chosen != (persistence == "u"):
            wanted = "UNLOGGED" if chosen else "LOGGED"
            lines.append(f"the table stays as it is; to change it, run ALTER TABLE {self.inside}.state SET {wanted}")
        return [*lines, *(f"role {role} may call the functions" for role in roles)]

    def failed(self, error: BaseException) -> StoreError:
        """The same, for a call that went through the breaker, which hears of it."""
        told = error if isinstance(error, StoreError) else self._error(error)
        if is_outage(error) or (isinstance(self.where, str) and is_read_only(error)):
            self.breaker.failed(told)
        elif getattr(error, "sqlstate", None) is not None or isinstance(error, StoreUnusable):
            self.breaker.answered(told)
        return told

    def _error(self, error: BaseException) -> StoreError:
        """What an error of psycopg or of the system means for a decision."""
        code = getattr(error, "sqlstate", None)
        text = reason(error)
        if code in GONE:
            self._ready = False
        if code == DAMAGED:
            return foreign(text)
        if code == FOREIGN:
            return StoreUnusable(f"PostgreSQL {shown(self.where)}: {text}")
        if code == FORBIDDEN:
            return StoreUnusable(
                f"PostgreSQL {shown(self.where)}: {text}; let a role that may run `headway store init URL --role ROLE`"
            )
        return StoreUnavailable(f"PostgreSQL {shown(self.where)}: {text}")


def is_pool(where: object, entered: str) -> bool:
    """Whether it lends connections; ``entered`` tells psycopg_pool's two kinds apart."""
    return hasattr(where, "connection") and hasattr(where, entered)


def lock_ms(seconds: float) -> int:
    """For how long a decision waits for a key at most, in ms."""
    return max(1, int(min(seconds, _LONGEST_S) * 1000 * _LOCK_SHARE))


def session(pid: int, deadline: float) -> str:
    """The first statement on a connection of ours: settings for it, where the backend that answers is its own.

    Whatever the role's or the database's defaults are, a decision can do nothing in a transaction that may not write, and
    its time is bounded by the lock's time-out and the deadline.

    Behind a pooler that shares backends (PgBouncer in transaction mode) it is another one: it answers NULL, nothing is
    set, and nothing may be prepared.
    """
    return (
        f"SELECT CASE WHEN pg_backend_pid() = {pid} THEN "
        "set_config('default_transaction_isolation', 'read committed', false) || "
        "set_config('client_encoding', 'UTF8', false) || "
        "set_config('default_transaction_read_only', 'off', false) || "
        f"set_config('statement_timeout', '{max(PATIENT_S, min(deadline, _LONGEST_S)) * 1000:.0f}', false) || "
        f"set_config('lock_timeout', '{lock_ms(deadline)}', false) END"
    )


def shown(where: object) -> str:
    """Where a store is, without a password."""
    if not isinstance(where, str):
        return f"through {kind_of(where)}"
    parts = urlsplit(where)
    host = parts.netloc.rsplit("@", 1)[-1]
    return f"{parts.scheme}://{host}{parts.path}"


def _restore(
    kind: type[Any],
    where: str,
    deadline: float,
    schema: str,
    unlogged: bool,
    install: bool,
    share: Fraction,
    clock: Clock | None,
) -> object:
    options = {"deadline": deadline, "schema": schema, "unlogged": unlogged, "install": install, "share": share}
    return kind(where, clock=clock, **options)


def _read_url(url: str) -> tuple[str, dict[str, Any]]:
    """The URL for libpq, and the store's own options among its query.

    Raises:
        ConfigError: what is no ``postgresql://`` URL, or an option that cannot be right.
    """
    said = shown_url(url)
    try:
        wrong, parts = unwritable(url), urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"store URL {said} is no URL ({error})") from None
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            f"store URL {said} is not of PostgreSQL; expected postgresql://[user[:password]@][host][:port]/database"
        )
    if wrong:
        raise ConfigError(f"store URL {said!r} {wrong}")
    chosen: dict[str, Any] = {}
    rest: list[str] = []  # as it is written: libpq reads a + otherwise than forms do
    for option in filter(None, parts.query.split("&")):
        name, _, text = map(unquote, option.partition("="))
        if name not in _OPTIONS:
            rest.append(option)
            continue
        if name in chosen:
            raise ConfigError(f"store URL {shown(url)} gives {name!r} twice")
        try:
            chosen[name] = _OPTIONS[name](text)
        except (ValueError, QuotaError) as error:
            raise ConfigError(f"store URL {shown(url)}: {name} is {text!r}: {error}") from None
    made = f"postgresql://{parts.netloc}{parts.path}{'?' if rest else ''}{'&'.join(rest)}"
    from headway.stores.postgres.places import check_libpq  # what needs psycopg

    try:
        check_libpq(made, said)
    except ConfigError as error:
        if "query parameter" in str(error):
            raise ConfigError(
                f"{error}; known are {', '.join(_OPTIONS)}, and what libpq knows, such as sslmode"
            ) from None
        raise
    return made, chosen


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


_OPTIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "deadline": lambda text: parse_duration(text) / 1e9,
    "schema": str,
    "unlogged": _flag,
    "install": _flag,
    "share": read_share,
}
