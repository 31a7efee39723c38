"""The ASGI adapters behind a real uvicorn: HEAD on the wire, streams as they come, handshakes and messages of WebSockets."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from headway import AsyncLimiter, Limit, MemoryStore
from headway.adapters.asgi import RateLimitMiddleware
from headway.adapters.messages import MessageLimits
from headway.adapters.starlette import limit
from headway.testing.clock import ManualClock

PATIENCE_S = 60


@contextmanager
def served(app: Any) -> Iterator[str]:
    """A real server for an application; gives ``127.0.0.1:port``."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = uvicorn.Config(app, log_level="critical", ws="websockets-sansio", ws_ping_interval=None, lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        assert server.started
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listening.close()


def limiter(quota: str, clock: ManualClock, **more: Any) -> AsyncLimiter:
    return AsyncLimiter(Limit("limit", quota, by="address", **more), store=MemoryStore(clock=clock))


def test_head_and_get_on_the_wire(clock: ManualClock) -> None:
    """A refused HEAD leaves the connection in order: its length is GET's, its body is empty, and the next request works."""

    async def hello(request: Any) -> Any:
        return PlainTextResponse("hello")

    app = Starlette(
        routes=[Route("/", hello)], middleware=[Middleware(RateLimitMiddleware, limiter("2 per minute", clock))]
    )
    with served(app) as place, httpx.Client(base_url=f"http://{place}", trust_env=False, timeout=PATIENCE_S) as client:
        assert client.get("/").headers["ratelimit"] == '"limit";r=1;t=30'
        assert client.head("/").status_code == 200
        head, got = client.head("/"), client.get("/")
        assert (head.status_code, head.content, got.status_code) == (429, b"", 429)
        assert head.headers["content-length"] == str(len(got.content))
        assert got.headers["retry-after"] == head.headers["retry-after"] == "30"
        assert client.post("/", content=b"x" * 100_000).status_code == 429


@pytest.mark.parametrize("way", ["middleware", "decorator"])
def test_events_arrive_as_they_are_sent(clock: ManualClock, way: str) -> None:
    """The fields come with the first byte, and each event before the next is made: nothing waits for the end."""
    heard = threading.Event()

    async def events(request: Any) -> Any:
        async def parts() -> Any:
            yield b"data: 1\n\n"
            listened = await asyncio.to_thread(heard.wait, PATIENCE_S)
            yield b"data: 2\n\n" if listened else b"data: nobody listened\n\n"

        return StreamingResponse(parts(), media_type="text/event-stream")

    ask = limiter("1 per minute", clock)
    app = (
        Starlette(routes=[Route("/", events)], middleware=[Middleware(RateLimitMiddleware, ask)])
        if way == "middleware"
        else Starlette(routes=[Route("/", limit(ask)(events))])
    )
    with served(app) as place, httpx.Client(base_url=f"http://{place}", trust_env=False, timeout=PATIENCE_S) as client:
        with client.stream("GET", "/") as response:
            assert response.headers["ratelimit"] == '"limit";r=0;t=60'
            arriving = response.iter_raw()
            assert next(arriving) == b"data: 1\n\n"
            heard.set()
            assert b"".join(arriving) == b"data: 2\n\n"
        assert client.get("/").status_code == 429


def test_a_lease_lasts_as_long_as_its_stream(clock: ManualClock) -> None:
    """A limit on concurrent requests holds while a stream is read, and lets go when the client leaves."""
    go_on = threading.Event()

    async def events(request: Any) -> Any:
        async def parts() -> Any:
            while not go_on.is_set():
                yield b"."
                await asyncio.sleep(0.01)

        return StreamingResponse(parts())

    async def page(request: Any) -> Any:
        return PlainTextResponse("page")

    app = Starlette(
        routes=[Route("/events", events), Route("/", page)],
        middleware=[Middleware(RateLimitMiddleware, limiter("1 at once for 1 hour", clock))],
    )
    with served(app) as place, httpx.Client(base_url=f"http://{place}", trust_env=False, timeout=PATIENCE_S) as client:
        with client.stream("GET", "/events") as response:
            arriving = response.iter_raw()  # which closes the response when nobody holds it any more
            assert next(arriving)
            assert client.get("/").status_code == 429
        deadline = time.monotonic() + PATIENCE_S
        while client.get("/").status_code == 429 and time.monotonic() < deadline:
            time.sleep(0.01)
        go_on.set()
        assert client.get("/").status_code == 200


async def _echo(websocket: Any) -> None:
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


@pytest.mark.parametrize("way", ["middleware", "decorator"])
def test_a_refused_handshake_is_a_whole_429(clock: ManualClock, way: str) -> None:
    """The handshake is refused before the upgrade, with the status, the wait and the problem; an admitted one has the fields."""
    ask = limiter("1 per minute", clock)
    app = (
        Starlette(routes=[WebSocketRoute("/", _echo)], middleware=[Middleware(RateLimitMiddleware, ask)])
        if way == "middleware"
        else Starlette(routes=[WebSocketRoute("/", limit(ask)(_echo))])
    )
    with served(app) as place:
        with connect(f"ws://{place}/", proxy=None, ping_interval=None) as socket:
            if way == "middleware":
                assert socket.response is not None
                assert socket.response.headers["RateLimit"] == '"limit";r=0;t=60'
            socket.send("one")
            assert socket.recv() == "one"
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://{place}/", proxy=None, ping_interval=None)
        response = refused.value.response
        assert response.status_code == 429
        assert response.headers["Retry-After"] == "60"
        assert b'"quota-exceeded' in (response.body or b"") or b"quota-exceeded" in (response.body or b"")
        clock.advance(60)
        with connect(f"ws://{place}/", proxy=None, ping_interval=None) as socket:
            socket.send("two")
            assert socket.recv() == "two"


def test_fs27_messages_are_counted_for_their_sender(clock: ManualClock) -> None:
    """zalando/fastapi-limiter's lesson: one allowance over all sockets of a user, the socket stays open, pings are free."""
    messages = MessageLimits(
        AsyncLimiter(
            Limit("messages", "5 per 10s", by="user", algorithm="sliding-log"), store=MemoryStore(clock=clock)
        ),
        attributes={"user": lambda websocket: websocket.query_params["user"]},
    )

    async def chat(websocket: Any) -> None:
        await websocket.accept()
        async for _ in websocket.iter_text():
            decision = await messages.hit(websocket)
            await websocket.send_text("ok" if decision else f"wait {decision.retry_after:g}")

    with served(Starlette(routes=[WebSocketRoute("/", chat)])) as place:
        address = f"ws://{place}/?user=ann"
        with connect(address, proxy=None) as first, connect(address, proxy=None) as second:

            def say(socket: Any) -> Any:
                socket.ping().wait(PATIENCE_S)
                socket.send("hello")
                return socket.recv(PATIENCE_S)

            assert [say(first) for _ in range(5)] == ["ok"] * 5
            clock.advance(1)
            assert say(second) == "wait 9"
            with connect(f"ws://{place}/?user=bob", proxy=None) as other:
                assert say(other) == "ok"
            clock.advance(9.5)
            assert say(first) == "ok"


@pytest.mark.parametrize("code", [1008, 1013])
def test_a_refused_message_closes_the_socket_by_choice(clock: ManualClock, code: int) -> None:
    """With a close code the socket is closed, and the reason says when to come back."""
    messages = MessageLimits(limiter("1 per minute", clock), close_code=code)

    async def chat(websocket: Any) -> None:
        await websocket.accept()
        async for text in websocket.iter_text():
            if not await messages.hit(websocket):
                break
            await websocket.send_text(text)

    with (
        served(Starlette(routes=[WebSocketRoute("/", chat)])) as place,
        connect(f"ws://{place}/", proxy=None, ping_interval=None) as socket,
    ):
        socket.send("one")
        assert socket.recv(PATIENCE_S) == "one"
        socket.send("two")
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(PATIENCE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == code
        assert closed.value.rcvd.reason == "Too many requests for this address. Try again in 60 seconds."
