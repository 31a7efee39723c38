"""Ctrl-C in long work: the reading ends, and what is in hand is done as a whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from headway.cli.interrupt import Interruptible


def test_a_block_in_hand_is_done_as_a_whole() -> None:
    """A signal while a block is worked on ends the reading after it, and raises nothing."""
    done = []
    with Interruptible() as ctrl_c:
        for block in ctrl_c.blocks(range(5)):
            if block == 1:
                signal.raise_signal(signal.SIGINT)
            done.append(block)
    assert done == [0, 1]
    assert ctrl_c.stopped


def test_a_read_that_waits_is_ended() -> None:
    """A signal while the next block is waited for ends the reading at once; what came before stays."""

    def waiting() -> Iterator[int]:
        yield 0
        signal.raise_signal(signal.SIGINT)
        yield 1

    with Interruptible() as ctrl_c:
        assert list(ctrl_c.blocks(waiting())) == [0]
    assert ctrl_c.stopped


def test_bytes_end_as_at_the_end_of_a_file() -> None:
    """A read during which the signal comes, and every later one, gives nothing."""

    def read(size: int) -> bytes:
        signal.raise_signal(signal.SIGINT)
        return b"x" * size

    with Interruptible() as ctrl_c:
        assert ctrl_c.read(lambda size: b"x" * size, 3) == b"xxx"
        assert ctrl_c.read(read, 3) == b""
        assert ctrl_c.read(lambda size: b"x" * size, 3) == b""


def test_a_second_signal_ends_the_work() -> None:
    """Somebody who presses twice does not want to wait for the end of a block."""
    done = []
    with pytest.raises(KeyboardInterrupt), Interruptible():
        signal.raise_signal(signal.SIGINT)
        done.append(1)
        signal.raise_signal(signal.SIGINT)
        done.append(2)
    assert done == [1]


def test_the_handler_from_before_is_back() -> None:
    """Afterwards signals act as they did."""
    before = signal.getsignal(signal.SIGINT)
    with Interruptible() as ctrl_c:
        assert list(ctrl_c.blocks([1, 2])) == [1, 2]
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    assert not ctrl_c.stopped


def test_in_another_thread_it_only_reads() -> None:
    """Only the main thread may handle signals; elsewhere blocks just come."""
    found: list[int] = []

    def work() -> None:
        with Interruptible() as ctrl_c:
            found.extend(ctrl_c.blocks([1, 2, 3]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert found == [1, 2, 3]
