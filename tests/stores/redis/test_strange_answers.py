"""A server that speaks the protocol and answers what no Redis answers: always a store error, never another, and soon."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from headway import AsyncLimiter, Limit, Limiter, StoreError

ANSWERS = [
    b"+OK\r\n",
    b":1\r\n",
    b"$-1\r\n",
    b"*0\r\n",
    b"*1\r\n:1\r\n",
    b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    b"*2\r\n$1\r\n\xff\r\n$4\r\n1234\r\n",
    b"$3\r\n1 1\r\n",
    b"$6\r\nlate x\r\n",
    b"$4\r\nlate\r\n",
    b"$20\r\n1796068382386235 1 x\r\n",
    b"$22\r\n1796068382386235 1 - - \r\n",
    b"$2\r\n\xff\xfe\r\n",
    b"-\r\n",
    b"-MOVED\r\n",
    b"-MOVED 1 127.0.0.1:abc\r\n",
    b"-ASK 1 127.0.0.1:99999999\r\n",
    b"*1\r\n*3\r\n:0\r\n:99999999\r\n*2\r\n$1\r\nx\r\n:7\r\n",
    b"*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n",
    b"*1\r\n*1\r\n:0\r\n",
    b"*1\r\n" * 2000,
    b"%1\r\n+a\r\n+b\r\n",
    b",nan\r\n",
    b"(9999999999999999999999999\r\n",
]
SEVERAL = [Limit("a", "5/s", by="id"), Limit("b", "5/s", by="id", algorithm="sliding-log"), Limit("c", "5/s")]


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """The port of a server that answers every packet so."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=50)

    def answers(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while connection.recv(65536):
                connection.sendall(answer)

    def accepts() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answers, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accepts, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # who waits for a connection waits no more
        listener.close()


@pytest.mark.parametrize("url", ["redis://{}", "redis+cluster://{}", "redis+sentinel://{}/main"])
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: repr(answer[:24]))
def test_it_is_a_store_error_and_no_other(answer: bytes, url: str) -> None:
    """Of one limit and of several, hit, peeked at, reset and changed, by both limiters: every decision is degraded."""
    with answering(answer) as port:
        where = url.format(f"127.0.0.1:{port}") + "?deadline=100ms"

        async def later(limits: list[Limit]) -> list[object]:
            async with AsyncLimiter(*limits, store=where) as limiter:
                told = [(await limiter.hit(id="x")).degraded, (await limiter.peek(id="x")).degraded]
                with suppress(StoreError):
                    await limiter.reset(id="x")
                return told

        begin = time.monotonic()
        for limits in (SEVERAL[:1], SEVERAL):
            with Limiter(*limits, store=where) as limiter:
                told: list[object] = [limiter.hit(id="x").degraded, limiter.peek(id="x").degraded]
                with suppress(StoreError):
                    limiter.reset(id="x")
                with suppress(StoreError):
                    limiter.change_quota("a", "7/s", keep="proportional")
            assert None not in (*told, *asyncio.run(later(limits)))
        assert time.monotonic() - begin < 8
