"""What a reload changes, in words: policies, and the limits whose counters begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.core.limit import Limit
from headway.policy.policy import Policy, PolicyFile

__all__ = ["differences"]


def differences(old: PolicyFile, new: PolicyFile) -> str:
    """``changed codes; removed search``, with what does not keep its state; ``nothing changed``."""
    kinds = {
        "added": [name for name in new.policies if name not in old.policies],
        "changed": [
            f"{name}{_anew(old.policies[name], policy)}"
            for name, policy in new.policies.items()
            if name in old.policies and old.policies[name] != policy
        ],
        "removed": [name for name in old.policies if name not in new.policies],
    }
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names) or "nothing changed"


def _anew(old: Policy, new: Policy) -> str:
    """Limits that came or went, and those that are counted otherwise, in brackets; empty where all keep their state."""
    before, after = _by_name(old), _by_name(new)
    parts = [
        *(f"new limit {name}" for name in after if name not in before),
        *(f"no limit {name} any more" for name in before if name not in after),
        *(f"{name} counts anew: {why}" for name in after if name in before for why in _why(before[name], after[name])),
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _by_name(policy: Policy) -> Mapping[str, Limit]:
    return {limit.name: limit for limit in reversed(policy.plain_limits)}


def _why(old: Limit, new: Limit) -> Iterator[str]:
    """What of a limit's counters is another, at most once."""
    if old.algorithm.stored != new.algorithm.stored:
        yield f"{old.algorithm.value} became {new.algorithm.value}"
    elif old.by != new.by:
        yield f"its key was {_named(old)}, and is {_named(new)}"
    elif old.secret != new.secret:
        yield "other values of its key are secret"


def _named(limit: Limit) -> str:
    return " and ".join(limit.by) or "everyone's"
