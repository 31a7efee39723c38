"""``headway replay``: what a limit would have refused, from an access log."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

from headway.analysis.replay import FIELDS, Readable, Replay, check_fields, replay_log
from headway.cli import exit_codes
from headway.core.limit import Algorithm, Limit

__all__ = ["add_parser", "run"]

_NO_LOG: Final = 66  # sysexits' EX_NOINPUT
_ALGORITHMS: Final = tuple(name.value for name in Algorithm if name is not Algorithm.CONCURRENCY)
_EVERYONE: Final = "everyone"
_LONGEST_SHOWN: Final = 80
_BAR: Final = 30
_GZIP_MAGIC: Final = b"\x1f\x8b"
_EXAMPLE: Final = '203.0.113.7 - - [25/Oct/2015:04:11:25 +0100] "GET / HTTP/1.1" 200 512'


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway replay``."""
    parser = commands.add_parser(
        "replay",
        help="say what a limit would have refused, from an access log",
        description="Replay an access log (common or combined format) through a limit, on the log's own clock.",
        epilog="Exit status: 0; 64 for an option that cannot be; 65 for a log in which no line parses or that is no "
        "intact gzip file; 66 for a file that cannot be read.",
    )
    parser.add_argument("log", metavar="LOG", help="a file, also gzip-compressed, or - for the standard input")
    parser.add_argument("--limit", required=True, metavar="QUOTA", help="such as '5 per 60s' or '100/s burst 20'")
    parser.add_argument(
        "--by",
        default="address",
        metavar="FIELD[,FIELD...]",
        help=f"what a counter belongs to: {', '.join(FIELDS)}; the first of several that a request has, such as "
        f"user_or_address; or {_EVERYONE}, for one counter (default: address)",
    )
    parser.add_argument(
        "--algorithm",
        metavar="NAME",
        help=f"how to count: {', '.join(_ALGORITHMS)} (default: gcra; calendar-window for a quota 'in ZONE'); "
        "fixed-window begins at multiples of its period since 1970",
    )
    parser.add_argument(
        "--match",
        metavar="REQUEST",
        help="only requests with this method and exact path, such as 'POST /join_form'; "
        "the query is ignored, * stands for any characters",
    )
    parser.add_argument(
        "--behind", metavar="FIELD", help="count the different values of a field behind each denied key"
    )
    parser.add_argument(
        "--top", type=int, metavar="N", help="list the N keys most denied (default: 5; with --json none)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replay and print; see the epilog for the exit statuses."""
    try:
        if args.top is not None and args.top < 0:
            raise ValueError(f"top is {args.top}; expected a whole number from 0")
        by = () if args.by == _EVERYONE else tuple(name.strip() for name in args.by.split(","))
        limit = Limit("replay", args.limit, by=check_fields(by, "--by"), algorithm=args.algorithm)
        top = args.top if args.top is not None else 5
        with _opened(args.log) as (stream, bar):
            replay = replay_log(stream, limit, match=args.match, behind=args.behind, top=top, progress=bar.show)
    except ValueError as error:
        return _fail(str(error), exit_codes.USAGE)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        return _fail(f"{args.log}: no intact gzip file: {error}", exit_codes.NEVER)
    except OSError as error:
        return _fail(f"{args.log}: cannot be read: {error.strerror or error}", _NO_LOG)
    if not replay.lines:
        print(f"headway replay: {args.log}: is empty", file=sys.stderr)
    for line in replay.first_unparsed:
        print(f"headway replay: {args.log}:{line.number}: {line.problem}", file=sys.stderr)
    if replay.lines and replay.unparsed == replay.lines:
        return _fail(
            f"{args.log}: none of its {replay.lines} lines is in the common or combined log format; expected lines such "
            f"as {_EXAMPLE}",
            exit_codes.NEVER,
        )
    print(json.dumps(_as_json(replay, limit, args)) if args.json else _table(replay, limit, args))
    return exit_codes.OK


def _fail(problem: str, status: int) -> int:
    print(f"headway replay: {problem}", file=sys.stderr)
    return status


def _as_json(replay: Replay, limit: Limit, args: argparse.Namespace) -> dict[str, object]:
    found: dict[str, object] = {
        "requests": replay.requests,
        "unparsed": replay.unparsed,
        "out_of_order": replay.out_of_order,
        "denied": replay.denied,
        "keys": replay.keys,
        "keys_denied": replay.keys_denied,
        "limit": args.limit,
        "algorithm": limit.algorithm.value,
    }
    if args.top is not None or args.behind:
        found["most_denied"] = [
            {"key": dict(zip(limit.by, denied.key, strict=True)), "denied": denied.denied}
            | ({} if denied.behind is None else {"behind": denied.behind})
            for denied in replay.most_denied
        ]
    return found


def _table(replay: Replay, limit: Limit, args: argparse.Namespace) -> str:
    keyed = f"by {', '.join(limit.by)}" if limit.by else "for everyone"
    rows = [
        ("limit", f"{limit.quota} {keyed} ({limit.algorithm.value})"),
        *([("match", args.match)] if args.match is not None else []),
        ("requests", str(replay.requests)),
        ("denied", _share(replay.denied, replay.requests)),
        ("keys", str(replay.keys)),
        ("keys denied", _share(replay.keys_denied, replay.keys)),
        *([("unparsed lines", str(replay.unparsed))] if replay.unparsed else []),
        *(
            [("out of order", f"{replay.out_of_order}, decided at the latest time before")]
            if replay.out_of_order
            else []
        ),
    ]
    lines = [f"{label:<14}  {value}" for label, value in rows]
    if replay.most_denied:
        lines += ["", "most denied"]
        for denied in replay.most_denied:
            behind = "" if denied.behind is None else f"  ({args.behind}: {denied.behind} different)"
            lines.append(f"{denied.denied:>9}  {', '.join(map(_short, denied.key)) or _EVERYONE}{behind}")
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else str(part)


@contextmanager
def _opened(name: str) -> Iterator[tuple[Readable, _Bar]]:
    """The log, decompressed where it begins as gzip does, and a progress bar for it."""
    with _standard_input() if name == "-" else Path(name).open("rb") as raw, _Bar(raw, sys.stderr) as bar:
        packed = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        yield gzip.GzipFile(fileobj=raw) if packed else raw, bar


@contextmanager
def _standard_input() -> Iterator[io.BufferedReader[io.RawIOBase]]:
    raw = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))
    try:
        yield raw
    finally:
        raw.detach()  # it stays open


class _Bar:
    """How far a log has been read, on one line of a terminal that is gone afterwards; nothing where there is no terminal."""

    def __init__(self, raw: BinaryIO, out: TextIO) -> None:
        self._raw = raw
        self._out = out if out.isatty() and os.environ.get("TERM") != "dumb" else None
        self._size = _size(raw) if self._out else 0
        self._due = 0.0

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._out:
            print("\r\x1b[K", end="", file=self._out, flush=True)

    def show(self, lines: int) -> None:
        """Draw it, at most ten times a second."""
        if not self._out or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + 0.1
        text = f"{lines:,} lines"
        if self._size:
            part = min(1.0, self._raw.tell() / self._size)
            text = f"{'█' * int(part * _BAR):░<{_BAR}} {part:4.0%}  {text}"
        print(f"\r{text}\x1b[K", end="", file=self._out, flush=True)


def _size(raw: BinaryIO) -> int:
    """Bytes of a regular file, compressed as they may be; 0 for a pipe, whose end nobody knows."""
    with suppress(OSError):  # no file at all
        found = os.fstat(raw.fileno())
        return found.st_size if stat.S_ISREG(found.st_mode) else 0
    return 0
