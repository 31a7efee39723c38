"""``headway replay`` as an operator runs it: files, pipes, terminals, mistakes."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.logs.made_logs import compressed_log, denials, website_log
from headway.cli import replay
from headway.core.limit import Algorithm

LINE = '192.0.2.1 - - [25/Oct/2015:04:11:{:02} +0100] "POST /login?a=b HTTP/1.1" 200 5 "-" "curl/8"\n'
KEYS = ["requests", "unparsed", "out_of_order", "denied", "keys", "keys_denied", "limit", "algorithm"]
SCRIPT = """
import argparse, sys
from headway.cli import replay
parser = argparse.ArgumentParser("headway")
replay.add_parser(parser.add_subparsers(required=True))
args = parser.parse_args()
sys.exit(args.run(args))
"""


def headway(*words: str) -> int:
    """Run one command line in this process."""
    parser = argparse.ArgumentParser("headway")
    replay.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["replay", *words])
    status: int = args.run(args)
    return status


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three requests in three seconds from one address."""
    path = tmp_path / "access.log"
    path.write_text("".join(LINE.format(second) for second in range(3)))
    return path


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "sliding-log"])
def test_a_websites_log_as_json(algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one object with the documented keys, and nothing else anywhere."""
    denied, keys_denied = denials(5, 60, algorithm)
    path = tmp_path / "access.log.gz"
    path.write_bytes(compressed_log())
    assert headway(str(path), "--limit", "5 per 60s", "--by", "address", "--algorithm", algorithm, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "requests": 3456,
        "unparsed": 0,
        "out_of_order": 0,
        "denied": denied,
        "keys": 520,
        "keys_denied": keys_denied,
        "limit": "5 per 60s",
        "algorithm": algorithm,
    }
    assert err == ""


def test_people_get_a_short_table(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json: the limit, the shares, and the keys most denied."""
    log.write_text(log.read_text() + LINE.format(1) + "junk\n")
    assert headway(str(log), "--limit", "1 per 60s", "--match", "POST /login", "--behind", "agent") == 0
    out, err = capsys.readouterr()
    assert out == (
        "limit           1/minute by address (gcra)\n"
        "match           POST /login\n"
        "requests        4\n"
        "denied          3 (75.0%)\n"
        "keys            1\n"
        "keys denied     1 (100.0%)\n"
        "unparsed lines  1\n"
        "out of order    1, decided at the latest time before\n"
        "\n"
        "most denied\n"
        "        3  192.0.2.1  (agent: 1 different)\n"
    )
    assert err == f"headway replay: {log}:5: neither common nor combined log format: 'junk'\n"


def test_json_lists_the_keys_most_denied_when_asked(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--top and --behind add the list of keys, each with its values by field."""
    assert headway(str(log), "--limit", "1 per 60s", "--by", "address,path", "--top", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [*KEYS, "most_denied"]
    assert found["most_denied"] == [{"key": {"address": "192.0.2.1", "path": "/login"}, "denied": 2}]
    assert headway(str(log), "--limit", "1 per 60s", "--by", "everyone", "--behind", "address", "--json") == 0
    assert json.loads(capsys.readouterr().out)["most_denied"] == [{"key": {}, "denied": 2, "behind": 1}]


def test_the_log_is_a_file_or_gzip_or_the_standard_input(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same log gives the same however it comes, and gzip is known by its content."""
    zipped = log.with_suffix(".1")
    zipped.write_bytes(gzip.compress(log.read_bytes()[:100]) + gzip.compress(log.read_bytes()[100:]))
    for path in (log, zipped):
        assert headway(str(path), "--limit", "1 per 60s", "--json") == 0
        with path.open("rb") as file:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
            assert headway("-", "--limit", "1 per 60s", "--json") == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(answer["requests"], answer["denied"]) for answer in answers] == [(3, 2)] * 4


def test_a_pipe_is_read_to_its_end() -> None:
    """A log can come through a real pipe, compressed too."""
    command = [sys.executable, "-c", SCRIPT, "replay", "-", "--limit", "5 per 60s", "--json"]
    for log in (compressed_log(), website_log()):
        ran = subprocess.run(command, input=log, capture_output=True, check=True)
        assert json.loads(ran.stdout)["denied"] == denials(5, 60, "gcra")[0]
        assert ran.stderr == b""


@pytest.mark.parametrize("algorithm", [name.value for name in Algorithm if name is not Algorithm.CONCURRENCY])
def test_every_algorithm_can_be_replayed(algorithm: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--algorithm takes every algorithm but that of requests at once, by its name."""
    quota = "1/day in UTC" if algorithm == "calendar-window" else "1 per 60s"
    assert headway(str(log), "--limit", quota, "--algorithm", algorithm, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["algorithm"], found["limit"], found["denied"]) == (algorithm, quota, 2)


def test_a_calendar_quota_chooses_its_algorithm(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A quota "in ZONE" needs no --algorithm."""
    assert headway(str(log), "--limit", "1/day in Europe/Berlin", "--json") == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "calendar-window"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "banana"], "quota 'banana'"),
        (
            ["--limit", "1/s", "--by", "ip"],
            "--by names 'ip', which an access log does not have; expected any of address, user",
        ),
        (["--limit", "1/s", "--by", ""], "--by names ''"),
        (["--limit", "1/s", "--by", "address,"], "--by names ''"),
        (["--limit", "1/s", "--by", "address,address"], "names an attribute twice"),
        (["--limit", "1/s", "--algorithm", "token"], "'token'; expected one of gcra, "),
        (["--limit", "1/s", "--algorithm", "calendar-window"], "needs a quota 'in ZONE'"),
        (["--limit", "3 at once"], "does not say when a request ended"),
        (["--limit", "5/s burst 2", "--algorithm", "fixed-window"], "takes no burst"),
        (["--limit", "1/s", "--match", "POST"], "match is 'POST'; expected a method and a path"),
        (["--limit", "1/s", "--behind", "ip"], "behind names 'ip'"),
        (["--limit", "1/s", "--top", "-1"], "top is -1; expected a whole number from 0"),
    ],
)
def test_an_option_that_cannot_be_is_one_line_and_64(
    options: list[str], said: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage error names the value and what would be accepted, and prints no result."""
    assert headway(str(log), *options, "--json") == 64
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("headway replay: ")
    assert said in err


def test_a_file_that_cannot_be_read_is_one_line_and_66(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file and a folder are named."""
    for path, said in ((tmp_path / "none.log", "No such file"), (tmp_path, "directory")):
        assert headway(str(path), "--limit", "1/s") == 66
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"headway replay: {path}: cannot be read: ")
        assert said in err


def test_a_damaged_gzip_file_is_one_line_and_65(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A truncated or corrupt gzip file gives no figures, which would be wrong."""
    whole = compressed_log()
    path = tmp_path / "broken.gz"
    for content in (
        whole[:9000],
        whole[:500] + b"\xff" * 500 + whole[1000:],
        whole[:-8] + b"\x00" * 8,
        whole + b"junk",
        whole[:2],
    ):
        path.write_bytes(content)
        assert headway(str(path), "--limit", "1/s", "--json") == 65
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"headway replay: {path}: no intact gzip file: ")


def test_a_log_in_which_nothing_parses_is_65(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first three lines are shown, and what a line should look like; no result is printed."""
    log.write_bytes(b"one\n\x00\xff\n\nfour")
    assert headway(str(log), "--limit", "1/s", "--json") == 65
    out, err = capsys.readouterr()
    assert out == ""
    assert [text.split(": ")[1] for text in err.splitlines()] == [f"{log}:1", f"{log}:2", f"{log}:3", str(log)]
    assert (
        "none of its 4 lines is in the common or combined log format; expected lines such as 203.0.113.7 - - [" in err
    )


def test_long_keys_are_cut_in_the_table_only(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key of a thousand characters does not spoil the table, and is whole in JSON."""
    log.write_text(LINE.format(1).replace("curl", "x" * 1000) * 2)
    assert headway(str(log), "--limit", "1 per 60s", "--by", "agent") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"        1  {'x' * 79}…"
    assert headway(str(log), "--limit", "1 per 60s", "--by", "agent", "--top", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["most_denied"][0]["key"]["agent"] == "x" * 1000 + "/8"


def on_a_terminal(*words: str, term: str = "xterm", stdin: bytes | None = None) -> tuple[str, str]:
    """Run with the error output on a pseudo-terminal: what that shows, and the standard output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SCRIPT, "replay", *words]
    ran = subprocess.run(
        command, input=stdin, stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, "TERM": term}
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:  # Linux says so when the other side is closed and everything was read
        pass
    os.close(ours)
    return shown.decode(), ran.stdout.decode()


def test_a_terminal_gets_a_progress_bar_that_goes_away(log: Path) -> None:
    """On a terminal a bar shows how much of the file has been read, and the line is cleared at the end."""
    log.write_text("".join(LINE.format(second % 60) for second in range(20_000)))
    shown, out = on_a_terminal(str(log), "--limit", "1 per 60s", "--json")
    assert "█" in shown
    assert "%" in shown
    assert " lines" in shown
    assert shown.endswith("\r\x1b[K")
    assert json.loads(out)["requests"] == 20_000


def test_a_pipe_of_unknown_length_shows_its_lines(log: Path) -> None:
    """On a terminal a piped log shows how many lines have been read, and no share of the unknown whole."""
    shown, _ = on_a_terminal("-", "--limit", "1 per 60s", stdin=log.read_bytes())
    assert shown.startswith("\r3 lines")
    assert "%" not in shown


def test_a_dumb_terminal_gets_none(log: Path) -> None:
    """A terminal that cannot clear a line is left alone."""
    shown, _ = on_a_terminal(str(log), "--limit", "1 per 60s", term="dumb")
    assert shown == ""
