"""What is known of a server's clock: never so much that a call would be done after its caller has gone."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from headway.stores.redis.settings import Node, Settings
from headway.stores.redis.topology import Topology

NODE = Node("h", 1)
waits = st.integers(0, 100_000)


class Clocks:
    """Ours in seconds, and a server's that is ahead by some microseconds."""

    def __init__(self, ahead: int) -> None:
        self.us = 5_000_000
        self.ahead = ahead

    def ours(self) -> float:
        return self.us / 1e6


@given(
    ahead=st.integers(-(10**12), 2 * 10**15), trips=st.lists(st.tuples(waits, waits, waits), min_size=1, max_size=12)
)
def test_a_call_is_never_awaited_longer_than_its_caller_does(ahead: int, trips: list[tuple[int, int, int]]) -> None:
    """However long trips take, the server is told no instant after the deadline, and none long before it."""
    clocks = Clocks(ahead)
    topology = Topology(Settings("single", (NODE,)), clocks.ours, 0.1)
    assert topology.awaited(NODE) == struct.pack("<d", 0)
    for there, back, idle in trips:
        sent = clocks.ours()
        clocks.us += there
        told = clocks.us + ahead
        clocks.us += back
        topology.heard(NODE, sent, told)
        (awaited,) = struct.unpack("<d", topology.awaited(NODE))
        until = clocks.us + ahead + 100_000
        quickest = min(way for _, way, _ in trips[: trips.index((there, back, idle)) + 1])
        assert until - quickest - 2 <= awaited <= until + 2
        clocks.us += idle


def test_a_servers_clock_that_is_set_is_followed() -> None:
    """After a step forward or back the next answer puts it right."""
    clocks = Clocks(0)
    topology = Topology(Settings("single", (NODE,)), clocks.ours, 0.1)
    for ahead in (10**9, 2 * 10**9, 5 * 10**8, 0):
        topology.heard(NODE, clocks.ours() - 0.001, clocks.us + ahead)
        (awaited,) = struct.unpack("<d", topology.awaited(NODE))
        assert abs(awaited - (clocks.us + ahead + 100_000)) <= 1001
