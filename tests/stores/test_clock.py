"""The clocks: monotonic, anchored to the wall, following only real steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.core.limit import Limit
from headway.core.quota import SECOND
from headway.limiter.limiter import Limiter
from headway.stores.clock import AnchoredClock
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock


class Host:
    """A host's two clocks, moved by hand."""

    def __init__(self) -> None:
        self.ticks = 5 * SECOND
        self.skew = 1_800_000_000 * SECOND

    def monotonic(self) -> int:
        return self.ticks

    def wall(self) -> int:
        return self.ticks + self.skew


def test_a_small_adjustment_of_the_wall_clock_moves_nothing() -> None:
    """NTP slewing by less than a second neither grants nor takes time."""
    host = Host()
    clock = AnchoredClock(host.monotonic, host.wall)
    begin = clock()
    for _ in range(20):
        host.ticks += 2 * SECOND
        host.skew += SECOND // 25
    assert clock() == begin + 40 * SECOND
    host.skew -= 7 * SECOND // 4
    host.ticks += 2 * SECOND
    assert clock() == begin + 42 * SECOND


def test_a_step_of_the_wall_clock_is_followed_within_a_second() -> None:
    """After a resume from sleep or an operator's correction the clock shows the wall's time again."""
    host = Host()
    clock = AnchoredClock(host.monotonic, host.wall)
    clock()
    for step in (3600, -3600, 86_400 * 365, -86_400 * 365):
        host.skew += step * SECOND
        host.ticks += SECOND
        assert clock() == host.wall()


@given(st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(-SECOND // 50, SECOND // 50)), max_size=40))
def test_without_steps_it_never_goes_back(moves: list[tuple[int, int]]) -> None:
    """Whatever small adjustments the wall clock sees, time only goes forward."""
    host = Host()
    clock = AnchoredClock(host.monotonic, host.wall)
    latest = clock()
    for ticks, slew in moves:
        host.ticks += ticks
        host.skew += slew
        now = clock()
        assert now >= latest
        latest = now


def test_the_short_way_through_memory_follows_a_step_too() -> None:
    """The hot path adds up ticks between checks; a wall step is seen by it as by the clock itself."""
    host = Host()
    clock = AnchoredClock(host.monotonic, host.wall)
    limiter = Limiter(Limit("l", "1 per 60s", by="id"), store=MemoryStore(clock=clock))
    assert limiter.hit(id="k").allowed
    assert not limiter.hit(id="k").allowed
    host.ticks += 30 * SECOND
    assert limiter.hit(id="k").retry_after == 30
    host.skew += 29 * SECOND
    host.ticks += 1 * SECOND
    assert limiter.hit(id="k").allowed, "29 s of a step and 31 s of time"
    host.skew -= 10 * 365 * 86_400 * SECOND
    host.ticks += 1 * SECOND
    assert limiter.hit(id="k").retry_after == 60, "capped: nobody is locked out for years"


def test_a_manual_clock_moves_only_when_told() -> None:
    """Forward, back, by seconds, fractions and nanoseconds."""
    clock = ManualClock(100)
    assert clock() == clock() == 100 * SECOND
    assert clock.advance(1.5) == clock() == 101_500_000_000
    assert clock.advance(ns=-1) == 101_499_999_999
    assert clock.advance(-1) == 100_499_999_999
    clock.set(7)
    assert clock() == 7 * SECOND
    clock.now = 3
    assert clock() == 3
