"""``Policy`` and ``PolicyFile``: what a policy file says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.core.limit import Limit
from headway.errors import ConfigError, UnknownName

__all__ = ["Policy", "PolicyFile"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits that one kind of request must pass together.

    Attributes:
        name: what callers ask for.
        limits: in the file's order; none means that nothing is limited.
        namespace: what a ``Limiter`` that shares these counters is given: the file's namespace, ``#`` and the name.
    """

    name: str
    limits: tuple[Limit, ...]
    namespace: str

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that some limit is keyed by, in order of first use."""
        return tuple(dict.fromkeys(name for limit in self.limits for name in limit.by))


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy file without problems.

    Attributes:
        source: the file's name, as messages show it.
        folder: where a relative store starts from.
        store: the store's URL.
        policies: by name, in the file's order.
        warnings: what is legal and hardly meant, each with its place.
    """

    source: str
    folder: Path
    store: str
    policies: Mapping[str, Policy]
    warnings: tuple[ConfigError, ...] = ()

    def policy(self, name: str) -> Policy:
        """The policy of that name.

        Raises:
            UnknownName: there is none; names the known ones.
        """
        try:
            return self.policies[name]
        except KeyError:
            raise UnknownName("policy", name, tuple(self.policies)) from None
