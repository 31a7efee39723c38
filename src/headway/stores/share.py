"""``ShareStore``: what ``on_store_failure = local`` decides by while the store is away: this process's share of each limit.

With N processes and a share of 1/N they admit together about what the store would have admitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Algorithm, Limit
from headway.core.quota import MAX_COUNT, MAX_RECOVERY_NS
from headway.stores.base import Answer
from headway.stores.clock import Clock
from headway.stores.memory import MemoryStore

__all__ = ["ShareStore", "read_share", "shared_limit"]

_MOST_REMEMBERED: Final = 4096


class ShareStore(MemoryStore):
    """A memory store that decides by a share of every limit.

    Args:
        share: above 0, up to 1.
        clock: see ``MemoryStore``.
    """

    def __init__(self, share: Fraction, *, clock: Clock | None = None) -> None:
        super().__init__(clock=clock)
        self.share = share
        self._limits: dict[int, tuple[Limit, Limit]] = {}

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        return super().advance([replace(charge, limit=self._shared(charge.limit)) for charge in charges], commit=commit)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        return super().change(
            [
                replace(change, charge=replace(change.charge, limit=self._shared(change.charge.limit)))
                for change in changes
            ]
        )

    def _shared(self, limit: Limit) -> Limit:
        found = self._limits.get(id(limit))
        if found is None or found[0] is not limit:
            if len(self._limits) >= _MOST_REMEMBERED:
                self._limits.clear()
            found = self._limits[id(limit)] = limit, shared_limit(limit, self.share)
        return found[1]


def read_share(value: Any) -> Fraction:
    """A share, of a number or a text such as "1/4".

    Raises:
        ValueError: it is none; says what is accepted.
    """
    try:
        share = Fraction(value)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise ValueError("expected a fraction above 0 and up to 1, such as '1/4'")
    return share


def shared_limit(limit: Limit, share: Fraction) -> Limit:
    """A limit that grants ``share`` of another one: its rate exactly where it is a rate, never less than one unit.

    A growing wait, and a quota whose share could not be written as one, are kept whole.
    """
    quota = limit.quota
    if share == 1 or quota.count == 0 or limit.algorithm is Algorithm.GROWING_WAIT:
        return limit
    burst = max(1, int(quota.burst * share))
    if limit.algorithm.stored == "gcra":
        count, period = quota.count * share.numerator, quota.period_ns * share.denominator
        if count > MAX_COUNT or burst * period > MAX_RECOVERY_NS * count:
            return limit
        changed = replace(quota, count=count, period_ns=period, burst=burst)
    else:
        changed = replace(quota, count=max(1, int(quota.count * share)), burst=None)  # type: ignore[arg-type]  # the count
    return replace(limit, quota=changed, undelayed=min(limit.undelayed, burst))
