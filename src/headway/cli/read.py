"""`headway read`: explain a captured refusal of any service."""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from headway.cli import exit_codes
from headway.cli.captured import LARGEST, wrong_bytes
from headway.cli.failing import fail, unreadable
from headway.cli.safe import safe
from headway.client.captures import Capture, from_json_lines, from_text
from headway.client.reading import read
from headway.client.rejection import Rejection


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "read",
        help="explain a captured refusal: what kind, which limit, when to try again",
        description="Explain captured responses: the output of curl -i (or -v), a HAR file, or JSON lines.",
        epilog="Exit status: 0; 64 for an option that cannot be; 65 for content that is no capture, or empty; 66 for a file that "
        "cannot be read.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help="the capture; - is standard input")
    parser.add_argument("--json", action="store_true", help="print one JSON object a response")
    parser.add_argument(
        "--jsonl", action="store_true", help="the capture is JSON lines with status, headers, body, received_at, id"
    )
    parser.add_argument(
        "--received-at", metavar="TIME", help="when the response arrived (ISO 8601); default: what the capture says"
    )
    parser.add_argument("--zone", metavar="ZONE", help="whose midnight an unexplained 'tomorrow' is, e.g. Asia/Tokyo")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; see the epilog for the exit codes."""
    try:
        received_at = datetime.fromisoformat(args.received_at) if args.received_at else None
    except ValueError:
        problem = f"--received-at is {args.received_at!r}; expected a time such as 2026-08-01T12:00:00Z"
        return fail("read", problem, exit_codes.USAGE)
    if received_at is not None and received_at.tzinfo is None:
        received_at = received_at.replace(tzinfo=UTC)
    try:
        zone = ZoneInfo(args.zone) if args.zone else None
    except (ValueError, OSError, KeyError):
        return fail("read", f"--zone is {args.zone!r}; expected a time zone such as Asia/Tokyo", exit_codes.USAGE)
    try:
        raw = _content(args.file)
    except OSError as error:
        return unreadable("read", error, args.file)
    name = "standard input" if args.file == "-" else args.file
    wrong = wrong_bytes(raw)
    if wrong is not None:
        return fail("read", f"{name}: {wrong}", exit_codes.CONTENT)
    found = False
    try:
        text = raw.decode("utf-8", "replace")
        for capture in from_json_lines(text) if args.jsonl else from_text(text):
            found = True
            arrived = received_at or capture.received_at
            rejection = read(capture.status, capture.headers, capture.body, received_at=arrived, zone=zone)
            print(json.dumps(_as_json(capture, rejection)) if args.json else safe(_say(capture, rejection)))
    except ValueError as error:
        return fail("read", f"{name}: {error}", exit_codes.CONTENT)
    if not found:
        return fail("read", f"{name}: holds no response", exit_codes.CONTENT)
    return exit_codes.OK


def _content(name: str) -> bytes:
    """Return what is in the file, or on standard input; of one that is too large only a byte more than is allowed."""
    if name == "-":
        return sys.stdin.buffer.read(LARGEST + 1)
    with Path(name).open("rb") as file:
        return file.read(LARGEST + 1)


def _as_json(capture: Capture, rejection: Rejection | None) -> dict[str, Any]:
    """Return one response as an object of JSON; `kind` is null when it's no refusal."""
    named = {} if capture.id is None else {"id": capture.id}
    if rejection is None:
        keys = ("kind", "retry_after_s", "limit", "remaining", "reset_at", "limit_name", "sentence")
        return {**named, "status": capture.status, **dict.fromkeys(keys)}
    return {
        **named,
        "status": capture.status,
        "kind": rejection.kind.value,
        "retry_after_s": rejection.retry_after,
        "retry_at": _iso(rejection.retry_at),
        "limit": rejection.limit,
        "remaining": rejection.remaining,
        "reset_at": _iso(rejection.reset_at),
        "limit_name": rejection.limit_name,
        "window_s": rejection.window,
        "source": rejection.source,
        "warnings": list(rejection.warnings),
        "sentence": rejection.sentence(),
    }


def _say(capture: Capture, rejection: Rejection | None) -> str:
    """Return one response in a few lines of text."""
    title = f"{capture.id}: {capture.status}" if capture.id else str(capture.status)
    if rejection is None:
        return f"{title} is no refusal."
    lines = [f"{title} {rejection.kind.value}", f"  {rejection.sentence()}"]
    if rejection.retry_after is not None:
        lines.append(f"  wait       {rejection.retry_after} s (from {rejection.source})")
    else:
        lines.append(f"  wait       not stated (kind from {rejection.source})")
    if rejection.limit_name is not None:
        lines.append(f"  name       {rejection.limit_name}")
    if rejection.limit is not None or rejection.remaining is not None:
        left = "?" if rejection.remaining is None else rejection.remaining
        lines.append(f"  left       {left} of {'?' if rejection.limit is None else rejection.limit}")
    if rejection.reset_at is not None:
        lines.append(f"  resets at  {_iso(rejection.reset_at)} (the server's clock)")
    lines.extend(f"  ignored    {warning}" for warning in rejection.warnings)
    return "\n".join(lines)


def _iso(at: datetime | None) -> str | None:
    """Return an instant in ISO 8601, UTC as Z, without idle zeros."""
    if at is None:
        return None
    text = at.isoformat()
    if "." in text:
        head, _, tail = text.partition(".")
        digits, zone = tail[:6].rstrip("0"), tail[6:]
        text = f"{head}.{digits}{zone}"
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
