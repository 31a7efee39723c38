"""Block: admits nothing, ever. What a count of 0 and a ban mean."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.outcome import Admitted, Never, Outcome

__all__ = ["Block"]


@dataclass(frozen=True, slots=True)
class Block:
    """Every cost above 0 is ``Never``; see ``Rule``. It keeps whatever state it finds, for the day the quota is raised."""

    burst: int = 0

    def decide(self, state: object, now: int, cost: int) -> tuple[object, Outcome]:  # the contract's
        """See ``Rule.decide``."""
        return state, Never(0, 0, 0, 0) if cost else Admitted(0, 0, 0)

    def expires_at(self, state: object) -> int:  # the contract's
        """At once: nothing is remembered."""
        return 0

    def dump(self, state: object) -> tuple[int, ...]:  # the contract's
        """Nothing; a blocked limit never writes."""
        return ()

    def load(self, numbers: tuple[int, ...]) -> None:  # the contract's
        """Nothing."""
