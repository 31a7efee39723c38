"""Running the service: its socket, its signals, and a stop that loses no request.

On SIGTERM or Ctrl-C every connection that has been made is taken, every answer from then on asks the client to close,
connections that are idle get a moment to bring the request that may be on its way, and only then they are closed.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import uvicorn

from headway.service.answer import failed
from headway.service.fault import Fault
from headway.service.uvicorn_h11 import Impatient

__all__ = ["listen", "serve"]

_LAST_REQUESTS_S: Final = 0.25
"""How long connections that have been made may still bring a request once a stop was asked for."""

_DRAIN_S: Final = 20
"""After this long the requests that are still not answered are given up."""

_BACKLOG: Final = 2048
_SO_ATTACH_FILTER: Final = 26
_BPF_RETURN: Final = 0x06
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Application = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; connections wait in it until ``serve`` takes them.

    Args:
        host: a name or an address.
        port: 0 takes a free one.

    Raises:
        OSError: an unknown host, a port that is taken or not allowed.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    opened = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # there, the option would let two programs share a port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


def serve(
    application: _Application,
    listener: socket.socket,
    *,
    on_started: Callable[[], None],
    on_stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain; a second Ctrl-C drops what is still open.

    Args:
        application: an ASGI application.
        listener: from ``listen``; it is closed at the end.
        on_started: called once requests are answered.
        on_stopping: called when a stop was asked for, before what is open is drained.
    """
    server = _Server(application, on_started, on_stopping)
    server.run(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(
        self, application: _Application, on_started: Callable[[], None], on_stopping: Callable[[], None]
    ) -> None:
        super().__init__(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                http=Impatient,
                ws="none",
                lifespan="on",
                log_config=None,
                log_level="error",  # a line for each request that is no HTTP would let strangers fill the log
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_DRAIN_S,
            )
        )
        self._application = application
        self._on_started = on_started
        self._on_stopping = on_stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stopping()
        await self._stop_listening(sockets or [])
        await asyncio.sleep(_LAST_REQUESTS_S)
        await super().shutdown(sockets)

    async def _stop_listening(self, listeners: list[socket.socket]) -> None:
        """Take every connection that has been made, and let nobody else in.

        When its server is closed, asyncio drops a connection that it has accepted but not yet given a transport, and
        the system drops those that nobody has accepted; so the first get their turn, and the second are taken here.
        """
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # Windows' event loop
            for listener in listeners:
                loop.remove_reader(listener)
                _shut_the_door(listener)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting = [connection for listener in listeners for connection in _waiting(listener)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        """What ``uvicorn.Server.startup`` makes for each connection."""
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class  # a class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals as uvicorn does, but do not raise them again: a stop that was asked for is no failure."""
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def _answer(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        async def closing(message: _Message) -> None:
            if self.should_exit and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        application = _refuse_two_lengths if _two_lengths(scope) else self._application
        await application(scope, receive, closing if scope["type"] == "http" else send)


def _two_lengths(scope: _Message) -> bool:
    """Whether a request says in two ways where it ends, so that a proxy before us may have read another end than we do."""
    return scope["type"] == "http" and {b"content-length", b"transfer-encoding"} <= {
        name for name, _ in scope["headers"]
    }


async def _refuse_two_lengths(scope: _Message, receive: _Receive, send: _Send) -> None:
    """RFC 9112 §6.1: such a request may be refused, and the connection is closed in any case."""
    answer = failed(
        Fault(
            400,
            "the request has Content-Length and Transfer-Encoding, which may hide a second one",
            expected="one of them",
        )
    )
    fields = [*answer.headers, ("Content-Length", str(len(answer.body))), ("Connection", "close")]
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _shut_the_door(listener: socket.socket) -> None:
    """On Linux: no further connection is made, while those that wait stay (closing a socket would reset them).

    A socket filter of one instruction, "pass 0 bytes" (socket(7), SO_ATTACH_FILTER): the system drops what arrives for
    the listening socket, so a client that comes now tries again a second later and finds nobody listening.
    """
    if sys.platform == "linux":
        import ctypes  # only for the address of the instruction

        instruction = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RETURN, 0, 0, 0))
        with suppress(OSError):  # a system without it: a connection made in the next microseconds may be lost
            listener.setsockopt(
                socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(instruction))
            )


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """The connections that wait in a listening socket."""
    while True:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError):
            return
        connection.setblocking(False)
        yield connection
