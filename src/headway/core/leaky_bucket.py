"""The leaky bucket as a queue: what arrives early is admitted with a delay, until the queue is full.

The same arithmetic as GCRA; only the answer differs. nginx's ``limit_req rate=R burst=B`` is a quota of R with burst
B + 1 here (nginx does not count the request being served); its ``delay=D`` is ``undelayed`` = D + 1, its ``nodelay`` is
``undelayed`` = burst, and its plain form is ``undelayed`` = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.core.gcra import Gcra, TatState
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Outcome, Refused
from headway.core.quota import Quota

__all__ = ["LeakyBucketQueue"]


@dataclass(frozen=True, slots=True)
class LeakyBucketQueue:
    """``gcra`` with a delay for all but the first ``undelayed`` units that are in the bucket; see ``Rule``."""

    gcra: Gcra
    undelayed: int = 1

    @classmethod
    def of(cls, quota: Quota, undelayed: int = 1) -> LeakyBucketQueue:
        """The rule of a quota with a count above 0."""
        return cls(Gcra.of(quota), undelayed)

    @property
    def burst(self) -> int:
        """The most units in the bucket."""
        return self.gcra.burst

    def decide(
        self, state: TatState | None, now: int, cost: int, lease: Lease | None = None
    ) -> tuple[TatState | None, Outcome]:
        """As GCRA; an admitted cost's delay is the time until its last unit leaks; see ``Rule.decide``."""
        new, outcome = self.gcra.decide(state, now, cost, lease)
        if cost == 0 or new is None or not isinstance(outcome, Admitted):
            return new, outcome
        ahead = self.gcra.ticks(new) - now * self.gcra.scale - self.undelayed * self.gcra.interval
        return new, replace(outcome, delay=-(-max(0, ahead) // self.gcra.scale))

    def delay_after(self, standing: Outcome, cost: int, wait: int) -> int:
        """The delay in ns of a cost that is not admitted now but ``wait`` ns later, if nobody else comes meanwhile.

        Args:
            standing: how the key stands now, or its refusal of that cost: when that one is over, the bucket is full.
            cost: units.
            wait: ns; no less than the refusal's own.
        """
        own = cost * self.gcra.interval
        if isinstance(standing, Refused):
            ahead = max(own, self.gcra.depth - (wait - standing.retry_after) * self.gcra.scale)
        else:
            ahead = max(0, standing.reset_after - wait) * self.gcra.scale + own
        return -(-max(0, ahead - self.undelayed * self.gcra.interval) // self.gcra.scale)

    def give_back(self, state: TatState | None, now: int, units: int, receipt: Receipt) -> TatState | None:
        """As GCRA."""
        return self.gcra.give_back(state, now, units, receipt)

    def take(self, state: TatState | None, now: int, units: int) -> TatState:
        """As GCRA."""
        return self.gcra.take(state, now, units)

    def scaled(self, state: TatState, now: int, old: LeakyBucketQueue) -> TatState:
        """As GCRA."""
        return self.gcra.scaled(state, now, old.gcra)

    def clears_after(self, state: TatState | None, now: int, units: int) -> int:
        """As GCRA."""
        return self.gcra.clears_after(state, now, units)

    def expires_at(self, state: TatState) -> int:
        """As GCRA."""
        return self.gcra.expires_at(state)

    def dump(self, state: TatState) -> tuple[int, ...]:
        """As GCRA."""
        return self.gcra.dump(state)

    def load(self, numbers: tuple[int, ...]) -> TatState:
        """As GCRA."""
        return self.gcra.load(numbers)
