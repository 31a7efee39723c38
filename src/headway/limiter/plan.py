"""``Plan``: a policy's limits made ready: from a call's attributes and cost to keys and costs, one per limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from headway.core.charge import Charge
from headway.core.key import Key, encode_key, key_part
from headway.core.lease import Lease
from headway.core.limit import Algorithm, Limit
from headway.errors import AttributeMissing, LimitError, UnknownName, kind_of

__all__ = ["Cost", "Plan"]

Cost = int | Mapping[str, int]
"""Units for every limit without a fixed cost, or by limit name (limits not named are asked for 1)."""

_HASH_BYTES = 16


class Plan:
    """The limits that one kind of request must pass together.

    Args:
        limits: in the order in which outcomes and header fields list them; their names differ.
        namespace: keeps limiters that share a store apart.
        secret_key: what values of secret attributes are hashed with; None where no limit has any.

    Attributes:
        attributes: the names of all attributes that some limit is keyed by, in order of first use.
        holds: some limit is held by leases that should be given back.
        single: the one attribute of the one limit, where there is no more to a key than its value.

    Raises:
        LimitError: two limits of one name, or a secret attribute without a key.
    """

    __slots__ = (
        "_ones",
        "attributes",
        "by_name",
        "holds",
        "limits",
        "namespace",
        "pick",
        "rules",
        "secret_key",
        "shadows",
        "single",
        "takes_any_cost",
    )

    def __init__(self, limits: Sequence[Limit], namespace: str, secret_key: bytes | None) -> None:
        self.limits = tuple(limits)
        self.namespace = namespace
        self.secret_key = secret_key
        self.by_name = {limit.name: limit for limit in self.limits}
        self.rules = tuple(limit.rule for limit in self.limits)
        self.shadows = tuple(limit.shadow for limit in self.limits)
        self.holds = any(limit.algorithm is Algorithm.CONCURRENCY for limit in self.limits)
        self.takes_any_cost = all(limit.cost is None for limit in self.limits)
        for limit in self.limits:
            if limit.secret and secret_key is None:
                raise LimitError(
                    f"limit {limit.name!r} has secret attributes; give the limiter a secret_key, or set HEADWAY_SECRET_KEY"
                )
        if len(self.by_name) < len(self.limits):
            names = [limit.name for limit in self.limits]
            twice = next(name for name in names if names.count(name) > 1)
            raise LimitError(f"two limits are named {twice!r}; a refusal could not say which one it means")
        self.attributes = tuple(dict.fromkeys(name for limit in self.limits for name in limit.by))
        self._ones = (1,) * len(self.limits)
        self.pick = _picker(self.limits)
        only = len(self.limits) == len(self.attributes) == 1
        self.single = self.attributes[0] if self.pick and only and self.takes_any_cost else None

    def keys(self, attributes: Mapping[str, object]) -> Sequence[Key]:
        """One key per limit.

        Raises:
            AttributeMissing: a limit is keyed by an attribute that is not there.
            AttributeUnusable: a value that cannot be part of a key.
        """
        if self.pick is not None:
            for name in self.attributes:
                if type(attributes.get(name)) is not str:
                    break  # missing, or to be made canonical
            else:
                return self.pick(attributes)
        return [self.key(limit, attributes) for limit in self.limits]

    def key(self, limit: Limit, attributes: Mapping[str, object]) -> Key:
        """One limit's key; see ``keys``."""
        parts: list[Key] = []
        for name in limit.by:
            try:
                value = attributes[name]
            except KeyError:
                raise AttributeMissing(name, limit.name, tuple(attributes)) from None
            part = value if type(value) is str else key_part(name, value)
            parts.append(self._hashed(limit, name, part) if name in limit.secret else part)
        return parts[0] if len(parts) == 1 else tuple(parts)

    def costs(self, cost: Cost) -> tuple[int, ...]:
        """One cost per limit: fixed, by name, or the same for all; a cost of 0 is 0 for all.

        Raises:
            TypeError: a bool, a float or anything else that is no int (NaN and infinity are floats).
            LimitError: a negative cost, or a cost by name for a limit that has a fixed one (ValueErrors).
            UnknownName: a cost for a limit that is not there.
        """
        if isinstance(cost, Mapping):
            for name, units in cost.items():
                if name not in self.by_name:
                    raise UnknownName("limit", name, tuple(self.by_name))
                if self.by_name[name].cost is not None:
                    raise LimitError(
                        f"limit {name!r} has a fixed cost of {self.by_name[name].cost}, so a call cannot set it"
                    )
                check_cost(units)
            return tuple(cost.get(limit.name, 1) if limit.cost is None else limit.cost for limit in self.limits)
        if cost == 1 and type(cost) is int and self.takes_any_cost:
            return self._ones
        units = cost if type(cost) is int and cost >= 0 else check_cost(cost)
        if units == 0 or self.takes_any_cost:
            return (units,) * len(self.limits)
        return tuple(units if limit.cost is None else limit.cost for limit in self.limits)

    def charges(
        self,
        keys: Sequence[Key],
        costs: Sequence[int],
        *,
        lease: Lease | None = None,
        held: Lease | None = None,
        flexible: bool = False,
    ) -> tuple[Charge, ...]:
        """The bill for a store: one charge per limit.

        Args:
            keys: one per limit.
            costs: one per limit.
            lease: for every charge.
            held: for the charges of concurrency limits, where there is no ``lease``.
            flexible: costs that are not fixed may be lowered to what fits.
        """
        return tuple(
            Charge(
                self.namespace,
                limit,
                key,
                cost,
                lease or (held if limit.algorithm is Algorithm.CONCURRENCY else None),
                flexible and limit.cost is None,
            )
            for limit, key, cost in zip(self.limits, keys, costs, strict=True)
        )

    def resets(self, names: Sequence[str], attributes: Mapping[str, object]) -> tuple[Charge, ...]:
        """What a reset touches: the named limits, else those whose ``by`` is non-empty and fully given.

        Raises:
            UnknownName: no limit of that name.
            AttributeMissing: a named limit whose key is not fully given.
            LimitError: nothing would be reset.
        """
        for name in names:
            if name not in self.by_name:
                raise UnknownName("limit", name, tuple(self.by_name))
        limits = [
            limit
            for limit in self.limits
            if (limit.name in names if names else limit.by and all(name in attributes for name in limit.by))
        ]
        if not limits:
            given = ", ".join(sorted(attributes)) or "none"
            raise LimitError(
                f"reset touches no limit: attributes given: {given}; limits: "
                + "; ".join(
                    f"{limit.name} by {', '.join(limit.by) or 'nothing (reset it by its name)'}"
                    for limit in self.limits
                )
            )
        return tuple(Charge(self.namespace, limit, self.key(limit, attributes), 0) for limit in limits)

    def _hashed(self, limit: Limit, attribute: str, part: Key) -> str:
        import hmac  # slow to import, and only for secrets

        assert self.secret_key is not None  # noqa: S101  # __init__ refuses secret limits without a key
        purpose = encode_key(self.namespace, limit.name, "secret", (attribute,), part)
        return hmac.digest(self.secret_key, purpose, "sha256")[:_HASH_BYTES].hex()


def _picker(limits: Sequence[Limit]) -> Callable[[Mapping[str, object]], Sequence[Key]] | None:
    """The quickest way from attributes that are all str to keys, where every key is one plain attribute or none."""
    if not limits or any(len(limit.by) > 1 or limit.secret for limit in limits):
        return None
    names = [limit.by[0] if limit.by else None for limit in limits]
    if None in names:
        return lambda attributes: [() if name is None else attributes[name] for name in names]  # type: ignore[misc]  # all are str
    pick = itemgetter(*names)
    return pick if len(names) > 1 else lambda attributes: (pick(attributes),)


def check_cost(cost: Any) -> int:
    """A cost that can be charged.

    Raises:
        TypeError: no int, or a bool.
        LimitError: negative (a ValueError).
    """
    if isinstance(cost, bool) or not isinstance(cost, int):
        raise TypeError(
            f"cost is {cost!r}, {kind_of(cost)}; expected a whole number from 0, or a mapping by limit name"
        )
    if cost < 0:
        raise LimitError(f"cost is {cost}; expected a whole number from 0 (to give units back, use refund)")
    return int(cost)
