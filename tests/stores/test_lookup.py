"""A name server that is away: no store's caller waits for it beyond the deadline, and no threads pile up."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from headway import AsyncLimiter, Limit, Limiter
from headway.stores import lookup
from servers import free_port, redis_server
from stores.postgres.server import postgres_server
from stores.test_outages import PATIENCE_S

LIMIT = Limit("l", "5 per 365 days", by="id")
URLS = {
    "redis": "redis://store.example:{port}",
    "cluster": "redis+cluster://store.example:{port}",
    "sentinel": "redis+sentinel://store.example:{port}/main",
    "postgres": "postgresql://u:secret@store.example:{port}/db",
}


class Resolver:
    """The system's, which this machine cannot be made to wait for: says nothing until it is let go.

    Attributes:
        asked: the names that it was asked for.
        address: where every name is, once it answers; None: nowhere.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let_go = threading.Event()
        self.address: str | None = None

    def __call__(self, host: str, port: int) -> list[Any]:
        if not lookup.is_name(host):
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self.asked.append(host)
        self.let_go.wait(60)
        if self.address is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return socket.getaddrinfo(self.address, port, type=socket.SOCK_STREAM)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr(lookup, "_asked", made)
    yield made
    made.let_go.set()
    until = time.monotonic() + PATIENCE_S
    while any("looks up" in thread.name for thread in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [thread for thread in threading.enumerate() if "looks up" in thread.name]


def hits(kind: str, url: str, times: int) -> list[Any]:
    if kind == "sync":
        with Limiter(LIMIT, store=url) as limiter:
            return [limiter.hit(id="x") for _ in range(times)]

    async def some() -> list[Any]:
        async with AsyncLimiter(LIMIT, store=url) as limiter:
            return [await limiter.hit(id="x") for _ in range(times)]

    return asyncio.run(some())


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("store", URLS)
def test_a_resolver_that_says_nothing_costs_a_call_its_deadline(store: str, kind: str, resolver: Resolver) -> None:
    """Not half a minute; the calls of one outage share one question, and one thread."""
    begin = time.monotonic()
    decisions = hits(kind, URLS[store].format(port=free_port()) + "?deadline=100ms", 5)
    assert time.monotonic() - begin < 5 * 0.1 + PATIENCE_S
    assert all(not decision.allowed and decision.degraded for decision in decisions)
    assert "secret" not in str(decisions)
    assert resolver.asked == ["store.example"]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("store", URLS)
def test_a_name_that_nobody_knows_is_told(store: str, kind: str, resolver: Resolver) -> None:
    """The reason is the resolver's, with the name."""
    resolver.let_go.set()
    (decision,) = hits(kind, URLS[store].format(port=free_port()) + "?deadline=5s", 1)
    assert "ame or service not known" in decision.degraded
    assert "store.example" in decision.degraded


@pytest.mark.parametrize("store", ["redis", "postgres"])
def test_a_name_that_is_known_again_leads_to_the_store(store: str, resolver: Resolver) -> None:
    """What was asked before is not held against it."""
    with redis_server("redis-6.2") if store == "redis" else postgres_server() as server:
        url = URLS[store].replace("u:secret@", "postgres@").replace("/db", "/postgres").format(port=server.port)
        for kind in ("sync", "async"):
            resolver.let_go.clear()
            assert hits(kind, f"{url}?deadline=100ms", 1)[0].degraded
            resolver.address = "127.0.0.1"
            resolver.let_go.set()
            (decision,) = hits(kind, f"{url}?deadline=20s", 1)
            assert decision.degraded is None


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_address_that_says_nothing_leaves_the_next_one_its_part_of_the_time(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with two addresses; at the first nobody even takes the connection."""
    with redis_server("redis-6.2") as server, ExitStack() as stack:
        silent = stack.enter_context(socket.socket())
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        for _ in range(4):  # as many as it keeps for later: further ones are not answered
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        places = [silent.getsockname(), ("127.0.0.1", server.port)]
        found = [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place) for place in places]
        monkeypatch.setattr(lookup, "_asked", lambda host, port: found)
        (decision,) = hits(kind, "redis://store.example:1?deadline=3s", 1)
        assert decision.degraded is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_does_not_wait_for_its_parent_s_question(resolver: Resolver) -> None:
    """Forked while a thread of the parent asks: the child asks for itself."""
    with pytest.raises(TimeoutError, match=r"store\.example"):
        lookup.addresses_of("store.example", 1, time.monotonic() + 0.05)
    child = os.fork()
    if not child:
        resolver.address = "127.0.0.1"
        resolver.let_go.set()
        found = lookup.addresses_of("store.example", 1, time.monotonic() + PATIENCE_S)
        os._exit(0 if found else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
