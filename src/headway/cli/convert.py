"""``headway convert``: another limiter's configuration as a policy file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from headway.analysis.convert.convert import SOURCES, Converted, convert
from headway.analysis.convert.flask_limiter import looks_like_limits
from headway.analysis.figures import counted
from headway.cli import exit_codes
from headway.cli.captured import wrong_encoding
from headway.cli.failing import fail, unreadable
from headway.errors import ConfigError, ExtraMissing

__all__ = ["add_parser", "run"]

_LARGEST: Final = 16 * 1024 * 1024


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway convert``."""
    parser = commands.add_parser(
        "convert",
        help="make a policy file of another limiter's configuration",
        description="Read envoyproxy/ratelimit's YAML, nginx's limit_req and limit_conn, strings of limits or settings of "
        "Flask-Limiter, or options of express-rate-limit, and print a policy file. What cannot be carried over exactly is "
        "said on standard error, and stands in the file as comments that begin with NOT EXACT.",
        epilog="Exit status: 0; 1 with --strict, where something is not exact; 64 for an option that cannot be; 65 for a file "
        "that is not what it should be; 66 for one that cannot be read; 69 for an extra that is not installed; 73 for a file "
        "that cannot be written.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the configuration, or - for the standard input; or strings of limits, such as '10 per minute; 100/hour'",
    )
    parser.add_argument(
        "--from", dest="source", choices=tuple(SOURCES), help="what it is; default: told by its content"
    )
    parser.add_argument("--policy", metavar="NAME", help="the policy's name; default: what the source suggests")
    parser.add_argument("--store", metavar="URL", help="the store; default: the source's, else memory://")
    parser.add_argument(
        "--output", "-o", type=Path, metavar="FILE", help="write the policy file there; default: print it"
    )
    parser.add_argument("--strict", action="store_true", help="write nothing and fail where something is not exact")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert and print; see the epilog for the exit statuses."""
    if args.store is not None:
        from headway.service.opening import check_store_url

        try:
            check_store_url(args.store)
        except ConfigError as error:
            missing = isinstance(error, ExtraMissing)
            return fail("convert", f"--store: {error}", exit_codes.UNAVAILABLE if missing else exit_codes.USAGE)
    try:
        if args.file == "-":
            raw = sys.stdin.buffer.read(_LARGEST + 1)
        elif args.source in (None, "limits") and looks_like_limits(args.file) and not Path(args.file).exists():
            raw = args.file.encode("utf-8", "surrogateescape")  # the strings themselves
        else:
            with Path(args.file).open("rb") as stream:
                raw = stream.read(_LARGEST + 1)
    except OSError as error:
        return unreadable("convert", error, args.file)
    try:
        if len(raw) > _LARGEST:
            raise ConfigError("holds more than 16 MiB; expected a configuration", file=args.file)
        wrong = wrong_encoding(raw)
        if wrong is not None:
            raise ConfigError(wrong, file=args.file)
        text = raw.decode("utf-8")
        found = convert(text, args.file, args.source, policy=args.policy, store=args.store)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return fail("convert", f"{args.file}:{line}: is not UTF-8 ({error.reason})", exit_codes.CONTENT)
    except ConfigError as error:
        return unreadable("convert", error, args.file)
    _say(found, args.file)
    if args.strict and found.notes:
        count = counted(len(found.notes), "thing")
        return fail("convert", f"{count} cannot be carried over exactly, and --strict asks for all", exit_codes.FOUND)
    if args.output is None:
        print(found.text, end="")
        return exit_codes.OK
    try:
        args.output.write_text(found.text, "utf-8")
    except OSError as error:
        problem = f"--output {args.output}: cannot be written: {error.strerror or error}"
        return fail("convert", problem, exit_codes.CANNOT_WRITE)
    return exit_codes.OK


def _say(found: Converted, file: str) -> None:
    for note in found.notes:
        place = file if note.line is None else f"{file}:{note.line}"
        limit = f"{note.limit}: " if note.limit else ""
        words = "".join(char if char.isprintable() else "·" for char in f"{place}: {limit}not exact: {note.what}")
        print(f"headway convert: {words}", file=sys.stderr)
