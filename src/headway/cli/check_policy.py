"""``headway check-policy``: everything that is wrong with a policy file, at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from headway.cli import exit_codes
from headway.cli.policies import report

__all__ = ["add_parser", "run"]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway check-policy``."""
    parser = commands.add_parser(
        "check-policy",
        help="say everything that is wrong with a policy file",
        description="Read a policy file and print every problem with its file, line and key. Nothing is opened.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the policy file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is wrong, or what the file holds; 78 where something is wrong."""
    from headway.service.opening import read_policies

    file = report(read_policies(args.file), "check-policy")
    if file is None:
        return exit_codes.CONFIGURATION
    print(f"{file.source}: ok; the store is {file.store}")
    for policy in file.policies.values():
        limits = ", ".join(_shown(limit.name, str(limit.quota), limit.by) for limit in policy.limits)
        print(f"  {policy.name}: {limits or 'nothing is limited'}")
    return exit_codes.OK


def _shown(name: str, quota: str, by: tuple[str, ...]) -> str:
    return f"{name} {quota}" + (f" by {' and '.join(by)}" if by else "")
