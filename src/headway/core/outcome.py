"""What one limit answers: ``Admitted``, ``Refused`` with its wait, or ``Never``.

All times are whole nanoseconds of the store's clock, rounded up: a caller that waits them is never early.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Admitted", "Never", "Outcome", "Refused"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The limit lets the cost through (or, for cost 0, reports how it stands).

    Attributes:
        remaining: whole units that could be spent right after this, 0 to burst.
        replenish_after: ns until more than ``remaining`` can be spent; 0 when nothing is owed.
        reset_after: ns until the limit is as if unused; 0 when it is.
        delay: ns the caller has to wait before it goes on; only a queueing leaky bucket asks for one.
    """

    remaining: int
    replenish_after: int
    reset_after: int
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """The limit holds the cost back until a known time.

    Attributes:
        remaining: whole units that could be spent now (above 0 only if the cost was above 1), 0 to burst.
        retry_after: ns until exactly this cost would be admitted if nobody else came; at least 1.
        replenish_after: ns until more than ``remaining`` can be spent.
        reset_after: ns until the limit is as if unused.
        at_most: the wait is an upper bound (a lease may be given back earlier).
    """

    remaining: int
    retry_after: int
    replenish_after: int
    reset_after: int
    at_most: bool = False

    def __post_init__(self) -> None:
        if self.retry_after < 1:
            raise ValueError(f"a refusal's wait is at least 1 ns, not {self.retry_after}")


@dataclass(frozen=True, slots=True)
class Never:
    """The cost exceeds what the limit could ever admit at once; no wait helps.

    Attributes:
        burst: the most it admits at once; 0 means that everything is blocked.
        remaining: whole units that could be spent now, 0 to burst.
        replenish_after: ns until more than ``remaining`` can be spent; 0 when nothing is owed.
        reset_after: ns until the limit is as if unused; 0 when it is.
    """

    burst: int
    remaining: int
    replenish_after: int
    reset_after: int


Outcome = Admitted | Refused | Never
