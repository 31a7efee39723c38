"""``SqliteLane``: a fixed list of limits on one SQLite file, decided again and again: no charges, no outcomes made.

As in ``lane``, GCRA with a whole number of nanoseconds per unit is decided in line, which a benchmark paid for; anything
unusual, and every other algorithm, goes to ``core.bill.settle``; and what was decided is the states before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sqlite3 import Cursor
from typing import Final, TypeAlias

from headway.core.bill import settle
from headway.core.gcra import Gcra
from headway.core.key import LONGEST_KEPT, Key, encode_key, kept, key_prefix
from headway.core.limit import Limit
from headway.core.rule import Rule, State
from headway.stores.clock import Clock

__all__ = ["LATEST", "Row", "ShortWay", "SqliteLane", "numbers_of", "row_key", "row_of"]

LATEST: Final = 2**63 - 1
"""The last nanosecond that a column holds."""

Row: TypeAlias = tuple[bytes, str | None, int]
"""A key, its state's text (None: it owes nothing any more), and when it may be forgotten."""

ShortWay: TypeAlias = Callable[[Sequence[Key], Sequence[int]], tuple[bool, int, Sequence[State | None]]]
"""From one key and one cost above 0 per limit to: admitted, the clock in ns since 1970, each key's state before."""

Answered: TypeAlias = tuple[bool, int, Sequence[State | None]]


class SqliteLane:
    """The way of a limiter's limits, none of them a shadow, through a SQLite store.

    Args:
        namespace: the limiter's.
        limits: the limits.
        clock: the store's.
        transact: does some work in one transaction, which begins with the given statement.
        read: the texts of some keys.
        write: writes rows, at the given time.
    """

    __slots__ = ("_clock", "_limits", "_namespace", "_prefixes", "_read", "_rules", "_transact", "_whole", "_write")

    def __init__(
        self,
        namespace: str,
        limits: Sequence[Limit],
        clock: Clock,
        transact: Callable[[Callable[[Cursor], Answered], str], Answered],
        read: Callable[[Cursor, Sequence[bytes]], Sequence[str | None]],
        write: Callable[[Cursor, Sequence[Row], int], None],
    ) -> None:
        self._namespace = namespace
        self._limits = limits
        self._clock, self._transact, self._read, self._write = clock, transact, read, write
        self._rules = [limit.rule for limit in limits]
        self._prefixes = [
            key_prefix(namespace, limit.name, limit.algorithm.stored, limit.by) + b"t%d:" % len(limit.by)
            for limit in limits
        ]
        whole = [(rule.interval, rule.depth) for rule in self._rules if isinstance(rule, Gcra) and rule.scale == 1]
        self._whole = whole if len(whole) == len(limits) else []

    def __call__(self, keys: Sequence[Key], costs: Sequence[int]) -> Answered:
        """Decide all limits at once; see ``ShortWay``.

        Raises:
            StoreUnavailable: the file could not be read or written; nothing was.
        """
        names = [
            b"%bs%d:%b" % (prefix, len(raw := key.encode("utf-8", "surrogatepass")), raw)
            if key.__class__ is str and len(key) <= LONGEST_KEPT
            else row_key(self._namespace, limit, key)
            for prefix, limit, key in zip(self._prefixes, self._limits, keys, strict=True)
        ]

        def work(cursor: Cursor) -> Answered:
            texts = self._read(cursor, names)
            now = self._clock()  # not before: what others have written by then was written at no later time
            decided = self._in_line(names, texts, costs, now) if self._whole else None
            allowed, before, rows = decided or self._settle(names, texts, costs, now)
            if rows:
                self._write(cursor, rows, now)
            return allowed, now, before

        return self._transact(work, "BEGIN")

    def _in_line(
        self, names: Sequence[bytes], texts: Sequence[str | None], costs: Sequence[int], now: int
    ) -> tuple[bool, Sequence[State | None], Sequence[Row]] | None:
        """``core.bill.settle`` over ``core.gcra.Gcra.decide``, inlined; None where there is anything unusual."""
        if not self._whole or now < -LATEST:
            return None
        before: list[State | None] = []
        rows: list[Row] = []
        allowed = True
        for (interval, depth), name, text, cost in zip(self._whole, names, texts, costs, strict=True):
            tat = None
            owed = 0
            if text is not None:
                if text[-2:] != ":1" or text.count(":") != 1:
                    return None  # in another quota's ticks, or with reservations
                tat = int(text[:-2])
                owed = tat - now
            wanted = (owed if owed > 0 else 0) + cost * interval
            if wanted > depth:
                if owed > depth or cost * interval > depth:
                    return None  # to be capped, or never admitted
                allowed = False
            before.append(tat)
            rows.append((name, f"{now + wanted}:1", min(now + wanted, LATEST)))
        return allowed, before, rows if allowed else ()

    def _settle(
        self, names: Sequence[bytes], texts: Sequence[str | None], costs: Sequence[int], now: int
    ) -> tuple[bool, Sequence[State | None], Sequence[Row]]:
        """The long way, for everything."""
        states = [
            None if text is None else rule.load(numbers_of(text)) for rule, text in zip(self._rules, texts, strict=True)
        ]
        settled = settle(self._rules, states, costs, now)
        rows: list[Row] = [
            (names[index], None, 0) if new is None else (names[index], *row_of(self._rules[index], new))
            for index, new in settled.writes
        ]
        return settled.allowed, states, rows


def row_key(namespace: str, limit: Limit, key: Key) -> bytes:
    """Under what a key's state is kept: ``Charge.stored_key``, with the digest of a long key in its place."""
    short = kept(key)
    parts: tuple[Key, ...] = key if short is key and isinstance(key, tuple) and len(limit.by) != 1 else (short,)
    return encode_key(namespace, limit.name, limit.algorithm.stored, limit.by, parts)


def row_of(rule: Rule, state: State) -> tuple[str, int]:
    """A state's text, and when its key may be forgotten."""
    return ":".join(map(str, rule.dump(state))), max(-LATEST, min(rule.expires_at(state), LATEST))


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers of a stored state's text."""
    return tuple(map(int, text.split(":")))
