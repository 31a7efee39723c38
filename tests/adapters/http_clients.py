"""Two plain clients: one calls an ASGI application, one a WSGI application, as a server would, and keeps all that is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from wsgiref.validate import validator


@dataclass
class Answer:
    """What was answered.

    Attributes:
        status: the status.
        headers: by name in lower case; several lines of one name joined by a comma.
        parts: the body as it was sent, part by part.
        starts: how often an answer was begun.
        error: what the application raised after all, or None.
    """

    status: int
    headers: dict[str, str]
    parts: list[bytes] = field(default_factory=list)
    starts: int = 1
    error: BaseException | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def problem(self) -> Any:
        return json.loads(self.body)

    @property
    def remaining(self) -> list[int]:
        """R of every limit."""
        return [int(item.split(";r=")[1].split(";")[0]) for item in self.headers["ratelimit"].split(", ")]


def joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def scope_of(
    method: str, path: str, headers: Mapping[str, str], peer: str | None, root_path: str = ""
) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": root_path + path,
        "raw_path": (root_path + path).encode(),
        "query_string": query.encode(),
        "root_path": root_path,
        "headers": [(b"host", b"site.example"), *((n.lower().encode(), v.encode()) for n, v in headers.items())],
        "client": (peer, 40000) if peer else None,
        "server": ("site.example", 80),
        "extensions": {},
        "state": {},
    }


def call_asgi(app: Any, scope: dict[str, Any]) -> Answer:
    """One request to an ASGI application, on a loop of its own."""

    async def call() -> Answer:
        begun: list[Any] = []
        parts: list[bytes] = []
        received = False
        answered = asyncio.Event()

        async def receive() -> Any:
            nonlocal received
            if received:
                await answered.wait()
                return {"type": "http.disconnect"}
            received = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                begun.append(message)
            elif message["type"] == "http.response.body":
                assert begun
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    answered.set()

        error: BaseException | None = None
        try:
            await asyncio.wait_for(app(scope, receive, send), 20)
        except Exception as raised:
            error = raised
        if not begun:
            return Answer(500, {}, [], 0, error)
        first = begun[0]
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in first["headers"]]
        return Answer(first["status"], joined(pairs), parts, len(begun), error)

    return asyncio.run(call())


def call_wsgi(app: Any, method: str, path: str, headers: Mapping[str, str], peer: str | None) -> Answer:
    """One request to a WSGI application, watched for what PEP 3333 forbids."""
    import io

    path, _, query = path.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "site.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "site.example",
        "REMOTE_ADDR": peer or "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
    }
    begun: list[Any] = []

    def start_response(status: str, fields: list[tuple[str, str]], exc_info: Any = None) -> Any:
        begun.append((status, fields))
        return lambda part: None

    parts: list[bytes] = []
    error: BaseException | None = None
    try:
        body = validator(app)(environ, start_response)
        try:
            parts += body
        finally:
            body.close()
    except Exception as raised:
        error = raised
    if not begun:
        return Answer(500, {}, parts, 0, error)
    status, fields = begun[-1]
    return Answer(int(status[:3]), joined(fields), parts, len(begun), error)
