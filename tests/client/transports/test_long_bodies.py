"""Bodies that a hostile server makes too long to be read: the beginning says what there is to say, the rest is left."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
import requests
import urllib3
from tests.client.transports.clients import CLIENTS, Ask
from tests.client.transports.server import Answer, Scripted

from headway.client import body as reading
from headway.client import transport_requests
from headway.client.retry import Retry
from headway.client.transport_urllib3 import PatientManager
from headway.errors import RateLimitedError
from headway.testing import ManualClock

AFTER = ("Retry-After", "7")
OK = Answer(200, (), b"done")


class Endless:
    """Parts of a body that come as long as somebody takes them."""

    def __init__(self, part: bytes) -> None:
        self.part = part
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.taken += 1
            yield self.part


@pytest.fixture(params=CLIENTS.values(), ids=CLIENTS)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Each client library in turn."""
    found: Ask = request.param
    return found


def test_a_refusal_that_never_ends_is_waited_out(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Its beginning is read, its connection is closed, and the next attempt is made after the wait that it told."""
    endless = Endless(b"x" * 65_536)
    url = server.plan("/", Answer(429, (AFTER,), chunks=endless), OK)
    start = clock.now
    assert ask("GET", url, timer=clock) == (200, b"done")
    assert clock.now - start >= 7_000_000_000
    assert endless.taken < 500


def test_a_refusal_that_never_ends_is_the_last_word(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Where no further attempt is made, the error says so at once."""
    url = server.plan("/", Answer(429, (AFTER,), chunks=Endless(b"x" * 65_536)))
    with pytest.raises(RateLimitedError) as caught:
        ask("GET", url, timer=clock, retry=Retry(attempts=1))
    assert caught.value.rejection.retry_after == 7


def test_a_long_body_of_an_error_is_the_caller_s(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """An error that is no refusal is handed over with every byte of its body, in one piece or in chunks."""
    body = bytes(range(256)) * 12_000
    url = server.plan("/", Answer(404, (), body), Answer(404, (), chunks=(body[:100_000], body[100_000:])))
    assert ask("GET", url, timer=clock) == (404, body)
    assert ask("GET", url, timer=clock) == (404, body)


def test_a_small_body_that_swells_does_not_fill_the_memory(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A refusal of 300 KB that would be 300 MB when it is decompressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([packer.compress(b"0" * 1_000_000) for _ in range(300)]) + packer.flush()
    url = server.plan("/", Answer(429, (AFTER, ("Content-Encoding", "gzip")), bomb), OK)
    tracemalloc.start()
    assert ask("GET", url, timer=clock) == (200, b"done")
    assert tracemalloc.get_traced_memory()[1] < 80_000_000
    tracemalloc.stop()


def test_a_byte_now_and_then_is_not_waited_for(
    server: Scripted, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that a body may take, what has come of it is enough."""
    monkeypatch.setattr(reading, "_READ_WITHIN_S", 0.0)
    for name in ("httpx", "httpx-async", "httpx2", "httpx2-async", "aiohttp"):
        endless = Endless(b"x")
        url = server.plan("/", Answer(429, (AFTER,), chunks=endless), OK)
        assert CLIENTS[name]("GET", url, timer=clock) == (200, b"done")
        assert endless.taken < 1_000_000


def test_a_long_body_can_be_streamed_on(server: Scripted, clock: ManualClock) -> None:
    """Where the caller streams, it gets the beginning that was read and then the rest; cookies are kept."""
    body = bytes(range(256)) * 12_000
    url = server.plan("/", Answer(404, (("Set-Cookie", "a=b"),), body))
    with transport_requests.patient(requests.Session(), timer=clock) as session:
        session.trust_env = False
        with session.get(url, stream=True) as response:
            assert b"".join(response.iter_content(10_000)) == body
        assert session.cookies.get_dict() == {"a": "b"}
    with urllib3.PoolManager() as manager:
        answer = PatientManager(manager, timer=clock).request("GET", url, preload_content=False)
        assert b"".join(answer.stream(10_000)) == body
