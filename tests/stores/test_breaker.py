"""The breaker: opens after repeated failures, lets one call try now and then, says so once an outage."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

import pytest

from headway.errors import StoreUnavailable
from headway.stores.breaker import Breaker
from headway.testing.clock import ManualClock


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    return Breaker("store x", ticks=lambda: clock.now / 1e9)


def outage(breaker: Breaker) -> None:
    for _ in range(3):
        breaker.enter()
        breaker.failed(OSError("no route"))


def test_it_opens_after_three_failures_in_a_row_and_not_before(breaker: Breaker) -> None:
    """Two failures, a success, two failures: closed; a third in a row: open, and the message says why."""
    for _ in range(2):
        breaker.failed(OSError("a"))
    breaker.succeeded()
    for _ in range(2):
        breaker.failed(OSError("b"))
    breaker.enter()
    breaker.failed(OSError("no route"))
    with pytest.raises(StoreUnavailable, match=r"store x is away \(no route\); it is tried again every 1 s"):
        breaker.enter()


def test_one_call_a_pause_tries(breaker: Breaker, clock: ManualClock) -> None:
    """After the pause one call is let through, the next is not; what it finds decides."""
    outage(breaker)
    for _ in range(3):
        clock.advance(1)
        breaker.enter()
        with pytest.raises(StoreUnavailable):
            breaker.enter()
        breaker.failed(OSError("still"))
    clock.advance(1)
    breaker.enter()
    breaker.succeeded()
    for _ in range(10):
        breaker.enter()
    assert breaker.outages == 1


def test_one_line_an_outage_and_counters_for_all(
    breaker: Breaker, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand refused calls log nothing more; the end of the outage says how many there were."""
    caplog.set_level(logging.INFO, "headway.stores")
    for number in (1, 2):
        outage(breaker)
        for _ in range(1000):
            with pytest.raises(StoreUnavailable):
                breaker.enter()
        assert breaker.skipped_count == 1000 * number
        clock.advance(1)
        breaker.enter()
        breaker.succeeded()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING", "INFO"]
    assert "on_store_failure decides until it is back" in caplog.messages[0]
    assert [message for message in caplog.messages if "back;" in message] == [
        "store x is back; 1000 calls were not tried"
    ] * 2
    assert (breaker.failed_count, breaker.outages) == (6, 2)


def test_its_name_is_not_said_twice(breaker: Breaker, caplog: pytest.LogCaptureFixture) -> None:
    """An error that begins with the store's name is told without it, in the log and to those who are not let in."""
    for _ in range(3):
        breaker.failed(StoreUnavailable("store x: no route"))
    with pytest.raises(StoreUnavailable, match=r"store x is away \(no route\)"):
        breaker.enter()
    breaker.answered(StoreUnavailable("store x: a key is held"))
    assert caplog.messages == [
        "store x is away: no route; on_store_failure decides until it is back",
        "store x does not decide: a key is held; on_store_failure does",
    ]


def test_of_many_threads_one_tries(breaker: Breaker, clock: ManualClock) -> None:
    """When the pause is over, one of sixteen threads that come at once is let through."""
    outage(breaker)
    clock.advance(1)
    start = threading.Barrier(16)
    let_through: list[int] = []

    def work(number: int) -> None:
        start.wait()
        try:
            breaker.enter()
        except StoreUnavailable:
            return
        let_through.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(let_through) == 1
    assert breaker.skipped_count == 15


def test_an_open_breaker_costs_microseconds() -> None:
    """Ten thousand calls that are not tried take less than a hundredth of one deadline each."""
    breaker = Breaker("store x", pause=3600)
    outage(breaker)
    begin = time.perf_counter()
    for _ in range(10_000):
        with pytest.raises(StoreUnavailable):
            breaker.enter()
    assert (time.perf_counter() - begin) / 10_000 < 0.001


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is what is tested
def test_a_child_s_breaker_is_not_locked(breaker: Breaker, clock: ManualClock) -> None:
    """A lock that another thread of the parent held at the fork is not the child's, whichever store the breaker guards."""
    outage(breaker)
    clock.advance(1)
    breaker._lock.acquire()
    pid = os.fork()
    if pid == 0:
        breaker.enter()
        breaker.succeeded()
        os._exit(int(breaker.open))
    breaker._lock.release()
    until = time.monotonic() + 20
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert ended == (pid, 0)
