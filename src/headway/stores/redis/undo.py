"""``Undo``: a charge of a moment ago is taken off again."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.change import Change
from headway.core.rule import State

__all__ = ["Undo"]


@dataclass(frozen=True, slots=True)
class Undo(Change):
    """Takes a charge off again that was made a moment ago for a bill that failed elsewhere, or whose caller has gone.

    What ``give_back`` says of GCRA without a lease is exact for one refund, and careful where several overlap; many
    bills that fail at once need each its own units back.

    Attributes:
        before: the key's state before the charge.
    """

    before: State | None = None
