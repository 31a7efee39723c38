"""What only some transports have: streams, cancellation, timeouts, clients that exist already; and that twins are twins."""

from __future__ import annotations

import ast
import asyncio
import inspect
import threading
import time
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3
from tests.client.transports.server import Answer, Scripted

from headway import MemoryStore
from headway.client import drive, pace, slot, transport_aiohttp, transport_httpx, transport_httpx2, transport_requests
from headway.client.pace import AsyncPace, Pace
from headway.client.retry import Retry
from headway.client.transport_urllib3 import PatientManager
from headway.errors import DeadlineTooSoon, RateLimitedError
from headway.testing import ManualClock

REFUSED = Answer(429, (("Retry-After", "7"),), b"slow down")
STREAM = Answer(200, (("Content-Type", "text/event-stream"),), chunks=(b"one", b"two"))
OK = Answer(200, (), b"done")


def test_a_successful_stream_stays_a_stream(server: Scripted, clock: ManualClock) -> None:
    """After the wait, parts arrive one by one, as the client library hands them out; a refused stream keeps its body."""
    url = server.plan("/", REFUSED, STREAM)
    plain = httpx.HTTPTransport(verify=False)
    with (
        httpx.Client(transport=transport_httpx.PatientTransport(plain, timer=clock)) as client,
        client.stream("GET", url) as response,
    ):
        assert not response.is_stream_consumed
        assert b"".join(response.iter_bytes()) == b"onetwo"
    server.plan("/", REFUSED, STREAM)
    with transport_requests.patient(timer=clock) as session, session.get(url, stream=True) as streamed:
        assert b"".join(streamed.iter_content(3)) == b"onetwo"
    server.plan("/", REFUSED, STREAM)
    patient = PatientManager(timer=clock)
    answer = patient.request("GET", url, preload_content=False)
    assert b"".join(answer.stream(3)) == b"onetwo"
    denied = Answer(403, (), b"forbidden")
    server.plan("/", denied)
    answer = patient.request("GET", url, preload_content=False)
    assert (answer.status, answer.read()) == (403, b"forbidden")
    patient.manager.clear()


def test_aiohttp_streams_too(server: Scripted, clock: ManualClock) -> None:
    """The content of a success is left to be read part by part."""
    url = server.plan("/", REFUSED, STREAM)

    async def main() -> bytes:
        async with (
            aiohttp.ClientSession(middlewares=(transport_aiohttp.patient(timer=clock),)) as session,
            session.get(url) as response,
        ):
            return b"".join([part async for part in response.content.iter_any()])

    assert asyncio.run(main()) == b"onetwo"


def test_compressed_refusals_are_read_and_kept(server: Scripted, clock: ManualClock) -> None:
    """A refusal in gzip is decoded for the decision and for the caller; one that lies about it is no crash."""
    import gzip

    body = gzip.compress(b'{"error": "rate limited", "retry_after": 9}')
    kinds = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    url, start = server.plan("/", Answer(429, kinds, body), OK), clock.now
    plain = httpx.HTTPTransport(verify=False)
    with httpx.Client(transport=transport_httpx.PatientTransport(plain, timer=clock)) as client:
        assert client.get(url).text == "done"
        assert (clock.now - start) / 1e9 >= 9
        server.plan("/", Answer(403, kinds, b"not gzip"))
        with pytest.raises(httpx.DecodingError):
            client.get(url)


@pytest.mark.parametrize("library", ["httpx", "httpx2", "aiohttp"])
def test_a_cancelled_call_gives_back_what_it_holds(library: str, server: Scripted) -> None:
    """A task that is cancelled while it waits for the answer ends its lease; the next call goes at once."""
    late = threading.Event()
    url = server.plan("/", Answer(200, (), b"", late=late), OK)
    held = AsyncPace("1 at once for 60 s", store=MemoryStore())

    async def main() -> None:
        async with _client(library, pace=held) as get:
            task = asyncio.create_task(get(url))
            while not server.seen:  # noqa: ASYNC110  # the server's thread says so
                await asyncio.sleep(0.001)
            with pytest.raises(DeadlineTooSoon):
                await held.wait(deadline=0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            late.set()
            await (await held.acquire(deadline=0)).cancel()

    asyncio.run(main())


def test_a_cancelled_wait_sends_nothing_more(server: Scripted) -> None:
    """A task that is cancelled while it waits to try again has sent one request, and sends no other."""
    url = server.plan("/", Answer(429, (("Retry-After", "60"),)), OK)

    async def main() -> None:
        async with _client("httpx") as get:
            task = asyncio.create_task(get(url))
            while not server.seen:  # noqa: ASYNC110  # the server's thread says so
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert len(server.seen) == 1


def test_timeouts_of_the_client_count_per_attempt(server: Scripted, clock: ManualClock) -> None:
    """A slow answer is the library's own timeout, at once; waits in between are no part of it."""
    late = threading.Event()
    url = server.plan("/", REFUSED, REFUSED, OK)
    options: dict[str, Any] = {"timer": clock}
    plain = httpx.HTTPTransport(verify=False)
    with httpx.Client(transport=transport_httpx.PatientTransport(plain, **options), timeout=5) as client:
        assert client.get(url).text == "done"
        server.plan("/", Answer(late=late))
        with pytest.raises(httpx.ReadTimeout):
            client.get(url, timeout=0.05)
    with transport_requests.patient(**options) as session, pytest.raises(requests.exceptions.ReadTimeout):
        session.get(url, timeout=0.05)
    manager = urllib3.PoolManager()
    with pytest.raises(urllib3.exceptions.HTTPError):
        PatientManager(manager, **options).request("GET", url, timeout=0.05)
    manager.clear()
    late.set()
    while len(server.seen) < 6:  # the next test's requests are counted anew
        time.sleep(0.01)


@pytest.mark.parametrize(("library", "module"), [(httpx, transport_httpx), (httpx2, transport_httpx2)])
def test_a_client_that_exists_gets_patience(library: Any, module: Any, server: Scripted, clock: ManualClock) -> None:
    """An SDK's client keeps its base address, fields, mounts and event hooks; only its transport waits."""
    seen: list[int] = []
    url = server.plan("/", REFUSED, OK)
    client = library.Client(
        base_url=url,
        verify=False,
        headers={"X-Key": "1"},
        event_hooks={"response": [lambda got: seen.append(got.status_code)]},
    )
    with module.patient(client, timer=clock) as patient:
        assert patient is client
        assert patient.get("/").text == "done"
    assert seen == [200]
    assert server.seen[-1].headers["X-Key"] == "1"

    async def main() -> str:
        server.plan("/", REFUSED, OK)
        async with module.patient(library.AsyncClient(verify=False), timer=clock) as asynchronous:
            text: str = (await asynchronous.get(url)).text
            return text

    assert asyncio.run(main()) == "done"


def test_urllib3_does_not_retry_by_itself(server: Scripted, clock: ManualClock) -> None:
    """What urllib3 would do after a status is switched off, also in a caller's own Retry; redirects are followed."""
    for retries in (None, 3, urllib3.Retry(3, status_forcelist=(429,)), False):
        url = server.plan("/", REFUSED, OK)
        server.seen.clear()
        manager = urllib3.PoolManager()
        with pytest.raises(RateLimitedError):
            PatientManager(manager, timer=clock, retry=Retry(attempts=1)).request("GET", url, retries=retries)
        assert len(server.seen) == 1
        manager.clear()


def test_attributes_and_costs_come_from_the_request(server: Scripted, clock: ManualClock) -> None:
    """A function of the request names the key and the cost of its call."""
    url = server.plan("/", OK)
    store = MemoryStore(clock=clock)
    held = Pace({"tokens": "10/min"}, by="account", store=store)

    def attributes(request: httpx.Request) -> dict[str, object]:
        return {"account": request.headers["x-account"], "cost": {"tokens": 6}}

    plain = httpx.HTTPTransport(verify=False)
    transport = transport_httpx.PatientTransport(plain, pace=held, attributes=attributes, timer=clock)
    start = clock.now
    with httpx.Client(transport=transport) as client:
        client.get(url, headers={"x-account": "a"})
        client.get(url, headers={"x-account": "b"})
        assert clock.now == start
        client.get(url, headers={"x-account": "a"})
    assert (clock.now - start) / 1e9 == 60


def test_httpx2_s_transport_is_httpx_s() -> None:
    """The two modules are one text but for the library's name."""
    one, other = (inspect.getsource(module) for module in (transport_httpx, transport_httpx2))
    assert other == one.replace("httpx", "httpx2")


@pytest.mark.parametrize(
    ("module", "name", "different"),
    [
        (drive, "Sender", {"_perform", "_pause"}),
        (pace, "Pace", {"__init__", "slot", "_perform"}),
        (slot, "Slot", {"hold", "_beat"}),
        (transport_httpx, "PatientTransport", {"handle_request"}),
    ],
)
def test_asynchronous_twins_decide_nothing_else(module: Any, name: str, different: set[str]) -> None:
    """Without async and await, every method of the twin is the other's, but for those that perform."""
    plain, twin = _methods(module, name), _methods(module, f"Async{name}")
    assert plain.keys() - different == twin.keys() - different
    for method in plain.keys() - different:
        assert twin[method] == plain[method]


def _methods(module: Any, name: str) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(module))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    methods = {}
    for node in found.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            text = "\n".join(map(ast.unparse, body))
            for word in ("await ", "Async", "async "):
                text = text.replace(word, "")
            for word in ("handle_async_request", "__aenter__", "__aexit__", "aclose"):
                text = text.replace(word, word.replace("_async", "").replace("__a", "__").replace("aclose", "close"))
            methods[_plain(node.name)] = text
    return methods


def _plain(name: str) -> str:
    return name.replace("__a", "__").replace("aclose", "close").replace("_async_", "_")


class _client:  # noqa: N801  # used like a function
    """An asynchronous client of a library, as a function that gets a URL."""

    def __init__(self, library: str, **options: Any) -> None:
        self.library = library
        self.options = options

    async def __aenter__(self) -> Any:
        if self.library == "aiohttp":
            self.client: Any = aiohttp.ClientSession(middlewares=(transport_aiohttp.patient(**self.options),))
        else:
            module = {"httpx": transport_httpx, "httpx2": transport_httpx2}[self.library]
            made = {"httpx": httpx, "httpx2": httpx2}[self.library]
            self.client = module.patient(made.AsyncClient(verify=False), **self.options)
        return self.client.get

    async def __aexit__(self, *_: object) -> None:
        await (self.client.close() if self.library == "aiohttp" else self.client.aclose())
