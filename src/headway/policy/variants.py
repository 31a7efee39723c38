"""A limit with other quotas, for what depends on the request: its key's state is kept when one replaces another.

Besides a quota's text two words are understood: ``block`` admits nothing, ``unlimited`` means no limit at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headway.core.limit import Limit, requoted
from headway.core.quota import Quota
from headway.errors import LimitError, QuotaError

__all__ = ["BLOCK", "UNLIMITED", "blocked", "shown", "variant", "variants"]

BLOCK: Final = "block"
UNLIMITED: Final = "unlimited"


def blocked(model: Limit) -> Limit:
    """The same limit with a count of 0: it admits nothing, and leaves the key's state for a better day."""
    if not model.quota.count:
        return model
    return replace(model, quota=replace(model.quota, count=0, burst=0), undelayed=1)


def variant(model: Limit, quota: Quota | str, label: str) -> Limit | None:
    """The same limit with another quota; None for ``unlimited``.

    Args:
        model: the limit, with a count above 0 if that can be had.
        quota: a quota, its text, ``block`` or ``unlimited``.
        label: what an error calls it: "tier 'pro'".

    Raises:
        QuotaError: the text is none of these.
        LimitError: another algorithm counts it, or the limit's options do not fit it.
    """
    if quota == UNLIMITED:
        return None
    if quota == BLOCK:
        return blocked(model)
    try:
        found = quota if isinstance(quota, Quota) else Quota.parse(quota)
    except QuotaError as error:
        error.add_note(f"limit {model.name!r}: {label}")
        raise
    if not found.count:
        return blocked(model)
    try:
        return requoted(model, found)
    except LimitError as error:
        said = str(error).removeprefix(f"limit {model.name!r}: ")
        kept = "all quotas of one limit are counted by one algorithm, so that a key keeps its state"
        raise LimitError(f"limit {model.name!r}: {label}: {said} ({kept})") from error


def variants(limits: Mapping[str, Quota | str], model: Limit, kind: str) -> dict[str, Limit | None]:
    """Variants by their labels, such as tiers by their names; see ``variant``."""
    return {label: variant(model, quota, f"{kind} {label!r}") for label, quota in limits.items()}


def shown(limit: Limit | None) -> str:
    """A variant for people: its quota, ``block`` or ``unlimited``."""
    if limit is None:
        return UNLIMITED
    return str(limit.quota) if limit.quota.count else BLOCK
