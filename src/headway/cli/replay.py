"""``headway replay``: what a limit or a policy would have refused, from access logs."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from headway.analysis.figures import counted
from headway.analysis.logs.formats import detect
from headway.analysis.replay import FIELDS, Replay, check_fields, replay_log
from headway.cli import exit_codes
from headway.cli.failing import fail, no_request, unreadable
from headway.cli.interrupt import Interruptible
from headway.cli.log_options import add_columns, add_format
from headway.cli.pictures import add_options
from headway.cli.progress import Progress
from headway.cli.safe import safe
from headway.core.limit import Algorithm, Limit

__all__ = ["add_parser", "run"]

_ALGORITHMS: Final = tuple(name.value for name in Algorithm if name is not Algorithm.CONCURRENCY)
_EVERYONE: Final = "everyone"
_LONGEST_SHOWN: Final = 80
_GZIP_MAGIC: Final = b"\x1f\x8b"
_OTHER_MAGIC: Final = (b"PAR1", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\x00", b"\xff\xfe", b"\xfe\xff")
"""How Parquet, Zstandard, bzip2, xz and UTF-16 begin, of which the last is refused."""
_LOOKED_AT: Final = 256 * 1024
_EXAMPLE: Final = '203.0.113.7 - - [25/Oct/2015:04:11:25 +0100] "GET / HTTP/1.1" 200 512'
_FOR_POLICIES: Final = (
    "policy", "name", "against", "against_name", "map", "set", "obedient", "caller", "series", "refused_status",
    "format", "columns", "order", "plot", "html",
)  # fmt: skip
"""Options that a bare ``--limit`` does without."""


_MORE_FIELDS: Final = frozenset({"host", "api_key", "network", "route"})
"""Fields that only the reader of all formats knows."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway replay``."""
    parser = commands.add_parser(
        "replay",
        help="say what a limit or a policy would have refused, from access logs",
        description="Replay access logs through a limit, or through the policies of a file, on the logs' own clock. "
        "Ctrl-C ends the reading and reports on what was read.",
        epilog=f"{exit_codes.OF_LOGS} 78 for a policy file with problems.",
    )
    parser.add_argument(
        "log", nargs="+", metavar="LOG", help="a file, also compressed, or - for the standard input; several are merged"
    )
    _add_what_decides(parser)
    _add_what_is_asked(parser)
    _add_how_to_read(parser)
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def _add_what_decides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="QUOTA", help="such as '5 per 60s' or '100/s burst 20'")
    parser.add_argument(
        "--by",
        metavar="FIELD[,FIELD...]",
        help=f"of --limit: what a counter belongs to: {', '.join(FIELDS)}; the first of several that a request has, such "
        f"as user_or_address; {', '.join(sorted(_MORE_FIELDS))}, which take longer; or {_EVERYONE}, for one counter "
        "(default: address)",
    )
    parser.add_argument(
        "--algorithm",
        metavar="NAME",
        help=f"of --limit: how to count: {', '.join(_ALGORITHMS)} (default: gcra; calendar-window for a quota "
        "'in ZONE'); fixed-window begins at multiples of its period since 1970",
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="instead of --limit: a policy file")
    parser.add_argument("--name", metavar="POLICY", help="which of its policies; needed where it has several")
    parser.add_argument(
        "--map",
        action="append",
        metavar="ATTR=FIELD",
        help="where a policy's attribute is in the log: a field, the first that a request has of several "
        "(user_or_address), a column or member of the log by its name, or - if the log does not have it; "
        "known without it: the fields' own names, ip, account, user_agent, route and the like",
    )
    parser.add_argument("--set", action="append", metavar="ATTR=VALUE", help="an attribute that is the same everywhere")
    parser.add_argument("--against", type=Path, metavar="FILE", help="a proposed policy file, to compare with")
    parser.add_argument("--against-name", metavar="POLICY", help="which of its policies (default: as --name)")


def _add_what_is_asked(parser: argparse.ArgumentParser) -> None:
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
        "--obedient",
        nargs="?",
        const="keep",
        choices=("keep", "drop"),
        help="also simulate callers who come back exactly when they are told to: what one sends while it waits follows in "
        "its order (keep, the default), or is dropped as the same request tried again (drop)",
    )
    parser.add_argument("--caller", metavar="FIELD", help="of --obedient: who waits as a whole (default: address)")
    parser.add_argument("--series", metavar="STEP", help="requests and refusals over time, in steps such as '1 min'")
    parser.add_argument(
        "--refused-status",
        metavar="CODE[,CODE...]",
        help="the status codes of the log that are refusals (default: 429)",
    )
    parser.add_argument(
        "--top", type=int, metavar="N", help="list the N keys most denied (default: 5; with --limit and --json none)"
    )


def _add_how_to_read(parser: argparse.ArgumentParser) -> None:
    add_format(parser)
    add_columns(parser)
    parser.add_argument(
        "--order", choices=("time", "given"), help="several logs: merged by time (default), or one after the other"
    )


def run(args: argparse.Namespace) -> int:
    """Replay and print; see the epilog for the exit statuses."""
    if args.limit is None and args.policy is None:
        return fail("replay", "--limit QUOTA or --policy FILE is needed", exit_codes.USAGE)
    wanted = [option for option in _FOR_POLICIES if getattr(args, option) is not None]
    if wanted or len(args.log) > 1 or _MORE_FIELDS & set(re.split(",|_or_", f"{args.by or ''},{args.behind or ''}")):
        return _with_policies(args)
    return _one_limit(args, args.log[0])


def _with_policies(args: argparse.Namespace, standard_input: BinaryIO | None = None) -> int:
    from headway.cli.replay_policies import run_policies  # reads policy files, and all formats of logs

    return run_policies(args, standard_input)


def _one_limit(args: argparse.Namespace, name: str) -> int:
    """The way of a bare ``--limit`` through one log in the common or combined format: several times as fast."""
    try:
        if args.top is not None and args.top < 0:
            raise ValueError(f"top is {args.top}; expected a whole number from 0")
        names = (args.by if args.by is not None else "address").split(",")
        by = () if args.by == _EVERYONE else tuple(name.strip() for name in names)
        limit = Limit("replay", args.limit, by=check_fields(by, "--by"), algorithm=args.algorithm)
        top = args.top if args.top is not None else 5
        with Interruptible() as interrupt, _opened(name) as raw:
            packed, other_format = _looked_at(interrupt.read(raw.peek, _LOOKED_AT))
            if other_format:
                return _with_policies(args, cast(BinaryIO, _Rest(raw)) if name == "-" else None)
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            size = _size(raw)
            with Progress(sys.stderr, "lines", size) as bar:
                replay = replay_log(
                    _Reader(stream, interrupt, pipe=not size),
                    limit,
                    match=args.match,
                    behind=args.behind,
                    top=top,
                    progress=lambda lines: bar.show(lines, raw.tell() if size else None) if bar.due else None,
                    stopped=lambda: interrupt.stopped,
                )
    except ValueError as error:
        return fail("replay", str(error), exit_codes.USAGE)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        return fail("replay", f"{name}: no intact gzip file: {error}", exit_codes.CONTENT)
    except OSError as error:
        return unreadable("replay", error, name)
    for line in replay.first_unparsed:
        print(safe(f"headway replay: {name}:{line.number}: {line.problem}"), file=sys.stderr)
    if replay.lines and replay.unparsed == replay.lines:
        none = "its only line is not" if replay.lines == 1 else f"none of its {replay.lines:,} lines is"
        return fail(
            "replay",
            f"{name}: {none} in the common or combined log format; expected lines such as {_EXAMPLE}",
            exit_codes.CONTENT,
        )
    if not replay.requests and not replay.partial:
        return no_request("replay", [name], replay.lines, replay.unparsed, args.match)
    if replay.partial:
        stopped = counted(replay.lines, "line")
        print(f"headway replay: stopped after {stopped}; this is not the whole log", file=sys.stderr)
    print(json.dumps(_as_json(replay, limit, args)) if args.json else _table(replay, limit, args))
    return exit_codes.INTERRUPTED if replay.partial else exit_codes.OK


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
    if replay.partial:
        found |= {"partial": True, "lines": replay.lines}
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
        *([("not the whole", f"stopped after {counted(replay.lines, 'line')}")] if replay.partial else []),
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


class _Reader:
    """A stream that ends where Ctrl-C comes; a pipe's lines are read as they come, so that none is lost then."""

    def __init__(self, stream: io.BufferedReader[Any] | gzip.GzipFile, interrupt: Interruptible, *, pipe: bool) -> None:
        self._read = stream.read1 if pipe else stream.read
        self._interrupt = interrupt

    def read(self, size: int, /) -> bytes:
        return self._interrupt.read(self._read, size)


class _Rest(io.RawIOBase):
    """A stream with what was looked at already, for a reader that has a buffer of its own."""

    def __init__(self, looked_at: io.BufferedReader[Any]) -> None:
        self._looked_at = looked_at

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        found = self._looked_at.read1(len(into))
        into[: len(found)] = found
        return len(found)


@contextmanager
def _opened(name: str) -> Iterator[io.BufferedReader[Any]]:
    if name != "-":
        with Path(name).open("rb", buffering=_LOOKED_AT) as file:
            yield cast("io.BufferedReader[Any]", file)
        return
    raw = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer), _LOOKED_AT)
    try:
        yield raw
    finally:
        raw.detach()  # it stays open


def _looked_at(beginning: bytes) -> tuple[bool, bool]:
    """Whether a log is compressed by gzip, and whether it is in a known format other than common and combined."""
    packed = beginning.startswith(_GZIP_MAGIC)
    if packed:
        with suppress(zlib.error):  # a damaged one says so when it is read
            beginning = zlib.decompressobj(31).decompress(beginning, _LOOKED_AT)
    if beginning.startswith(_OTHER_MAGIC):
        return packed, True
    with suppress(ValueError):  # a format that nobody knows: how many lines do not parse is said
        return packed, detect(beginning, "") != "combined"
    return packed, False


def _size(raw: BinaryIO) -> int:
    """Bytes of a regular file, compressed as they may be; 0 for a pipe, whose end nobody knows."""
    with suppress(OSError):  # no file at all
        found = os.fstat(raw.fileno())
        return found.st_size if stat.S_ISREG(found.st_mode) else 0
    return 0
