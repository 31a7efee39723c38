"""``headway run``: any command, paced. Only waits of a fraction of a second are real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headway.cli import main
from headway.client.pace import Pace

DAY = "2/day in America/Los_Angeles"


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file for the budget."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return str(tmp_path / "budget 100%.db")


def run(*words: str) -> int:
    """``headway run`` with these words; usage errors as their code."""
    try:
        return main(["run", *words])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


def test_the_command_runs_as_it_is(shared: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Its words, its output and its exit code are its own, options and all."""
    program = "import sys; print(sys.argv[1:]); sys.exit(3)"
    assert (
        run("--quota", DAY, "--shared", shared, "--", sys.executable, "-c", program, "--quota", "-x", "--", "a b") == 3
    )
    out, err = capfd.readouterr()
    assert out == "['--quota', '-x', '--', 'a b']\n"
    assert err == ""


def test_the_dashes_may_be_left_out(shared: str) -> None:
    """The command begins with the first word that is no option."""
    assert run("--quota", DAY, "--shared", shared, sys.executable, "-c", "raise SystemExit(5)") == 5


def test_a_deadline_that_cannot_be_met_runs_nothing(
    shared: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit 75 at once, with the sentence that says when; the command does not run and nothing is charged."""
    made = tmp_path / "made"
    touch = ("--", sys.executable, "-c", f"open({str(made)!r}, 'a').write('x')")
    for _ in range(2):
        assert run("--quota", DAY, "--shared", shared, *touch) == 0
    began = time.monotonic()
    assert run("--quota", DAY, "--shared", shared, "--deadline", "5m", *touch) == 75
    assert time.monotonic() - began < 5
    assert made.read_text() == "xx"
    _, err = capfd.readouterr()
    assert "Try again" in err
    assert "(America/Los_Angeles)" in err
    assert "was not run" in err


WAITS = ("2 seconds", "1 second")
"""The second where the machine took its time before."""


def test_a_short_wait_is_waited_with_a_line(shared: str, capfd: pytest.CaptureFixture[str]) -> None:
    """While it waits, one line says for what and how long; afterwards the command runs."""
    quota = ("--quota", "1 per 2 s", "--shared", shared)
    with Pace("1 per 2 s", store=f"sqlite:///{shared.replace('%', '%25')}", name="run") as pace:
        pace.wait()
        assert run(*quota, "--deadline", "30 s", "--", sys.executable, "-c", "") == 0
        _, err = capfd.readouterr()
        about = {f"headway run: waiting for room in 1 per 2 seconds: about {n}, at most 30 seconds\n" for n in WAITS}
        assert err in about
        assert run(*quota, "--quiet", "--", sys.executable, "-c", "") == 0
        assert capfd.readouterr().err == ""


def test_several_quotas_and_names(shared: str) -> None:
    """All quotas hold together; another name is another budget; no file named is one file of the user's."""
    both = ("--quota", "5/day", "--quota", "2/hour", "--deadline", "1 s")
    nothing = ("--", sys.executable, "-c", "")
    assert [run(*both, "--shared", shared, *nothing) for _ in range(3)] == [0, 0, 75]
    assert run(*both, "--shared", shared, "--name", "other", "--cost", "2", *nothing) == 0
    assert [run(*both, *nothing) for _ in range(3)] == [0, 0, 75]
    assert os.environ["XDG_STATE_HOME"] in str(next(Path(os.environ["XDG_STATE_HOME"]).rglob("run.db")))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--quota", "1/x", "--", "a"), 64, "character 3"),
        (("--quota", "1/s"), 64, "no command"),
        (("--quota", "1/s", "--"), 64, "no command"),
        (("--quota", "1/s", "--deadline", "soon", "--", "a"), 64, "--deadline"),
        (("--quota", "1/s", "--cost", "0", "--", "a"), 64, "--cost"),
        (("--quota", "1/s", "--name", "Ü", "--", "a"), 64, "name"),
        (("--quota", "1/s", "--shared", "nosuch://x", "--", "a"), 78, "nosuch://x"),
        (("--quota", "1/s", "--", "/no/such/command"), 127, "/no/such/command"),
        (("--quota", "1/s", "--", "/"), 126, "cannot be run"),
        (("--quota", "0/day", "--", "a"), 77, "blocked"),
        (("--quota", "1/s", "--cost", "2", "--", "a"), 65, "2 at once"),
        (("--", "a"), 64, "--quota"),
    ],
)
def test_what_is_wrong_is_said(
    words: tuple[str, ...], code: int, says: str, shared: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each mistake has its exit code and names what it choked on."""
    place = () if "--shared" in words else ("--shared", shared)
    assert run(*place, *words) == code
    assert says in capsys.readouterr().err


def test_signals_reach_the_command(shared: str) -> None:
    """SIGTERM is passed on, and the exit code says which signal ended the command."""
    program = "import time, signal; print('up', flush=True); signal.pause()"
    words = [
        sys.executable,
        "-m",
        "headway",
        "run",
        "--quota",
        "1/s",
        "--shared",
        shared,
        "--",
        sys.executable,
        "-c",
        program,
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 128 + signal.SIGTERM


def test_one_at_a_time_survives_a_killed_holder(shared: str) -> None:
    """While one runs the next waits; when the holder is killed outright, its lease ends by itself."""
    quota = ("--quota", "1 at once for 3 s", "--shared", shared)
    program = "import signal, os; print(os.getppid(), flush=True); signal.pause()"
    words = [sys.executable, "-m", "headway", "run", *quota, "--", sys.executable, "-c", program]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        # longer than the lease, which is renewed
        assert run(*quota, "--quiet", "--deadline", "3500ms", "--", sys.executable, "-c", "") == 75
        # a lease that might last longer than the deadline may also end earlier, so it is waited for
        assert run(*quota, "--quiet", "--deadline", "100ms", "--", sys.executable, "-c", "") == 75
        os.killpg(holder.pid, signal.SIGKILL)
        assert run(*quota, "--quiet", "--deadline", "20 s", "--", sys.executable, "-c", "") == 0


def test_what_is_given_back_in_time_is_waited_for(shared: str) -> None:
    """A lease that might last an hour ends after a moment: a deadline of seconds is enough."""
    quota = "1 at once for 1 hour"
    with Pace(quota, store=f"sqlite:///{shared.replace('%', '%25')}", name="run") as pace:
        slot = pace.acquire()
        ended = threading.Timer(0.3, slot.complete)
        ended.start()
        assert (
            run("--quota", quota, "--shared", shared, "--quiet", "--deadline", "30 s", "--", sys.executable, "-c", "")
            == 0
        )
        ended.join()


def test_without_a_home_it_says_what_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the user has no folder for state, the message names --shared, which this command has, and no policy file."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert run("--quota", DAY, "--", "true") == 78
    said = capsys.readouterr().err
    assert "no folder for state: " in said
    assert said.endswith(
        "to a folder that can be written, or say where the budget is kept: --shared FILE, or a store's URL\n"
    )
