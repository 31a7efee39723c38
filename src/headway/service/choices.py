"""What a limit that depends on the request says of itself to programs."""

from __future__ import annotations

from typing import Any

from headway.core.limit import Limit
from headway.policy.choice import Choice
from headway.policy.conditional import When
from headway.policy.lists import BanList
from headway.policy.overrides import Overridden
from headway.policy.tiers import TieredLimit
from headway.policy.variants import shown

__all__ = ["choice_document"]


def choice_document(part: Limit | Choice) -> dict[str, Any]:
    """Its tiers with their quotas, how many keys have their own, its conditions, how many are banned; {} of a plain limit.

    Keys with a quota of their own and who is banned are counted, not named: whoever may see the limits need not see them.
    """
    if isinstance(part, Limit):
        return {}
    found: dict[str, Any] = {"depends": str(part)}
    inner: object = part
    while inner is not None:
        match inner:
            case When():
                found["when"] = " and ".join(filter(None, (found.get("when"), str(inner.conditions))))
            case Overridden():
                found["overrides"] = found.get("overrides", 0) + len(inner.overrides)
            case TieredLimit():
                found["tier"] = inner.tier
                found["tiers"] = {tier: shown(limit) for tier, limit in inner.tiers.items()}
                found["unknown_tier"], found["missing_tier"] = inner.unknown, inner.missing
            case BanList():
                found["bans"] = len(inner.who.alternatives)
        inner = getattr(inner, "limit", None)
    return found
