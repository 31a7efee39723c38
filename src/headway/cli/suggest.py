"""``headway suggest``: limits that fit the traffic of access logs, and whom they would have refused."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headway.analysis.logs.formats import format_named
from headway.analysis.logs.read import ORDERS, read_logs
from headway.analysis.suggest.goals import DEFAULT_GOALS, read_goal
from headway.cli import exit_codes, pictures
from headway.cli.failing import fail, no_request, unreadable, unwritable
from headway.cli.log_options import add_columns, add_format, read_columns
from headway.cli.progress import Progress
from headway.cli.safe import safe
from headway.errors import ExtraMissing

if TYPE_CHECKING:
    from headway.analysis.suggest.suggestion import Suggestion

__all__ = ["add_parser", "run"]

_KINDS: Final = ("client", "shared", "crawler", "bot", "probe")
_EXTRA: Final = "pip install 'headway[analysis]'"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway suggest``."""
    parser = commands.add_parser(
        "suggest",
        help="propose limits from access logs, and say whom they would refuse",
        description="Read access logs: how many requests clients send, who they are, which limits fit a goal, and whom "
        f"these would have refused and for how long. Needs the extra: {_EXTRA}.",
        epilog=exit_codes.OF_LOGS,
    )
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="files, compressed (.gz, .zst, .bz2, .xz) or not, or - for the standard input",
    )
    add_format(parser)
    add_columns(parser)
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default="time",
        help="how several logs go together: merged by time (default), or one after the other as given; matters only for requests of one instant",
    )
    parser.add_argument(
        "--by",
        metavar="KEY",
        help="what a client is: address, network (the address, or for IPv6 its /64), user, api_key, or the first that a "
        "request has of several, such as user_or_network (default: API keys or users where most requests have them, else "
        "networks)",
    )
    parser.add_argument(
        "--match",
        metavar="REQUEST",
        help="limit only requests with this method and exact path, such as 'POST /login'; the query is ignored, * stands "
        "for any characters",
    )
    parser.add_argument(
        "--goal",
        action="append",
        metavar="GOAL",
        help="what limits are for: no-honest-client-refused, total=N/s, stop-top=P%%; may be given several times "
        f"(default: all three: {', '.join(map(str, DEFAULT_GOALS)).replace('%', '%%')}; the total is what 99 %% of the seconds stay below)",
    )
    parser.add_argument(
        "--honest",
        default="client,shared",
        metavar="KIND[,KIND...]",
        help=f"whom no-honest-client-refused spares: {', '.join(_KINDS)} (default: client,shared)",
    )
    parser.add_argument("--top", type=int, metavar="N", help="list N clients each (default: 10; with --json all)")
    parser.add_argument("--toml", type=Path, metavar="FILE", help="write the proposals as a policy file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    pictures.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Suggest and print; see the epilog for the exit statuses."""
    try:
        from headway.analysis.suggest.suggestion import check_by, suggest
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "headway":
            raise
        return fail("suggest", str(ExtraMissing("this command", "analysis")), exit_codes.UNAVAILABLE)
    from headway.analysis.suggest.duckdb_numpy_requests import NEEDED
    from headway.analysis.suggest.kinds import Kind

    try:
        pictures.check(args)
        if args.toml is not None:
            pictures.check_place("--toml", args.toml)
    except (OSError, ValueError) as error:
        return unwritable("suggest", error)
    try:
        goals = tuple(map(read_goal, args.goal)) if args.goal else DEFAULT_GOALS
        by = check_by(args.by) if args.by else None
        honest = tuple(Kind(_kind(name)) for name in args.honest.split(","))
        columns = read_columns(args.columns)
        form = format_named(args.format) if args.format else None
        if args.top is not None and args.top < 0:
            raise ValueError(f"--top is {args.top}; expected a whole number from 0")
        if args.match is not None:
            from headway.analysis.access_log import request_matcher

            request_matcher(args.match)
    except ValueError as error:
        return fail("suggest", str(error), exit_codes.USAGE)
    most = args.top if args.top is not None else None if args.json else 10
    try:
        with tempfile.TemporaryDirectory(prefix="headway-") as folder, _Bars() as bars:
            blocks = read_logs(args.logs, NEEDED, form=form, columns=columns, order=args.order, progress=bars.bytes)
            found = suggest(
                blocks,
                Path(folder),
                goals=goals,
                by=by,
                match=args.match,
                honest=honest,
                named=most,
                progress=bars.show,
            )
    except (OSError, ValueError) as error:
        return unreadable("suggest", error, args.logs[0])
    return _say(found, args)


def _say(found: Suggestion, args: argparse.Namespace) -> int:
    from headway.analysis.suggest.as_json import as_json
    from headway.analysis.suggest.figures import report_of
    from headway.analysis.suggest.policy import policy_toml

    for fault in found.first_unparsed:
        print(safe(f"headway suggest: {fault.source}:{fault.number}: {fault.problem}"), file=sys.stderr)
    if found.partial:
        print(f"headway suggest: {found.partial}: the report is partial", file=sys.stderr)
    elif not found.requests:
        return no_request("suggest", args.logs, found.lines, found.unparsed, args.match)
    report = report_of(
        found, most=10 if args.top is None else args.top, made_by=" ".join(("headway suggest", *args.logs))
    )
    code = exit_codes.OK
    if args.toml is not None and found.proposals:
        try:
            pictures.put("--toml", args.toml, policy_toml(found, args.match).encode())
        except OSError as error:
            code = unwritable("suggest", error)
    code = pictures.written("suggest", report, args) or code
    if args.json:
        print(json.dumps(as_json(found, args.top)))
    else:
        pictures.print_report(report)
    return exit_codes.INTERRUPTED if found.partial else code


def _kind(name: str) -> str:
    if name.strip() in _KINDS:
        return name.strip()
    raise ValueError(f"--honest names {name!r}; expected any of {', '.join(_KINDS)}")


class _Bars:
    """A progress bar for each stage of the work."""

    def __init__(self) -> None:
        self._stage = ""
        self._bar: Progress | None = None
        self._done = 0
        self._size = 0

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def bytes(self, done: int, size: int) -> None:
        """How many bytes of the logs were read."""
        self._done, self._size = done, size

    def show(self, stage: str, count: int) -> None:
        """How far a stage has come."""
        if stage != self._stage:
            self._end()
            self._stage = stage
            unit = (
                "lines" if stage == "reading" else f"{'requests' if stage.startswith('trying') else 'lines'}, {stage}"
            )
            self._bar = Progress(sys.stderr, unit, self._size if stage == "reading" else 0)
        if self._bar is not None:
            self._bar.show(count, self._done if stage == "reading" and self._size else None)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__()
            self._bar = None
