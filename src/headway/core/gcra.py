"""GCRA, the generic cell rate algorithm: one instant a key, the theoretical arrival time (TAT).

The same limiter as a token bucket that holds ``burst`` and refills continuously, and as a leaky bucket used as a meter
(ITU-T I.371 Annex A.1 virtual scheduling, A.2 continuous-state leaky bucket; equality conforms). The emission interval
T = period / count is never rounded: times are counted in ticks of 1/d ns, where T is a whole number of ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import MAX_RECOVERY_NS, Quota
from headway.core.reserved import (
    NOTHING,
    NOTHING_YET,
    GivenBack,
    Ledger,
    Reserved,
    after_arrival,
    give_back,
    pack,
    unpack,
)
from headway.core.rule import CLOCK_SLACK_NS

__all__ = ["Gcra", "TatState"]

TatState = int | tuple[int, ...]
"""The TAT: whole nanoseconds; or (ticks, ticks per nanosecond) where T is no whole number of nanoseconds; or that, the
debt in ticks, and what ``reserved`` packs: what was given back, and the open reservations."""


@dataclass(frozen=True, slots=True)
class Gcra:
    """GCRA(T, τ) on integers.

    Args:
        interval: the emission interval T in ticks, at least 1.
        depth: burst · T in ticks, at least T; τ = depth − T.
        scale: ticks per unit of ``now`` (a nanosecond), at least 1.
        slack: in units of ``now``; a TAT further than depth + slack ahead is capped at now + depth.
    """

    interval: int
    depth: int
    scale: int = 1
    slack: int = CLOCK_SLACK_NS

    @classmethod
    def of(cls, quota: Quota) -> Gcra:
        """The rule of a quota with a count above 0."""
        common = gcd(quota.period_ns, quota.count)
        interval = quota.period_ns // common
        return cls(interval, interval * quota.burst, quota.count // common)

    @property
    def burst(self) -> int:
        """The most units admitted at once."""
        return self.depth // self.interval

    def decide(
        self, state: TatState | None, now: int, cost: int, lease: Lease | None = None
    ) -> tuple[TatState | None, Outcome]:
        """Admit iff TAT ≤ now + τ (for n units: max(TAT, now) + n·T ≤ now + depth); see ``Rule.decide``."""
        if cost and lease is None and self.scale == 1 and (state is None or state.__class__ is int):
            wanted = cost * self.interval if state is None or state <= now else state - now + cost * self.interval
            if wanted <= self.depth:  # most decisions: what the rest says of them, without what it has to look for
                remaining = (self.depth - wanted) // self.interval
                return now + wanted, Admitted(remaining, wanted - self.depth + (remaining + 1) * self.interval, wanted)
        start = now * self.scale
        owed, capped = self._owed(state, start)
        if cost == 0:
            return state, self._admitted(owed)
        wanted = owed + cost * self.interval
        if wanted <= self.depth:
            ledger = self._arrived(state, now, owed)
            if lease is not None:
                made = Reserved(lease.token, cost * self.interval, NOTHING_YET, now + lease.ttl)
                ledger = ledger._replace(records=[*ledger.records, made])
            return self._state(start + wanted, ledger), self._admitted(wanted)
        kept = self._state(start + owed, debt=self._debt(state)) if capped else state
        if cost * self.interval > self.depth:
            return kept, Never(self.burst, *self._standing(owed))
        remaining, replenish, reset = self._standing(owed)
        return kept, Refused(remaining, self._up(wanted - self.depth), replenish, reset)

    def give_back(self, state: TatState | None, now: int, units: int, receipt: Receipt) -> TatState | None:
        """Move the TAT back as far as leaves the key as if the units had never been charged; see ``Rule.give_back``.

        Exact for a reservation. Without one only that part is given back which time alone has not paid since.
        """
        if state is None or (units <= 0 and not receipt.token):
            return state
        start = now * self.scale
        tat = self.ticks(state)
        ledger = self._ledger(state, now)
        least = receipt.at * self.scale + receipt.cost * self.interval
        ended = ledger.ended(receipt.at, self._charged(receipt, tat + ledger.moved, start), least)
        if receipt.token:
            found = give_back(ledger.records, receipt.token, units, receipt.cost)
            if found is None:
                return state
            back, records = found
        else:
            if tat < ended:  # not a state that this charge is in: the key was reset
                return state
            back = min(units * self.interval, max(0, ended - max(start, ended - receipt.cost * self.interval)))
            most = units * self.interval  # what the charge may have added to what later arrivals found
            records = [record._replace(low=max(0, record.low - most)) for record in ledger.records]
        left = max(0, tat - start)
        back = min(back, left)
        ledger = ledger._replace(records=records)
        if back and tat >= ended + self.interval:  # something was charged on top of it
            ledger = ledger.after(now, back, ended, self._paid_at(state))
        return self._state(start + left - back, ledger, min(self._debt(state), max(0, left - back - self.depth)))

    def take(self, state: TatState | None, now: int, units: int) -> TatState:
        """Move the TAT on without asking; what lies beyond a full burst is remembered as debt; see ``Rule.take``."""
        start = now * self.scale
        owed = 0 if state is None else max(0, self.ticks(state) - start)
        ledger = self._arrived(state, now, owed)
        wanted = owed + units * self.interval
        owed = max(owed, min(wanted, self.depth + MAX_RECOVERY_NS * self.scale))
        return self._state(start + owed, ledger, max(0, owed - self.depth))

    def scaled(self, state: TatState, now: int, old: Gcra) -> TatState:
        """The same share of the burst in use, rounded up; what is charged already stays charged; see ``Rule.scaled``."""
        owed, _ = old._owed(state, now * old.scale)
        settled = Ledger(GivenBack(now, NOTHING_YET, 0, self._paid_at(state)), [])
        return self._state(now * self.scale + min(self.depth, -(-owed * self.depth // old.depth)), settled)

    def clears_after(self, state: TatState | None, now: int, units: int) -> int:
        """See ``Rule.clears_after``."""
        owed, _ = self._owed(state, now * self.scale)
        return self._up(max(0, owed + units * self.interval - self.depth))

    def expires_at(self, state: TatState) -> int:
        """The TAT itself, rounded up, or when the last reservation ends: a commit still needs what has recovered.

        What was given back is remembered as long as a charge from before could still be refunded.
        """
        if isinstance(state, int):
            return state
        return max(self._paid_at(state), *state[6::4]) if len(state) > 3 else self._paid_at(state)

    def dump(self, state: TatState) -> tuple[int, ...]:
        """(ticks, ticks per nanosecond), then debt and reservations if there are any."""
        return (state, 1) if isinstance(state, int) else state

    def load(self, numbers: tuple[int, ...]) -> TatState:
        """See ``dump``; another quota's ticks are converted when they are used."""
        if len(numbers) != 2 and len(numbers) % 4 != 3:  # a debt comes with the records behind it, four numbers each
            raise ValueError(f"{len(numbers)} numbers are no TAT")
        if numbers[1] < 1:
            raise ValueError(f"a TAT has no {numbers[1]} ticks per nanosecond")
        return numbers[0] if len(numbers) == 2 and numbers[1] == 1 else numbers

    def _paid_at(self, state: TatState) -> int:
        """The TAT itself, rounded up: from then on the key owes nothing."""
        return state if isinstance(state, int) else -(-state[0] // state[1])

    def ticks(self, state: TatState) -> int:
        """The TAT in this rule's ticks, rounded up (never in the caller's favour) when another quota wrote it."""
        ticks, scale = (state, 1) if isinstance(state, int) else state[:2]
        return self._converted(ticks, scale)

    def _charged(self, receipt: Receipt, tat: int, start: int) -> int:
        """The TAT just after a charge, in ticks; what the receipt says was rounded up to whole nanoseconds.

        While the charge is not paid the key has not been idle since, so the TAT lies whole intervals beyond it.

        Args:
            receipt: the charge's.
            tat: where the TAT would be if nothing had been given back.
            start: now, in ticks.
        """
        at_most = (receipt.at + receipt.outcome.reset_after) * self.scale
        at_least = at_most - self.scale + 1
        exact = at_least + (tat - at_least) % self.interval
        return exact if exact <= at_most and (at_least > start or tat <= at_most) else at_least

    def _state(self, ticks: int, ledger: Ledger = NOTHING, debt: int = 0) -> TatState:
        if ledger.records or ledger.given or debt:
            return (ticks, self.scale, debt, *pack(ledger))
        return ticks if self.scale == 1 else (ticks, self.scale)

    def _owed(self, state: TatState | None, start: int) -> tuple[int, bool]:
        """How far the TAT lies ahead, in ticks, and whether it had to be capped."""
        if state is None:
            return 0, False
        owed = self.ticks(state) - start
        if owed > self.depth + self.slack * self.scale:
            honest = self.depth + self._debt(state)
            if owed > honest + self.slack * self.scale:
                return honest, True
        return max(owed, 0), False

    def _arrived(self, state: TatState | None, now: int, owed: int) -> Ledger:
        """The ledger after an arrival that found ``owed`` ticks."""
        ledger = self._ledger(state, now)
        return ledger._replace(records=after_arrival(ledger.records, owed)) if ledger.records else ledger

    def _ledger(self, state: TatState | None, now: int) -> Ledger:
        if state is None or isinstance(state, int) or len(state) < 4:
            return NOTHING
        given, records = unpack(state[3:], now)
        if state[1] == self.scale:
            return Ledger(given, records)
        if given is not None:
            given = given._replace(
                ticks=self._converted(given.ticks, state[1]), floor=given.floor * self.scale // state[1]
            )
        records = [
            record._replace(charged=record.charged * self.scale // state[1], low=record.low * self.scale // state[1])
            for record in records
        ]
        return Ledger(given, records)

    def _debt(self, state: TatState | None) -> int:
        """Ticks beyond a full burst that were charged without asking."""
        return 0 if state is None or isinstance(state, int) or len(state) < 3 else self._converted(state[2], state[1])

    def _converted(self, ticks: int, scale: int) -> int:
        return ticks if scale == self.scale else -(-ticks * self.scale // scale)

    def _up(self, ticks: int) -> int:
        return -(-ticks // self.scale)

    def _standing(self, owed: int) -> tuple[int, int, int]:
        """(remaining, replenish-after, reset-after) when the TAT lies ``owed`` ticks ahead."""
        remaining = max(0, (self.depth - owed) // self.interval)
        next_level = self.depth - (remaining + 1) * self.interval
        replenish = owed - next_level if next_level >= 0 else owed
        return remaining, self._up(replenish) if owed else 0, self._up(owed)

    def _admitted(self, owed: int) -> Admitted:
        return Admitted(*self._standing(owed))
