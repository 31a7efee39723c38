"""One round trip a decision, whatever is decided: counted by what the server's MONITOR shows of the wire."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headway import AsyncLimiter, Limit, Limiter
from servers import Server

LIMITS = (
    Limit("gcra", "500 per 2s", by="id"),
    Limit("thirds", "300 per 7s", by="ip"),
    Limit("queue", "500 per 2s", by="id", algorithm="leaky-bucket-queue"),
    Limit("fixed", "500 per 20s", by="ip", algorithm="fixed-window"),
    Limit("anchored", "500 per 20s", algorithm="anchored-window"),
    Limit("sliding", "500 per 20s", by="id", algorithm="sliding-window"),
    Limit("log", "500 per 20s", by="id", algorithm="sliding-log"),
    Limit("daily", "500/day in Europe/Berlin", by="id"),
    Limit("weekly", "500/week in UTC", by="ip"),
    Limit("shadow", "1 per 20s", by="id", shadow=True),
)
WHO = {"id": "k", "ip": "192.0.2.1"}


@contextmanager
def watched(server: Server) -> Iterator[Callable[[], list[str]]]:
    """What clients have sent to the server since the last look; commands within scripts are not among it."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as monitor:
        monitor.sendall(b"*1\r\n$7\r\nMONITOR\r\n")
        assert monitor.recv(5) == b"+OK\r\n"
        seen = b""
        looks = 0

        def look() -> list[str]:
            nonlocal seen, looks
            looks += 1
            mark = f"look {looks}".encode()
            server.ask(b"ECHO", mark)
            while mark not in seen:
                seen += monitor.recv(65536)
            told, seen = seen[: seen.index(mark)], b""
            found = [
                re.findall(r'\] "(\w+)"', line) for line in told.decode("latin-1").split("\r\n") if " lua] " not in line
            ]
            return [names[0].upper() for names in found if names and names[0].upper() != "ECHO"]

        yield look


def test_each_call_of_a_limiter_is_one_command(server: Server) -> None:
    """Hits, peeks, header fields, partial grants, reservations, refunds and resets over ten limits: one command each."""
    limiter = Limiter(*LIMITS, store=server.url + "&refusal_cache=0")
    limiter.refund(limiter.hit(WHO))  # both scripts are loaded
    kept: list[Any] = []
    steps: list[tuple[str, Callable[[], object]]] = [
        ("EVALSHA", lambda: limiter.hit(WHO)),
        ("EVALSHA", lambda: limiter.hit(WHO, cost=3).headers()),
        ("EVALSHA", lambda: limiter.hit(WHO, cost={"gcra": 2, "daily": 5})),
        ("EVALSHA", lambda: limiter.hit(WHO, cost=501).sentence()),
        ("EVALSHA", lambda: limiter.hit(WHO, cost=0)),
        ("EVALSHA", lambda: limiter.peek(WHO)),
        ("EVALSHA", lambda: limiter.hit(WHO, up_to=7).granted),
        ("EVALSHA", lambda: kept.append(limiter.reserve(WHO, cost=4))),
        ("EVALSHA", lambda: kept[0].commit(6)),
        ("EVALSHA", lambda: kept.append(limiter.hit(WHO))),
        ("EVALSHA", lambda: limiter.refund(kept[1])),
        ("DEL", lambda: limiter.reset(WHO)),
    ]
    with watched(server) as look:
        for number, (command, step) in enumerate(steps):
            step()
            assert look() == [command], f"step {number}"
    limiter.close()


def test_a_leased_place_is_taken_and_released_in_one_command_each(redis: Server) -> None:
    """A concurrency limit beside others is decided in the same call; its release is one more."""
    limiter = Limiter(Limit("held", "5 at once for 1h", by="id"), LIMITS[0], store=redis.url)
    limiter.release(limiter.hit(id="warm"))
    with watched(redis) as look:
        decision = limiter.hit(id="k")
        assert look() == ["EVALSHA"]
        assert limiter.release(decision)
        assert look() == ["EVALSHA"]
    limiter.close()


def test_each_call_of_an_asynchronous_limiter_is_one_command(redis: Server) -> None:
    """So it is with asyncio; and twenty calls at the same time are one or two."""

    async def main() -> None:
        limiter = AsyncLimiter(*LIMITS, store=redis.url + "&refusal_cache=0")
        await limiter.refund(await limiter.hit(WHO))
        with watched(redis) as look:
            (await limiter.hit(WHO)).headers()
            assert look() == ["EVALSHA"]
            await limiter.peek(WHO)
            assert look() == ["EVALSHA"]
            reservation = await limiter.reserve(WHO, cost=4)
            assert look() == ["EVALSHA"]
            await reservation.commit(6)
            assert look() == ["EVALSHA"]
            await asyncio.gather(*(limiter.hit(WHO) for _ in range(20)))
            assert look() in (["EVALSHA"], ["EVALSHA"] * 2)
        await limiter.close()

    asyncio.run(main())


@pytest.mark.parametrize("limits", [LIMITS[:1], LIMITS], ids=["one limit", "ten"])
def test_a_lost_script_costs_one_more_command(server: Server, limits: tuple[Limit, ...]) -> None:
    """After SCRIPT FLUSH the call is refused by its name, sent as a text, and decided once."""
    limiter = Limiter(*limits, store=server.url)
    before = limiter.hit(WHO).outcomes["gcra"].remaining
    server.ask(b"SCRIPT", b"FLUSH")
    with watched(server) as look:
        decision = limiter.hit(WHO)
        assert look() in (["EVALSHA", "EVAL"], ["EVALSHA", "EVALSHA", "EVAL"])
        assert before - decision.outcomes["gcra"].remaining <= 1
        limiter.hit(WHO)
        assert look() == ["EVALSHA"]
    limiter.close()
