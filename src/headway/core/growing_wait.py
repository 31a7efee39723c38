"""The growing wait: after some free attempts each further one doubles the wait, up to a longest; forgiven when quiet.

For logins and for sending codes again (NIST SP 800-63B suggests 30 s up to 1 h). It grows with attempts that were
admitted or reported as failed, never with refused ones, so hammering does not lengthen a wait. A success forgives
everything: ``reset`` the key. The first wait, the quota's period / count, is a whole number of ns, rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headway.core.clearing import clears_after
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import CLOCK_SLACK_NS

__all__ = ["Attempts", "GrowingWait"]


class Attempts(NamedTuple):
    """How many attempts there were, and when the latest was (ns since 1970)."""

    made: int
    latest: int


@dataclass(frozen=True, slots=True)
class GrowingWait:
    """``burst`` free attempts, then waits of ``first``, 2·``first``, 4·``first`` … up to ``longest``; see ``Rule``.

    Args:
        burst: attempts before the first wait, at least 1: the wait begins with the attempt that completes them.
        first: ns.
        longest: ns, at least ``first``.
        forgiven_after: ns since the latest attempt until all is as if unused, at least ``longest``.
    """

    burst: int
    first: int
    longest: int
    forgiven_after: int

    def decide(
        self,
        state: Attempts | None,
        now: int,
        cost: int,
        lease: Lease | None = None,  # attempts are counted, not told apart
    ) -> tuple[Attempts | None, Outcome]:
        """Admit iff the wait after the latest attempt is over; see ``Rule.decide``."""
        seen, capped = self._seen(state, now)
        remaining = self._remaining(seen, now)
        if cost == 0:
            return state, Admitted(remaining, *self._waits(seen, now, remaining))
        if cost <= remaining:
            made = Attempts(seen.made + cost, max(now, seen.latest))
            left = self._remaining(made, now)
            return made, Admitted(left, *self._waits(made, now, left))
        kept = seen if capped else state
        waits = self._waits(seen, now, remaining)
        if cost > self.burst:
            return kept, Never(self.burst, remaining, *waits)
        if remaining:  # several attempts at once need more than the one that is free: only forgiveness brings them
            return kept, Refused(remaining, seen.latest + self.forgiven_after - now, *waits)
        wait = self._ends(seen) - now if cost == 1 else seen.latest + self.forgiven_after - now
        return kept, Refused(0, wait, *waits)

    def give_back(self, state: Attempts | None, now: int, units: int, receipt: Receipt) -> Attempts | None:
        """Forget that many attempts; the latest keeps its time; see ``Rule.give_back``.

        Not those so old that they may have been forgiven since: the count may be of later ones.
        """
        seen, _ = self._seen(state, now)
        if units <= 0 or seen.made == 0 or seen.latest < receipt.at or now >= receipt.at + self.forgiven_after:
            return state
        left = seen.made - min(units, receipt.cost)
        return Attempts(left, seen.latest) if left > 0 else None

    def take(self, state: Attempts | None, now: int, units: int) -> Attempts:
        """Count attempts without asking (a reported failure); see ``Rule.take``."""
        seen, _ = self._seen(state, now)
        return Attempts(seen.made + units, max(now, seen.latest))

    def scaled(self, state: Attempts, now: int, old: GrowingWait) -> Attempts | None:
        """The attempts as they are; see ``Rule.scaled``."""
        seen, _ = old._seen(state, now)
        return seen if seen.made else None

    def clears_after(self, state: Attempts | None, now: int, units: int) -> int:
        """See ``Rule.clears_after``."""
        return clears_after(self, state, now, units)

    def expires_at(self, state: Attempts) -> int:
        """When all is forgiven."""
        return state[1] + self.forgiven_after

    def dump(self, state: Attempts) -> tuple[int, ...]:
        """(count, latest)."""
        return tuple(state)

    def load(self, numbers: tuple[int, ...]) -> Attempts:
        """See ``dump``."""
        return Attempts(*numbers)

    def wait_after(self, attempts: int) -> int:
        """Ns from the latest attempt to the next admitted one, after that many."""
        beyond = attempts - self.burst
        if beyond < 0:
            return 0
        return self.longest if beyond > 64 else min(self.longest, self.first << beyond)

    def _ends(self, seen: Attempts) -> int:
        return seen.latest + self.wait_after(seen.made)

    def _seen(self, state: Attempts | None, now: int) -> tuple[Attempts, bool]:
        if state is None or now >= state[1] + self.forgiven_after:
            return Attempts(0, now), False
        if state[1] > now + CLOCK_SLACK_NS:
            return Attempts(state[0], now), True
        return Attempts(*state), False

    def _remaining(self, seen: Attempts, now: int) -> int:
        if seen.made < self.burst:
            return self.burst - seen.made
        return 1 if now >= self._ends(seen) else 0

    def _waits(self, seen: Attempts, now: int, remaining: int) -> tuple[int, int]:
        """(replenish-after, reset-after)."""
        if not seen.made:
            return 0, 0
        reset = seen.latest + self.forgiven_after - now
        return (reset if remaining else self._ends(seen) - now), reset
