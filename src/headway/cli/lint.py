"""``headway lint``: how legible refusals are, and what in them misleads a client."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from headway.analysis.lint.audit import Report, audit
from headway.analysis.lint.documents import as_json, as_junit, as_sarif
from headway.analysis.lint.rules import LEVELS, SERVERS, rules
from headway.analysis.lint.text import shown_servers, text
from headway.cli import exit_codes
from headway.cli.failing import fail, unreadable
from headway.cli.lint_target import KINDS, read_target
from headway.cli.lint_url import MOST, ask, check_url
from headway.cli.progress import Progress
from headway.cli.streams import give_up_output

__all__ = ["add_parser", "run"]

_NARROWEST: Final = 40
_WIDTH: Final = 100
"""Columns where nobody knows how many there are."""
_WIDEST: Final = 120
_FORMATS: Final = ("text", "json", "sarif", "junit")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway lint``."""
    parser = commands.add_parser(
        "lint",
        help="audit refusals: score how legible they are, and say how to mend them",
        description="Audit an API's refusals: a URL, captured answers (curl -i, HAR, JSON lines), an OpenAPI document or "
        "an access log. Each refusal gets 0 to 5 points for a status of its own, a reason for programs, when to retry, "
        "and limits that can be found; each mistake is explained, with its fix for nginx, Envoy, Kong, express, Flask, "
        "Django and FastAPI.",
        epilog="Exit status: 0; 1 for a finding as serious as --fail-on, or a score below --min-score; 64 for an option "
        "that cannot be; 65 for content that is not what it should be, or empty; 66 for a file that cannot be read; 69 for a URL that does "
        "not answer, or an extra that is not installed; 130 where a long log was stopped with Ctrl-C, after what is known of it.",
    )
    parser.add_argument("target", metavar="TARGET", help="a URL, a file, or - for the standard input")
    parser.add_argument(
        "--probe",
        type=int,
        metavar="N",
        help=f"URL only: send up to N requests (2 to {MOST}), one after another, and stop at the first refusal. Without it, "
        "one request is sent",
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="FIELD",
        help="URL only: a field to send, such as 'Accept: text/html'",
    )
    parser.add_argument(
        "--data",
        metavar="TEXT",
        help='URL only: send POST with this body, such as \'{"policy": "search"}\', instead of GET',
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="URL only: for each answer as a whole (default: %(default)s)",
    )
    parser.add_argument("--as", dest="kind", choices=KINDS, help="what the file is; default: told by its content")
    parser.add_argument(
        "--jsonl",
        action="store_const",
        const="jsonl",
        dest="kind",
        help="the file is JSON lines with status, headers, body, received_at, id: the same as --as jsonl",
    )
    parser.add_argument(
        "--assume-limit",
        action="store_true",
        help="every refusal is a limit's, also one that does not say so, such as a bare 403 or 503",
    )
    parser.add_argument("--format", choices=_FORMATS, default="text", help="what to print (default: %(default)s)")
    parser.add_argument(
        "--fix",
        metavar="SERVER[,SERVER...]",
        help=f"text only: whose fixes to show: {', '.join(SERVERS)}, all or none; default: those of the servers that the "
        "answers name, else all",
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="RULE[,RULE...]", help="leave out what these rules find"
    )
    parser.add_argument("--min-score", type=int, metavar="PERCENT", help="fail below this score, 0 to 100")
    parser.add_argument(
        "--fail-on",
        choices=(*LEVELS, "never"),
        default="warning",
        help="the least serious finding that fails (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Audit and print; see the epilog for the exit statuses."""
    try:
        servers = _servers(args.fix)
        ignored = _ignored(args.ignore)
        if args.min_score is not None and not 0 <= args.min_score <= 100:
            raise ValueError(f"--min-score is {args.min_score}; expected percent from 0 to 100")
        url = args.target.startswith(("http://", "https://"))
        if url:
            check_url(args.target)
        elif "://" in args.target and not Path(args.target).exists():
            raise ValueError(f"{args.target!r} is no URL to ask; expected http:// or https://, or a file")
        if not url and (args.probe is not None or args.header or args.data is not None):
            raise ValueError(f"{args.target!r} is no URL; --probe, --header and --data are for one")
        probes = _probes(args.probe)
        headers = [_header(line) for line in args.header]
        if not 0 < args.timeout <= 600:
            raise ValueError(f"--timeout is {args.timeout}; expected seconds above 0, up to 600")
    except ValueError as error:
        return fail("lint", str(error), exit_codes.USAGE)
    try:
        report = _asked(args, probes, headers) if url else _read(args)
    except (OSError, ValueError) as error:
        if url and isinstance(error, OSError):
            return fail("lint", f"{args.target}: no answer: {error.strerror or error}", exit_codes.UNAVAILABLE)
        return unreadable("lint", error, args.target)
    report = report.without(ignored)
    try:
        print(_document(report, args, servers), flush=True)
    except BrokenPipeError:  # what was found counts, also where only its beginning is read
        give_up_output()
    return exit_codes.INTERRUPTED if report.stopped else _code(report, args)


def _asked(args: argparse.Namespace, probes: int, headers: Sequence[tuple[str, str]]) -> Report:
    count = f"up to {probes} requests, one after another, until the first refusal" if probes > 1 else "1 request"
    method = "GET" if args.data is None else "POST"
    print(f"headway lint: sends {count}: {method} {args.target}", file=sys.stderr)
    answers = ask(args.target, probes, headers, args.timeout, text=args.data, assume_limit=args.assume_limit)
    return audit(args.target, answers)


def _read(args: argparse.Namespace) -> Report:
    with Progress(sys.stderr, "bytes", 1) as bar:
        return read_target(
            args.target,
            args.kind,
            assume_limit=args.assume_limit,
            progress=lambda done, size: bar.show(done, done / size if size else 0),
        )


def _document(report: Report, args: argparse.Namespace, servers: Sequence[str] | None) -> str:
    match args.format:
        case "json":
            return as_json(report)
        case "sarif":
            return as_sarif(report, version("headway"))
        case "junit":
            return as_junit(report, args.min_score, args.fail_on)
        case _:
            width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size((_WIDTH, 24)).columns))
            return text(report, shown_servers(report, servers), width)


def _code(report: Report, args: argparse.Namespace) -> int:
    if args.min_score is not None and (report.score is None or report.score < args.min_score):
        shown = "nothing could be scored" if report.score is None else f"the score is {report.score} %"
        print(f"headway lint: {shown}; expected at least {args.min_score} %", file=sys.stderr)
        return exit_codes.FOUND
    worst = report.worst()
    failing = LEVELS[: LEVELS.index(args.fail_on) + 1] if args.fail_on in LEVELS else ()
    return exit_codes.FOUND if worst in failing else exit_codes.OK


def _servers(given: str | None) -> Sequence[str] | None:
    if given is None:
        return None
    names = [name.strip().lower() for name in given.split(",")]
    if names == ["all"]:
        return SERVERS
    if names == ["none"]:
        return ()
    for name in names:
        if name not in SERVERS:
            raise ValueError(f"--fix names {name!r}; expected any of {', '.join(SERVERS)}, all or none")
    return names


def _ignored(given: Sequence[str]) -> frozenset[str]:
    names = [name.strip() for part in given for name in part.split(",") if name.strip()]
    for name in names:
        if name not in rules():
            from difflib import get_close_matches

            near = get_close_matches(name, rules(), 1)
            hint = f"; did you mean {near[0]}?" if near else "; docs/reference/lint-rules.md lists them"
            raise ValueError(f"--ignore names {name!r}, which is no rule{hint}")
    return frozenset(names)


def _probes(given: int | None) -> int:
    if given is None:
        return 1
    if not 2 <= given <= MOST:
        raise ValueError(f"--probe is {given}; expected 2 to {MOST} requests (without it, one is sent)")
    return given


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip() or any(char in line for char in "\r\n\0"):
        raise ValueError(f"--header is {line!r}; expected a field such as 'Accept: application/json'")
    return name.strip(), value.strip()
