"""The memory attack of ``benchmarks/memory_attack.py``, in small."""

from __future__ import annotations

import logging
import tracemalloc

import pytest
from benchmarks import memory_attack

from headway import Limit, Limiter, MemoryStore
from headway.testing.clock import ManualClock


@pytest.mark.parametrize("quota", memory_attack.ATTACKS.values())
def test_forty_thousand_keys_neither_grow_a_store_of_two_thousand_nor_free_a_victim(quota: str) -> None:
    """The store stays within its bound at every stage, and everybody who was refused before is refused after it."""
    stages = list(memory_attack.attack(quota, keys=40_000, max_keys=2_000, stages=4))
    assert [row.keys for row, _ in stages] == [10_000, 20_000, 30_000, 40_000]
    assert all(row.held <= 2_000 for row, _ in stages)
    assert [forgotten for _, forgotten in stages] == [0] * 4


def test_keys_that_recover_make_room_as_fast_as_new_ones_come() -> None:
    """With time for each key to recover nothing is ever turned away, and no more is held than is active."""
    clock = ManualClock()
    store = MemoryStore(max_keys=2_000, clock=clock)
    limiter = Limiter(Limit("flood", "5 per 5 s", by="id"), store=store)
    for number in range(40_000):
        assert limiter.hit(id=str(number)).allowed
        clock.advance(ns=1_000_000)
        assert len(store) <= 2_000
    assert store.full_count == 0


@pytest.mark.parametrize("algorithm", ["gcra", "sliding-log", "fixed-window"])
@pytest.mark.parametrize("many", [False, True], ids=["one limit", "two limits"])
def test_long_keys_do_not_fill_the_memory(algorithm: str, many: bool) -> None:
    """A hundred keys of 20 to 100 KB, in every shape a key has, take no more room than a hundred short ones."""
    store = MemoryStore(clock=ManualClock())
    limits = [Limit("a", "2 per hour", by="id", algorithm=algorithm), Limit("b", "2 per hour", by=("id", "other"))]
    limiter = Limiter(*limits[: 1 + many], store=store)
    tracemalloc.start()
    for number in range(100):
        long = f"{number}" + "x" * 100_000
        values: list[object] = [long, long.encode(), (long, "y"), 10**20_000 + number]
        assert limiter.hit(id=values[number % 4], other="z").allowed
        del long, values
    assert tracemalloc.get_traced_memory()[0] < 1_000_000
    tracemalloc.stop()
    assert len(store) == 100 * (1 + many)


@pytest.mark.parametrize("cost", [1, 2])
def test_a_long_key_is_counted_like_a_short_one(cost: int) -> None:
    """It is refused, given back and reset by whatever way it comes, and another long one is another key."""
    limiter = Limiter(Limit("a", "2 per hour", by="id"), store=MemoryStore(clock=ManualClock()))
    key, other = "x" * 300 + "1", "x" * 300 + "2"
    first = limiter.hit(id=key, cost=cost)
    for _ in range(2 - cost):
        assert limiter.hit(id=key).allowed
    assert not limiter.hit(id=key).allowed
    assert not limiter.peek(id=key).allowed
    assert limiter.hit({"id": other}).allowed
    limiter.refund(first)
    assert limiter.peek(id=key, cost=0).remaining == cost
    limiter.reset(id=other)
    assert limiter.peek(id=other, cost=0).remaining == 2


def test_the_script_says_what_it_found() -> None:
    """A line a stage for both attacks, and 0 as its exit code when nobody was forgotten."""
    said: list[str] = []
    level = logging.getLogger("headway").level
    assert memory_attack.main(["--keys", "4000", "--max-keys", "3000"], said.append) == 0
    assert logging.getLogger("headway").level == level, "the script's quiet outlives it"
    assert len(said) == 22
    assert all("0 victims admitted" in line for line in said if "keys" in line and "held" in line and "p99" in line)
