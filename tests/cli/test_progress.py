"""Progress bars."""

from __future__ import annotations

import io

import pytest

from headway.cli import progress
from headway.cli.progress import Progress


class Terminal(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands where the test puts it."""
    now = [100.0]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_bar_is_drawn_and_is_gone_afterwards(seconds: list[float]) -> None:
    """The bar shows the part that is done, the count and what is left, and clears its line at the end."""
    out = Terminal()
    with Progress(out, "lines", whole=200) as bar:
        seconds[0] += 3
        bar.show(1_500, part=50)
        assert out.getvalue().split("\r")[-1] == "███████░░░░░░░░░░░░░░░░░░░░░░░  25%  1,500 lines, 0:09 left\x1b[K"
    assert out.getvalue().endswith("\r\x1b[K")


def test_without_a_whole_there_is_a_count(seconds: list[float]) -> None:
    """Where nobody knows how much there is, only the count is shown."""
    out = Terminal()
    with Progress(out, "lines") as bar:
        bar.show(1_500)
    assert "1,500 lines" in out.getvalue()
    assert "%" not in out.getvalue()


def test_it_is_drawn_ten_times_a_second(seconds: list[float]) -> None:
    """Showing it more often costs nothing: it is drawn at most ten times a second."""
    out = Terminal()
    with Progress(out, "lines", 10) as bar:
        for count in range(1000):
            bar.show(count)
        assert out.getvalue().count("\r") == 1
        seconds[0] += 0.1
        assert bar.due
        bar.show(5)
        assert out.getvalue().count("\r") == 2


def test_it_fits_a_narrow_terminal(seconds: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar is never wider than the terminal, or it would leave lines behind."""
    monkeypatch.setenv("COLUMNS", "20")
    out = Terminal()
    with Progress(out, "lines", 10) as bar:
        bar.show(5)
    assert len(out.getvalue().split("\r")[1].removesuffix("\x1b[K")) < 20


@pytest.mark.parametrize("dumb", [True, False])
def test_nothing_where_there_is_no_terminal(dumb: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a pipe and a dumb terminal see nothing at all."""
    monkeypatch.setenv("TERM", "dumb" if dumb else "xterm")
    out = Terminal() if dumb else io.StringIO()
    with Progress(out, "lines", 10) as bar:
        bar.show(5)
        assert not bar.due
    assert out.getvalue() == ""
