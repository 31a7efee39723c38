"""``headway replay`` of policies, of several logs, of any format: reads the options, replays, prints."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from headway.analysis.access_log import request_matcher
from headway.analysis.figures import counted
from headway.analysis.logs.block import Block
from headway.analysis.logs.read import read_logs
from headway.analysis.replay.fields import KEYED, Mapped, mapped, read_fields
from headway.analysis.replay.figures import replay_report
from headway.analysis.replay.limits import LimitReplay
from headway.analysis.replay.policy import Asked, fields_of, replay_policy
from headway.analysis.replay.report import PolicyReplay
from headway.cli import exit_codes, pictures
from headway.cli.failing import fail, no_request, unreadable, unwritable
from headway.cli.interrupt import Interruptible
from headway.cli.log_options import read_columns
from headway.cli.policies import report
from headway.cli.progress import Progress
from headway.cli.safe import safe
from headway.core.limit import Algorithm, Limit
from headway.core.quota import parse_duration
from headway.errors import UnknownName
from headway.policy.policy import Policy
from headway.policy.toml import read_policy_file

__all__ = ["run_policies"]

_EVERYONE: Final = "everyone"
_STEP: Final = "1 min"


def run_policies(args: argparse.Namespace, standard_input: BinaryIO | None = None) -> int:
    """Replay and print; see the epilog of ``headway replay`` for the exit statuses.

    Args:
        args: the command line.
        standard_input: what ``-`` stands for, if somebody has looked at it already.
    """
    try:
        pictures.check(args)
    except (OSError, ValueError) as error:
        return unwritable("replay", error)
    try:
        asked = _asked(args)
        if asked is None:
            return exit_codes.CONFIGURATION
        done = [0]
        blocks = read_logs(
            args.log,
            fields_of(asked),
            form=args.format,
            columns={**asked.mapped.columns, **read_columns(args.columns)},
            order=args.order or "time",
            standard_input=standard_input,
            progress=lambda read, _: done.__setitem__(0, read),
        )
    except (ValueError, UnknownName) as error:
        return fail("replay", str(error), exit_codes.USAGE)
    try:
        with Interruptible() as interrupt, Progress(sys.stderr, "lines", _whole(args.log)) as bar:
            replay = replay_policy(
                _whole_blocks(interrupt.blocks(blocks)),
                asked,
                progress=lambda lines: bar.show(lines, done[0]),
                stopped=lambda: interrupt.stopped,
            )
    except (OSError, ValueError) as error:  # also a log in no known format, a damaged one, a column that is not there
        return unreadable("replay", error, args.log[0])
    return _told(replay, asked, args)


def _told(replay: PolicyReplay, asked: Asked, args: argparse.Namespace) -> int:
    logs = ", ".join(args.log)
    for fault in replay.faults:
        print(safe(f"headway replay: {fault.source}:{fault.number}: {fault.problem}"), file=sys.stderr)
    if not (replay.today.requests or replay.today.undecided or replay.partial):
        return no_request("replay", args.log, replay.lines, replay.unparsed, args.match)
    if replay.partial:
        stopped = counted(replay.lines, "line")
        print(f"headway replay: stopped after {stopped}; this is not the whole log", file=sys.stderr)
    series = args.series is not None
    made_by = "headway " + shlex.join(["replay", *args.log])
    told = replay_report(replay, logs, series=series, behind=args.behind, made_by=made_by)
    code = pictures.written("replay", told, args)
    if args.json:
        print(json.dumps({**_of_one_limit(replay, args), **replay.to_dict(series=series)}))
    else:
        pictures.print_report(told)
    return exit_codes.INTERRUPTED if replay.partial else code


def _asked(args: argparse.Namespace) -> Asked | None:
    """What the options ask for; None where a policy file has problems, which have been said.

    Raises:
        ValueError: an option that cannot be.
        UnknownName: no policy of that name.
    """
    today = _limit(args) if args.policy is None else _policy(args.policy, args.name, "--name", args)
    against = None
    if args.against is not None:
        against = _policy(args.against, args.against_name or args.name, "--against-name", args)
    if today is None or (args.against is not None and against is None):
        return None
    if args.top is not None and args.top < 0:
        raise ValueError(f"top is {args.top}; expected a whole number from 0")
    if args.behind is not None and args.behind not in KEYED:
        raise ValueError(f"behind names {args.behind!r}, which a log does not have; expected any of {', '.join(KEYED)}")
    if args.match is not None:
        request_matcher(args.match)
    caller = read_fields(args.caller or "address", "--caller")
    also = [*caller, *([args.behind] if args.behind else []), *(["method", "path"] if args.match else []), "status"]
    policies = [today] if against is None else [today, against]
    given = _pairs(args.map, "--map", "account=user")
    if args.policy is None:
        given = {name: name for name in today.attributes} | given
    found = mapped(policies, given, _pairs(args.set, "--set", "plan=pro"), also=also)
    if args.policy is None and against is None:  # as a bare --limit has it: what a request does not have is "-"
        found = Mapped(found.fields, found.fixed, found.columns, absent="-")
    return Asked(
        today,
        str(args.policy) if args.policy is not None else "",
        found,
        against,
        str(args.against) if args.against is not None else "",
        args.match,
        args.behind,
        caller,
        args.obedient,
        _codes(args.refused_status or "429"),
        _duration(args.series or _STEP),
        args.top if args.top is not None else 5,
    )


def _limit(args: argparse.Namespace) -> Policy:
    """The policy of ``--limit``."""
    for option in ("name",):
        if getattr(args, option) is not None:
            raise ValueError(f"--{option} belongs to --policy")
    names = () if args.by == _EVERYONE else tuple(name.strip() for name in (args.by or "address").split(","))
    for name in names:
        read_fields(name, "--by")
    limit = Limit("replay", args.limit, by=names, algorithm=args.algorithm)
    if limit.algorithm is Algorithm.CONCURRENCY:
        raise ValueError(
            f"limit '{limit.quota}' ({limit.algorithm}): an access log does not say when a request ended, so requests "
            "at once cannot be replayed; expected a quota such as '5 per 60s'"
        )
    return Policy(f"{limit.quota}", (limit,), "replay")


def _policy(path: Path, name: str | None, option: str, args: argparse.Namespace) -> Policy | None:
    """One policy of a file; None where the file has problems, which have been said.

    Raises:
        ValueError: the file has several, and none is named, or an option that belongs to --limit.
        UnknownName: it has none of that name.
    """
    for other in ("by", "algorithm"):
        if args.policy is not None and getattr(args, other) is not None:
            raise ValueError(f"--{other} belongs to --limit; a policy file says it itself")
    if args.policy is not None and args.limit is not None:
        raise ValueError(
            "--limit and --policy are given; expected one of them (--against takes a file to compare with)"
        )
    file = report(read_policy_file(path), "replay")
    if file is None:
        return None
    if name is None and len(file.policies) != 1:
        names = ", ".join(file.policies) or "none"
        raise ValueError(f"{path} has {len(file.policies)} policies: {names}; say which with {option}")
    return file.policy(name if name is not None else next(iter(file.policies)))


def _pairs(given: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{option} {text!r}: expected NAME=VALUE such as {example}")
        if name in found:
            raise ValueError(f"{option} names {name!r} twice; expected one value")
        found[name] = value
    return found


def _codes(text: str) -> frozenset[int]:
    codes = [code.strip() for code in text.split(",")]
    for code in codes:
        if not (code.isascii() and code.isdigit() and len(code) == 3):
            raise ValueError(f"--refused-status names {code!r}; expected status codes such as 429,503")
    return frozenset(map(int, codes))


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"--series {text!r}: {error}") from error


def _whole(logs: Sequence[str]) -> int:
    """Bytes of all logs; 0 where one is a pipe."""
    with suppress(OSError):
        return 0 if "-" in logs else sum(Path(name).stat().st_size for name in logs)
    return 0


def _whole_blocks(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks, but a log that is damaged gives no figures, which would be wrong.

    Raises:
        ValueError: it is; says where.
    """
    for block in blocks:
        for fault in block.faults:
            if not fault.number:
                raise ValueError(f"{fault.source}: {fault.problem}")
        yield block


def _of_one_limit(replay: PolicyReplay, args: argparse.Namespace) -> dict[str, object]:
    """What ``--json`` says of a bare ``--limit``, so that it is there whatever else is asked."""
    if args.policy is not None:
        return {}
    (limit,) = replay.today.limits
    return {**_numbers(replay, limit), "limit": args.limit, "algorithm": limit.algorithm}


def _numbers(replay: PolicyReplay, limit: LimitReplay) -> dict[str, object]:
    return {
        "requests": replay.today.requests,
        "unparsed": replay.unparsed,
        "out_of_order": replay.out_of_order,
        "denied": replay.today.refused,
        "keys": limit.keys,
        "keys_denied": limit.keys_refused,
    }
