"""Charges and changes in the words of the functions of ``schema.sql``, and what they answer in ours. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headway.core.block import Block
from headway.core.calendar_window import CalendarWindow
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.concurrency import Concurrency
from headway.core.fixed_window import FixedWindow
from headway.core.gcra import Gcra
from headway.core.growing_wait import GrowingWait
from headway.core.key import key_prefix
from headway.core.leaky_bucket import LeakyBucketQueue
from headway.core.limit import Limit
from headway.core.rule import Rule, State
from headway.core.sliding_log import SlidingLog
from headway.core.sliding_window import SlidingWindow
from headway.errors import LimitError, StoreUnusable

__all__ = [
    "DAMAGED",
    "Lines",
    "array_of",
    "bill",
    "change_lines",
    "foreign",
    "hit_of",
    "kept",
    "kept_prefix",
    "key_of",
    "lock_of",
    "locks_of",
    "read_state",
    "row",
    "said",
]

_LATEST: Final = 2**63 - 1
_MOST_DEPTH: Final = 2**61
"""Ns, 73 years: until the year 2115 a clock and two of them are less than 2**63."""

_WINDOWS_AROUND: Final = 4
_MOST_REMEMBERED: Final = 4096


_LONGEST_KEY: Final = 1000
_LONGEST_PREFIX: Final = 500
"""Bytes: an index of PostgreSQL takes keys of 2,704 at most."""


DAMAGED: Final = "22P02"
"""The SQLSTATE of text that is not of its type."""


class Lines(NamedTuple):
    """The first arguments of ``advance`` and ``change``, as PostgreSQL writes arrays: psycopg takes longer to."""

    locks: str
    keys: str
    kinds: str
    numbers: str


def bill(charges: Sequence[Charge], now: int) -> Lines:
    """The arguments of ``advance``.

    Args:
        charges: of different keys.
        now: about the store's clock, ns since 1970: which calendar windows may be open.
    """
    keys = [key_of(charge) for charge in charges]
    kinds, numbers = [], []
    for charge in charges:
        kind, parameters = said(charge.limit, now)
        token, ttl = (0, 0) if charge.lease is None else charge.lease
        kinds.append(kind)
        numbers.append(f"{charge.cost}:{int(charge.limit.shadow)}:{int(charge.flexible)}:{token}:{ttl}:{parameters}")
    return Lines(locks_of(keys), array_of(keys), _array(kinds), _array(numbers))


class Hit(NamedTuple):
    """The arguments of ``hit`` but the time."""

    lock: int
    key: bytes
    line: str
    step: int | None
    depth: int | None


def hit_of(charge: Charge) -> Hit | None:
    """The arguments of ``hit``; None for a charge that ``advance`` has to decide."""
    limit = charge.limit
    if charge.cost == 0 or charge.lease is not None or charge.flexible or limit.shadow:
        return None
    kind, parameters = said(limit, 0)
    if kind != "gcra":
        return None
    key = key_of(charge)
    return Hit(lock_of(key), key, f"{charge.cost}:{parameters}", *steps_of(limit, charge.cost))


def steps_of(limit: Limit, cost: int) -> tuple[int | None, int | None]:
    """The ns of a cost and of a full burst of GCRA, where both are whole ns and the cost may pass; else None."""
    rule = limit.rule
    gcra = rule.gcra if isinstance(rule, LeakyBucketQueue) else rule
    if isinstance(gcra, Gcra) and gcra.scale == 1 and cost * gcra.interval <= gcra.depth <= _MOST_DEPTH:
        return cost * gcra.interval, gcra.depth
    return None, None


def change_lines(changes: Sequence[Change], now: int, *, undo: bool) -> Lines:
    """The arguments of ``change``.

    Args:
        changes: in their order.
        now: as for ``bill``.
        undo: they take off charges that were made a moment ago and that nobody was told of: all of them, where giving back
            several would be careful.
    """
    keys = [key_of(change.charge) for change in changes]
    kinds, numbers = [], []
    for change in changes:
        limit, lease, receipt = change.charge.limit, change.charge.lease, change.receipt
        kind, parameters = said(limit, now)
        late = -1 if lease is None else receipt.at + lease.ttl
        mode = int(lease is not None and limit.algorithm.stored == "gcra")
        if undo and receipt.token == 0:
            mode = 2
        kinds.append(kind)
        numbers.append(
            f"{change.give_back}:{change.take}:{int(change.renew)}:{late}:{mode}:"
            f"{receipt.cost}:{receipt.token}:{receipt.at}:{receipt.outcome.reset_after}:{parameters}"
        )
    return Lines(locks_of(keys), array_of(keys), _array(kinds), _array(numbers))


def key_of(charge: Charge) -> bytes:
    """Under what a charge's counter is kept."""
    limit = charge.limit
    return kept(charge.stored_key(), key_prefix(charge.namespace, limit.name, limit.algorithm.stored, limit.by))


def kept(key: bytes, prefix: bytes) -> bytes:
    """A stored key as it is, or by its digest where an index could not hold it: no part of a key begins with an h.

    Args:
        key: the whole key.
        prefix: what it begins with, as all of its limit.
    """
    if len(key) <= _LONGEST_KEY and len(prefix) <= _LONGEST_PREFIX:
        return key
    return kept_prefix(prefix) + b"h" + hashlib.sha256(key).digest()


def kept_prefix(prefix: bytes) -> bytes:
    """What all kept keys of one limit begin with, and no other's."""
    return prefix if len(prefix) <= _LONGEST_PREFIX else prefix[:2] + b"h" + hashlib.sha256(prefix).digest()


def locks_of(keys: Sequence[bytes]) -> str:
    """The locks of keys, each once, in the order in which everybody takes them; as PostgreSQL writes arrays."""
    return _array(map(str, sorted({lock_of(key) for key in keys})))


def array_of(keys: Sequence[bytes]) -> str:
    """Keys as PostgreSQL writes arrays."""
    return _array(f'"\\\\x{key.hex()}"' for key in keys)


def _array(parts: Iterable[str]) -> str:
    return f"{{{','.join(parts)}}}"


def lock_of(key: bytes) -> int:
    """The advisory lock of a key: 64 bits of its hash. Two keys of one lock only wait for each other."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8, person=b"headway").digest(), "big", signed=True)


def read_state(limit: Limit, text: str | None) -> State | None:
    """A stored state.

    Raises:
        StoreUnusable: it is none: somebody else wrote it.
    """
    if not text:
        return None
    try:
        numbers = tuple(map(int, text.split(":")))
        return limit.rule.load(numbers)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise foreign(f"{text[:40]!r} in a row of limit {limit.name!r}") from error


def foreign(what: str) -> StoreUnusable:
    """The error of rows that hold what no state is."""
    error = StoreUnusable(f"PostgreSQL: {what} is nothing that headway wrote; `headway store reset` forgets it")
    error.sqlstate = DAMAGED  # type: ignore[attr-defined]  # as psycopg's errors: the server is not away
    return error


def row(limit: Limit, state: State | None) -> tuple[str | None, int]:
    """What is stored of a state, and from when it may be forgotten (ns since 1970)."""
    if state is None:
        return None, 0
    return ":".join(map(str, limit.rule.dump(state))), min(limit.rule.expires_at(state), _LATEST)


def said(limit: Limit, now: int) -> tuple[str, str]:
    """A limit's kind and its rule's parameters, joined by ':'; ``now`` as for ``bill``."""
    rule = limit.rule
    if isinstance(rule, CalendarWindow):
        return "window", _calendar(limit, rule, now)
    found = _remembered.get(id(limit))
    if found is not None and found[0] is limit:
        return found[1]
    kind, numbers = _said(limit, rule)
    text = kind, ":".join(map(str, numbers))
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    _remembered[id(limit)] = limit, text
    return text


_remembered: dict[int, tuple[Limit, tuple[str, str]]] = {}


def _said(limit: Limit, rule: Rule) -> tuple[str, tuple[int, ...]]:
    match rule:
        case Block():
            return "block", (0,)
        case Gcra(interval, depth, scale) | LeakyBucketQueue(Gcra(interval, depth, scale)):
            return "gcra", (interval, depth, scale)
        case FixedWindow(burst, period, anchored, count_refused):
            return "window", (burst, int(count_refused), int(anchored), period)
        case SlidingWindow(burst, period):
            return "sliding-window", (burst, period)
        case SlidingLog(burst, period):
            return "sliding-log", (burst, period)
        case Concurrency(burst, ttl):
            return "concurrency", (burst, ttl)
        case GrowingWait(burst, first, longest, forgiven_after):
            return "growing-wait", (burst, first, longest, forgiven_after)
        case _:
            raise LimitError(f"limit {limit.name!r}: {type(rule).__name__} has no translation for PostgreSQL")


def _calendar(limit: Limit, rule: CalendarWindow, now: int) -> str:
    """The parameters of a calendar's rule, remembered as long as the clock stays in one window."""
    known = _calendars.get(id(limit))
    if known is None or not known[0] <= now < known[1]:
        boundaries = _boundaries(rule, now)
        text = f"{rule.burst}:{int(rule.count_refused)}:2:{':'.join(map(str, boundaries))}"
        if len(_calendars) >= _MOST_REMEMBERED:
            _calendars.clear()
        known = _calendars[id(limit)] = boundaries[1], boundaries[2], text, limit  # whose id is nobody else's meanwhile
    return known[2]


_calendars: dict[int, tuple[int, int, str, Limit]] = {}


def _boundaries(rule: CalendarWindow, now: int) -> list[int]:
    """Where some windows around ``now`` begin, for a server whose clock is not quite ours."""
    start, end = rule.window(now)
    boundaries = [rule.window(start - 1)[0], start, end]
    while len(boundaries) < _WINDOWS_AROUND + 1:
        boundaries.append(rule.window(boundaries[-1])[1])
    return boundaries
