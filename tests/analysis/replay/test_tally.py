"""The few numbers that a replay keeps of each limit, each key and each step of time."""

from __future__ import annotations

import random
from math import ceil

import pytest

from headway.analysis.replay.series import MOST_STEPS, Timeline
from headway.analysis.replay.tally import KeyTally, LimitTally, Spread


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_within_a_sixteenth_above(seed: int) -> None:
    """Count, sum and maximum are exact; a nearest-rank quantile is never below the true one and at most a sixteenth above."""
    chance = random.Random(seed)
    times = sorted(chance.choice((0, 1, 17, chance.randrange(100), chance.randrange(10**12))) for _ in range(500))
    spread = Spread()
    for time in times:
        spread.add(time)
    assert (spread.count, spread.whole, spread.most) == (500, sum(times), times[-1])
    for share in (0.001, 0.01, 0.5, 0.9, 0.99, 1.0):
        true = times[ceil(share * 500) - 1]
        assert true <= spread.quantile(share) <= true * 17 / 16
    assert len(spread._steps) < 900


def test_the_quantile_of_nothing_is_nothing() -> None:
    """A spread without times has none; one time is every quantile of itself."""
    assert Spread().quantile(0.5) == 0
    one = Spread()
    one.add(1_000_000_007)
    assert one.quantile(0.5) == one.quantile(1.0) == 1_000_000_007


def closed(history: list[tuple[int, int | None]]) -> tuple[int, int, int]:
    """(stretches, ns closed, longest) the slow way: the union of the times from each refusal to the end of its wait."""
    parts: list[list[int]] = []
    for now, wait in history:
        end = now + (wait or 0)
        if parts and now <= parts[-1][1]:
            parts[-1][1] = max(parts[-1][1], end)
        else:
            parts.append([now, end])
    lengths = [end - start for start, end in parts]
    return len(parts), sum(lengths), max(lengths)


def test_a_stretch_is_the_time_the_limit_was_closed() -> None:
    """Refusals within a wait belong to one stretch, however many; the next refusal after its end begins another."""
    tally = KeyTally(10)
    for now, wait in ((10, 20), (15, 15), (30, 5), (36, 4), (100, None), (100, None)):
        tally.refuse(now, wait)
    assert (tally.refused, tally.first, tally.last, tally.longest_told, tally.never) == (6, 10, 100, 20, 2)
    assert (tally.stretches, tally.closed, tally.longest_closed) == (3, 25 + 4 + 0, 25)


@pytest.mark.parametrize("seed", range(20))
def test_stretches_are_the_union_of_the_waits(seed: int) -> None:
    """On random refusals the stretches, their sum and the longest are those of the union of all waits."""
    chance = random.Random(seed)
    now = 0
    history: list[tuple[int, int | None]] = []
    for _ in range(100):
        now += chance.choice((0, 1, 3, 10, 50))
        history.append((now, chance.choice((None, 1, 5, 20, 60))))
    tally = KeyTally(history[0][0])
    for at, wait in history:
        tally.refuse(at, wait)
    assert (tally.stretches, tally.closed, tally.longest_closed) == closed(history)


def test_a_limit_knows_when_it_refused_first_and_last() -> None:
    """Asked, refused, bound and never are counted apart, by key too."""
    tally = LimitTally()
    for key in ("a", "b", "a"):
        tally.ask(key)
    assert (tally.first, tally.last) == (None, None)
    tally.refuse("a", 5, 7, binds=True)
    tally.refuse("b", 9, None, binds=False)
    assert (tally.asked, tally.refused, tally.bound, tally.never, tally.first, tally.last) == (3, 2, 1, 1, 5, 9)
    assert tally.requests == {"a": 2, "b": 1}
    assert (tally.told.count, tally.told.most) == (1, 7)


def test_a_timeline_is_aligned_to_the_clock_and_bounded() -> None:
    """Steps begin at multiples of the step; too many become twice as long, and no count is lost."""
    timeline = Timeline(60, ("requests", "refused"))
    for now in (0, 59, 60, 3600):
        timeline.at(now)[0] += 1
    timeline.at(61)[1] += 1
    assert timeline.rows() == [(0, [2, 0]), (60, [1, 1]), (3600, [1, 0])]
    long = Timeline(1, ("requests",))
    for now in range(5 * MOST_STEPS):
        long.at(now)[0] += 1
    rows = long.rows()
    assert long.step == 8
    assert len(rows) <= MOST_STEPS
    assert sum(counts[0] for _, counts in rows) == 5 * MOST_STEPS
    assert {counts[0] for _, counts in rows} == {8}
