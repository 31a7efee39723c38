"""``headway compare``: the algorithms beside each other, on a log or on a named pattern of arrivals."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Final

from headway.analysis.access_log import request_matcher
from headway.analysis.compare.contenders import DEFAULT, NAMES, contenders_for
from headway.analysis.compare.measure import Comparing, Comparison
from headway.analysis.compare.patterns import Arrival, Pattern, arrivals_of, explain_pattern
from headway.analysis.compare.report import as_json, report_of
from headway.analysis.figures import counted
from headway.cli import exit_codes, pictures
from headway.cli.failing import fail, no_request, unreadable, unwritable
from headway.cli.interrupt import Interruptible
from headway.cli.log_options import add_columns, add_format, read_columns
from headway.cli.progress import Progress
from headway.cli.safe import safe
from headway.core.quota import SECOND, Quota

if TYPE_CHECKING:
    from headway.analysis.logs.block import Block, Fault

__all__ = ["add_parser", "run"]

_EVERYONE: Final = "everyone"
_FIELDS: Final = ("address", "user", "agent", "method", "path", "status", "referer", "host", "api_key")
_SPANS_A_PERIOD: Final = 5
_SHOWN_FAULTS: Final = 3
_ABSENT: Final = "-"
_PIECE: Final = 2_000


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway compare``."""
    parser = commands.add_parser(
        "compare",
        help="put the algorithms beside each other on one pattern of arrivals",
        description="Compare the algorithms on one pattern of arrivals, from a log or a named one: what each admits over time, "
        "the most in any period, the state it keeps, the waits it tells and whether they hold. All but the drip process decide "
        "as they do live.",
        epilog=exit_codes.OF_LOGS,
    )
    parser.add_argument(
        "--limit", default="10/s", metavar="QUOTA", help="such as '5 per 60s burst 2' (default: %(default)s)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--pattern",
        type=_pattern,
        metavar="NAME",
        help=f"how requests come: {', '.join(Pattern)} (default: {Pattern.WINDOW_EDGE})",
    )
    source.add_argument(
        "--log",
        nargs="+",
        metavar="LOG",
        help="take the arrivals of access logs, of any format; - is the standard input",
    )
    add_format(parser)
    add_columns(parser)
    parser.add_argument(
        "--match",
        metavar="REQUEST",
        help="of a log, only requests with this method and exact path, such as 'POST /login'; the query is ignored, * stands "
        "for any characters",
    )
    parser.add_argument(
        "--by",
        metavar="FIELD",
        help=f"what a counter belongs to: client for a pattern, any of {', '.join(_FIELDS)} for a log, or {_EVERYONE} "
        f"(default: address for a log, client for the pattern {Pattern.GREEDY}, else {_EVERYONE})",
    )
    parser.add_argument(
        "--algorithm",
        action="append",
        metavar="NAME",
        help=f"compare only these, given once for each: {', '.join(NAMES)} (default: {', '.join(DEFAULT)})",
    )
    parser.add_argument(
        "--length", type=int, metavar="N", help="how many periods of the quota a pattern lasts, 1 to 1000 (default: 6)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="shifts a pattern's arrivals a little (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object; times are in seconds")
    pictures.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare and print; see the epilog for the exit statuses."""
    try:
        pictures.check(args)
    except (OSError, ValueError) as error:
        return unwritable("compare", error)
    try:
        quota = Quota.parse(args.limit)
        algorithms = tuple(dict.fromkeys(args.algorithm)) if args.algorithm else DEFAULT
        by = _by(args)
        if args.log is not None:
            return _compare_log(args, quota, algorithms, by)
        pattern = args.pattern or Pattern.WINDOW_EDGE
        periods = 6 if args.length is None else args.length
        end = periods * quota.period_ns
        pause = (end // 3, 2 * end // 3) if pattern is Pattern.DRIP_PAUSE else None
        contenders = contenders_for(quota, algorithms, pause)
        arrivals = arrivals_of(pattern, quota, periods, args.seed or 0)
        comparing = Comparing(quota, contenders, max(1, quota.period_ns // _SPANS_A_PERIOD))
        partial = _feed(comparing, arrivals, by)
        return _tell(
            args, comparing.comparison(partial), f"Pattern {pattern}: {explain_pattern(pattern)}", by, dated=False
        )
    except ValueError as error:
        return fail("compare", str(error), exit_codes.USAGE)


def _by(args: argparse.Namespace) -> str:
    """What a counter belongs to.

    Raises:
        ValueError: a field that there is not, or an option that goes with the other source.
    """
    unused = {"--format": args.format, "--columns": args.columns, "--match": args.match}
    if args.log is not None:
        unused = {"--length": args.length, "--seed": args.seed}
    for option, value in unused.items():
        if value is not None:
            raise ValueError(f"{option} belongs to {'a log' if args.log is None else 'a pattern'}; leave it out")
    natural = "client" if args.pattern is Pattern.GREEDY else _EVERYONE
    known: tuple[str, ...] = ("client", _EVERYONE)
    if args.log is not None:
        natural, known = "address", (*_FIELDS, _EVERYONE)
    by: str = args.by or natural
    if by not in known:
        raise ValueError(f"--by is {by!r}; expected any of {', '.join(known)}")
    return by


def _compare_log(args: argparse.Namespace, quota: Quota, algorithms: tuple[str, ...], by: str) -> int:
    from headway.analysis.logs.formats import format_named
    from headway.analysis.logs.read import read_logs

    if args.format is not None:
        format_named(args.format)
    columns = read_columns(args.columns)
    matches = None if args.match is None else request_matcher(args.match)
    comparing = Comparing(quota, contenders_for(quota, algorithms), min(SECOND, quota.period_ns))
    faults: list[Fault] = []
    lines = unread = 0
    fields = {*(() if by == _EVERYONE else (by,)), *(() if matches is None else ("method", "path"))}
    try:
        with Progress(sys.stderr, "bytes", 1) as bar, Interruptible() as ctrl_c:
            blocks = read_logs(
                args.log,
                fields,
                form=args.format,
                columns=columns,
                progress=lambda done, whole: bar.show(done, done / whole if whole else 0),
            )
            for block in ctrl_c.blocks(blocks):
                lines += block.lines
                unread += len(block.faults)
                faults += block.faults[: _SHOWN_FAULTS - len(faults)]
                for arrival in _arrivals(block, by, matches):
                    comparing.add(arrival.key, arrival.at)
    except (OSError, ValueError) as error:  # what the log is, not what the options are: those are checked by now
        return unreadable("compare", error, args.log[0])
    partial = f"stopped by Ctrl-C after {counted(lines, 'line')}" if ctrl_c.stopped else ""
    for fault in faults:
        print(safe(f"headway compare: {fault.source}:{fault.number}: {fault.problem}"), file=sys.stderr)
    if not comparing.requests and not partial:
        return no_request("compare", args.log, lines, unread, args.match)
    if unread:
        print(f"headway compare: {unread:,} of {counted(lines, 'line')} could not be read", file=sys.stderr)
    which = "" if args.match is None else f", requests {args.match}"
    return _tell(args, comparing.comparison(partial), f"Access log: {', '.join(args.log)}{which}.", by, dated=True)


def _arrivals(block: Block, by: str, matches: Callable[[bytes], bool] | None) -> Iterator[Arrival]:
    times = block.columns["time"]
    keys = [_EVERYONE] * len(times) if by == _EVERYONE else block.columns[by]
    kept: Iterable[bool] = repeat(True, len(times))
    if matches is not None:
        asked = zip(block.columns["method"], block.columns["path"], strict=True)
        kept = (matches(f"{method or _ABSENT} {path or _ABSENT}".encode()) for method, path in asked)
    for at, key, wanted in zip(times, keys, kept, strict=True):
        if wanted:
            yield Arrival(at, _ABSENT if key is None else str(key))


def _feed(comparing: Comparing, arrivals: list[Arrival], by: str) -> str:
    """Put a pattern's arrivals to it; says why it is partial if it is."""
    starts = range(0, len(arrivals), _PIECE)
    with Progress(sys.stderr, "requests", len(arrivals)) as bar, Interruptible() as ctrl_c:
        for start in ctrl_c.blocks(starts):
            for at, key in arrivals[start : start + _PIECE]:
                comparing.add(_EVERYONE if by == _EVERYONE else key, at)
            bar.show(comparing.requests)
    if ctrl_c.stopped:
        return f"stopped by Ctrl-C after {comparing.requests:,} of {counted(len(arrivals), 'request')}"
    return ""


def _tell(args: argparse.Namespace, found: Comparison, source: str, by: str, *, dated: bool) -> int:
    shown = {name: value for name, value in vars(args).items() if name in ("limit", "pattern", "log", "by", "match")}
    made_by = "headway compare " + " ".join(
        f"--{name} {shlex.join(value) if isinstance(value, list) else shlex.quote(str(value))}"
        for name, value in shown.items()
        if value is not None
    )
    report = report_of(found, source, by=by, dated=dated, made_by=made_by)
    code = pictures.written("compare", report, args)
    if args.json:
        print(json.dumps(as_json(found, source, by)))
    else:
        pictures.print_report(report)
    return exit_codes.INTERRUPTED if found.partial else code


def _pattern(text: str) -> Pattern:
    try:
        return Pattern(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no pattern; expected any of {', '.join(Pattern)}") from None
