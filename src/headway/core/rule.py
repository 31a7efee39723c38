"""``Rule``: the contract every algorithm fulfils, and the bound on how far a state may lie in the future.

A rule is a quota made ready for one algorithm. It is a value: no clock, no lock, no I/O; ``now`` is an argument.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from headway.core.lease import Lease, Receipt
from headway.core.outcome import Outcome

__all__ = ["CLOCK_SLACK_NS", "Rule", "State", "in_order"]

State = Any
"""What a rule keeps of one key: an int or a tuple of ints. Only rules of the same algorithm read it."""

CLOCK_SLACK_NS: Final = 10_000_000_000
"""A state further than this beyond what the quota can owe is not honest (the clock went back, the quota was lowered)."""


class Rule(Protocol):
    """One algorithm with one quota's numbers."""

    @property
    def burst(self) -> int:
        """The most units admitted at once; a higher cost can never pass."""
        ...

    def decide(
        self, state: State | None, now: int, cost: int, lease: Lease | None = None
    ) -> tuple[State | None, Outcome]:
        """Decide one cost against one key's state.

        Args:
            state: what an earlier call returned, or None for a key without a history.
            now: nanoseconds since 1970 on the store's clock.
            cost: whole units, at least 0; 0 reports and never changes the state.
            lease: asks to remember the charge so that it can be given back exactly.

        Returns:
            The state to keep and the outcome. The *same object* as ``state`` means that nothing is to be written.
            A refusal returns another object only where a dishonest state had to be capped (or, with
            ``count_refused``, counted).
        """
        ...

    def give_back(self, state: State | None, now: int, units: int, receipt: Receipt) -> State | None:
        """Give up to ``units`` of a charge back: never past a turned window, never below as if it had not been charged.

        The same object as ``state`` means that nothing is to be written.
        """
        ...

    def take(self, state: State | None, now: int, units: int) -> State | None:
        """Charge without asking: debt, for what turned out to cost more than was reserved."""
        ...

    def scaled(self, state: State, now: int, old: Any) -> State | None:
        """The state under this rule that uses the same share of the quota as ``state`` did under ``old``, rounded up."""
        ...

    def clears_after(self, state: State | None, now: int, units: int) -> int:
        """Ns until ``units`` (any number, in costs that each fit) have all been admitted as early as they can be."""
        ...

    def expires_at(self, state: State) -> int:
        """Nanoseconds since 1970 from which ``state`` and no state at all decide alike."""
        ...

    def dump(self, state: State) -> tuple[int, ...]:
        """The state as flat integers, for stores outside the process."""
        ...

    def load(self, numbers: tuple[int, ...]) -> State | None:
        """The state that ``dump`` wrote, perhaps under another quota; None where it says nothing under this one.

        Raises:
            ValueError, TypeError: it wrote no such thing.
        """
        ...


def in_order(numbers: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The numbers of a stored list, if they are one: groups of this size by instant, each ending in units of at least 1.

    Raises:
        ValueError: they are not.
    """
    instants = list(numbers[::size])
    if len(numbers) % size or instants != sorted(instants) or min(numbers[size - 1 :: size], default=1) < 1:
        raise ValueError(f"{len(numbers)} numbers that are no list of {size} each, by instant")
    return numbers
