"""Where state and keys are, and which store URLs a policy file may name."""

from __future__ import annotations

import inspect
import re
import stat
from pathlib import Path

import pytest

from headway.core.limit import Limit
from headway.errors import ConfigError, StoreUnusable
from headway.service.opening import check_store_url, open_policy_store, read_policies, secret_key, state_folder
from headway.stores.memory import MemoryStore
from headway.stores.sqlite import SqliteStore

SECRET = [Limit("per-phone", "5 per day", by="phone", secret=True)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty home and no settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HEADWAY_SECRET_KEY", raising=False)
    return tmp_path


def test_state_is_in_the_user_s_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~/.local/state/headway, or below XDG_STATE_HOME where that is absolute; for the user alone."""
    assert state_folder() == home / ".local" / "state" / "headway"
    assert stat.S_IMODE(state_folder().stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "elsewhere"))
    assert state_folder() == home / "elsewhere" / "headway"
    for ignored in ("relative", ""):
        monkeypatch.setenv("XDG_STATE_HOME", ignored)
        assert state_folder() == home / ".local" / "state" / "headway"


def test_a_state_folder_that_cannot_be_made_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the way is one clear error that names the setting."""
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    with pytest.raises(ConfigError, match=r"no folder for state: .*; set XDG_STATE_HOME to"):
        read_policies(None)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///limits.db", "sqlite:////var/lib/headway/a%20b.db"])
def test_a_store_url_is_checked_without_opening_it(home: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """What names a store passes, and no file or folder comes of it."""
    monkeypatch.chdir(home)
    check_store_url(url)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "", "limits.db", "sqlite://limits.db", "sqlite:///", "sqlite:////", "sqlite:///folder/", "sqlite:///a?b=c",
        "sqlite:///a#b", "memory://x", "memory", "mongodb://localhost", "sqlit:///a", "http://[", "sqlite://[/a",
    ],
)  # fmt: skip
def test_a_url_that_names_no_store_says_what_would(home: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """The error holds the URL, but for what may be a password, and nothing is created."""
    monkeypatch.chdir(home)
    with pytest.raises(ConfigError) as raised:
        check_store_url(url)
    assert repr(re.split("[?#]", url)[0]) in str(raised.value)
    assert list(home.iterdir()) == []


def test_a_relative_store_is_beside_the_policy_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes start from the file's folder, wherever the command was started; four are absolute."""
    folder = home / "etc"
    folder.mkdir()
    for url, path in (("sqlite:///a.db", folder / "a.db"), (f"sqlite:///{home}/b.db", home / "b.db")):
        (folder / "limits.toml").write_text(f'store = "{url}"\n[policies.a]\nlimits = []\n')
        monkeypatch.chdir(folder)
        file = read_policies(Path("limits.toml")).policies()
        monkeypatch.chdir(home)
        store, key = open_policy_store(file)
        store.close()
        assert path.exists()
        assert key is None


def test_a_store_that_cannot_serve_is_said(home: Path) -> None:
    """A folder that is missing is the store's error, not the file's."""
    (home / "limits.toml").write_text('store = "sqlite:///none/a.db"\n[policies.a]\nlimits = []\n')
    with pytest.raises(StoreUnusable, match="does not exist"):
        open_policy_store(read_policies(home / "limits.toml").policies())


def test_the_key_is_beside_the_database_and_stays(home: Path) -> None:
    """32 random bytes, made once; no draft of them is left."""
    store = SqliteStore(home / "a.db")
    key = secret_key(store, SECRET)
    assert key is not None
    assert len(key) == 32
    assert secret_key(store, SECRET) == key == (home / "a.db.key").read_bytes()
    assert secret_key(SqliteStore(home / "b.db"), SECRET) != key
    assert sorted(path.suffix for path in home.iterdir() if "key" in path.name) == [".key", ".key"]


def test_no_key_is_made_that_nobody_needs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for limits without secrets, not for memory, not beside a key from the environment."""
    store = SqliteStore(home / "a.db")
    assert secret_key(store, [Limit("a", "1/s", by="phone")]) is None
    assert secret_key(MemoryStore(), SECRET) is None
    monkeypatch.setenv("HEADWAY_SECRET_KEY", "from the environment")
    assert secret_key(store, SECRET) is None
    assert not (home / "a.db.key").exists()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_server_without_a_key_for_secrets_is_not_served(
    asynchronous: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key of each process's own: the error names the limit and the variable that all have to share."""
    monkeypatch.delenv("HEADWAY_SECRET_KEY", raising=False)
    (home / "limits.toml").write_text(
        'store = "redis://127.0.0.1:1/0"\n[[policies.a.limits]]\nname = "sms"\nquota = "5/day"\nby = "phone"\nsecret = true\n'
    )
    file = read_policies(home / "limits.toml").policies()
    with pytest.raises(ConfigError, match=r"limit 'sms' has secret attributes.* HEADWAY_SECRET_KEY, at least 16 bytes"):
        open_policy_store(file, asynchronous=asynchronous)
    monkeypatch.setenv("HEADWAY_SECRET_KEY", "from the environment")
    assert open_policy_store(file, asynchronous=asynchronous)[1] is None


def test_a_key_that_cannot_be_right_is_said(home: Path) -> None:
    """An empty or cut file is an error, never a weak key."""
    store = SqliteStore(home / "a.db")
    (home / "a.db.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match=r"a\.db\.key has 5 bytes; expected the 32"):
        secret_key(store, SECRET)
    (home / "a.db.key").unlink()
    (home / "a.db.key").mkdir()
    with pytest.raises(ConfigError, match=r"a\.db\.key: Is a directory; .* HEADWAY_SECRET_KEY"):
        secret_key(store, SECRET)


def test_who_comes_second_takes_the_first_one_s_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that another process made between the look and the making is left as it is."""
    store = SqliteStore(home / "a.db")
    key = secret_key(store, SECRET)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert secret_key(store, SECRET) == key
    assert sorted(path.name for path in home.glob("a.db.key*")) == ["a.db.key"]


NETWORKED = [
    "redis://localhost:1/0",
    "redis+sentinel://a,b/main",
    "redis+cluster://a:1",
    "postgresql://u@localhost:1/d",
]


@pytest.mark.parametrize("url", NETWORKED)
def test_a_networked_store_s_url_is_checked_without_reaching_for_it(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """No connection is made, and no store is opened that would have to be closed."""
    monkeypatch.setattr("headway.service.opening.open_store", None)
    monkeypatch.setattr("socket.socket.connect", None)
    check_store_url(url)
    with pytest.raises(ConfigError):
        check_store_url(f"{url}?deadline=soon")


@pytest.mark.parametrize("url", NETWORKED)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_file_s_deadline_is_the_networked_store_s(tmp_path: Path, url: str, asynchronous: bool) -> None:
    """In whole milliseconds or as text; without one the URL's own or the store's default counts."""
    for said, expected in (('deadline = "250 ms"', 0.25), ("deadline = 40", 0.04), ("", 0.1)):
        path = tmp_path / "limits.toml"
        path.write_text(f'store = "{url}"\n{said}\n[policies.open]\nlimits = []\n')
        file = read_policies(path).file
        assert file is not None
        store, key = open_policy_store(file, asynchronous=asynchronous)
        assert store.deadline == expected  # type: ignore[union-attr]  # networked stores have one
        assert key is None
        assert inspect.iscoroutinefunction(store.advance) == asynchronous
