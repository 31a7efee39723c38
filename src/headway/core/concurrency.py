"""Concurrency: so many units at once. A unit is held by a lease that is given back, renewed, or expires by itself.

The wait of a refusal is an upper bound: the time at which enough leases have expired, should nobody give one back.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import CLOCK_SLACK_NS, in_order

__all__ = ["Concurrency", "Leases"]

Leases = tuple[int, ...]
"""(expires0, token0, units0, expires1, …): leases in the order of expiry, ns since 1970."""

_Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Up to ``burst`` units held at once, each for ``ttl`` ns at most unless renewed; see ``Rule``."""

    burst: int
    ttl: int

    def decide(
        self, state: Leases | None, now: int, cost: int, lease: Lease | None = None
    ) -> tuple[Leases | None, Outcome]:
        """Admit iff held + cost ≤ count; see ``Rule.decide``. Without a lease the units are held until they expire."""
        live, capped = self._live(state, now)
        held = sum(units for _, _, units in live)
        remaining = max(0, self.burst - held)
        if cost == 0:
            return state, Admitted(remaining, *self._waits(live, now, remaining))
        if cost <= remaining:
            live = sorted([*live, (now + self.ttl, lease.token if lease else 0, cost)])
            return _flat(live), Admitted(remaining - cost, *self._waits(live, now, remaining - cost))
        kept = _flat(live) if capped else state
        waits = self._waits(live, now, remaining)
        if cost > self.burst:
            return kept, Never(self.burst, remaining, *waits)
        return kept, Refused(remaining, self._wait_for(live, now, held + cost - self.burst), *waits, at_most=True)

    def give_back(self, state: Leases | None, now: int, units: int, receipt: Receipt) -> Leases | None:
        """End the lease, or make it smaller; see ``Rule.give_back``. Without a token: the oldest equal one of its age."""
        live = _held(state, now)
        for index, (expires, token, held) in enumerate(live):
            if token == receipt.token and (token or expires == receipt.at + self.ttl):
                smaller = [(expires, token, held - units)] if units < held else []
                return _flat(live[:index] + smaller + live[index + 1 :])
        return state

    def take(self, state: Leases | None, now: int, units: int) -> Leases:
        """Hold more than the count, until it expires; see ``Rule.take``."""
        return _flat(sorted([*_held(state, now), (now + self.ttl, 0, units)])) or ()

    def renew(self, state: Leases | None, now: int, token: int) -> Leases | None:
        """Let the lease last a whole ``ttl`` from now. The same object as ``state``: it is not held any more."""
        live = _held(state, now)
        if token and any(token == held for _, held, _ in live):
            return _flat(sorted((now + self.ttl if held == token else at, held, units) for at, held, units in live))
        return state

    def scaled(self, state: Leases, now: int, old: Concurrency) -> Leases | None:
        """The leases as they are: what is held is held; see ``Rule.scaled``."""
        return _flat(old._live(state, now)[0])

    def clears_after(self, state: Leases | None, now: int, units: int) -> int:
        """See ``Rule.clears_after``; an upper bound, as every wait here."""
        if units <= 0:
            return 0
        live, _ = self._live(state, now)
        rounds, place = divmod(units - 1, self.burst)  # the units of a round are held until the next one
        excess = sum(held for _, _, held in live) + place + 1 - self.burst
        return (self._wait_for(live, now, excess) if excess > 0 else 0) + rounds * self.ttl

    def expires_at(self, state: Leases) -> int:
        """When the last lease expires."""
        return state[-3] if state else 0

    def dump(self, state: Leases) -> tuple[int, ...]:
        """The leases as they are."""
        return state

    def load(self, numbers: tuple[int, ...]) -> Leases:
        """See ``dump``."""
        return in_order(numbers, 3)

    def _live(self, state: Leases | None, now: int) -> tuple[list[_Triple], bool]:
        """The leases that are held at ``now``; one that lasts beyond the slack is cut to a whole ``ttl``."""
        live = _held(state, now)
        if not live or live[-1][0] <= now + self.ttl + CLOCK_SLACK_NS:
            return live, False
        longest = now + self.ttl + CLOCK_SLACK_NS
        return sorted((at if at <= longest else now + self.ttl, token, units) for at, token, units in live), True

    def _wait_for(self, live: list[_Triple], now: int, excess: int) -> int:
        """Ns until ``excess`` units, at least 1 and no more than are held, have expired."""
        expires = now
        for expires, _, units in live:  # noqa: B007  # the loop looks for the lease that frees enough
            excess -= units
            if excess <= 0:
                break
        return expires - now

    def _waits(self, live: list[_Triple], now: int, remaining: int) -> tuple[int, int]:
        """(replenish-after, reset-after), both at most."""
        if not live:
            return 0, 0
        held = sum(units for _, _, units in live)
        return self._wait_for(live, now, held - self.burst + remaining + 1), live[-1][0] - now


def _held(state: Leases | None, now: int) -> list[_Triple]:
    """The leases that are held at ``now``, those of another quota with its times."""
    state = state or ()
    return [(state[i], state[i + 1], state[i + 2]) for i in range(0, len(state), 3) if state[i] > now]


def _flat(live: list[_Triple]) -> Leases | None:
    return tuple(number for lease in live for number in lease) or None
