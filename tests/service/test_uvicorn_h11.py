"""What is ours in how the service speaks HTTP/1.1: nobody is waited for in vain, and no request is dear to read."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from headway.service.uvicorn import _Server
from headway.service.uvicorn_h11 import Impatient

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def answer(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """An application that says 204."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def answer_at_the_end(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """The same once the whole body is there."""
    while (await receive()).get("more_body"):
        pass
    await answer(scope, receive, send)


Application = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]


@asynccontextmanager
async def listening(application: Application = answer) -> AsyncIterator[tuple[ServerState, int]]:
    """What the server knows of its connections, and its port."""
    config = uvicorn.Config(
        application, interface="asgi3", http=Impatient, lifespan="off", log_config=None, access_log=False
    )
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: Impatient(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server, asyncio.timeout(20):
        yield state, server.sockets[0].getsockname()[1]


async def heard(*pieces: bytes) -> bytes:
    """All that the server says to these pieces until it closes the connection."""
    async with listening() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        said = b""
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if piece.endswith(b"\r\n\r\n"):
                said += await reader.readuntil(b"\r\n\r\n")
        said += await reader.read()
        writer.close()
    return said


@pytest.mark.parametrize(
    "pieces", [(), (b"GET / HT",), (_GET, b"GET / HTTP/1.1\r\nHo")], ids=["none", "first", "second"]
)
def test_a_head_that_does_not_end_closes_the_connection(
    pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first or a later one; what was complete before is answered."""
    monkeypatch.setattr("headway.service.uvicorn_h11._HEAD_WITHIN_S", 0.05)
    assert asyncio.run(heard(*pieces)).count(b"HTTP/1.1 204") == (_GET in pieces)


def test_a_head_in_pieces_is_answered() -> None:
    """As long as it ends in time; and so is the next."""
    assert (
        asyncio.run(heard(_GET[:5], _GET[5:], _GET, b"GET / HTTP/1.1\r\nConnection: close\r\nHost: h\r\n\r\n")).count(
            b"HTTP/1.1 204"
        )
        == 3
    )


_POST = b"POST / HTTP/1.1\r\nHost: h\r\n"


def test_a_body_that_nobody_waits_for_does_not_keep_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was answered before its body came, and the rest of that trickles in or never comes."""
    monkeypatch.setattr("headway.service.uvicorn_h11._BODY_WITHIN_S", 0.05)
    assert b" 204 " in asyncio.run(heard(_POST + b"Content-Length: 9\r\n\r\n", b"a"))


def test_an_answer_that_is_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks and does not read holds its connection no longer than one that does not ask."""
    monkeypatch.setattr("headway.service.uvicorn_h11._LOOK_AT_READER_EVERY_S", 0.05)
    many = b"x" * 16_000_000

    async def ask_and_not_read() -> int:
        ended = asyncio.Event()

        async def tell_much(_: Any, __: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"32000000")]})
            await send({"type": "http.response.body", "body": many, "more_body": True})
            await send({"type": "http.response.body", "body": many})
            ended.set()

        async with listening(tell_much) as (state, port):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", port))
                client.sendall(_GET)
                await ended.wait()
                return len(state.connections)

    assert asyncio.run(ask_and_not_read()) == 0


def test_an_answer_that_is_read_slowly_is_sent_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as some of it is read between two looks."""
    monkeypatch.setattr("headway.service.uvicorn_h11._LOOK_AT_READER_EVERY_S", 1.0)
    size = 6_000_000

    async def tell_much(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def read_slowly() -> int:
        async with listening(tell_much) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
            writer.write(_GET)
            found = 0
            while more := await reader.read(65_536):
                found += more.count(b"x")
                await asyncio.sleep(0.03)
            writer.close()
            return found

    assert asyncio.run(read_slowly()) == size


@pytest.mark.parametrize(
    "request_bytes",
    [
        _POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 300_000,
        _POST + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 120_000,
        _POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000,
        b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 20_000,
        b"GET /" + b"a" * 120_000,
        b"\r\n" * 60_000,
    ],
    ids=["chunks of a byte", "a chunk's extension", "trailers", "fields", "a path", "empty lines"],
)
def test_a_request_in_a_hundred_thousand_pieces_is_refused_at_once(request_bytes: bytes) -> None:
    """It would take the server's one thread for seconds, and everybody else would wait."""

    async def send() -> None:
        async with listening(answer_at_the_end) as (state, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request_bytes)
            try:
                await writer.drain()
                while await reader.read(65_536):
                    pass
            except ConnectionError:  # it was closed while some of the request was on its way
                pass
            writer.close()
            assert not state.connections

    began = time.thread_time()
    asyncio.run(send())
    assert time.thread_time() - began < 1.5


def test_a_body_in_honest_chunks_is_read() -> None:
    """Many chunks of some size, and a few small ones."""
    taken: list[int] = []

    async def count(_: Any, receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message["body"])
            more = message["more_body"]
        taken.append(size)
        await answer({}, receive, send)

    async def ask(body: bytes) -> bytes:
        async with listening(count) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(_POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")
            said = await reader.read()
            writer.close()
            return said

    for body, size in ((b"80\r\n" + b"a" * 128 + b"\r\n") * 4000, 512_000), (b"1\r\na\r\n" * 200, 200):
        assert b" 204 " in asyncio.run(ask(body))
        assert taken.pop() == size


def test_a_request_with_two_lengths_is_refused_and_the_connection_closed() -> None:
    """Content-Length and Transfer-Encoding: what a proxy took for the body would be a second request to us."""
    asked: list[object] = []

    async def note(scope: Any, _: Any, send: Any) -> None:
        asked.append(scope["path"])
        await answer(scope, _, send)

    async def ask() -> bytes:
        server = _Server(note, lambda: None, lambda: None)
        async with listening(server._answer) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            hidden = b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
            writer.write(_POST + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(hidden) + hidden)
            said = await reader.read()
            writer.close()
            return said

    said = asyncio.run(ask())
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert asked == []
