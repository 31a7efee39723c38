"""Ctrl-C in long work ends the reading, not the report."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from headway.cli.interrupt import Interruptible


def ctrl_c() -> None:
    """What the terminal does."""
    signal.raise_signal(signal.SIGINT)


def test_while_nothing_is_read_it_is_remembered() -> None:
    """The work under way goes on; what is read after it is nothing, as at the end of a log."""
    with Interruptible() as interrupt:
        assert interrupt.read(lambda size: b"x" * size, 3) == b"xxx"
        ctrl_c()
        assert interrupt.stopped
        assert interrupt.read(lambda size: b"x" * size, 3) == b""
        assert list(interrupt.blocks([1, 2])) == []


def test_a_read_that_waits_is_ended() -> None:
    """A pipe that nobody writes to does not keep the report back."""

    def waits(_: int) -> bytes:
        ctrl_c()
        raise AssertionError("the read was not ended")

    with Interruptible() as interrupt:
        assert interrupt.read(waits, 1) == b""
        assert interrupt.stopped


def test_blocks_end_where_it_comes() -> None:
    """What was read before is whole; the block that was being read is left out."""

    def blocks() -> Iterator[int]:
        yield 1
        yield 2
        ctrl_c()
        yield 3

    with Interruptible() as interrupt:
        assert list(interrupt.blocks(blocks())) == [1, 2]
        assert interrupt.stopped


def test_a_second_one_ends_everything() -> None:
    """Who presses it twice does not want the report either."""
    with Interruptible(), pytest.raises(KeyboardInterrupt):
        ctrl_c()
        ctrl_c()


def test_what_was_there_before_is_there_again() -> None:
    """After the work Ctrl-C does what it did."""
    before = signal.getsignal(signal.SIGINT)
    with Interruptible():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_errors_of_reading_pass() -> None:
    """Only Ctrl-C is swallowed."""

    def fails(_: int) -> bytes:
        raise OSError("gone")

    with Interruptible() as interrupt, pytest.raises(OSError, match="gone"):
        interrupt.read(fails, 1)


def test_in_another_thread_it_does_nothing() -> None:
    """Signals are the main thread's; work elsewhere just goes on."""
    found: list[bytes] = []

    def work() -> None:
        with Interruptible() as interrupt:
            found.append(interrupt.read(lambda size: b"x" * size, 2))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [b"xx"]
