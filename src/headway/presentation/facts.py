"""What header fields say of a verdict, as whole numbers, before any syntax: one ``Advertised`` a limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

from headway.core.outcome import Never, Refused
from headway.core.quota import DAY, Quota
from headway.core.verdict import Verdict
from headway.errors import LimitError
from headway.presentation.rounding import seconds_up

__all__ = ["MAX_INTEGER", "Advertised", "advertise", "advertised_quota", "retry_after_seconds"]

MAX_INTEGER: Final = 999_999_999_999_999
"""The largest Integer of a Structured Field (RFC 9651 §3.3.1)."""

_SECOND: Final = 1_000_000_000
_SLOWEST_SPEND: Final = 60
"""Seconds in which a client that divides r by t is never invited to spend more than a whole day's quota."""
_SMALL: Final = 60
"""Units that may be named whatever t is: no server is hurt by so few."""


class Advertised(NamedTuple):
    """One limit as header fields show it.

    Attributes:
        name: the limit's.
        quota: units a window: ``q``.
        window: whole seconds, at least 1: ``w``.
        burst: the most units at once.
        own_count: the quota's own count; equal to ``quota`` unless the period is no whole number of seconds.
        remaining: units that could be spent now, 0 to burst; None where the store did not say.
        replenish: seconds until more than ``remaining`` can be spent, rounded up; None when nothing is owed.
        reset: ns until the limit is as if unused.
        cost: units this request asked for, or None where that is not known.
        partition_key: an opaque tag of the key that was counted, or None.
        concurrent: the quota counts what is held at once; ``window`` is then how long a unit is held at most.
    """

    name: str
    quota: int
    window: int
    burst: int
    own_count: int
    remaining: int | None
    replenish: int | None
    reset: int
    cost: int | None = None
    partition_key: bytes | None = None
    concurrent: bool = False

    @property
    def may_be_capped(self) -> bool:
        """The window is so long that ``offered`` may be less than ``remaining``."""
        return not self.concurrent and self.window * _SECOND >= DAY

    @property
    def offered(self) -> int:
        """``remaining``, capped where remaining ÷ replenish would invite a day's quota to be spent in under a minute.

        The draft's server rule (-11, "SHOULD cap the ratio"): only for windows of a day or longer, and never below
        60 units, so what small quotas show is always exact.
        """
        remaining = self.remaining or 0
        if self.replenish is None or not self.may_be_capped:
            return remaining
        return min(remaining, max(_SMALL, self.quota * self.replenish // _SLOWEST_SPEND))


@lru_cache(maxsize=1024)
def advertised_quota(quota: Quota) -> tuple[int, int]:
    """(q, w): the quota as units per whole seconds, the same ratio: "5 per 250 ms" is (20, 1), "2 per 1.5 s" is (4, 3).

    Where the exact ratio needs more than 15 digits, w is the period rounded up and q rounded down: never more.
    """
    common = gcd(quota.period_ns, _SECOND)
    window, scale = quota.period_ns // common, _SECOND // common
    count = quota.count * scale
    if window > MAX_INTEGER or count > MAX_INTEGER:
        window = seconds_up(quota.period_ns)
        count = min(MAX_INTEGER, quota.count * window * _SECOND // quota.period_ns)
    return count, window


def advertise(verdict: Verdict, partition_keys: Sequence[bytes | None] = ()) -> tuple[Advertised, ...]:
    """Every limit of the verdict that is enforced, in the policy's order; shadow limits are nobody's business.

    Raises:
        LimitError: partition keys were given, but not one (or None) for each limit.
    """
    if partition_keys and len(partition_keys) != len(verdict.limits):
        raise LimitError(
            f"{len(partition_keys)} partition keys for {len(verdict.limits)} limits; expected one or None for each"
        )
    lines = []
    for index, (limit, outcome) in enumerate(zip(verdict.limits, verdict.outcomes, strict=True)):
        if limit.shadow:
            continue
        quota, window = advertised_quota(limit.quota)
        lines.append(
            Advertised(
                limit.name,
                quota,
                window,
                limit.quota.burst,
                limit.quota.count,
                None if outcome is None else outcome.remaining,
                seconds_up(outcome.replenish_after) if outcome is not None and outcome.replenish_after else None,
                outcome.reset_after if outcome is not None else 0,
                verdict.costs[index] if verdict.costs else None,
                partition_keys[index] if partition_keys else None,
                limit.quota.concurrent,
            )
        )
    return tuple(lines)


def retry_after_seconds(verdict: Verdict) -> int | None:
    """``Retry-After``: whole seconds, rounded up, at least 1; None when admitted or when no wait helps.

    Never less than ``t`` of any violated limit (draft -11: not earlier than the end of the effective window).
    """
    wait = verdict.retry_after
    if verdict.allowed or wait is None:
        return None
    violated = (
        seconds_up(outcome.replenish_after)
        for limit, outcome in zip(verdict.limits, verdict.outcomes, strict=True)
        if isinstance(outcome, Refused | Never) and not limit.shadow
    )
    return max(1, seconds_up(wait), *violated)
