"""The memory store: bounded, forgetting only what has recovered, saying so when it is full."""

from __future__ import annotations

import copy
import logging
import pickle
from fractions import Fraction

import pytest

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import ConfigError, StoreFull
from headway.limiter.limiter import Limiter
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock

A = Limit("a", "1/s", by="id")
B = Limit("b", "1/s", by="id")


def charge(limit: Limit, key: str, cost: int = 1) -> Charge:
    return Charge("n", limit, key, cost)


def sizes(store: MemoryStore) -> tuple[int, int, int]:
    """Keys counted, states held, places in the rings: always the same number."""
    tables = store._tables.values()
    return len(store), sum(len(table.states) for table in tables), sum(len(table.ring) for table in tables)


def test_a_recovered_key_forgotten_to_make_room_for_its_own_bill_is_not_lost_to_the_ring() -> None:
    """A bill whose new key drives out an old key of the same bill leaves both counted, and both forgettable."""
    clock = ManualClock()
    store = MemoryStore(max_keys=2, clock=clock)
    store.advance([charge(B, "old")])
    store.advance([charge(B, "x")])
    clock.advance(2)
    assert store.advance([charge(A, "new"), charge(B, "old")]).allowed
    assert sizes(store) == (2, 2, 2)


def test_a_key_that_is_there_keeps_its_one_place_when_others_come() -> None:
    """A bill of a new key and one that is there adds one place, whether there is room or not."""
    clock = ManualClock()
    store = MemoryStore(max_keys=3, clock=clock)
    three = Limit("three", "3/s", by="id")
    assert store.advance([charge(three, "there")]).allowed
    assert store.advance([charge(A, "new"), charge(three, "there")]).allowed
    assert sizes(store) == (2, 2, 2)
    assert store.advance([charge(three, "there"), charge(A, "newer")]).allowed
    assert sizes(store) == (3, 3, 3)


def test_three_times_as_many_keys_as_there_is_room_for_never_exceed_it() -> None:
    """Distinct keys that recover as fast as they come are held in ``max_keys`` places, one ring place each."""
    clock = ManualClock()
    store = MemoryStore(max_keys=100, clock=clock)
    for number in range(300):
        clock.advance(Fraction(1, 50))
        assert store.advance([charge(A, f"k{number}"), charge(B, f"k{number % 7}", cost=0)]).allowed
        held, states, places = sizes(store)
        assert held == states == places <= 100
    assert store.full_count == 0
    clock.advance(10)
    for number in range(200):
        store.advance([charge(A, f"later{number}")])
        clock.advance(1)
    assert len(store) <= 2, "recovered keys go by themselves, a few with each new key"


def test_resets_and_returns_leave_no_place_behind() -> None:
    """A key that is reset and used again a thousand times has one state and one place in the ring."""
    store = MemoryStore(max_keys=10, clock=ManualClock())
    for _ in range(1000):
        assert store.advance([charge(A, "k")]).allowed
        store.reset([charge(A, "k"), charge(B, "never used")])
    assert sizes(store) == (1, 1, 1)


def test_a_full_store_forgets_no_key_that_still_owes() -> None:
    """With room for ten spent keys, newcomers raise ``StoreFull`` and the ten stay refused; recovered, they make room."""
    clock = ManualClock()
    store = MemoryStore(max_keys=10, clock=clock)
    for number in range(10):
        assert store.advance([charge(A, f"k{number}")]).allowed
    for number in range(500):
        with pytest.raises(StoreFull, match=r"holds 10 keys that still owe \(max_keys=10\)"):
            store.advance([charge(A, f"new{number}")])
    assert store.full_count == 500
    assert not any(store.advance([charge(A, f"k{number}")]).allowed for number in range(10))
    assert sizes(store) == (10, 10, 10)
    clock.advance(1)
    assert store.advance([charge(A, "new")]).allowed


def test_a_large_store_that_was_full_for_long_takes_new_keys_as_soon_as_old_ones_have_recovered() -> None:
    """However many were turned away before."""
    clock = ManualClock()
    store = MemoryStore(max_keys=20_000, clock=clock)
    short, long = Limit("short", "1/s", by="id"), Limit("long", "1/hour", by="id")
    store.advance([charge(short, f"s{number}") for number in range(200)])
    store.advance([charge(long, f"l{number}") for number in range(19_800)])
    for number in range(100):
        with pytest.raises(StoreFull):
            store.advance([charge(long, f"new{number}")])
    clock.advance(2)
    taken = 0
    for number in range(400):
        try:
            store.advance([charge(long, f"new{number}")])
            taken += 1
        except StoreFull:
            pass
    assert taken == 200
    assert len(store) == 20_000
    clock.advance(3600)
    store.advance([charge(long, "one more")])


def test_a_full_store_writes_nothing_of_a_bill_that_has_a_new_key() -> None:
    """All or nothing holds for room too: the old key of the same bill is not charged."""
    store = MemoryStore(max_keys=1, clock=ManualClock())
    three = Limit("three", "3/s", by="id")
    assert store.advance([charge(three, "old")]).allowed
    with pytest.raises(StoreFull):
        store.advance([charge(three, "old"), charge(A, "new")])
    assert store.advance([charge(three, "old", cost=0)]).outcomes[0].remaining == 2


def test_a_full_store_logs_once_a_minute_and_counts_every_time(caplog: pytest.LogCaptureFixture) -> None:
    """However many newcomers are turned away, one line a minute says so, with the count."""
    clock = ManualClock()
    store = MemoryStore(max_keys=1, clock=clock)
    hour = Limit("hour", "1/hour", by="id")
    store.advance([charge(hour, "old")])
    with caplog.at_level(logging.WARNING, logger="headway.stores.memory"):
        for _ in range(130):
            with pytest.raises(StoreFull):
                store.advance([charge(hour, "new")])
            clock.advance(1)
    assert [record.args[-1] for record in caplog.records] == [1, 61, 121]  # type: ignore[index]
    assert store.full_count == 130


@pytest.mark.parametrize(
    ("mode", "allowed"), [("deny", [False] * 4), ("allow", [True] * 4), ("local", [True, True, False, False])]
)
def test_what_a_full_store_means_is_the_limits_choice(mode: str, allowed: list[bool]) -> None:
    """``deny`` turns newcomers away, ``allow`` lets them pass, ``local`` counts them apart; each says that it is degraded."""
    clock = ManualClock()
    limiter = Limiter(Limit("l", "2/hour", by="id", on_store_failure=mode), store=MemoryStore(max_keys=1, clock=clock))
    limiter.hit(id="old", cost=2)
    decisions = [limiter.hit(id="new") for _ in range(4)]
    assert [decision.allowed for decision in decisions] == allowed
    assert all("a new key has no place" in (decision.degraded or "") for decision in decisions)
    assert limiter.hit(id="old").degraded is None
    assert not limiter.hit(id="old").allowed


def test_a_blocked_limit_forgets_nothing_that_an_earlier_quota_left() -> None:
    """A quota set to 0 for an hour and back finds the state it left, although the store ran full in between."""
    clock = ManualClock()
    store = MemoryStore(max_keys=2, clock=clock)
    day, blocked = Limit("l", "1/day", by="id"), Limit("l", "0/day", by="id")
    assert store.advance([charge(day, "k")]).allowed
    assert not store.advance([charge(blocked, "k")]).allowed
    store.advance([charge(A, "x")])
    clock.advance(3600)
    assert store.advance([charge(A, "y")]).allowed, "x has recovered and makes room"
    assert not store.advance([charge(day, "k")]).allowed


def test_a_copy_starts_empty() -> None:
    """Pickled or copied, a store keeps its bound and none of its state: it is another memory."""
    store = MemoryStore(max_keys=7)
    store.advance([charge(A, "k")])
    for twin in (pickle.loads(pickle.dumps(store)), copy.copy(store)):
        assert twin.max_keys == 7
        assert len(twin) == 0
        assert twin.advance([charge(A, "k")]).allowed


def test_close_forgets_everything_and_the_store_goes_on() -> None:
    """After ``close`` (twice) the store is as new, also for a limiter made before."""
    store = MemoryStore(clock=ManualClock())
    limiter = Limiter(A, store=store)
    assert limiter.hit(id="k").allowed
    store.close()
    store.close()
    assert sizes(store) == (0, 0, 0)
    assert limiter.hit(id="k").allowed
    assert not limiter.hit(id="k").allowed
    assert sizes(store) == (1, 1, 1)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None, "10"])
def test_a_bound_that_cannot_be_right_is_named(bad: object) -> None:
    """``max_keys`` is a whole number from 1; the error says so and shows what was given."""
    with pytest.raises(ConfigError, match=r"max_keys is .*; expected a whole number from 1"):
        MemoryStore(max_keys=bad)  # type: ignore[arg-type]
