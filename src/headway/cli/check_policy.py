"""``headway check-policy``: everything that is wrong with a policy file, at once."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli import exit_codes
from headway.cli.policies import code_of, report

if TYPE_CHECKING:
    from headway.core.limit import Limit
    from headway.policy.choice import Choice

__all__ = ["add_parser", "run"]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway check-policy``."""
    parser = commands.add_parser(
        "check-policy",
        help="say everything that is wrong with a policy file",
        description="Read a policy file and print every problem with its file, line and key. Nothing is opened. "
        "Exit codes: 0 sound, 78 something is wrong, 69 only an extra is not installed, 64 usage.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the policy file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is wrong, or what the file holds; see the description for the exit codes."""
    from headway.service.opening import read_policies
    from headway.stores.workers import each_by_itself

    reading = read_policies(args.file)
    file = report(reading, "check-policy")
    if file is None:
        return code_of(reading)
    print(f"{file.source}: ok; the store is {file.store}")
    for policy in file.policies.values():
        print(f"  {policy.name}: {', '.join(map(_shown, policy.limits)) or 'nothing is limited'}")
        if policy.exempt is not None:
            print(f"    exempt: {policy.exempt}")
    if file.store == "memory://" and (warning := each_by_itself()) is not None:
        print(f"headway check-policy: warning: {warning}", file=sys.stderr)
    return exit_codes.OK


def _shown(part: Limit | Choice) -> str:
    from headway.core.limit import Limit
    from headway.policy.choice import limits_of
    from headway.policy.lists import BanList

    if isinstance(part, BanList):
        return f"{part.name} ({part})"
    inner: Any = part
    while not isinstance(inner, Limit) and hasattr(inner, "limit"):  # a condition's, or that of overrides
        inner = inner.limit
    limit = limits_of(part)[0]
    quota = (f" {limit.quota}" if limit.quota.count else " block") if isinstance(inner, Limit) else ""
    keys = f" by {' and '.join(limit.by)}" if limit.by else ""
    notes = [limit.algorithm.value] if limit.algorithm is not Limit("plain", limit.quota).algorithm else []
    notes += [option for option in ("count_refused", "shadow") if getattr(limit, option)]
    noted = f" [{', '.join(notes)}]" if notes else ""
    return f"{part.name}{quota}{keys}{noted}" + ("" if isinstance(part, Limit) else f" ({part})")
