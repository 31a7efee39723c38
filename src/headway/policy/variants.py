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
from headway.policy.spelling import described, nearest

__all__ = ["BLOCK", "UNLIMITED", "blocked", "mapping_of_quotas", "quota_of", "shown", "variant", "variants"]

BLOCK: Final = "block"
UNLIMITED: Final = "unlimited"


_EXPECTED: Final = f"a quota such as '60/min', '{BLOCK}' or '{UNLIMITED}'"


def quota_of(quota: Quota | str, name: str, label: str) -> Quota:
    """A quota, or what its text says.

    Args:
        quota: it, or its text.
        name: the limit's, for errors.
        label: what an error calls the quota: "tier 'pro'".

    Raises:
        QuotaError: the text is none; it names the limit and the label.
        LimitError: it is neither.
    """
    if isinstance(quota, Quota):
        return quota
    if not isinstance(quota, str):
        raise LimitError(f"limit {name!r}: {label} is {described(quota)}; expected {_EXPECTED}")
    try:
        return Quota.parse(quota)
    except QuotaError as error:
        word = nearest(quota, (BLOCK, UNLIMITED))
        hint = f"; did you mean {word!r}?" if word else ""
        error.args = (f"limit {name!r}: {label}: {error}{hint}",)
        raise


def mapping_of_quotas(given: object, name: str, what: str) -> None:
    """Refuse what is no mapping of quotas.

    Raises:
        LimitError: it is none; names the limit and what it stands for.
    """
    if not isinstance(given, Mapping):
        raise LimitError(
            f"limit {name!r}: {what} are {described(given)}; expected a mapping such as {{'acme': '1000/min'}}"
        )


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
        LimitError: it is no text, another algorithm counts it, or the limit's options do not fit it.
    """
    if quota == UNLIMITED:
        return None
    if quota == BLOCK:
        return blocked(model)
    found = quota_of(quota, model.name, label)
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
