"""``headway suggest`` as people run it."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from analysis.logs.made_logs import line
from headway.cli import main

pytest.importorskip("duckdb")


@pytest.fixture(name="log", scope="module")
def _log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred people for two hours, and a program that asks every second for ten minutes."""
    chance = random.Random(1)
    lines = []
    for person in range(200):
        start = chance.randrange(7000)
        for second in sorted(chance.sample(range(60), chance.randrange(1, 7))):
            request = f"GET /items/{chance.randrange(99)} HTTP/1.1"
            lines.append(
                (start + second, line(start + second, f"198.51.100.{person}", request, agent=f"Firefox/{person % 20}"))
            )
    lines += [
        (second, line(second, "192.0.2.66", f"GET /items/{second} HTTP/1.1", agent="Firefox/1"))
        for second in range(600)
    ]
    path = tmp_path_factory.mktemp("logs") / "access.log"
    path.write_bytes(b"".join(text for _, text in sorted(lines)))
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON that the command prints."""
    assert main(["suggest", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_people_read_proposals_first(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text begins with what was read and how far to trust it, then proposes, names whom it refuses, and shows why."""
    assert main(["suggest", str(log)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    flat = " ".join(said.out.split())
    for text in (
        "of 201 clients (by address), 2015-10-25T00:00:00Z to ",
        "Careful: only 1 h",
        "no-honest-client-refused: ",
        "would have refused",
        "paced by a machine: all 599 pauses are 1 s",
        "The smallest limit that refuses nobody at all",
        "GET /items/{id}",
    ):
        assert text in flat, text
    assert flat.index("no-honest-client-refused") < flat.index("192.0.2.66") < flat.index("GET /items/{id}")


def test_programs_read_everything(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the distributions, kinds, and for each proposal exactly whom it refuses and how long they wait."""
    found = printed(capsys, str(log))
    assert found["partial"] is False
    assert (found["clients"], found["unparsed"], found["by"]) == (201, 0, "address")
    assert [row["key"] for row in found["distribution"]] == ["client", "everyone"]
    assert set(found["distribution"][0]["windows"]["60s"]) == {"windows", "p50", "p95", "p99", "p99.9", "max"}
    assert {kind["kind"]: kind["clients"] for kind in found["kinds"]} == {"client": 200, "bot": 1}
    assert [proposal["policy"] for proposal in found["proposals"]] == ["no-honest-client-refused", "total", "stop-top"]
    honest = found["proposals"][0]
    (refused,) = honest["would_refuse"]
    assert (refused["client"], refused["kind"]) == ("192.0.2.66", "bot")
    assert honest["refused"] == {
        "requests": refused["refused"],
        "share": refused["refused"] / found["requests"],
        "clients": 1,
        "honest_clients": 0,
        "by_kind": {"bot": 1},
        "by_limit": {"per-address": refused["refused"]},
    }
    assert honest["waits_s"]["max"] == refused["longest_wait_s"] > 0


def test_the_policy_file_checks(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What --toml writes is what check-policy accepts, with the limits that were printed."""
    path = tmp_path / "limits.toml"
    found = printed(capsys, str(log), "--toml", str(path))
    assert main(["check-policy", str(path)]) == 0
    said = capsys.readouterr().out
    for proposal in found["proposals"]:
        assert proposal["policy"] in said
        for limit in proposal["limits"]:
            assert f"{limit['name']} {limit['quota']}" in said


def test_a_replay_of_the_proposal_refuses_the_same(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another command, given the proposed quota and the log, refuses as many requests of as many clients."""
    found = printed(capsys, str(log), "--goal", "stop-top=0.5%")
    (proposal,) = found["proposals"]
    assert main(["replay", str(log), "--limit", proposal["limits"][0]["quota"], "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert (replayed["denied"], replayed["keys_denied"]) == (
        proposal["refused"]["requests"],
        proposal["refused"]["clients"],
    )


def test_one_log_or_many_are_the_same(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in pieces, compressed, in any order, and the standard input give the same figures."""
    goals = ("--goal", "no-honest-client-refused", "--goal", "stop-top")
    whole = printed(capsys, str(log), *goals)
    lines = log.read_bytes().splitlines(keepends=True)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"".join(lines[::2])))
    (tmp_path / "b").write_bytes(b"".join(lines[1::2]))
    for names in (("b", "a.gz"), ("a.gz", "b")):
        for order in ("time", "given"):
            assert printed(capsys, *(str(tmp_path / name) for name in names), "--order", order, *goals) == whole
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert printed(capsys, "-", *goals) == whole


def test_a_table_with_named_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table's columns are named with --columns, and unreadable lines are counted and shown."""
    path = tmp_path / "log.csv"
    path.write_text("when,who\n" + "".join(f"{1445731200 + n},192.0.2.{n % 9}\n" for n in range(99)) + "x,y\n")
    assert main(["suggest", str(path), "--columns", "time=when,address=who", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["requests"], found["unparsed"], found["clients"]) == (99, 1, 9)
    assert "log.csv:101: no clock shows the time 'x'" in said.err


def test_pictures_are_written(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--plot draws the distribution with the proposed limits in it, --html writes a page with everything."""
    pytest.importorskip("matplotlib")
    assert main(["suggest", str(log), "--plot", str(tmp_path / "a.svg"), "--html", str(tmp_path / "a.html")]) == 0
    capsys.readouterr()
    assert "Requests of a client in a window" in (tmp_path / "a.svg").read_text("utf-8")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "192.0.2.66" in page
    assert "at most" in page


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--goal", "win"], 64, "goal is 'win'; expected no-honest-client-refused, total=N/s"),
        (["--by", "path"], 64, "--by names 'path'; expected any of address"),
        (["--format", "w3c"], 64, "format is 'w3c'; expected any of common"),
        (["--columns", "time"], 64, "--columns is 'time'; expected FIELD=COLUMN"),
        (["--columns", "when=time"], 64, "--columns names the field 'when'"),
        (["--honest", "nice"], 64, "--honest names 'nice'; expected any of client"),
        (["--match", "POST"], 64, "match is 'POST'; expected a method and a path"),
        (["--top", "-1"], 64, "--top is -1; expected a whole number from 0"),
        (["--toml", "/nowhere/x.toml"], 73, "there is no folder /nowhere"),
        (["--match", "/nothing"], 65, "no request that '/nothing' matches in "),
        (["--format", "parquet"], 65, "it does not begin with 'PAR1'"),
        (["nowhere.log"], 66, "nowhere.log: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_is_one_line(
    log: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, said: str
) -> None:
    """A wrong option, a log that is none and a missing file each end in one line and their own exit status."""
    assert main(["suggest", str(log), *arguments]) == status
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    assert out.err.startswith("headway suggest: ")
    assert said in out.err


def test_no_log_at_all_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty file and one in no known format are data that cannot be used."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "noise").write_bytes(b"hello\n")
    assert main(["suggest", str(tmp_path / "empty")]) == 65
    assert "is empty; expected an access log" in capsys.readouterr().err
    assert main(["suggest", str(tmp_path / "noise")]) == 65
    assert "no line is in a known format: 'hello'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["suggest"], ["replay", "--limit", "5/min"]])
@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_a_log_in_utf_16_is_said_with_what_to_do(
    command: list[str], mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What PowerShell writes is not shown as lines of escaped bytes, but named in one line."""
    (tmp_path / "wide").write_bytes(
        ('\ufeff203.0.113.7 - - [25/Oct/2015:04:11:25 +0100] "GET / HTTP/1.1" 200 5\n').encode(mark)
    )
    assert main([*command, str(tmp_path / "wide")]) == 65
    said = capsys.readouterr()
    assert said.out == ""
    assert "wide: is in UTF-16; expected UTF-8: iconv" in said.err
    assert said.err.count("\n") == 1


def test_one_request_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report's first sentence counts in English."""
    (tmp_path / "one").write_text('203.0.113.7 - - [25/Oct/2015:04:11:25 +0100] "GET / HTTP/1.1" 200 5\n')
    assert main(["suggest", str(tmp_path / "one")]) == 0
    assert "1 request of 1 client (by address)" in capsys.readouterr().out


def test_a_missing_extra_is_named(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without DuckDB the command says in one line what to install."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for name in [name for name in sys.modules if name.startswith("headway.analysis.suggest.")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["suggest", str(log)]) == 69
    assert capsys.readouterr().err == (
        "headway suggest: this command needs an extra that is not installed: pip install 'headway[analysis]'\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="signals, and the length of a pipe's queue")
def test_ctrl_c_leaves_a_partial_report(log: Path) -> None:
    """Interrupted while it waits for more, the command reports on every line it was given, says so, and exits with 130."""
    import fcntl
    import termios

    ours, theirs = os.pipe()
    command = [sys.executable, "-m", "headway", "suggest", "-", "--json"]
    with subprocess.Popen(command, stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.write(theirs, b"".join(log.read_bytes().splitlines(keepends=True)[:100]))
        deadline = time.monotonic() + 120
        while int.from_bytes(fcntl.ioctl(ours, termios.FIONREAD, bytes(4)), sys.byteorder):  # until it has read them
            assert time.monotonic() < deadline
            time.sleep(0.05)
        idle = 0
        while idle < 5:  # and until it sleeps, which it does when it has nothing to do
            assert time.monotonic() < deadline
            state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            idle = idle + 1 if state == "S" else 0
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        os.close(theirs)
        os.close(ours)
    found = json.loads(out)
    assert process.returncode == 130
    assert found["partial"] is True
    assert found["partial_because"] == "stopped by Ctrl-C after 100 lines"
    assert (found["lines"], found["requests"]) == (100, 100)
    assert found["proposals"]
    assert b"the report is partial" in err
