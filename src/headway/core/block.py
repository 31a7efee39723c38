"""Block: admits nothing, ever. What a count of 0 and a ban mean."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome
from headway.core.rule import State

__all__ = ["Block"]


@dataclass(frozen=True, slots=True)
class Block:
    """Every cost above 0 is ``Never``; see ``Rule``. A state it finds is left for the day the quota is raised."""

    burst: int = 0

    def decide(self, state: State, now: int, cost: int, lease: Lease | None = None) -> tuple[State, Outcome]:
        """See ``Rule.decide``."""
        return state, Never(0, 0, 0, 0) if cost else Admitted(0, 0, 0)

    def give_back(self, state: State, now: int, units: int, receipt: Receipt) -> State:
        """Nothing: nothing was charged."""
        return state

    def take(self, state: State, now: int, units: int) -> State:
        """Nothing: a blocked key owes nothing."""
        return state

    def scaled(self, state: State, now: int, old: object) -> State:
        """The state as it is."""
        return state

    def clears_after(self, state: State, now: int, units: int) -> int:
        """0: no wait helps, so none is told."""
        return 0

    def expires_at(self, state: State) -> int:
        """At once: nothing is remembered."""
        return 0

    def dump(self, state: State) -> tuple[int, ...]:
        """Nothing; a blocked limit never writes."""
        return ()

    def load(self, numbers: tuple[int, ...]) -> None:
        """Nothing."""
