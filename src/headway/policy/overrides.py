"""``Overridden``: some keys of a limit have a quota of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.core.key import Key, key_part
from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import AttributeMissing, AttributeUnusable, LimitError
from headway.policy.choice import Ask, Choice, attributes_of, check_part, choose, limits_of
from headway.policy.conditional import When
from headway.policy.matching import AnyOf
from headway.policy.variants import mapping_of_quotas, variant

__all__ = ["Overridden"]


@dataclass(frozen=True, slots=True, init=False)
class Overridden:
    """A limit of which some keys have their own quota: ``Overridden(Limit("api", "60/min", by="account"), {"acme": "1000/min"})``.

    An override comes before a tier and before a provider's answer, and after a condition: what ``When`` leaves out is
    not limited for anybody.

    Args:
        limit: a limit with a key, or one that itself depends on the request.
        overrides: by the value of the attribute in ``by``, or the tuple of them where there are several, in that
            order: a quota, its text, "block" or "unlimited".

    Raises:
        LimitError: no limit, a limit without a key, a key that cannot be the limit's, a quota that another algorithm counts.
        QuotaError: a quota's text.
    """

    limit: Limit | Choice
    by: tuple[str, ...]
    overrides: dict[tuple[Key, ...], Limit | None]
    limits: tuple[Limit, ...]
    conditions: tuple[AnyOf, ...]

    def __init__(self, limit: Limit | Choice, overrides: Mapping[Any, Quota | str]) -> None:
        check_part(limit, "Overridden", "Limit('api', '60/min', by='account')")
        mapping_of_quotas(overrides, limit.name, "overrides")
        model = next((one for one in limits_of(limit) if one.quota.count), limits_of(limit)[0])
        if not model.by:
            raise LimitError(f"limit {model.name!r} is keyed by nothing, so no key can be overridden; give it by=…")
        put = object.__setattr__
        put(self, "limit", limit)
        put(self, "by", model.by)
        found: dict[tuple[Key, ...], Limit | None] = {}
        made: dict[Quota | str, Limit | None] = {}
        for key, quota in overrides.items():
            parts = key_of(model, key)
            if parts in found:
                raise LimitError(f"limit {model.name!r}: {key!r} is overridden twice; keys are compared by their text")
            label = f"override {key!r}"
            if not isinstance(quota, str | Quota):
                variant(model, quota, label)  # says what is wrong; it may not even be hashable
            if quota not in made:
                made[quota] = variant(model, quota, label)
            found[parts] = made[quota]
        put(self, "overrides", found)
        own = (one for one in made.values() if one is not None)
        put(self, "limits", tuple(dict.fromkeys((*limits_of(limit), *own))))  # once: there may be very many overrides
        put(self, "conditions", _conditions_of(limit))

    @property
    def name(self) -> str:
        """The limit's name."""
        return self.limit.name

    @property
    def attributes(self) -> tuple[str, ...]:
        """See ``Choice.attributes``."""
        return attributes_of(self.limit)

    def choose(self, attributes: Mapping[str, object]) -> Limit | Ask | None:
        """The key's own limit if it has one, else the limit's; None where a condition of the limit's is not met.

        Raises:
            AttributeMissing: an attribute of the key, or of a condition, is not there.
            AttributeUnusable: a value that cannot be part of a key.
            AttributeUnexpected: see ``When.choose``.
        """
        if not all(one.met(attributes, self.name) for one in self.conditions):
            return None
        key: list[Key] = []
        for name in self.by:
            if name not in attributes:
                raise AttributeMissing(name, self.name, tuple(attributes))
            key.append(key_part(name, attributes[name]))
        parts = tuple(key)
        return self.overrides[parts] if parts in self.overrides else choose(self.limit, attributes)

    def __str__(self) -> str:
        inner = f"{self.limit}; " if not isinstance(self.limit, Limit) else ""
        return f"{inner}{len(self.overrides)} {' and '.join(self.by)} with a quota of their own"


def _conditions_of(part: Limit | Choice) -> tuple[AnyOf, ...]:
    """Those under which a limit applies at all."""
    if isinstance(part, When):
        return (part.conditions, *_conditions_of(part.limit))
    return part.conditions if isinstance(part, Overridden) else ()


def key_of(limit: Limit, key: object) -> tuple[Key, ...]:
    """An override's key as the limit's keys are compared.

    Raises:
        LimitError: it cannot be one.
    """
    parts = (key,) if len(limit.by) == 1 else key
    if not isinstance(parts, tuple) or len(parts) != len(limit.by):
        raise LimitError(f"limit {limit.name!r}: override {key!r}; expected a tuple of {', '.join(limit.by)}")
    try:
        return tuple(key_part(name, part) for name, part in zip(limit.by, parts, strict=True))
    except AttributeUnusable as error:
        raise LimitError(f"limit {limit.name!r}: override {key!r}: {error}") from error
