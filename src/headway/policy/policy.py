"""``Policy`` and ``PolicyFile``: what a policy file says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.core.limit import Limit
from headway.errors import ConfigError, UnknownName
from headway.policy.choice import Choice, attributes_of, limits_of
from headway.policy.lists import AllowList

__all__ = ["Policy", "PolicyFile"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits that one kind of request must pass together.

    Attributes:
        name: what callers ask for.
        limits: the ban list if there is one, then in the file's order; none means that nothing is limited. Plain ones,
            and those that depend on the request.
        namespace: what a ``Limiter`` that shares these counters is given: the file's namespace, ``#`` and the name.
        exempt: who is never limited, or None.
    """

    name: str
    limits: tuple[Limit | Choice, ...]
    namespace: str
    exempt: AllowList | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that some limit is keyed by or depends on, in order of first use."""
        asked = (name for part in self.limits for name in (*limits_of(part)[0].by, *attributes_of(part)))
        return tuple(dict.fromkeys(asked))

    @property
    def plain_limits(self) -> tuple[Limit, ...]:
        """All limits there are; of one that depends on the request, all that it may choose."""
        return tuple(limit for part in self.limits for limit in limits_of(part))


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy file without problems.

    Attributes:
        source: the file's name, as messages show it.
        folder: where a relative store starts from.
        store: the store's URL.
        policies: by name, in the file's order.
        warnings: what is legal and hardly meant, each with its place.
        namespace: what keeps files that share a store apart.
        deadline_ns: how long a networked store may take for an answer; None for the store's own default.
    """

    source: str
    folder: Path
    store: str
    policies: Mapping[str, Policy]
    warnings: tuple[ConfigError, ...] = ()
    namespace: str = "default"
    deadline_ns: int | None = None

    def policy(self, name: str) -> Policy:
        """The policy of that name.

        Raises:
            UnknownName: there is none; names the known ones.
        """
        try:
            return self.policies[name]
        except KeyError:
            raise UnknownName("policy", name, tuple(self.policies)) from None
