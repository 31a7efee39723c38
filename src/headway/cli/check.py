"""``headway check``: one decision from a shell."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli import exit_codes
from headway.cli.failing import fail, outages_told_once
from headway.cli.policies import code_of, read_attributes, report, units
from headway.cli.safe import safe
from headway.errors import AttributeMissing, AttributeUnexpected, UnknownName

if TYPE_CHECKING:
    from headway.limiter.decision import Decision
    from headway.policy.policy import PolicyFile

__all__ = ["add_parser", "run"]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``headway check``."""
    parser = commands.add_parser(
        "check",
        help="decide one request",
        description="Decide one request and charge it if it is admitted. The sentence goes to standard error. "
        "Exit codes: 0 allowed, 75 refused, 65 never (the cost can never fit), 77 blocked, 69 the store could not "
        "decide, or an extra is not installed, 64 usage, 78 the policy file.",
    )
    parser.add_argument("policy", metavar="POLICY", help="the policy's name; one-time-codes is built in")
    parser.add_argument(
        "attributes",
        nargs="*",
        default=[],
        metavar="attr=value",
        help="what is known of the request, such as phone=+447700900123",
    )
    parser.add_argument(
        "--policy-file", type=Path, metavar="FILE", help="default: the built-in policy and the state of headway serve"
    )
    parser.add_argument("--cost", type=units, default=1, metavar="N", help="units to charge (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the decision as one JSON object")
    parser.set_defaults(run=run, takes_rest="attributes")


def run(args: argparse.Namespace) -> int:
    """Decide; the exit code says what came of it."""
    from headway.service.opening import read_policies

    try:
        attributes = read_attributes(args.attributes)
    except ValueError as error:
        return _wrong(str(error))
    reading = read_policies(args.policy_file)
    file = report(reading)
    if file is None:
        return code_of(reading)
    try:
        with outages_told_once():
            decision = _decide(file, args.policy, attributes, args.cost)
    except (AttributeMissing, AttributeUnexpected, UnknownName) as error:
        return _wrong(str(error))
    if args.json:
        print(json.dumps(_document(decision), ensure_ascii=False))
    if decision.degraded:
        print(f"headway check: the store did not decide: {safe(decision.degraded)}", file=sys.stderr)
    print(decision.sentence(), file=sys.stderr)
    return _code(decision)


def _decide(file: PolicyFile, name: str, attributes: dict[str, str], cost: int) -> Decision:
    from headway.limiter.limiter import Limiter
    from headway.service.opening import open_policy_store

    policy = file.policy(name)
    if not policy.limits:
        print(f"headway check: warning: policy {name!r} has no limits, so nothing is limited", file=sys.stderr)
    elif file.store == "memory://":
        print("headway check: warning: the store is memory://, so this decision is forgotten at once", file=sys.stderr)
    store, key = open_policy_store(file)
    try:
        limiter = Limiter(*policy.limits, store=store, namespace=policy.namespace, secret_key=key, exempt=policy.exempt)
        return limiter.hit(attributes, cost=cost)
    finally:
        store.close()


def _document(decision: Decision) -> dict[str, object]:
    from headway.service.answer import decision_document

    retry_at = None if decision.allowed else decision.retry_at
    return {
        **decision_document(decision),
        "retry_after": None if math.isinf(decision.retry_after) else decision.retry_after,
        "retry_at": retry_at and retry_at.isoformat(),
        "never": decision.never,
        "degraded": decision.degraded,
        "sentence": decision.sentence(),
    }


def _code(decision: Decision) -> int:
    if decision.allowed:
        return exit_codes.OK
    if decision.binding is None:
        return exit_codes.STORE
    if decision.blocked:
        return exit_codes.BLOCKED
    return exit_codes.NEVER if decision.never else exit_codes.REFUSED


def _wrong(problem: str) -> int:
    return fail("check", problem, exit_codes.USAGE)
