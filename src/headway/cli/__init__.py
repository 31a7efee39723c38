"""``headway``: one command, one small module each. Only the module of the command that runs is imported."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from headway.cli import exit_codes
from headway.cli.safe import safe
from headway.cli.streams import give_up_output, ready
from headway.errors import ConfigError, ExtraMissing, HeadwayError, StoreError

__all__ = ["COMMANDS", "main", "make_parser"]

COMMANDS: Final = (
    "serve",
    "check",
    "check-policy",
    "explain",
    "replay",
    "compare",
    "suggest",
    "read",
    "lint",
    "convert",
    "run",
    "store",
)
"""In the order of the help. ``check-policy`` lives in ``check_policy.py``."""

_NOT_WRITTEN: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What the system says of an output that takes no more, without a file's name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: without the program's name; default: the process's.

    Returns:
        The exit code; see ``exit_codes``. Wrong usage ends in ``SystemExit`` with 64.
    """
    ready()
    given = list(sys.argv[1:] if arguments is None else arguments)
    wanted = [command for command in COMMANDS if command in given[:1]]
    parser = make_parser(wanted or COMMANDS)
    parsed, rest = parser.parse_known_args(given)
    takes_rest: str | None = getattr(parsed, "takes_rest", None)
    if rest:  # argparse takes positional arguments only in one go; options may stand between ours
        if takes_rest is None or any(argument.startswith("-") for argument in rest):
            command: _Parser = parsed.parser
            command.error(f"unrecognized arguments: {' '.join(rest)}")
        getattr(parsed, takes_rest).extend(rest)
    if not hasattr(parsed, "run"):
        parser.print_help(sys.stderr)
        return exit_codes.USAGE
    code: int = exit_codes.OK
    try:
        code = parsed.run(parsed)
        sys.stdout.flush()
    except HeadwayError as error:
        print(f"headway: {safe(str(error))}", file=sys.stderr)
        return _code_of(error)
    except BrokenPipeError:  # whoever read our output has enough; nothing more can be said to them
        give_up_output()
    except OSError as error:
        if error.filename is not None or error.errno not in _NOT_WRITTEN:
            raise
        give_up_output()
        print(f"headway: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        return exit_codes.IO_ERROR
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return code


def make_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of ``headway``, knowing the given commands."""
    parser = _Parser(
        prog="headway",
        description="Rate limiting for both sides of a refusal: decide, explain, replay and read limits.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in commands:
        import_module(f"headway.cli.{command.replace('-', '_')}").add_parser(subparsers)
    return parser


class _Parser(argparse.ArgumentParser):
    """Wrong usage exits with 64 (sysexits' EX_USAGE), not argparse's 2; ``parser`` is the one of the command that was named."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_defaults(parser=self)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(exit_codes.USAGE, f"{self.prog}: {message}\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # slow to import, and only for this option

        print(f"headway {version('headway')}")
        parser.exit()


def _code_of(error: HeadwayError) -> int:
    match error:
        case StoreError() | ExtraMissing():
            return exit_codes.UNAVAILABLE
        case ConfigError():
            return exit_codes.CONFIGURATION
        case _:
            return exit_codes.USAGE
