"""``headway explain``: what a quota admits, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Final

from headway.analysis.explain import Explanation, explain_quota, say_duration
from headway.cli import exit_codes
from headway.cli.failing import fail
from headway.core.quota import Quota
from headway.errors import QuotaError

__all__ = ["add_parser", "run"]

_NO_BOUND: Final = "no bound"
_NAMES: Final = {"1s": "second", "1m": "minute", "1h": "hour", "1d": "day"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway explain``."""
    parser = commands.add_parser(
        "explain",
        help="say what a quota admits",
        description="Say what a quota admits: its emission interval, its burst, and the most in any window.",
    )
    parser.add_argument(
        "quota",
        nargs="+",
        metavar="QUOTA",
        help="such as '100/s burst 20', '5 per 10 minutes' or '11/day in Asia/Tokyo'",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object; times are in seconds")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation; 64 for a quota that cannot be read."""
    try:
        explanation = explain_quota(Quota.parse(" ".join(args.quota)))
    except QuotaError as error:
        return fail("explain", str(error), exit_codes.USAGE)
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
