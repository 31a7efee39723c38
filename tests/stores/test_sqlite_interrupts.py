"""Exceptions of signals' handlers in the middle of a decision on SQLite: Celery's soft time limits, Ctrl-C, alarms."""

from __future__ import annotations

import dis
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headway import Limit, Limiter
from headway.stores.sqlite import SqliteStore
from headway.testing import ManualClock

HERE = ("_transact", "roll_back", "work", "decide", "_write")
LIMITS = [Limit("a", "5 per 10s", by="id"), Limit("b", "5 per 10s", by="id", algorithm="sliding-log")]


class Interrupt(Exception):
    """What a signal's handler might raise."""


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Make a call and raise after the so-many-th call that the store makes in it; whether there were so many.

    Between its calls the interpreter looks for signals; between other instructions it does not.
    """
    calls = 0
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal calls
        if frame.f_code.co_name not in HERE or "sqlite" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before, last[frame] = last.get(frame), frame.f_lasti
            if before is not None and dis.opname[frame.f_code.co_code[before]].startswith("CALL"):
                calls += 1
                if calls == at:
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


@pytest.mark.parametrize("limits", [LIMITS[:1], LIMITS], ids=["one limit", "two limits"])
def test_an_interrupt_leaves_the_store_to_others_and_charges_all_or_none(limits: list[Limit], tmp_path: Path) -> None:
    """Wherever it comes: the next decision is made by the store, by another thread too, and no limit was charged alone."""
    for at in range(1, 200):
        store = SqliteStore(tmp_path / f"{at}.db", clock=ManualClock())
        limiter = Limiter(*limits, store=store)
        limiter.hit(id="k")
        more = interrupted(lambda limiter=limiter: limiter.hit(id="k"), at)  # type: ignore[misc]  # bound at once
        found = []
        thread = threading.Thread(target=lambda: found.append(limiter.hit(id="k")))  # noqa: B023  # joined at once
        thread.start()
        thread.join()
        assert found[0].degraded is None, at
        assert len({outcome.remaining for outcome in found[0].outcomes.values()}) == 1, at
        store.close()
        if not more:
            return
    pytest.fail("the decision has no end")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_alarms_in_a_thousand_decisions_close_the_store_to_nobody(tmp_path: Path) -> None:
    """Real ones, a fraction of a millisecond after a decision began."""

    def ring(*_: object) -> None:
        if armed:
            raise Interrupt

    armed = False
    limiter = Limiter(Limit("a", "100000 per day", by="id"), store=SqliteStore(tmp_path / "limits.db"))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for turn in range(1_000):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + turn % 100 * 2e-6)
                for _ in range(8):
                    limiter.hit(id="k")
            except Interrupt:
                pass
            finally:
                armed = False
            assert limiter.hit(id="k").degraded is None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_asks_in_the_middle_of_a_decision_is_refused_at_once(tmp_path: Path) -> None:
    """It would wait for its own thread; what it interrupted is decided as if nothing had happened."""
    inner: list[Any] = []
    clock = ManualClock()

    def ask() -> int:
        if len(inner) == 0:
            inner.append(None)
            inner[0] = limiter.hit(id="k")
        return clock()

    limiter = Limiter(Limit("a", "5 per 10s", by="id"), store=SqliteStore(tmp_path / "limits.db", clock=ask))
    assert limiter.hit(id="k").remaining == 4
    assert "signal's handler" in str(inner[0].degraded)
