"""``headway`` itself: which module a command loads, usage, help, version."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from headway.cli import COMMANDS, main

DEADLINE_S = 60


def python(program: str) -> str:
    """What a program prints in a new interpreter."""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    return run.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_only_itself(command: str) -> None:
    """No command pays for another one, and none loads a web framework to print its help."""
    program = (
        "import sys\nfrom headway.cli import main\n"
        f"try:\n    main([{command!r}, '--help'])\nexcept SystemExit as ended:\n    assert ended.code == 0\n"
        "print('MODULES', *sorted(sys.modules))"
    )
    modules = python(program).rpartition("MODULES")[2].split()
    others = {f"headway.cli.{other.replace('-', '_')}" for other in COMMANDS if other != command}
    assert f"headway.cli.{command.replace('-', '_')}" in modules
    assert others.isdisjoint(modules)
    assert {"starlette", "uvicorn", "httpx", "sqlite3", "asyncio"}.isdisjoint(modules)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """``headway --help`` lists all commands and exits with 0."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if line.startswith("    ") and line[4] != " "] == [*COMMANDS]


@pytest.mark.parametrize(
    "words", [[], ["--"], ["nope"], ["--nope"], ["check"], ["check-policy"], ["check-policy", "a", "b"]]
)
def test_wrong_usage_is_64(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Wrong words say how to do it, on standard error, and exit with EX_USAGE."""
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    out, err = capsys.readouterr()
    assert (code, out) == (64, "")
    assert "usage: headway" in err


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    """``headway --version`` prints one line."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"headway {version('headway')}\n")


def test_a_reader_that_has_enough_is_no_error() -> None:
    """Output into a pipe that closes early ends quietly."""
    program = f"{sys.executable} -m headway --help | true; {sys.executable} -m headway explain 1/s | true"
    run = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=DEADLINE_S)
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("explain", "5/s", "--jsn"), "headway explain"),
        (("compare", "10 per minute"), "headway compare"),
        (("store", "inspect", "memory://", "--nope"), "headway store inspect"),
    ],
)
def test_an_argument_too_many_is_the_command_s(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], command: str
) -> None:
    """What a command does not know is answered with that command's usage and name."""
    with pytest.raises(SystemExit):
        main(words)
    err = capsys.readouterr().err
    assert err.startswith(f"usage: {command} ")
    assert f"{command}: unrecognized arguments: {words[-1]}" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, Linux's device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("explain", "1/s"), ("compare",), ("convert", "10/minute")])
def test_a_full_disk_is_one_line(words: tuple[str, ...], unbuffered: str) -> None:
    """Output that cannot be written is said in one line, with EX_IOERR."""
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "headway", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=DEADLINE_S,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (run.returncode, run.stderr) == (74, "headway: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        *(("ascii", (command, "--help")) for command in COMMANDS),
        *((encoding, ("lint", "{folder}/log\udcff")) for encoding in ("ascii", "cp437", "utf-8")),
    ],
)
def test_a_terminal_that_cannot_show_a_character_is_no_error(
    tmp_path: Path, encoding: str, words: tuple[str, ...]
) -> None:
    """A character that the output's encoding has not comes as its escape, as on standard error; nothing fails."""
    log = '192.0.2.1 - - [30/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 429 12 "-" "…"\n'
    (tmp_path / "log\udcff").write_text(log, "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "headway", *(word.format(folder=tmp_path) for word in words)],
        capture_output=True,
        timeout=DEADLINE_S,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (run.returncode, b"Traceback" in run.stderr) == (0, False)
    assert run.stdout


@pytest.mark.parametrize("words", [("check",), ("store", "inspect")])
def test_what_may_be_left_out_is_not_asked_for(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    """A policy without attributes is asked with none, so only the policy, or the store, is said to be missing."""
    with pytest.raises(SystemExit):
        main(words)
    assert "attr=value" not in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("words", "code"), [("explain 1/s", 0), ("compare", 0), ("check one-time-codes phone=1", 64), ("read", 65)]
)
def test_a_closed_stream_is_no_crash(tmp_path: Path, words: str, code: int, closed: str) -> None:
    """Whoever starts a command without a standard stream, as daemons do, gets the same exit code, and no traceback."""
    run = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m headway {words} {closed}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert run.returncode == code
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the streams")
def test_a_store_is_not_written_over_where_the_output_was_closed(tmp_path: Path) -> None:
    """A database that is opened while standard output is closed does not become the standard output."""
    words = "check one-time-codes phone=1 ip=1 --json"
    for code in (0, 75):
        run = subprocess.run(
            ["sh", "-c", f"exec {sys.executable} -m headway {words} <&- >&-"],
            capture_output=True,
            timeout=DEADLINE_S,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        )
        assert run.returncode == code


@pytest.mark.parametrize(("count", "name"), [(1, "short"), (400, "long")])
def test_what_was_found_counts_although_nobody_reads_it_to_the_end(tmp_path: Path, count: int, name: str) -> None:
    """``headway lint … | head`` fails as it would without ``head``, however much it had to say."""
    (tmp_path / name).write_text("HTTP/1.1 429 Slow\nRetry-After: soon\n\nToo many\n" * count)
    program = f"{sys.executable} -m headway lint {name}; echo $? >&2"
    run = subprocess.run(
        ["sh", "-c", f"{{ {program}; }} | true"], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert run.stderr == "1\n"
