"""The memory attack of ``benchmarks/memory_attack.py``, in small."""

from __future__ import annotations

import logging

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


def test_the_script_says_what_it_found() -> None:
    """A line a stage for both attacks, and 0 as its exit code when nobody was forgotten."""
    said: list[str] = []
    level = logging.getLogger("headway").level
    assert memory_attack.main(["--keys", "4000", "--max-keys", "3000"], said.append) == 0
    assert logging.getLogger("headway").level == level, "the script's quiet outlives it"
    assert len(said) == 22
    assert all("0 victims admitted" in line for line in said if "keys" in line and "held" in line and "p99" in line)
