"""A pace on a real server: hosts that share nothing but a URL share one budget, its pauses, its lessons and its leases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from headway.client.attempt import Reply
from headway.client.pace import AsyncPace, Pace
from headway.errors import DeadlineTooSoon
from servers import Server, redis_server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, for names that differ."""
    with redis_server("redis-6.2") as running:
        yield running


def test_two_hosts_keep_one_quota(server: Server) -> None:
    """Twelve calls of two paces at 5 a second take at least two seconds; the hour's budget knows of all."""
    one, other = (Pace("5/s; 1000/hour", store=server.url, name="quota") for _ in range(2))
    began = time.monotonic()
    for number in range(12):
        with (one if number % 2 else other).slot():
            pass
    assert time.monotonic() - began >= 2
    assert one.left()["quota:1000/hour"] == other.left()["quota:1000/hour"] == 988
    one.close()
    other.close()


def test_two_hosts_share_pauses_and_lessons(server: Server) -> None:
    """What one is refused the other waits for; what one learns is charged once."""
    one, other = (Pace({"requests": "10/min"}, store=server.url, name="lessons") for _ in range(2))
    one.pause(0.5)
    with pytest.raises(DeadlineTooSoon):
        other.wait(deadline=0.1)
    slots = [other.acquire(), one.acquire()]
    for slot in slots:
        slot.complete(Reply(200, {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "4"}, b"", None))
    assert one.left() == {"lessons:requests": 4}
    one.close()
    other.close()


def test_two_hosts_take_turns(server: Server) -> None:
    """A lease that one holds the other waits for, until it is given back."""
    one, other = (Pace("1 at once for 30 s", store=server.url, name="turns") for _ in range(2))
    with one.slot(), pytest.raises(DeadlineTooSoon):
        other.acquire(deadline=0.1)
    other.acquire(deadline=1).complete()
    one.close()
    other.close()


def test_the_asynchronous_twin_shares_with_both(server: Server) -> None:
    """One URL, one name, one budget, with and without ``await``."""
    plain = Pace("5/min", store=server.url, name="twins")
    plain.wait()

    async def main() -> dict[str, int]:
        async with AsyncPace("5/min", store=server.url, name="twins") as twin:
            await twin.wait()
            return await twin.left()

    assert asyncio.run(main()) == plain.left() == {"twins:5/minute": 3}
    plain.close()
