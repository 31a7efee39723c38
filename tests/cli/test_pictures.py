"""``--plot``, ``--html`` and plots in the terminal, as every command has them."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from analysis.pictures.examples import BARS, report
from headway.analysis.figures import Axis, Chart, Report, Section, Series
from headway.cli import pictures
from headway.errors import ExtraMissing


def options(*words: str) -> argparse.Namespace:
    """What a command gets."""
    parser = argparse.ArgumentParser("headway", exit_on_error=False)
    pictures.add_options(parser)
    return parser.parse_args(words)


class Terminal(io.StringIO):
    """A terminal of some encoding that remembers."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty columns of a usual terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.SVG", b"<svg "), ("b.svg", b"<svg ")])
def test_a_picture_is_of_the_kind_that_its_name_says(tmp_path: Path, name: str, begins: bytes) -> None:
    """The ending decides, in capitals too."""
    pictures.write(report(), options("--plot", str(tmp_path / name)))
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_an_svg_file_follows_the_reader(tmp_path: Path) -> None:
    """A file of its own has its paper, its dark side and its names in it."""
    pictures.write(report(), options("--plot", str(tmp_path / "a.svg")))
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert "@media (prefers-color-scheme: dark)" in text
    assert '<rect width="720' in text
    assert "<title" in text and "<desc" in text
    assert "url(" not in text and "href" not in text


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.png.txt", ""])
def test_another_kind_is_refused(name: str) -> None:
    """A name that is no picture's is named, with what would be."""
    with pytest.raises(argparse.ArgumentError, match=r"expected one that ends in \.png or \.svg"):
        options("--plot", name)


def test_a_page_and_a_picture_at_once(tmp_path: Path) -> None:
    """Both options may be given; without either nothing is written."""
    args = options("--plot", str(tmp_path / "a.png"), "--html", str(tmp_path / "a.html"))
    pictures.check(args)
    pictures.write(report(), args)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.png"]
    pictures.check(options())
    pictures.write(report(), options())
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not there, a folder instead of a file, and a missing extra are found by the check."""
    with pytest.raises(OSError, match=r"--html .*there is no folder"):
        pictures.check(options("--html", str(tmp_path / "none" / "a.html")))
    with pytest.raises(OSError, match=r"--html .*is a folder"):
        pictures.check(options("--html", str(tmp_path)))
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match=r"--plot a\.png needs an extra .*: pip install 'headway\[analysis\]'"):
        pictures.check(options("--plot", "a.png"))


def test_what_cannot_be_written_in_the_end_is_said(tmp_path: Path) -> None:
    """A file that turns out not to be writable is named with the reason."""
    path = tmp_path / "a.html"
    path.mkdir()
    with pytest.raises(OSError, match=r"--html .*a\.html: cannot be written: Is a directory"):
        pictures.write(report(), options("--html", str(path)))


def test_a_picture_of_nothing_is_refused(tmp_path: Path) -> None:
    """A report without a chart, or with empty ones alone, has no picture, and nothing is written."""
    empty = Chart("c", Axis("x"), Axis("y"), (Series("a", ()),))
    args = options("--plot", str(tmp_path / "a.png"), "--html", str(tmp_path / "a.html"))
    for nothing in (Report("R"), Report("R", (), (Section("S", charts=(empty,)),))):
        with pytest.raises(ValueError, match="there is nothing to draw"):
            pictures.write(nothing, args)
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_plots_and_a_pipe_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plots are drawn on a terminal alone; in colour unless NO_COLOR is set and not empty."""
    shown = Report("R", (), (Section("S", charts=(BARS,)),))
    pipe, screen, plain = io.StringIO(), Terminal(), Terminal()
    pictures.print_report(shown, pipe)
    pictures.print_report(shown, screen)
    monkeypatch.setenv("NO_COLOR", "1")
    pictures.print_report(shown, plain)
    assert pipe.getvalue() == "R\n"
    assert "┌" in screen.getvalue() and "\x1b[38" in screen.getvalue()
    assert "┌" in plain.getvalue() and "\x1b" not in plain.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no-such-encoding"])
def test_a_terminal_that_cannot_show_blocks_gets_none(encoding: str) -> None:
    """Where the encoding has no block characters there are words and tables alone."""
    screen = Terminal(encoding)
    pictures.print_report(Report("R", (), (Section("S", charts=(BARS,)),)), screen)
    assert screen.getvalue() == "R\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_report_can_be_printed_in_any_encoding(encoding: str) -> None:
    """What an encoding lacks becomes a question mark; nothing raises."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding) as out:
        pictures.print_report(report(), out)
        out.flush()
        said = raw.getvalue().decode(encoding)
    assert "Who would have been refused" in said
    assert ("–" in said) == (encoding == "utf-8")


def test_a_dumb_terminal_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM=dumb asks for plain text."""
    monkeypatch.setenv("TERM", "dumb")
    screen = Terminal()
    pictures.print_report(Report("R", (), (Section("S", charts=(BARS,)),)), screen)
    assert screen.getvalue() == "R\n"


def test_a_missing_library_for_plots_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without plotext a terminal gets words and tables, and one line that names the extra; a report without charts none."""
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    pictures.print_report(Report("R", (), (Section("S", charts=(BARS, BARS)),)), Terminal())
    assert capsys.readouterr().err == "headway: for plots in the terminal: pip install 'headway[analysis]'\n"
    pictures.print_report(Report("R"), Terminal())
    assert capsys.readouterr().err == ""
