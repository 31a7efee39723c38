"""Store URLs: which store each opens, and one clear line for those that open none."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from headway import AsyncLimiter, ConfigError, Limit, Limiter
from headway.stores.immediate import ImmediateStore
from headway.stores.memory import MemoryStore
from headway.stores.shown import shown
from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.stores.url import open_async_store, open_store


@pytest.mark.parametrize(
    ("url", "kind", "later"),
    [
        ("memory://", "MemoryStore", "ImmediateStore"),
        ("memory:///", "MemoryStore", "ImmediateStore"),
        ("sqlite:///a.db", "SqliteStore", "ThreadedStore"),
        ("sqlite:///with%20space.db", "SqliteStore", "ThreadedStore"),
        ("redis://localhost", "RedisStore", "AsyncRedisStore"),
        ("rediss://u:p@localhost:6380/1", "RedisStore", "AsyncRedisStore"),
        ("unix:///run/redis.sock", "RedisStore", "AsyncRedisStore"),
        ("redis+sentinel://a,b/main", "RedisStore", "AsyncRedisStore"),
        ("rediss+cluster://a,b", "RedisStore", "AsyncRedisStore"),
        ("postgresql://u@h/db", "PostgresStore", "AsyncPostgresStore"),
        ("postgres://u@h/db?schema=limits", "PostgresStore", "AsyncPostgresStore"),
    ],
)
def test_each_kind_opens_its_store(url: str, kind: str, later: str, tmp_path: Path) -> None:
    """No server is asked when a store is opened; the asynchronous twin is of the same kind."""
    store = open_store(url, base=tmp_path)
    assert type(store).__name__ == kind
    store.close()
    assert type(open_async_store(url, base=tmp_path)).__name__ == later


def test_sqlite_paths_are_relative_to_a_folder_or_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes start from the folder that is given, else from the working directory; four name a place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for url, base, path in [
        ("sqlite:///a.db", None, tmp_path / "a.db"),
        ("sqlite:///b.db", tmp_path / "elsewhere", tmp_path / "elsewhere" / "b.db"),
        (f"sqlite:///{tmp_path}/c.db", tmp_path / "elsewhere", tmp_path / "c.db"),
        ("sqlite:///a%2Fb%20c.db".replace("a%2F", "elsewhere%2F"), None, tmp_path / "elsewhere" / "b c.db"),
    ]:
        store = open_store(url, base=base)
        assert isinstance(store, SqliteStore)
        store.close()
        assert path.exists(), url


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "names no store known here"),
        ("memory", "names no store known here"),
        ("mysql://h/db", "names no store known here"),
        ("memory://x", "memory:// takes nothing after it"),
        ("sqlite://a.db", "names the host 'a.db'; a file takes three slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///folder/", "names no file"),
        ("sqlite:///a.db?mode=ro", "has a query or a fragment"),
        ("http://[::1", "is no URL"),
        ("redis://h:0", "expected 1 to 65535"),
        ("redis+sentinel://h", "names no service"),
        ("redis:/h:6379/0", "names no store known here; expected"),
        ("unix:/run/redis.sock", "names no store known here; expected"),
        ("postgresql://u:secret@h/db?share=4", "share is '4': expected a fraction"),
        ("postgresql://u:secret@h/db?deadline=-1s", "deadline is '-1s'"),
        ("redis://u:secret@h?deadline=never", "deadline is 'never'"),
        ("mysql://u:secret@h/db", "'mysql://u:***@h/db' names no store known here"),
        ("mysql://u:secret@[h/db", "is no URL"),
        ("u:secret@h:6379", "'u:***@h:6379' names no store known here"),
        ("sqlite://u:secret@h/a.db", "names the host 'u:***@h'"),
        ("memory://u:secret@h", "memory:// takes nothing after it"),
        ("host=h password=secret", "names no store known here"),
        ("redis://u:secret@[h/0", "is no URL"),
    ],
)
def test_what_names_no_store_is_said_in_one_line(url: str, says: str) -> None:
    """The error names what is wrong and what is accepted, for both limiters, and no password."""
    for limiter in (Limiter, AsyncLimiter):
        with pytest.raises(ConfigError) as said:
            limiter(Limit("l", "1/s"), store=url)
        assert says in str(said.value)
        assert "\n" not in str(said.value)
        assert "secret" not in str(said.value)


def test_no_text_is_no_url() -> None:
    """Something that is neither a store nor text is refused by its type."""
    with pytest.raises(ConfigError, match=r"store is a \w+Path; expected a store or a URL: memory://"):
        open_store(Path("a.db"))  # type: ignore[arg-type]  # what a user may write


@pytest.mark.parametrize("opened", [open_store, open_async_store])
def test_a_missing_extra_is_named(opened: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psycopg a PostgreSQL URL is one line that names the extra, and no password."""
    for name in [name for name in sys.modules if name.startswith("headway.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for url in (
        "postgresql://u:secret@h/db",
        "postgresql://u@h/db?password=secret",
        "postgresql:///db?password=se@cret",
    ):
        with pytest.raises(ConfigError, match=r"pip install 'headway\[postgres\]'") as said:
            opened(url)  # type: ignore[operator]  # both are functions
        assert "cret" not in str(said.value)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'headway\[postgres\]'"):
        import_module("headway.stores.postgres.aio")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:secret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:se?password=cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql:///db?password=se@cret", "postgresql:///db"),
        ("postgresql://h:5432?sslpassword=se@cret&sslmode=require", "postgresql://h:5432"),
        ("redis+sentinel://u@a,b/main?sentinel_password=se@cret", "redis+sentinel://u@a,b/main"),
    ],
)
def test_an_option_that_holds_a_password_is_not_shown(url: str, said: str) -> None:
    """Nor what comes after it, with an @ in it too."""
    assert shown(url) == said


def test_a_store_is_taken_as_it_is(tmp_path: Path) -> None:
    """Memory decides at once, SQLite works in a thread, and what is asynchronous stays what it is."""
    memory, file = MemoryStore(), SqliteStore(tmp_path / "a.db")
    immediate = open_async_store(memory)
    assert isinstance(immediate, ImmediateStore)
    assert immediate.store is memory
    threaded = open_async_store(file)
    assert isinstance(threaded, ThreadedStore)
    assert threaded.store is file
    later = open_async_store("redis://localhost")
    assert open_async_store(later) is later
    file.close()
