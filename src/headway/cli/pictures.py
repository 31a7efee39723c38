"""``--plot FILE`` and ``--html FILE``, and plots in the terminal: what every command that draws has in common.

A command calls ``add_options``, then ``check`` before its long work, then ``write`` and, for people, ``print_report``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from codecs import lookup
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TextIO

from headway.analysis.figures import Chart, Report
from headway.cli import exit_codes
from headway.cli.failing import unwritable
from headway.errors import ExtraMissing

__all__ = ["add_options", "check", "check_place", "print_report", "put", "write", "written"]

_EXTRA: Final = "pip install 'headway[analysis]'"
_SUFFIXES: Final = (".png", ".svg")
_WIDEST: Final = 100
_HEIGHT_OF_SEVERAL: Final = 220


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--plot`` and ``--html``."""
    parser.add_argument(
        "--plot",
        type=_picture,
        metavar="FILE",
        help=f"write the charts as a picture: FILE ends in .png or .svg (needs {_EXTRA})",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help=f"write a report page that needs nothing else, for a browser (needs {_EXTRA})",
    )


def check(args: argparse.Namespace) -> None:
    """Find out before the work whether the pictures that are asked for can be made.

    Raises:
        ExtraMissing: what draws them is not installed.
        OSError: a folder that is not there, or in the file's place.
    """
    wanted: dict[str, Path | None] = {"--plot": args.plot, "--html": args.html}
    for option, path in wanted.items():
        if path is None:
            continue
        if find_spec("matplotlib") is None:
            raise ExtraMissing(f"{option} {path}", "analysis")
        check_place(option, path)


def check_place(option: str, path: Path) -> None:
    """Find out before the work whether a file can be written there, as far as its folder tells.

    Raises:
        OSError: it cannot; says why.
    """
    if not path.parent.is_dir():
        raise OSError(f"{option} {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise OSError(f"{option} {path}: is a folder; expected a file's name")


def write(report: Report, args: argparse.Namespace) -> None:
    """Write the files that are asked for.

    Raises:
        OSError: a file that cannot be written.
        ValueError: a picture of a report without charts.
    """
    for option, path, content in _contents(report, args):
        put(option, path, content)


def put(option: str, path: Path, content: bytes) -> None:
    """Write a file.

    Raises:
        OSError: it cannot be written; says which option asked for it.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OSError(f"{option} {path}: cannot be written: {error.strerror or error}") from error


def written(command: str, report: Report, args: argparse.Namespace) -> int:
    """Write the files that are asked for, or say why not; the exit code: a report is printed all the same."""
    try:
        write(report, args)
    except (OSError, ValueError) as error:
        return unwritable(command, error)
    return exit_codes.OK


def _contents(report: Report, args: argparse.Namespace) -> list[tuple[str, Path, bytes]]:
    made: list[tuple[str, Path, bytes]] = []
    if args.plot is not None:
        charts = [chart for chart in report.charts if not chart.empty]
        if not charts:
            raise ValueError(f"--plot {args.plot}: there is nothing to draw")
        made.append(("--plot", args.plot, _drawn(report, charts, args.plot.suffix.lower())))
    if args.html is not None:
        from headway.analysis.pictures.html import html_page

        made.append(("--html", args.html, html_page(report).encode()))
    return made


def _drawn(report: Report, charts: list[Chart], suffix: str) -> bytes:
    from headway.analysis.pictures.matplotlib import WIDE, draw_png, draw_svg  # half a second, and only for pictures

    size = WIDE if len(charts) == 1 else (WIDE[0], _HEIGHT_OF_SEVERAL)
    if suffix == ".png":
        return draw_png(charts, size)
    from headway.analysis.pictures.palette import PAPER, dark_style
    from headway.analysis.pictures.svg import restyled

    style = f"@media (prefers-color-scheme: dark){{{dark_style()}}}"
    description = " ".join(f"{chart.title}: {chart.description}" for chart in charts)
    picture = restyled(
        draw_svg(charts, size), title=report.title, description=description, style=style, paper=PAPER[0], name="picture"
    )
    return f"{picture}\n".encode()


def print_report(report: Report, out: TextIO | None = None) -> None:
    """Print a report: with plots where ``out`` is a terminal that can show them, else its words and tables alone."""
    from headway.analysis.pictures.terminal import report_text

    out = sys.stdout if out is None else out
    room = shutil.get_terminal_size().columns if out.isatty() else None
    width = 80 if room is None else min(_WIDEST, room)
    text = report_text(report, width, _plotter(out) if report.charts else None, room)
    print(text if _shows(text, out) else text.encode(_encoding(out), "replace").decode(_encoding(out)), file=out)


def _plotter(out: TextIO) -> Callable[[Chart, int], str] | None:
    """How to draw there; None where ``out`` is no terminal, or one that cannot show it."""
    if not out.isatty() or os.environ.get("TERM") == "dumb" or not _shows("█┤▞─", out):
        return None
    if find_spec("plotext") is None:
        print(f"headway: for plots in the terminal: {_EXTRA}", file=sys.stderr)
        return None
    from headway.analysis.pictures.plotext import plot_text

    return partial(plot_text, colour=not os.environ.get("NO_COLOR"))  # no-color.org: set and not empty


def _shows(text: str, out: TextIO) -> bool:
    try:
        text.encode(_encoding(out))
    except UnicodeEncodeError:
        return False
    return True


def _encoding(out: TextIO) -> str:
    try:
        return lookup(out.encoding or "utf-8").name
    except LookupError:
        return "ascii"


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in _SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} is no picture's name; expected one that ends in .png or .svg")
    return path
