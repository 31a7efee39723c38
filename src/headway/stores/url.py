"""Store URLs: ``memory://``, ``sqlite:///relative``, ``sqlite:////absolute``, ``redis://…`` and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from headway.errors import ConfigError, ExtraMissing, kind_of
from headway.stores.base import AsyncStore, Store
from headway.stores.immediate import ImmediateStore
from headway.stores.memory import MemoryStore
from headway.stores.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["check_networked", "files", "is_networked", "open_async_store", "open_store"]

_ACCEPTED = (
    "memory://, sqlite:///relative/file.db, sqlite:////absolute/file.db, postgresql://user@host/database, "
    "redis://host:port/db (rediss:// with TLS), unix:///path/to/socket, redis+sentinel://host1,host2/service/db or "
    "redis+cluster://host1,host2"
)
files: list[Callable[[Path], Store]] = []
"""For test tools: what opens the files of SQLite URLs instead of ``SqliteStore``, the last one."""

_POSTGRES = ("postgresql:", "postgres:")
_REDIS = ("redis://", "rediss://", "unix://", "redis+", "rediss+")


def open_store(url: str, *, base: Path | None = None, deadline: float | None = None) -> Store:
    """Open the store a URL names.

    Args:
        url: its parts are percent-decoded.
        base: the folder that relative SQLite paths start from; default: the working directory.
        deadline: seconds that a networked store may take for an answer; default: what its URL says, else its own.

    Raises:
        ConfigError: a URL that names no store, with what is accepted.
        StoreUnusable: a store that cannot serve.
    """
    if not isinstance(url, str):
        raise ConfigError(f"store is {kind_of(url)}; expected a store or a URL: {_ACCEPTED}")
    if url == "memory://":
        return MemoryStore()
    if url.startswith(_REDIS):
        from headway.stores.redis.sync import RedisStore  # only its users pay

        return RedisStore(url, deadline=deadline)
    if url.startswith(_POSTGRES):
        try:
            from headway.stores.postgres.sync import PostgresStore  # only its users pay
        except ImportError as error:
            raise _missing("postgres", url) from error
        return PostgresStore(url, deadline=deadline)
    from urllib.parse import unquote, urlsplit  # slow to import; a memory store does without

    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"store URL {shown(url)!r} is no URL ({error}); expected {_ACCEPTED}") from error
    if parts.query or parts.fragment:
        raise ConfigError(
            f"store URL {shown(url)!r} has a query or a fragment, which mean nothing here; expected {_ACCEPTED}"
        )
    match parts.scheme:
        case "memory":
            if parts.netloc or parts.path not in ("", "/"):
                raise ConfigError(f"store URL {shown(url)!r}: memory:// takes nothing after it")
            return MemoryStore()
        case "sqlite":
            return _open_sqlite(url, parts.netloc, unquote(parts.path), base)
        case _:
            raise ConfigError(f"store URL {shown(url)!r} names no store known here; expected {_ACCEPTED}")


def open_async_store(
    store: str | Store | AsyncStore, *, base: Path | None = None, deadline: float | None = None
) -> AsyncStore:
    """The asynchronous store of a URL or of a store: memory decides at once, SQLite works in a thread.

    Args:
        store: a URL, or a store that is open.
        base: see ``open_store``.
        deadline: the same.

    Raises:
        ConfigError: a URL that names no store, with what is accepted.
        StoreUnusable: a store that cannot serve.
    """
    if isinstance(store, str) and store.startswith(_POSTGRES):
        try:
            from headway.stores.postgres.aio import AsyncPostgresStore
        except ImportError as error:
            raise _missing("postgres", store) from error
        return AsyncPostgresStore(store, deadline=deadline)
    if isinstance(store, str) and store.startswith(_REDIS):
        from headway.stores.redis.aio import AsyncRedisStore  # only its users pay

        return AsyncRedisStore(store, deadline=deadline)
    opened = open_store(store, base=base) if isinstance(store, str) else store
    if isinstance(opened, MemoryStore):
        return ImmediateStore(opened)
    import inspect  # slow to import, and only for stores that wait

    if inspect.iscoroutinefunction(opened.advance):
        return cast(AsyncStore, opened)
    from headway.stores.threaded import ThreadedStore  # asyncio takes most of an import's time; only its users pay

    return ThreadedStore(cast(Store, opened))


def is_networked(url: str) -> bool:
    """Whether a URL is of a store on a server."""
    return url.startswith((*_REDIS, *_POSTGRES))


def check_networked(url: str) -> None:
    """Whether a networked store's URL can be right; nobody is reached for.

    Raises:
        ConfigError: it cannot; says what is accepted, or which extra is missing.
    """
    if url.startswith(_REDIS):
        from headway.stores.redis.base import BaseRedisStore

        BaseRedisStore(url)
        return
    from importlib import import_module

    try:
        import_module("headway.stores.postgres.sync")  # what it needs has to be installed
    except ImportError as error:
        raise _missing("postgres", url) from error
    from headway.stores.postgres.base import BasePostgresStore

    BasePostgresStore(url, deadline=None, schema=None, unlogged=None, install=None, share=None, clock=None)


def _open_sqlite(url: str, host: str, path: str, base: Path | None) -> Store:
    from pathlib import Path

    from headway.stores.sqlite import SqliteStore  # sqlite3 is slow to import; only its users pay

    if host:
        raise ConfigError(
            f"store URL {shown(url)!r} names the host {shown(host)!r}; a file takes three slashes (relative) or four (absolute)"
        )
    if path in ("", "/") or path.endswith("/"):
        raise ConfigError(
            f"store URL {shown(url)!r} names no file; expected sqlite:///relative/file.db or sqlite:////absolute/file.db"
        )
    file = (base or Path.cwd()) / path[1:]
    return files[-1](file) if files else SqliteStore(file)


def _missing(extra: str, url: str) -> ExtraMissing:
    return ExtraMissing(f"store URL {shown(url)!r}", extra)
