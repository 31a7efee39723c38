"""``When``: a limit that applies to some requests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.core.limit import Limit
from headway.errors import LimitError
from headway.policy.choice import Ask, Choice, attributes_of, check_part, choose, limits_of
from headway.policy.matching import AnyOf, Wanted

__all__ = ["When"]


@dataclass(frozen=True, slots=True, init=False)
class When:
    """A limit for the requests that meet conditions: ``When({"method": ["POST", "PUT"]}, Limit("writes", "10/min"))``.

    A condition is a value, a list of values, or a mapping with any of ``is``, ``not``, ``at_least``, ``above``,
    ``at_most``, ``below`` and ``missing``. In a text, ``*`` stands for any characters; an address range such as
    ``10.0.0.0/8`` takes the addresses within it. All conditions of one mapping must be met; of several mappings, one.

    Args:
        conditions: by attribute; or a list of such, of which one must be met.
        limit: a limit, or one that itself depends on the request.

    Raises:
        LimitError: a condition that cannot be right, named with what is accepted.
    """

    conditions: AnyOf
    limit: Limit | Choice

    def __init__(self, conditions: Wanted | Sequence[Wanted], limit: Limit | Choice) -> None:
        check_part(limit, "When", "Limit('writes', '10/min')")
        place = f"limit {limit.name!r}: when"
        if not conditions:
            raise LimitError(f"{place} has no conditions; expected some such as {{'method': ['POST', 'PUT']}}")
        object.__setattr__(self, "conditions", AnyOf.of(conditions, place))
        object.__setattr__(self, "limit", limit)

    @property
    def name(self) -> str:
        """The limit's name."""
        return self.limit.name

    @property
    def limits(self) -> tuple[Limit, ...]:
        """See ``Choice.limits``."""
        return limits_of(self.limit)

    @property
    def attributes(self) -> tuple[str, ...]:
        """See ``Choice.attributes``."""
        return tuple(dict.fromkeys((*self.conditions.attributes, *attributes_of(self.limit))))

    def choose(self, attributes: Mapping[str, object]) -> Limit | Ask | None:
        """The limit where the conditions are met, else None.

        Raises:
            AttributeMissing: they hang on an attribute that is not there.
            AttributeUnexpected: a value that is no number is to be compared with one.
        """
        return choose(self.limit, attributes) if self.conditions.met(attributes, self.name) else None

    def __str__(self) -> str:
        inner = f"{self.limit}; " if not isinstance(self.limit, Limit) else ""
        return f"{inner}when {self.conditions}"
