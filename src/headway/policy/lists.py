"""``BanList`` and ``AllowList``: who is refused whatever they ask for, and who is never limited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.core.limit import Limit
from headway.policy.matching import AnyOf, Wanted

__all__ = ["AllowList", "BanList"]


@dataclass(frozen=True, slots=True, init=False)
class BanList:
    """A limit that refuses every request on a list: ``BanList("banned", {"ip": "203.0.113.0/24"}, {"account": "eve"})``.

    The refusal is 403, "blocked": no wait helps, and none is told. It charges nothing, and it holds while the store is
    away.

    Args:
        name: the limit's.
        who: each a mapping of conditions by attribute, see ``When``; who meets one of them is refused.
        text: what a refusal says to people instead of "Requests of this kind are blocked."
        shadow: say who would have been refused, and refuse nobody.

    Raises:
        LimitError: a condition that cannot be right, named with what is accepted.
    """

    who: AnyOf
    limit: Limit

    def __init__(self, name: str, *who: Wanted, text: str | None = None, shadow: bool = False) -> None:
        object.__setattr__(self, "limit", Limit(name, "0/s", text=text, shadow=shadow))
        object.__setattr__(self, "who", AnyOf.of(who, f"limit {name!r}: ban"))

    @property
    def name(self) -> str:
        """The limit's name."""
        return self.limit.name

    @property
    def limits(self) -> tuple[Limit, ...]:
        """See ``Choice.limits``."""
        return (self.limit,)

    @property
    def attributes(self) -> tuple[str, ...]:
        """See ``Choice.attributes``."""
        return self.who.attributes

    def choose(self, attributes: Mapping[str, object]) -> Limit | None:
        """The limit that admits nothing where the request is on the list, else None.

        Raises:
            AttributeMissing: whether it is hangs on an attribute that is not there.
            AttributeUnexpected: a value that is no number is to be compared with one.
        """
        return self.limit if self.who.met(attributes, self.name) else None

    def __str__(self) -> str:
        by = f" by {', '.join(self.attributes)}" if self.attributes else ""
        return f"blocks {self.who.count}{by}"


@dataclass(frozen=True, slots=True, init=False)
class AllowList:
    """Who passes unlimited and uncounted: ``Limiter(…, exempt=AllowList({"ip": "10.0.0.0/8"}, {"account": "internal"}))``.

    A request that lacks an attribute of the list is not on it, so it is limited. Who is on it is not banned either.

    Args:
        who: each a mapping of conditions by attribute, see ``When``; who meets one of them is exempt.

    Raises:
        LimitError: a condition that cannot be right, named with what is accepted.
    """

    who: AnyOf

    def __init__(self, *who: Wanted) -> None:
        object.__setattr__(self, "who", AnyOf.of(who, "exempt"))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names it looks at where they are given."""
        return self.who.attributes

    def __call__(self, attributes: Mapping[str, object]) -> bool:
        """Whether a request is on the list."""
        return self.who.met(attributes, "exempt", lenient=True)

    def __str__(self) -> str:
        return f"{self.who.count} by {', '.join(self.attributes)}" if self.attributes else self.who.count
