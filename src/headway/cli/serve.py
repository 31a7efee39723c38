"""``headway serve``: the policies of a file over HTTP."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli import exit_codes
from headway.cli.failing import fail
from headway.cli.policies import code_of, report
from headway.errors import ExtraMissing

if TYPE_CHECKING:
    from headway.service.api import Api

__all__ = ["add_parser", "run"]

_EXTRA = ("starlette", "uvicorn", "anyio", "h11", "click", "idna")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway serve``."""
    parser = commands.add_parser(
        "serve",
        help="serve decisions over HTTP",
        description="Serve the policies of FILE over HTTP, or without FILE a built-in example: one-time codes. "
        "On SIGHUP, and when FILE changes, its policies are read again: keys keep their state, and a file with problems "
        "changes nothing and says why. What shadow limits would have refused is said then and at the end. "
        "Needs the extra: pip install 'headway[serve]'.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the policy file; default: built in")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=8440, help="the port to listen on; 0 takes a free one (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; 78 for a bad policy file, 69 for a port or an extra that is not there."""
    if hasattr(signal, "SIGHUP"):  # nothing to reload yet, and no more at the end; by default it would kill
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        from headway.service import starlette, uvicorn
        from headway.service.api import Api
        from headway.service.opening import open_policy_store, read_policies
        from headway.service.reloading import Reloading, mark
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in _EXTRA:
            raise
        return fail("serve", str(ExtraMissing("this command", "serve")), exit_codes.UNAVAILABLE)
    read = mark(args.file)
    reading = read_policies(args.file)
    file = report(reading, "serve")
    if file is None:
        return code_of(reading)
    try:
        listener = uvicorn.listen(args.host, args.port)
    except OSError as error:
        print(f"headway serve: cannot listen on {args.host}:{args.port}: {_said(error)}", file=sys.stderr)
        return exit_codes.UNAVAILABLE
    with listener:
        store, key = open_policy_store(file, asynchronous=True)
        api = Api(file, store, key)
        host, port = listener.getsockname()[:2]
        reloading = Reloading(api, args.file, store, read, _say)
        app = starlette.application(api, reloading.run)
        uvicorn.serve(
            app,
            listener,
            on_started=lambda: _greet(api, host, port),
            on_stopping=lambda: _say("stopping: what has been asked is answered, nobody new is let in"),
        )
        for line in api.shadow_lines():
            _say(line)
        _say("stopped")
    return exit_codes.OK


def _greet(api: Api, host: str, port: int) -> None:
    from headway.service.welcome import base_url, is_loopback, welcome

    print(welcome(api.file, base_url(host, port), api.place), flush=True)
    if not is_loopback(host):
        print(
            f"headway serve: warning: {host} is reached from other machines and nothing asks who calls; "
            "put a proxy in front that does, or use --host 127.0.0.1",
            file=sys.stderr,
            flush=True,
        )


def _say(line: str) -> None:
    print(f"headway serve: {line}", file=sys.stderr, flush=True)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; expected a number from 0 to 65535")
    return int(text)


def _said(error: OSError) -> str:
    import errno

    if error.errno == errno.EADDRINUSE:
        return "the port is taken; name another with --port, or --port 0 for a free one"
    return error.strerror or str(error)
