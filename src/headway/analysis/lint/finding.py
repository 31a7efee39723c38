"""``Finding``: one mistake that a client would trip over, at one place."""

from __future__ import annotations

from dataclasses import dataclass

from headway.analysis.lint.answer import Place

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found.

    Attributes:
        rule: the rule's id.
        message: this case, with the values that were seen.
        place: where.
    """

    rule: str
    message: str
    place: Place
