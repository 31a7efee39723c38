"""``headway explain``: what a quota admits, or what a request would meet now, as a text or as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from headway.analysis.explain import Explanation, explain_quota, say_duration
from headway.cli import exit_codes
from headway.cli.failing import fail
from headway.cli.policies import units
from headway.core.quota import Quota
from headway.errors import QuotaError

__all__ = ["add_parser", "run"]

_NO_BOUND: Final = "no bound"
_NAMES: Final = {"1s": "second", "1m": "minute", "1h": "hour", "1d": "day"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway explain``."""
    parser = commands.add_parser(
        "explain",
        help="say what a quota admits, or what a request would meet",
        description="Say what a quota admits: its emission interval, its burst, and the most in any window. With "
        "--policy-file, for one request of a policy: each limit, its state, what it would answer and why, and which "
        "limits do not apply; nothing is charged. Then the words are the policy's name and attr=value.",
    )
    parser.add_argument(
        "quota",
        nargs="+",
        metavar="QUOTA",
        help="such as '100/s burst 20', '5 per 10 minutes' or '11/day in Asia/Tokyo'; with --policy-file: POLICY "
        "attr=value …",
    )
    parser.add_argument("--policy-file", type=Path, metavar="FILE", help="explain a request of this file's policies")
    parser.add_argument("--cost", type=units, metavar="N", help="with --policy-file: units (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object; times are in seconds")
    parser.set_defaults(run=run, takes_rest="quota")


def run(args: argparse.Namespace) -> int:
    """Print the explanation; 64 for a quota that cannot be read, 78 for a policy file with problems."""
    if args.policy_file is not None:
        from headway.cli.explain_request import explain_request

        return explain_request(args.policy_file, args.quota, 1 if args.cost is None else args.cost, as_json=args.json)
    if args.cost is not None:
        return fail("explain", "--cost is of a request; expected --policy-file beside it", exit_codes.USAGE)
    try:
        explanation = explain_quota(Quota.parse(" ".join(args.quota)))
    except QuotaError as error:
        hint = "; a request of a policy takes --policy-file FILE" if any("=" in word for word in args.quota) else ""
        return fail("explain", f"{error}{hint}", exit_codes.USAGE)
    print(json.dumps(explanation.as_json()) if args.json else _table(explanation))
    return exit_codes.OK


def _table(explanation: Explanation) -> str:
    quota = explanation.quota
    recovery = say_duration(explanation.recovery)
    if quota.zone is not None and quota.count:
        recovery = f"when the next {quota.calendar} begins in {quota.zone}"
    rows = [
        ("emission interval", say_duration(explanation.emission_interval)),
        ("tolerance", say_duration(explanation.tolerance)),
        ("burst", str(explanation.burst)),
        ("recovery", recovery),
        *(
            (f"most in any {_NAMES[name]}", _NO_BOUND if most is None else str(most))
            for name, most in explanation.most_in
        ),
    ]
    width = max(len(label) for label, _ in rows)
    lines = [f"{label:<{width}}  {value}" for label, value in rows]
    return "\n".join([str(quota), explanation.sentence(), "", *lines])
