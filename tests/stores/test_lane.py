"""The short ways through a memory store, interrupted at every line they have: a lock given back, all or none charged."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from headway import Limit, Limiter, LimitError, MemoryStore
from headway.stores.lane import Lane
from headway.testing import ManualClock

ONE = [Limit("a", "5 per 10s", by="id")]
SEVERAL = [Limit("a", "5 per 10s", by="id"), Limit("b", "1 per 10s", by="id"), Limit("c", "5 per 10s", by="id")]


class Interrupt(BaseException):
    """What a signal's handler might raise."""


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Make a call and raise at the so-many-th line that the lane runs in it; whether there were so many."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.endswith("lane.py"):
            return None
        code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and code != "try:":  # which does nothing, so nothing can come of it
            lines += 1
            if lines == at:
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def is_free(store: MemoryStore) -> bool:
    """Whether another thread gets the store's lock."""
    got = []
    thread = threading.Thread(target=lambda: got.append(store._lock.acquire(timeout=5) and not store._lock.release()))
    thread.start()
    thread.join()
    return got == [True]


def remaining(limiter: Limiter) -> list[int]:
    """What is left of each limit."""
    return [outcome.remaining for outcome in limiter.peek(id="k", cost=0).outcomes.values()]


@pytest.mark.parametrize("limits", [ONE, SEVERAL], ids=["one limit", "several limits"])
@pytest.mark.parametrize("hits", [0, 1, 2], ids=["new keys", "admitted or refused", "again"])
def test_an_interrupt_at_any_line_leaves_the_lock_free_and_charges_all_or_none(limits: list[Limit], hits: int) -> None:
    """Whatever line of the lane a signal's exception comes at, other threads can go on and no limit is charged alone."""
    for at in range(1, 200):
        store = MemoryStore(clock=ManualClock())
        limiter = Limiter(*limits, store=store)
        for _ in range(hits):
            limiter.hit(id="k")
        before = remaining(limiter)
        more = interrupted(lambda limiter=limiter: limiter.hit(id="k"), at)  # type: ignore[misc]  # bound at once
        assert is_free(store), at
        charged = {old - new for old, new in zip(before, remaining(limiter), strict=True)}
        assert charged in ({0}, {1}), at
        if not more:
            break
    else:
        pytest.fail("the lane has no end")


def test_a_cost_that_never_fits_goes_the_long_way() -> None:
    """The short ways say of a cost above the burst what the core says: never, and nothing is charged."""
    for limits in (ONE, SEVERAL):
        limiter = Limiter(*limits, store=MemoryStore(clock=ManualClock()))
        limiter.hit(id="k")
        for cost in (6, 10**30):
            refused = limiter.hit(id="k", cost=cost)
            assert refused.never
            assert refused.outcomes["a"].remaining == 4
    with pytest.raises(LimitError):
        limiter.hit(id="k", cost=-1)


def test_the_ways_are_there_for_what_they_are_for() -> None:
    """GCRA on whole nanoseconds has them; thirds of one, other algorithms and shadow limits do not."""

    def lane(*limits: Limit) -> Lane:
        return MemoryStore().lane("default", limits)

    assert lane(*ONE).one("id") is not None
    assert lane(*SEVERAL).one("id") is None
    assert lane(*SEVERAL).several is not None
    others = [Limit("t", "3/s"), Limit("w", "5/min", algorithm="fixed-window"), Limit("s", "5/min", shadow=True)]
    for limit in others:
        assert lane(limit).one("id") is None
        assert lane(*ONE, limit).several is None
