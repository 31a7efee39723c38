"""``headway store``: what it says of a key, what it forgets, what it puts in place and what it measures."""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from headway import Limit, Limiter
from headway.cli import main
from servers import REDIS, redis_server

POLICIES = """
store = "sqlite:///state.db"
[[policies.codes.limits]]
name = "resend"
quota = "1 per 60s"
by = "phone"
[[policies.codes.limits]]
name = "everyone"
quota = "1000 per day"
[[policies.tokens.limits]]
name = "tokens"
quota = "100 per hour"
by = ["account"]
[[policies.logins.limits]]
name = "logins"
quota = "5 per hour"
by = ["account"]
secret = ["account"]
"""
URL = "sqlite:///state.db"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy file and the state of one request."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_SECRET_KEY", raising=False)
    (tmp_path / "limits.toml").write_text(POLICIES)
    assert main(["check", "codes", "phone=1", "--policy-file", "limits.toml"]) == 0
    return tmp_path


def store(*words: str) -> int:
    """``headway store`` with these words; usage errors as their code."""
    try:
        return main(["store", *words])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


def test_inspect_says_how_a_key_stands_and_charges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Every policy whose attributes are given is explained in words, twice the same; options may stand anywhere."""
    capsys.readouterr()
    for _ in range(2):
        assert store("inspect", URL, "phone=1", "--policy", "limits.toml", "account=7") == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "codes: would be refused by resend: Too many requests for this phone." in out
        assert "resend (1/minute, gcra) for phone='1': 0 of 1 left" in out
        assert "everyone (1000/day, gcra) for everyone: 999 of 1000 left" in out
        assert "tokens: would be admitted, 99 left by tokens" in out
        assert "account=(secret): unused, 5 of 5 left" in out
    assert store("inspect", URL, "phone=1", "--policy", "limits.toml", "--name", "codes", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["codes"]
    assert document["codes"]["limits"][0]["state"].startswith("0 of 1 left, as if unused in ")


def test_inspect_without_a_policy_asks_whether_the_store_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """A store that answers is said to; one that does not, and a file that is not there, are 69, and nothing is made."""
    capsys.readouterr()
    assert store("inspect", URL) == 0
    assert capsys.readouterr().out == "sqlite:///state.db: answers\n"
    for url, says in [
        ("sqlite:///typo.db", "there is no such file"),
        ("redis://user:secret@127.0.0.1:1/0", "Connection refused"),
        ("postgresql://user:secret@127.0.0.1:1/db", "refused"),
    ]:
        assert store("inspect", url) == 69
        out, err = capsys.readouterr()
        assert out == ""
        assert says in err
        assert "secret" not in err
        assert err.count("\n") == 1
    assert not Path("typo.db").exists()


def test_a_slow_server_is_not_given_up_as_soon_as_a_request_would(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server has the command's own patience to answer, or the deadline of the URL where that has one."""
    monkeypatch.setattr("headway.cli.store._PATIENCE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        for option, says in [("", "no answer within 0.3 s"), ("?deadline=20ms", "no answer within 0.02 s")]:
            assert store("inspect", url + option) == 69
            assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("inspect", URL, "phone"), 64, "'phone' is no attribute; expected NAME=VALUE"),
        (("inspect", URL, "phone=1"), 64, "expected --policy FILE too"),
        (("inspect", URL, "--policy", "limits.toml", "ip=1"), 64, "limit 'resend' is keyed by 'phone'"),
        (("inspect", URL, "--policy", "limits.toml", "--name", "code"), 64, "no policy is named 'code'; known: codes"),
        (("inspect", URL, "--policy", "limits.toml", "phone=1", "--cost", "-1"), 64, "--cost is -1"),
        (("inspect", "mysql://x"), 78, "names no store known here"),
        (("reset", URL, "--policy", "limits.toml", "phone=1", "phone=2", "--yes"), 64, "given twice"),
        (("reset", URL, "--policy", "limits.toml", "--yes"), 64, "no limit is reset by nothing; the limits are"),
        (("reset", URL, "--policy", "limits.toml", "ip=1", "--yes"), 64, "everyone by nothing (--limit)"),
        (("reset", URL, "--policy", "limits.toml", "--limit", "all", "--yes"), 64, "no limit is named 'all'"),
        (("reset", URL, "phone=1"), 64, "--policy"),
        (("bench", URL, "--seconds", "0"), 64, "--seconds is 0; expected 0.1 to 600"),
        (("init", "mysql://x"), 78, "names no store known here"),
        ((), 64, "usage: headway store"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    words: tuple[str, ...], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong words end with their code and name what is wrong and what is accepted; nothing was touched."""
    capsys.readouterr()
    assert store(*words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_reset_forgets_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The limits whose attributes are given are forgotten, others only by name; what was forgotten is said."""
    capsys.readouterr()
    assert store("reset", URL, "--policy", "limits.toml", "phone=1", "--yes") == 0
    assert capsys.readouterr().out == "codes: resend for phone=1\nreset\n"
    store("inspect", URL, "--policy", "limits.toml", "phone=1")
    out = capsys.readouterr().out
    assert "resend (1/minute, gcra) for phone='1': unused, 1 of 1 left" in out
    assert "999 of 1000 left" in out
    assert store("reset", URL, "--policy", "limits.toml", "--limit", "everyone", "--yes") == 0
    assert capsys.readouterr().out == "codes: everyone for everyone\nreset\n"
    store("inspect", URL, "--policy", "limits.toml", "phone=1")
    assert "everyone: unused, 1000 of 1000 left" in capsys.readouterr().out


def test_reset_never_shows_a_secret(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a secret attribute stays out of what a reset says, which ends in CI's logs."""
    monkeypatch.setenv("HEADWAY_SECRET_KEY", "0123456789abcdef0123456789abcdef")
    capsys.readouterr()
    Path("secret.toml").write_text(
        'store = "memory://"\n[[policies.p.limits]]\nname = "a"\nquota = "5/min"\nby = "account"\nsecret = true\n'
    )
    assert store("reset", URL, "--policy", "secret.toml", "account=s3cr3t", "--yes") == 0
    out, err = capsys.readouterr()
    assert "a for account=(secret)" in out
    assert "s3cr3t" not in out + err


@pytest.mark.parametrize("said", ["", "n", "yes"])
def test_reset_asks_first(said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal only y or yes resets; where nobody can be asked it is an error that names --yes."""
    words = ("reset", URL, "--policy", "limits.toml", "phone=1")
    assert store(*words) == 64
    assert "expected --yes" in capsys.readouterr().err
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: said)
    assert store(*words) == 0
    assert capsys.readouterr().out.endswith("reset\n" if said != "yes" else "\nreset\n")
    store("inspect", URL, "--policy", "limits.toml", "phone=1")
    assert ("phone='1': unused" in capsys.readouterr().out) is (said == "yes")


def test_init_of_other_stores_says_that_nothing_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """Only PostgreSQL has anything to put in place."""
    capsys.readouterr()
    for url in ("memory://", "sqlite:///other.db", "redis://127.0.0.1:1"):
        assert store("init", url) == 0
        assert capsys.readouterr().out == f"{url}: nothing has to be put in place\n"
    assert not Path("other.db").exists()


def test_init_prints_the_sql_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    """What a database's owner wants to read first is printed, for the schema, the table and the roles asked for."""
    capsys.readouterr()
    url = "postgresql://user:secret@127.0.0.1:1/db?schema=limits"
    assert store("init", url, "--print", "--unlogged", "--role", "app", "--role", 'we"ird') == 0
    out = capsys.readouterr().out
    assert out.startswith("BEGIN;\n")
    assert 'CREATE UNLOGGED TABLE IF NOT EXISTS "limits".state' in out
    assert 'GRANT USAGE ON SCHEMA "limits" TO "app";\nGRANT USAGE ON SCHEMA "limits" TO "we""ird";\nCOMMIT;\n' in out
    assert "secret" not in out
    assert "{" not in out.replace("'{}'", "")


@pytest.mark.parametrize("url", ["memory://", "sqlite:///bench.db", URL])
def test_bench_measures_and_leaves_nothing(url: str, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """One and four limits, admitted and refused, with their rates and times; a file that it made is gone, others stay."""
    before = sorted(path.name for path in folder.iterdir())
    capsys.readouterr()
    assert store("bench", url, "--seconds", "0.1", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["store"] == url
    assert [(row["case"], row["limits"]) for row in document["rows"]] == [
        ("admitted", 1), ("admitted", 4), ("refused", 1), ("refused", 4),
    ]  # fmt: skip
    for row in document["rows"]:
        assert row["decisions"] > 0
        assert row["per_second"] > 0
        assert 0 < row["p50_us"] <= row["p99_us"]
    assert sorted(path.name for path in folder.iterdir()) == before
    assert store("bench", url, "--seconds", "0.1") == 0
    assert "1 limit, admitted" in capsys.readouterr().out


def rows() -> int:
    """How many there are in the store's file."""
    with closing(sqlite3.connect("state.db")) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(file.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables)


def test_bench_forgets_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is interrupted, every key that it charged is reset."""
    before, hit, calls = rows(), Limiter.hit, []

    def interrupted(self: Limiter, *words: object, **named: object) -> object:
        calls.append(1)
        if len(calls) > 70:
            assert rows() > before
            raise KeyboardInterrupt
        return hit(self, *words, **named)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(Limiter, "hit", interrupted)
    assert store("bench", URL, "--seconds", "0.1") == 130
    assert rows() == before


def test_it_works_on_a_real_redis(capsys: pytest.CaptureFixture[str]) -> None:
    """Inspect, reset and bench on a server: what was charged is seen, forgotten, and nothing is left by measuring."""
    kind = next((kind for kind, find in REDIS.items() if find()), "redis-system")
    with redis_server(kind) as server:
        with Limiter(Limit("resend", "1 per 60s", by="phone"), store=server.url, namespace="default#codes") as limiter:
            assert limiter.hit(phone="1").allowed
        capsys.readouterr()
        words = (server.url, "--policy", "limits.toml", "phone=1")
        assert store("inspect", *words) == 0
        assert "codes: would be refused by resend" in capsys.readouterr().out
        assert store("reset", *words, "--yes") == 0
        assert store("inspect", *words) == 0
        assert "resend (1/minute, gcra) for phone='1': unused" in capsys.readouterr().out
        assert store("bench", server.url, "--seconds", "0.1") == 0
        assert "A refused key is answered in the process" in capsys.readouterr().out
        assert server.ask(b"DBSIZE") == b":0\r\n"
