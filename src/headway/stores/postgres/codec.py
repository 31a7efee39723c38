"""Bills in the words of ``advance``, and its answers in ours. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from headway.core.block import Block
from headway.core.calendar_window import CalendarWindow
from headway.core.charge import Charge
from headway.core.fixed_window import FixedWindow
from headway.core.gcra import Gcra
from headway.core.growing_wait import GrowingWait
from headway.core.leaky_bucket import LeakyBucketQueue
from headway.core.limit import Limit
from headway.core.rule import Rule, State
from headway.core.sliding_log import SlidingLog
from headway.core.sliding_window import SlidingWindow

__all__ = ["Bill", "bill", "lock_of", "read_state", "row"]

_DAY = 86_400 * 1_000_000_000
_LATEST = 2**63 - 1


class Bill(NamedTuple):
    """The arguments of ``advance`` but the last."""

    locks: list[int]
    keys: list[bytes]
    kinds: list[str]
    parameters: list[str]
    costs: list[Any]
    shadows: list[bool]


def bill(charges: Sequence[Charge], now: int) -> Bill | None:
    """A bill for ``advance``; None for one that only the rules themselves decide (leases, flexible costs).

    Args:
        charges: of different keys.
        now: about the time, ns since 1970: which calendar windows may be open.
    """
    if any(charge.lease is not None or charge.flexible for charge in charges):
        return None
    keys = [charge.stored_key() for charge in charges]
    said = [_said(charge.limit.rule, now) for charge in charges]
    if None in said:
        return None
    return Bill(
        sorted({lock_of(key) for key in keys}),
        keys,
        [kind for kind, _ in said],  # type: ignore[misc]  # none is None
        [":".join(map(str, numbers)) for _, numbers in said],  # type: ignore[misc]  # none is None
        [charge.cost for charge in charges],
        [charge.limit.shadow for charge in charges],
    )


def lock_of(key: bytes) -> int:
    """The advisory lock of a key: 64 bits of its hash. Two keys of one lock only wait for each other."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8, person=b"headway").digest(), "big", signed=True)


def read_state(limit: Limit, text: str | None) -> State | None:
    """A stored state."""
    return None if text is None else limit.rule.load(tuple(map(int, text.split(":"))))


def row(limit: Limit, state: State | None) -> tuple[str | None, int]:
    """What is stored of a state, and from when it may be forgotten (ns since 1970)."""
    if state is None:
        return None, 0
    return ":".join(map(str, limit.rule.dump(state))), min(limit.rule.expires_at(state), _LATEST)


def _said(rule: Rule, now: int) -> tuple[str, tuple[int, ...]] | None:
    match rule:
        case Block():
            return "block", (0,)
        case Gcra(interval, depth, scale):
            return "gcra", (interval, depth, scale)
        case LeakyBucketQueue(Gcra(interval, depth, scale)):
            return "gcra", (interval, depth, scale)
        case FixedWindow(burst, period, anchored, count_refused):
            return "window", (burst, int(count_refused), int(anchored), period)
        case CalendarWindow():
            return "window", (rule.burst, int(rule.count_refused), 2, *_boundaries(rule, now))
        case SlidingWindow(burst, period):
            return "sliding-window", (burst, period)
        case SlidingLog(burst, period):
            return "sliding-log", (burst, period)
        case GrowingWait(burst, first, longest, forgiven_after):
            return "growing-wait", (burst, first, longest, forgiven_after)
        case _:
            return None


def _boundaries(rule: CalendarWindow, now: int) -> tuple[int, ...]:
    """The ends of the windows around ``now``, for a server whose clock is not quite ours."""
    start, end = rule.window(now)
    before, _ = rule.window(start - 1)
    _, after = rule.window(end)
    return before, start, end, after
