"""``headway serve`` from its start to its end: what it prints, where its state is, how it stops."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from serving import DEADLINE_S, command, environment, run, serving

ONE = '[[policies.codes.limits]]\nname = "resend"\nquota = "1 per 60s"\nby = "phone"\n'


def test_without_a_file_it_serves_the_built_in_policy(tmp_path: Path) -> None:
    """It says where it listens and keeps its state in a folder that is the user's alone."""
    with serving(tmp_path) as service:
        assert "one-time-codes" in service.greeting
        assert service.url.startswith("http://127.0.0.1:")
        folder = tmp_path / "state" / "headway"
        assert str(folder / "limits.db") in service.greeting
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (policy,) = service.client.get("/v1/policies").json()["policies"]
        assert [limit["quota"] for limit in policy["limits"]] == ["1/minute", "5/day", "20/hour", "1000/day"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the lines are for curl")
def test_the_printed_lines_work_when_pasted(tmp_path: Path) -> None:
    """The first is allowed, the second refused, the third lists the policies; and so again after a restart."""
    for _ in range(2):
        with serving(tmp_path) as service:
            lines = [line for line in service.greeting.splitlines() if line.startswith("curl ")]
            said = [
                subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=DEADLINE_S).stdout
                for line in lines
            ]
        assert len(lines) == 3
        assert lines[0] == lines[1]
        assert said[0].startswith("HTTP/1.1 200")
        assert said[1].startswith("HTTP/1.1 429")
        assert "retry-after: " in said[1].lower()
        assert said[2].startswith('{"policies"')


def test_state_outlives_the_process(tmp_path: Path) -> None:
    """A relative store is beside the policy file, and a restart forgets nothing."""
    text = f'store = "sqlite:///state.db"\n{ONE}'
    for status in (200, 429):
        with serving(tmp_path, text) as service:
            assert service.check(phone="1").status_code == status
    assert (tmp_path / "state.db").exists()


def test_a_shell_and_the_service_share_their_counters(tmp_path: Path) -> None:
    """``headway check`` charges what ``headway serve`` charges, built in or from a file."""
    text = f'store = "sqlite:///state.db"\n{ONE}'
    with serving(tmp_path, text) as service:
        assert service.check(phone="1").status_code == 200
        refused = run(tmp_path, "check", "codes", "phone=1", "--policy-file", "limits.toml")
        assert (refused.returncode, refused.stdout) == (75, "")
        assert refused.stderr.startswith("Too many requests for this phone.")
    assert run(tmp_path, "check", "one-time-codes", "phone=1", "ip=a").returncode == 0
    with serving(tmp_path) as service:
        assert service.check("one-time-codes", phone="1", ip="b").status_code == 429


def test_two_services_on_one_file_admit_one_budget(tmp_path: Path) -> None:
    """However many processes share the file, the quota is one."""
    text = 'store = "sqlite:///state.db"\n[[policies.p.limits]]\nname = "l"\nquota = "10 per day"\n'
    with serving(tmp_path, text) as one, serving(tmp_path, text) as other:
        statuses: list[int] = []

        def spend(url: str) -> None:
            with httpx.Client(base_url=url, timeout=DEADLINE_S, trust_env=False) as client:
                statuses.extend(client.post("/v1/check", json={"policy": "p"}).status_code for _ in range(5))

        threads = [threading.Thread(target=spend, args=(url,)) for url in (one.url, other.url) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert (statuses.count(200), statuses.count(429)) == (10, 20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_under_load_answers_every_request_that_was_taken(tmp_path: Path, number: int) -> None:
    """Every request gets its whole answer or finds nobody listening; the process ends with 0 and says nothing."""
    text = 'store = "sqlite:///state.db"\n[[policies.p.limits]]\nname = "l"\nquota = "100000 per day"\n'
    answered: list[int] = []
    lost: list[Exception] = []

    def load(url: str, keep_alive: bool) -> None:
        limits = httpx.Limits(max_keepalive_connections=1 if keep_alive else 0)
        with httpx.Client(base_url=url, timeout=DEADLINE_S, trust_env=False, limits=limits) as client:
            while True:
                try:
                    answered.append(client.post("/v1/check", json={"policy": "p"}).status_code)
                except httpx.ConnectError:
                    return
                except httpx.HTTPError as error:
                    lost.append(error)
                    return

    with serving(tmp_path, text) as service:
        threads = [threading.Thread(target=load, args=(service.url, bool(index % 2))) for index in range(8)]
        for thread in threads:
            thread.start()
        give_up = time.monotonic() + DEADLINE_S
        while len(answered) < 50 and time.monotonic() < give_up:
            time.sleep(0.01)
        code, said = service.stop(number)
        for thread in threads:
            thread.join(DEADLINE_S)
    assert lost == []
    assert len(answered) >= 50
    assert set(answered) == {200}
    stopping, stopped = said.splitlines()
    assert code == 0
    assert stopping.startswith("headway serve: stopping: ")
    assert stopped == "headway serve: stopped"


def test_a_request_that_is_half_sent_is_still_answered(tmp_path: Path) -> None:
    """A body that arrives after the signal is read, answered, and the connection closed."""
    with serving(tmp_path, ONE) as service:
        host, port = service.url.removeprefix("http://").split(":")
        body = b'{"policy": "codes", "attributes": {"phone": "1"}}'
        with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
            head = f"POST /v1/check HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body[:10])
            service.client.get("/healthz")  # answered, so the service has read what came before
            service.process.send_signal(signal.SIGTERM)
            _until_nobody_listens(host, int(port))
            connection.sendall(body[10:])
            answer = b""
            while more := connection.recv(65536):
                answer += more
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer
        assert service.process.wait(DEADLINE_S) == 0


def test_a_connection_that_was_idle_may_bring_one_more_request(tmp_path: Path) -> None:
    """What is on its way over an open connection when the signal comes is answered, and the connection closed then."""
    for _ in range(5):
        with serving(tmp_path, ONE) as service:
            assert service.client.get("/healthz").headers.get("connection") is None
            sent = time.monotonic()
            service.process.send_signal(signal.SIGTERM)
            time.sleep(0.1)  # by then nobody new is let in; idle connections are closed 0.25 s after that
            try:
                answer = service.client.get("/healthz")
            except httpx.TransportError:
                if time.monotonic() - sent > 0.25:
                    continue  # this machine is too busy to be that punctual: once more
                raise
            assert answer.headers["connection"] == "close"
            assert service.process.wait(DEADLINE_S) == 0
            return
    pytest.skip("this machine is too busy to ask within 250 ms")


def _until_nobody_listens(host: str, port: int) -> None:
    give_up = time.monotonic() + DEADLINE_S
    while time.monotonic() < give_up:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except (ConnectionError, TimeoutError):  # refused, or dropped on the way to that
            return
        time.sleep(0.02)
    raise AssertionError("the service still takes connections")


def test_a_stop_closes_the_store(tmp_path: Path) -> None:
    """After the end the SQLite file is whole and stands alone: nothing is left in a journal."""
    with serving(tmp_path, f'store = "sqlite:///state.db"\n{ONE}') as service:
        service.check(phone="1")
        assert service.stop()[0] == 0
    assert sorted(path.name for path in tmp_path.glob("state.db*")) == ["state.db"]


def test_a_busy_port_is_one_line(tmp_path: Path) -> None:
    """Another program's port: one line that says what to do, and 69."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(tmp_path, "serve", "--port", str(port))
    assert (ended.returncode, ended.stdout) == (69, "")
    assert ended.stderr == (
        f"headway serve: cannot listen on 127.0.0.1:{port}: the port is taken; "
        "name another with --port, or --port 0 for a free one\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--port", "65536"), 64, "expected a number from 0 to 65535"),
        (("--port", "http"), 64, "'http' is no port"),
        (("--host", "no such host"), 69, "cannot listen on no such host:8440"),
        (("nothing.toml",), 78, "nothing.toml: no such file"),
        (("--quick",), 64, "unrecognized arguments: --quick"),
    ],
)
def test_a_wrong_start_says_why(tmp_path: Path, words: tuple[str, ...], code: int, says: str) -> None:
    """One line on standard error and a code that scripts can tell apart."""
    ended = run(tmp_path, "serve", *words)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert says in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


def test_a_bad_file_is_reported_whole(tmp_path: Path) -> None:
    """All problems, a line each, and 78; nothing is served."""
    (tmp_path / "bad.toml").write_text(
        'store = "sqlite://limits.db"\n[[policies.a.limits]]\nname = "A"\nqouta = "1/s"\n'
    )
    ended = run(tmp_path, "serve", "bad.toml", "--port", "0")
    assert (ended.returncode, ended.stdout) == (78, "")
    assert [line.split(": ")[0] for line in ended.stderr.splitlines()] == ["bad.toml:1", "bad.toml:3", "bad.toml:4"]


def test_a_store_that_cannot_serve_ends_the_start(tmp_path: Path) -> None:
    """A missing folder is said in one line, with 69."""
    (tmp_path / "limits.toml").write_text(f'store = "sqlite:///none/limits.db"\n{ONE}')
    ended = run(tmp_path, "serve", "limits.toml", "--port", "0")
    assert ended.returncode == 69
    assert "does not exist" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("module", ["starlette", "uvicorn"])
def test_a_missing_extra_is_one_line(tmp_path: Path, module: str) -> None:
    """Without the extra, the one line says how to get it."""
    program = f"import sys; sys.modules[{module!r}] = None; from headway.cli import main; sys.exit(main(['serve']))"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(tmp_path), timeout=DEADLINE_S
    )
    assert ended.returncode == 69
    assert ended.stderr == (
        "headway serve: this command needs an extra that is not installed: pip install 'headway[serve]'\n"
    )


def test_an_open_door_is_warned_of(tmp_path: Path) -> None:
    """Listening beyond this machine prints one warning; on loopback there is none."""
    for host, warned in (("0.0.0.0", True), ("127.0.0.1", False)):
        with serving(tmp_path, ONE, "--host", host) as service:
            assert service.client.get("/healthz").status_code == 200
            code, said = service.stop()
        assert code == 0
        assert ("nothing asks who calls" in said, len(said.splitlines())) == (warned, 2 + warned)  # and two of the stop


def test_a_store_that_is_away_is_said_everywhere(tmp_path: Path) -> None:
    """A limit that denies answers 503 with a wait, one that allows 200 without fields, readiness 503, health 200; the log says it once."""
    text = (
        f'store = "sqlite:///state.db"\n{ONE}'
        '[[policies.open.limits]]\nname = "l"\nquota = "1/s"\non_store_failure = "allow"\n'
    )
    with serving(tmp_path, text) as service:
        assert service.client.get("/readyz").status_code == 200
        for path in tmp_path.glob("state.db*"):
            path.unlink()
        (tmp_path / "state.db").mkdir()
        denied = [service.check(phone="1") for _ in range(2)][-1]
        assert denied.status_code == 503
        assert denied.json()["type"].endswith("#temporary-reduced-capacity")
        assert int(denied.headers["retry-after"]) >= 1
        allowed = service.check("open")
        assert (allowed.status_code, allowed.json()["degraded"]) == (200, True)
        assert "ratelimit" not in allowed.headers
        ready = service.client.get("/readyz")
        assert (ready.status_code, ready.json()["type"]) == (503, "urn:headway:not-ready")
        assert "state.db" in ready.json()["detail"]
        assert service.client.get("/healthz").status_code == 200
        code, said = service.stop()
    assert code == 0
    assert len([line for line in said.splitlines() if "the store does not decide" in line]) == 1


def test_secret_values_are_kept_as_keyed_hashes(tmp_path: Path) -> None:
    """The key is made once, for the user alone; with it the same phone is known after a restart."""
    text = f'store = "sqlite:///state.db"\n{ONE}secret = true\n'
    phone = "+447700900999"
    for status in (200, 429):
        with serving(tmp_path, text) as service:
            assert service.check(phone=phone).status_code == status
    key = tmp_path / "state.db.key"
    assert (len(key.read_bytes()), stat.S_IMODE(key.stat().st_mode)) == (32, 0o600)
    rows = sqlite3.connect(tmp_path / "state.db").execute("SELECT * FROM headway_state").fetchall()
    assert rows
    assert phone.encode() not in repr(rows).encode()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("state.db.key.")]
    with serving(tmp_path, text, extra={"HEADWAY_SECRET_KEY": "another key, long enough"}) as service:
        assert service.check(phone=phone).status_code == 200


def test_many_first_starts_agree_on_one_key(tmp_path: Path) -> None:
    """Processes that start at once take the key of whoever comes first."""
    (tmp_path / "limits.toml").write_text(f'store = "sqlite:///state.db"\n{ONE}secret = true\n')
    words = ("check", "codes", "phone=1", "--policy-file", "limits.toml")
    started = [
        subprocess.Popen(command(*words), env=environment(tmp_path), cwd=tmp_path, stderr=subprocess.DEVNULL)
        for _ in range(6)
    ]
    codes = sorted(process.wait(DEADLINE_S) for process in started)
    assert codes == [0, *[75] * 5]
    assert os.listdir(tmp_path).count("state.db.key") == 1  # noqa: PTH208  # names are what is asked for
