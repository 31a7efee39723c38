"""``TieredLimit``: a quota for each tier, and a stated choice for a request of none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import AttributeMissing, AttributeUnexpected, LimitError
from headway.policy.matching import wrong_attribute
from headway.policy.spelling import nearest
from headway.policy.values import text_of
from headway.policy.variants import BLOCK, UNLIMITED, blocked, mapping_of_quotas, quota_of, shown, variants

__all__ = ["CHOICES", "ERROR", "REFUSE", "TieredLimit", "model_of", "wrong_tier"]

ERROR: Final = "error"
REFUSE: Final = "refuse"
CHOICES: Final = (ERROR, REFUSE, UNLIMITED)


@dataclass(frozen=True, slots=True, init=False)
class TieredLimit:
    """A limit with a quota a tier: ``TieredLimit("api", {"free": "60/min", "pro": "600/min"}, tier="plan", by="account")``.

    A key keeps its state when its tier changes. So a tier should follow from the key: where one key's requests are of
    several tiers, all of them count against it, each by its own quota.

    Args:
        name: the limit's.
        quotas: by the tier's name: a quota, its text, "block" or "unlimited".
        by: see ``Limit``.
        tier: the attribute that says the tier. Tiers are compared by their text.
        unknown: what a request of another tier meets: "error" raises ``AttributeUnexpected``, "refuse" blocks it,
            "unlimited" lets it pass; or a tier's name.
        missing: the same for a request without the attribute; "error" raises ``AttributeMissing``.
        options: the other arguments of ``Limit``, for all tiers alike.

    Raises:
        LimitError: no tier, a choice that is none, quotas of different algorithms, or what ``Limit`` raises.
        QuotaError: a quota's text.
    """

    name: str
    tier: str
    tiers: dict[str, Limit | None]
    unknown: str
    missing: str
    model: Limit

    def __init__(
        self,
        name: str,
        quotas: Mapping[str, Quota | str],
        by: str | Iterable[str] = (),
        *,
        tier: str,
        unknown: str = ERROR,
        missing: str = ERROR,
        **options: Any,
    ) -> None:
        mapping_of_quotas(quotas, name, "quotas")
        self._make(model_of(name, quotas, by, **options), quotas, tier, unknown, missing)

    @classmethod
    def of(
        cls, model: Limit, quotas: Mapping[str, Quota | str], *, tier: str, unknown: str = ERROR, missing: str = ERROR
    ) -> TieredLimit:
        """The same from a limit that the tiers are variants of, instead of its options."""
        made = object.__new__(cls)
        made._make(model, quotas, tier, unknown, missing)
        return made

    def _make(self, model: Limit, quotas: Mapping[str, Quota | str], tier: str, unknown: str, missing: str) -> None:
        for name in quotas:
            if problem := wrong_tier(name):
                raise LimitError(f"limit {model.name!r}: {problem}")
        put = object.__setattr__
        put(self, "name", model.name)
        put(self, "tier", tier)
        put(self, "model", model)
        put(self, "tiers", variants(quotas, model, "tier"))
        if problem := wrong_attribute(tier):
            raise LimitError(f"limit {self.name!r}: tier {problem}")
        put(self, "unknown", self._choice("unknown", unknown))
        put(self, "missing", self._choice("missing", missing))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """See ``Choice.limits``; the first is the first tier's that limits."""
        return tuple(dict.fromkeys((self.model, *(limit for limit in self.tiers.values() if limit is not None))))

    @property
    def attributes(self) -> tuple[str, ...]:
        """See ``Choice.attributes``."""
        return (self.tier,)

    def choose(self, attributes: Mapping[str, object]) -> Limit | None:
        """The limit of the request's tier; None where that is unlimited.

        Raises:
            AttributeMissing: the tier is not there, and that is an error by choice.
            AttributeUnexpected: it is no known tier, and that is an error by choice.
        """
        value = attributes.get(self.tier)
        if value is None:
            return self._chosen(self.missing, attributes, None)
        tier = text_of(value)
        if tier in self.tiers:
            return self.tiers[tier]
        return self._chosen(self.unknown, attributes, value)

    def _chosen(self, choice: str, attributes: Mapping[str, object], value: object) -> Limit | None:
        if choice in self.tiers:
            return self.tiers[choice]
        if choice == UNLIMITED:
            return None
        if choice == REFUSE:
            return blocked(self.model)
        if value is None:
            raise AttributeMissing(self.tier, self.name, tuple(attributes), need="takes its tier from")
        known = ", ".join(self.tiers)
        raise AttributeUnexpected(self.tier, self.name, f"is {value!r}, which is no tier; expected one of {known}")

    def _choice(self, option: str, choice: str) -> str:
        known = [*self.tiers, *(word for word in CHOICES if word not in self.tiers)]
        if choice in known:
            return choice
        meant = nearest(str(choice), known)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise LimitError(
            f"limit {self.name!r}: {option} is {choice!r}; expected a tier or one of {', '.join(CHOICES)} "
            f"(tiers: {', '.join(self.tiers)}){hint}"
        )

    def __str__(self) -> str:
        tiers = ", ".join(f"{tier} {shown(limit)}" for tier, limit in self.tiers.items())
        return f"{tiers} by {self.tier} (unknown: {self.unknown}, missing: {self.missing})"


def wrong_tier(name: object) -> str | None:
    """What is wrong with a tier's name; None where nothing is."""
    if isinstance(name, str) and name.strip():
        return None
    return f"tier {name!r} has no name; expected a string such as 'free', that requests say"


def model_of(
    name: str, quotas: Mapping[str, Quota | str], by: str | Iterable[str], *, kind: str = "tier ", **options: Any
) -> Limit:
    """The limit that the others are variants of: of the first quota that limits, or else of one that blocks.

    Args:
        name: the limit's.
        quotas: by label.
        by: see ``Limit``.
        kind: what an error says before a label; without one the label stands for itself.
        options: the other arguments of ``Limit``.

    Raises:
        LimitError: no quota at all, or what ``Limit`` raises.
        QuotaError: a quota's text.
    """
    if not quotas:
        raise LimitError(f"limit {name!r}: there is no tier; expected quotas such as {{'free': '60/min'}}")
    for label, quota in quotas.items():
        if quota in (BLOCK, UNLIMITED):
            continue
        found = quota_of(quota, name, f"{kind}{label!r}" if kind else label)
        if found.count:
            return Limit(name, found, by, **options)
    return Limit(name, "0/s", by, **options)
