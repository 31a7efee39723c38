"""A real HTTP server on a free port that answers each path by its script, and remembers what it was sent."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any

from tests.client.corpus import Case

__all__ = ["Answer", "Scripted", "Seen", "as_answer", "scripted"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; ``drop`` closes the connection instead, ``chunks`` streams them, ``late`` waits for an event first."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    drop: bool = False
    chunks: Iterable[bytes] = ()
    late: threading.Event | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived; ``peer`` tells connections apart."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]


@dataclass(slots=True)
class Scripted:
    """The server: ``script[path]`` is used up, its last answer stays."""

    url: str = ""
    script: dict[str, list[Answer]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, path: str, *answers: Answer) -> str:
        """Answer this path so, one by one; the URL to ask."""
        self.script[path] = list(answers)
        return self.url + path

    def next(self, path: str) -> Answer:
        """The next answer for a path."""
        with self.lock:
            answers = self.script.get(path.partition("?")[0], [Answer(404)])
            return answers.pop(0) if len(answers) > 1 else answers[0]


def as_answer(case: Case) -> Answer:
    """A recorded refusal, as far as a server can send it: framing is its own, and it has to be encodable."""
    own = {"content-length", "transfer-encoding", "connection", "content-encoding"}
    fields = tuple((name, value) for name, value in case.headers if name.lower() not in own)
    return Answer(case.status, fields, case.body.encode())


@contextlib.contextmanager
def scripted() -> Iterator[Scripted]:
    """A server for the length of a test."""
    state = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.body()
            state.seen.append(
                Seen(self.command, self.path, dict(self.headers.items()), body, self.client_address)  # type: ignore[arg-type]
            )
            reply = state.next(self.path)
            if reply.late is not None:
                reply.late.wait(10)
            if reply.drop:
                self.close_connection = True
                return
            self.send_response_only(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            if reply.chunks:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for chunk in chain(reply.chunks, (b"",)):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                return
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815  # http.server's names

        def body(self) -> bytes:
            if self.headers.get("transfer-encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("content-length") or 0))

        def log_message(self, format: str, *args: Any) -> None:  # http.server's name
            """Tests are quiet."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is part of the tests."""

    server = Quiet(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
