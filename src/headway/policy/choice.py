"""``Choice``: a limit whose numbers depend on the request. What ``Limiter`` takes besides plain limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from headway.core.limit import Limit
from headway.errors import LimitError

__all__ = ["Ask", "Choice", "Provider", "attributes_of", "check_part", "choose", "limits_of"]

Provider = Callable[[Mapping[str, object]], Any | Awaitable[Any]]
"""A function of the user's that says a quota for a request's attributes; ``async`` only under ``AsyncLimiter``."""


class Ask(NamedTuple):
    """Somebody has to be asked before the limit is known.

    Attributes:
        function: called with the request's attributes; what it gives may have to be awaited.
        then: from the answer to the limit, None where it does not apply.
    """

    function: Provider
    then: Callable[[Any], Limit | None]


@runtime_checkable
class Choice(Protocol):
    """A named limit that is one of several, or none, depending on a request's attributes.

    All limits it may choose have its name, the same ``by`` and algorithm, so a key keeps its state when the choice
    changes. Its text (``str``) says in one line what it depends on.
    """

    @property
    def name(self) -> str:
        """The limit's name."""
        ...

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits it may choose, at least one; the first stands for it where no request is at hand."""
        ...

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names it looks at besides those the limits are keyed by."""
        ...

    def choose(self, attributes: Mapping[str, object]) -> Limit | Ask | None:
        """The limit for this request; None where it does not apply.

        Raises:
            AttributeMissing: the choice needs an attribute that is not there.
            AttributeUnexpected: an attribute's value chooses nothing, and that is an error by choice.
        """
        ...


def check_part(part: object, whose: str, example: str) -> None:
    """Whether something is a limit, or chooses among limits.

    Raises:
        LimitError: it is neither; says what takes it, and an example.
    """
    if not isinstance(part, Limit | Choice):
        from headway.policy.spelling import described  # slow to import

        raise LimitError(f"{whose} is given {described(part)}; expected a limit such as {example}")


def limits_of(part: Limit | Choice) -> tuple[Limit, ...]:
    """The limits that a limit is or may be; the first stands for all."""
    return (part,) if isinstance(part, Limit) else part.limits


def attributes_of(part: Limit | Choice) -> tuple[str, ...]:
    """The names a limit looks at besides those it is keyed by."""
    return () if isinstance(part, Limit) else part.attributes


def choose(part: Limit | Choice, attributes: Mapping[str, object]) -> Limit | Ask | None:
    """``Choice.choose``; a plain limit chooses itself."""
    return part if isinstance(part, Limit) else part.choose(attributes)
