"""Goals: what a limit is for. ``no-honest-client-refused``, ``total=100/s``, ``stop-top=0.1%``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from headway.core.quota import Quota
from headway.errors import QuotaError

__all__ = ["DEFAULT_GOALS", "Goal", "HonestGoal", "StopTopGoal", "TotalGoal", "read_goal"]

_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%")
_EXPECTED: Final = (
    "expected no-honest-client-refused, total=N/s (such as total=100/s), or stop-top=P% (such as stop-top=0.1%)"
)


@dataclass(frozen=True, slots=True)
class HonestGoal:
    """Refuse no honest client; of the others as many requests as that leaves."""

    name = "no-honest-client-refused"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TotalGoal:
    """Keep everybody's requests together at a quota.

    Attributes:
        quota: such as 100/s; None takes what 99 % of the seconds have at most.
    """

    quota: Quota | None = None
    name = "total"

    def __str__(self) -> str:
        return f"total={self.quota}" if self.quota else "total"


@dataclass(frozen=True, slots=True)
class StopTopGoal:
    """Refuse the clients that send most, and nobody else.

    Attributes:
        share: how many of the clients, above 0 and below 1; rounded up to whole clients.
    """

    share: Fraction = Fraction(1, 1000)
    name = "stop-top"

    def __str__(self) -> str:
        return f"stop-top={float(self.share * 100):g}%"


Goal = HonestGoal | TotalGoal | StopTopGoal

DEFAULT_GOALS: Final[tuple[Goal, ...]] = (HonestGoal(), TotalGoal(), StopTopGoal())


def read_goal(text: str) -> Goal:
    """A goal from its text.

    Raises:
        ValueError: names the text and what is accepted.
    """
    name, equals, value = text.strip().partition("=")
    if name == "no-honest-client-refused" and not equals:
        return HonestGoal()
    if name == "total":
        return TotalGoal(_quota(value, text)) if equals else TotalGoal()
    if name == "stop-top":
        if not equals:
            return StopTopGoal()
        found = _PERCENT.fullmatch(value.strip())
        share = Fraction(found[1]) / 100 if found else Fraction(0)
        if 0 < share < 1:
            return StopTopGoal(share)
        raise ValueError(
            f"goal is {text!r}; expected a share of the clients above 0 % and below 100 %, such as stop-top=0.1%"
        )
    raise ValueError(f"goal is {text!r}; {_EXPECTED}")


def _quota(value: str, text: str) -> Quota:
    try:
        quota = Quota.parse(value)
    except QuotaError as error:
        raise ValueError(f"goal is {text!r}: {error}") from error
    if quota.zone is not None or quota.concurrent or not quota.count or quota.burst != quota.count:
        raise ValueError(f"goal is {text!r}; expected a total without burst or zone, such as total=100/s")
    return quota
