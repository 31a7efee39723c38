"""``headway run``: pace any command against a quota that is shared with everybody who runs it so."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headway.cli import exit_codes
from headway.errors import DeadlineTooSoon, LimitError, QuotaError, RateLimited

if TYPE_CHECKING:
    from headway.client.pace import Pace

__all__ = ["add_parser", "run"]

NOT_FOUND: Final = 127
"""The command does not exist (what shells say)."""
NOT_EXECUTABLE: Final = 126
"""The command cannot be run (what shells say)."""

_FORWARDED: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
]
_EVERY_S: Final = 1.0
_EVERY_LOGGED_S: Final = 60.0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway run``."""
    parser = commands.add_parser(
        "run",
        help="pace a command: wait until a shared quota has room, then run it",
        description="Wait until the quotas have room, then run COMMAND; its exit code is the result. Everybody who "
        "names the same quota and the same shared file or URL shares one budget. A line on standard error says how "
        "long it waits. Exit codes: the command's (128 + N where signal N ended it), 75 the deadline cannot be met "
        "(nothing was run, and the sentence says when), 65 the cost can never fit, 77 blocked, 127 no such command, "
        "126 it cannot be run, 69 the store could not decide, 78 the store's URL, 64 usage.",
    )
    parser.add_argument(
        "--quota",
        action="append",
        required=True,
        metavar="QUOTA",
        help="'11/day in America/Los_Angeles', '10 per minute', '1 at once for 60 s'; may be given several times",
    )
    parser.add_argument(
        "--shared",
        metavar="FILE|URL",
        help="where the budget is kept: a file, or a store's URL (default: a file of this user's on this host)",
    )
    parser.add_argument(
        "--deadline", metavar="DURATION", help="the longest wait: '30 s', '5m' (default: as long as it takes)"
    )
    parser.add_argument("--name", default="run", help="a budget of its own (default: %(default)s)")
    parser.add_argument("--cost", type=int, default=1, metavar="N", help="units of each quota (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no line while waiting")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND …", help="what to run, as it is")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Wait, run, and return the command's exit code."""
    from headway.client.pace import Pace
    from headway.core.quota import parse_duration

    command: list[str] = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        return _wrong("no command; expected headway run --quota QUOTA -- COMMAND …")
    if args.cost < 1:
        return _wrong(f"--cost is {args.cost}; expected a whole number from 1")
    try:
        deadline = None if args.deadline is None else parse_duration(args.deadline) / 1e9
    except QuotaError as error:
        return _wrong(f"--deadline: {error}")
    try:
        pace = Pace(*args.quota, store=_store_url(args.shared), name=args.name)
    except (QuotaError, LimitError) as error:
        return _wrong(str(error))
    with pace:
        try:
            return _paced(pace, command, args.cost, deadline, quiet=args.quiet)
        except RateLimited as refused:
            print(f"headway run: {refused.decision.sentence()} The command was not run.", file=sys.stderr)
            return _code(refused)


def _paced(pace: Pace, command: list[str], cost: int, deadline: float | None, *, quiet: bool) -> int:
    until = None if deadline is None else time.monotonic() + deadline
    try:
        with pace.slot(cost=cost, deadline=0):
            return _run(command)
    except DeadlineTooSoon as busy:
        if deadline is not None and busy.retry_after > deadline and not busy.at_most:
            raise
        wait = busy.retry_after
    with contextlib.ExitStack() as stack:
        with contextlib.nullcontext() if quiet else _progress(pace, wait, deadline):
            left = None if until is None else max(0.0, until - time.monotonic())
            stack.enter_context(pace.slot(cost=cost, deadline=left))
        return _run(command)


@contextlib.contextmanager
def _progress(pace: Pace, wait: float, deadline: float | None) -> Iterator[None]:
    """A line on standard error while waiting: renewed every second on a terminal, now and then in a log."""
    over = threading.Event()
    terminal = sys.stderr.isatty()
    quotas = ", ".join(str(limit.quota) for limit in pace.limits)
    end = time.monotonic() + wait

    def say() -> None:
        while True:
            left = max(1, round(end - time.monotonic()))
            limit = "" if deadline is None else f", at most {_duration(deadline)}"
            line = f"headway run: waiting for room in {quotas}: about {_duration(left)}{limit}"
            print(f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)
            if over.wait(_EVERY_S if terminal else _EVERY_LOGGED_S):
                break
        if terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    teller = threading.Thread(target=say, name="headway-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _run(command: list[str]) -> int:
    """Run the command as it is, with our standard streams; signals that ask us to end are passed on to it."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        child = subprocess.Popen(command)  # noqa: S603  # running what it was given is what this command is for
    except (FileNotFoundError, NotADirectoryError):
        return _wrong(f"no such command: {shlex.quote(command[0])}", NOT_FOUND)
    except OSError as error:
        return _wrong(f"{shlex.quote(command[0])} cannot be run: {error.strerror or error}", NOT_EXECUTABLE)
    with _forwarding(child):
        while True:
            try:
                code = child.wait()
            except KeyboardInterrupt:  # the terminal has told the command too; it decides when it is done
                continue
            return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[Any]) -> Iterator[None]:
    """Pass on the signals that ask to end; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda got, _: child.send_signal(got)) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _store_url(shared: str | None) -> str:
    """The URL of a file's store, of the one named, or of this user's."""
    from urllib.parse import quote

    if shared is not None and "://" in shared:
        return shared
    if shared is not None:
        path = Path(shared)
    else:
        from headway.service.opening import state_folder

        path = state_folder("say where the budget is kept: --shared FILE, or a store's URL") / "run.db"
    return f"sqlite:///{quote(os.fspath(path.absolute()))}"


def _code(refused: RateLimited) -> int:
    if isinstance(refused, DeadlineTooSoon):
        return exit_codes.REFUSED
    return exit_codes.BLOCKED if refused.decision.blocked else exit_codes.NEVER


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if whole >= 2 * unit:
            return f"{-(-whole // unit)} {name}"
    return "1 second" if whole == 1 else f"{whole} seconds"


def _wrong(problem: str, code: int = exit_codes.USAGE) -> int:
    print(f"headway run: {problem}", file=sys.stderr)
    return code
