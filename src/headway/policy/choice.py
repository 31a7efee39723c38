"""``Choice``: a limit whose numbers depend on the request. What ``Limiter`` takes besides plain limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from headway.core.limit import Limit

__all__ = ["Choice", "Provider"]

Provider = Callable[[Mapping[str, object]], Any | Awaitable[Any]]
"""A function of the user's that says a quota for a request's attributes; ``async`` only under ``AsyncLimiter``."""


@runtime_checkable
class Choice(Protocol):
    """A named limit that is one of several, or none, depending on a request's attributes.

    All limits it may choose have its name, the same ``by`` and algorithm, so a key keeps its state when the choice
    changes.
    """

    @property
    def name(self) -> str:
        """The limit's name."""
        ...

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits it may choose, at least one; the first stands for it where no request is at hand."""
        ...

    def ask(self, attributes: Mapping[str, object]) -> Provider | None:
        """The provider that has to be asked before ``choose``, or None where its answer is at hand."""
        ...

    def told(self, attributes: Mapping[str, object], answer: object) -> None:
        """Remember what the provider said.

        Raises:
            QuotaError: it said no quota.
        """
        ...

    def choose(self, attributes: Mapping[str, object]) -> Limit | None:
        """The limit for this request; None where it does not apply.

        Raises:
            AttributeMissing: the choice needs an attribute that is not there.
            LimitError: the attribute's value chooses nothing, and that is an error by choice.
        """
        ...
