"""What is ours in how the service speaks HTTP/1.1: a head that does not come is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from headway.service.uvicorn import _Impatient

_GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def answer(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """An application that says 204."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def heard(*pieces: bytes) -> bytes:
    """All that the server says to these pieces until it closes the connection."""
    config = uvicorn.Config(answer, http=_Impatient, lifespan="off", log_config=None, access_log=False)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: _Impatient(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
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
    monkeypatch.setattr("headway.service.uvicorn._HEAD_WITHIN_S", 0.05)
    assert asyncio.run(heard(*pieces)).count(b"HTTP/1.1 204") == (_GET in pieces)


def test_a_head_in_pieces_is_answered() -> None:
    """As long as it ends in time; and so is the next."""
    assert (
        asyncio.run(heard(_GET[:5], _GET[5:], _GET, b"GET / HTTP/1.1\r\nConnection: close\r\nHost: h\r\n\r\n")).count(
            b"HTTP/1.1 204"
        )
        == 3
    )
