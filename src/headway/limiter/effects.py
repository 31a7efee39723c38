"""What a flow may ask its driver to do. The driver sends the answer back, or throws what went wrong into the flow.

Named tuples: they are made and matched within one call, and cost an import less than dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeVar

from headway.core.change import Change
from headway.core.charge import Charge
from headway.limiter.queue import Ticket

__all__ = ["Advance", "Apply", "Call", "Clears", "Effect", "Flow", "Pause", "Turn"]


class Advance(NamedTuple):
    """Ask the store to decide; the answer is its ``Answer``.

    Attributes:
        charges: the bill.
        commit: False for a peek.
        local: ask the in-process stand-in instead of the store.
        since: the store's clock when a caller began to stand in line; None for one that does not.
    """

    charges: tuple[Charge, ...]
    commit: bool
    local: bool = False
    since: int | None = None


class Apply(NamedTuple):
    """Change charges that were made; the answer says for each whether it was in time.

    Attributes:
        changes: what is to be done.
        local: ask the in-process stand-in that made the charges instead of the store.
    """

    changes: tuple[Change, ...]
    local: bool = False


class Clears(NamedTuple):
    """When that many units will have passed: (ns, the store's clock)."""

    charge: Charge


class Turn(NamedTuple):
    """Wait until a ticket is the first of its line, at most so many ns; the answer says whether it is."""

    ticket: Ticket
    at_most: int


class Pause(NamedTuple):
    """Wait so many ns, or until something the ticket waits for was given back."""

    ticket: Ticket
    ns: int


class Call(NamedTuple):
    """Call a function of the user's, which may be ``async`` where the driver is; the answer is what it returns."""

    function: Callable[[Mapping[str, object]], Any]
    attributes: Mapping[str, object]


Effect = Advance | Apply | Clears | Turn | Pause | Call

_Value = TypeVar("_Value")
Flow = Generator[Effect, Any, _Value]
