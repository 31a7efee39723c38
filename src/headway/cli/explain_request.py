"""``headway explain --policy-file FILE POLICY attr=value``: what a request would meet now, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.cli import exit_codes
from headway.cli.failing import fail
from headway.cli.policies import code_of, read_attributes, report
from headway.cli.safe import safe
from headway.errors import UnknownName

if TYPE_CHECKING:
    from headway.limiter.explain import Explanation

__all__ = ["explain_request"]


def explain_request(path: Path, words: Sequence[str], cost: int, *, as_json: bool) -> int:
    """Print the explanation; nothing is charged.

    Args:
        path: the policy file.
        words: the policy's name, then attributes.
        cost: units.
        as_json: print one JSON object.
    """
    from headway.limiter.limiter import Limiter
    from headway.service.opening import open_policy_store, read_policies

    reading = read_policies(path)
    file = report(reading)
    if file is None:
        return code_of(reading)
    try:
        attributes = read_attributes(words[1:])
        policy = file.policy(words[0])
        store, key = open_policy_store(file)
        try:
            limiter = Limiter(
                *policy.limits, store=store, namespace=policy.namespace, secret_key=key, exempt=policy.exempt
            )
            explanation = limiter.explain(attributes, cost=cost)
        finally:
            store.close()
    except (ValueError, UnknownName) as error:  # a missing attribute and an unexpected one are the former
        return fail("explain", str(error), exit_codes.USAGE)
    if file.store == "memory://":
        print("headway explain: warning: the store is memory://, so every limit is unused here", file=sys.stderr)
    print(json.dumps(_document(explanation), ensure_ascii=False) if as_json else safe(str(explanation)))
    return exit_codes.OK


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "allowed": explanation.exempt or explanation.decision.allowed,
        "exempt": explanation.exempt,
        "limit": None if explanation.exempt else explanation.decision.limit,
        "limits": [
            {
                "limit": limit.limit,
                "quota": limit.quota,
                "algorithm": limit.algorithm,
                "key": limit.key,
                "state": limit.state,
                "answer": limit.answer,
                "ready_at": None if limit.ready_at is None else limit.ready_at.isoformat(),
                "shadow": limit.shadow,
            }
            for limit in explanation.limits
        ],
        "others": dict(explanation.others),
    }
