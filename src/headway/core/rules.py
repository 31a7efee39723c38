"""From a limit to its rule. Each algorithm's module is loaded by the first limit that needs it: most programs use one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core.quota import print_duration
from headway.core.rule import Rule
from headway.errors import LimitError

if TYPE_CHECKING:
    from headway.core.limit import Limit

__all__ = ["rule_of"]


def rule_of(limit: Limit) -> Rule:
    """The rule of a limit whose other fields are checked already.

    Raises:
        LimitError: a growing wait whose longest wait or quiet time is too short.
        QuotaError: a zone that is not known here.
    """
    quota = limit.quota
    if quota.count == 0:
        from headway.core.block import Block

        return Block()
    match limit.algorithm.value:
        case "calendar-window":
            from headway.core.calendar_window import CalendarWindow

            return CalendarWindow.of(quota, count_refused=limit.count_refused)
        case "fixed-window" | "anchored-window" as kind:
            from headway.core.fixed_window import FixedWindow

            return FixedWindow(quota.count, quota.period_ns, kind == "anchored-window", limit.count_refused)
        case "sliding-window":
            from headway.core.sliding_window import SlidingWindow

            return SlidingWindow(quota.count, quota.period_ns)
        case "sliding-log":
            from headway.core.sliding_log import SlidingLog

            return SlidingLog(quota.count, quota.period_ns)
        case "concurrency":
            from headway.core.concurrency import Concurrency

            return Concurrency(quota.count, quota.period_ns)
        case "leaky-bucket-queue":
            from headway.core.leaky_bucket import LeakyBucketQueue

            return LeakyBucketQueue.of(quota, limit.undelayed)
        case "growing-wait":
            return _growing_wait(limit)
        case _:
            from headway.core.gcra import Gcra

            return Gcra.of(quota)


def _growing_wait(limit: Limit) -> Rule:
    from headway.core.growing_wait import GrowingWait

    first = -(-limit.quota.period_ns // limit.quota.count)
    if not first <= limit.longest <= limit.forgiven_after:
        raise LimitError(
            f"limit {limit.name!r}: a growing wait begins with {print_duration(first)}, so longest "
            f"({print_duration(limit.longest)}) must be at least that, and forgiven_after "
            f"({print_duration(limit.forgiven_after)}) at least longest"
        )
    return GrowingWait(limit.quota.burst, first, limit.longest, limit.forgiven_after)
