"""What a PostgreSQL store asks for, once for both kinds of connection: generators that yield trips to the server."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from headway.core.bill import settle
from headway.core.calendar_window import CalendarWindow
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import key_prefix
from headway.core.limit import Limit
from headway.core.rule import State
from headway.errors import StoreError, StoreUnavailable
from headway.stores.base import Answer, settled_bill
from headway.stores.postgres.codec import (
    Hit,
    array_of,
    bill,
    change_lines,
    foreign,
    hit_of,
    kept_prefix,
    key_of,
    locks_of,
    read_state,
    row,
)

__all__ = [
    "Advanced",
    "Flow",
    "Trip",
    "advance",
    "advanced",
    "change",
    "clear",
    "clears_after",
    "hit",
    "requota",
    "reset",
    "told",
]

_PAGE: Final = 500


class Trip(NamedTuple):
    """One statement.

    Attributes:
        text: with %s for each argument.
        values: the arguments.
        ends: the transaction ends with it; a trip that does not end one leaves it open for the next.
    """

    text: str
    values: tuple[Any, ...]
    ends: bool = True


class Advanced(NamedTuple):
    """A bill's answer, and where to go on looking for recovered keys (None: it was not looked)."""

    answer: Answer
    reached: bytes | None


_Value = TypeVar("_Value")
Rows = list[tuple[Any, ...]]
Flow = Generator[Trip, Rows, _Value]


def hit(schema: str, asked: Hit, at: int | None) -> Flow[tuple[bool, int, str]]:
    """One plain charge of GCRA: whether it is admitted, the store's clock, the state before as it is stored."""
    text = f"SELECT {schema}.hit(%s, %s, %s, %s::bigint, %s::bigint, %s)"
    [(said,)] = yield Trip(text, (*asked, at))
    return told(said)


def told(said: str) -> tuple[bool, int, str]:
    """What ``hit`` says."""
    decided_at, allowed, before = said.split(" ", 2)
    return allowed == "1", int(decided_at), before


def advance(
    schema: str, charges: Sequence[Charge], commit: bool, now: int, at: int | None, past: bytes | None
) -> Flow[Advanced]:
    """One call of ``advance``, or of ``hit``; a second one where the server's clock is in quite another calendar window.

    Args:
        schema: the schema's name, in quotes.
        charges: the bill.
        commit: False for a peek.
        now: about the server's clock.
        at: the time to decide by, in tests.
        past: where to go on looking for recovered keys; None: not now.
    """
    asked = hit_of(charges[0]) if len(charges) == 1 and commit and past is None else None
    if asked is not None:
        charge = charges[0]
        allowed, decided_at, before = yield from hit(schema, asked, at)
        settled = settle([charge.limit.rule], [read_state(charge.limit, before)], [charge.cost], decided_at)
        _agree(allowed, settled.allowed)
        return Advanced(Answer(allowed, decided_at, settled.outcomes, (charge.cost,)), None)
    text = f"SELECT {schema}.advance(%s::bigint[], %s::bytea[], %s::text[], %s::text[], %s, %s, %s, %s)"
    bends = any(charge.flexible for charge in charges)
    for _ in range(2):
        [(said,)] = yield Trip(text, (*bill(charges, now), bends, commit, at, past))
        known, now, texts, reached = advanced(said, len(charges))
        if known is not None:
            states = [read_state(charge.limit, before) for charge, before in zip(charges, texts, strict=True)]
            settled, costs = settled_bill(charges, states, now)
            _agree(known, settled.allowed)
            return Advanced(Answer(known, now, settled.outcomes, costs), reached)
    raise _undecided([charge.limit for charge in charges])


def advanced(said: str, count: int) -> tuple[bool | None, int, list[str], bytes | None]:
    """What ``advance`` says: admitted (None: not to be decided so), the clock, the states before, where it looked to.

    Raises:
        StoreUnusable: there are not ``count`` states: somebody else wrote one.
    """
    decided_at, allowed, *states, reached = said.split(" ")
    known = None if allowed == "?" else allowed == "1"
    texts = states[0].split(",")
    if len(states) > 1 or (known is not None and len(texts) != count):
        raise foreign(f"{' '.join(states)[:80]!r} in rows of these limits")
    return known, int(decided_at), texts, None if reached == "-" else bytes.fromhex(reached)


def change(
    schema: str, changes: Sequence[Change], now: int, at: int | None, *, undo: bool = False
) -> Flow[tuple[bool, ...]]:
    """One call of ``change``; ``now`` and ``at`` as for ``advance``, ``undo`` as for ``change_lines``."""
    text = f"SELECT * FROM {schema}.change(%s::bigint[], %s::bytea[], %s::text[], %s::text[], %s)"
    for _ in range(2):
        [(now, in_time)] = yield Trip(text, (*change_lines(changes, now, undo=undo), at))
        if in_time is not None:
            return tuple(in_time)
    raise _undecided([change.charge.limit for change in changes])


def reset(schema: str, charges: Sequence[Charge]) -> Flow[None]:
    """Forget keys, in one step."""
    keys = [key_of(charge) for charge in charges]
    yield Trip(f"SELECT {schema}.reset(%s::bigint[], %s::bytea[])", (locks_of(keys), array_of(keys)))


def clears_after(schema: str, charge: Charge, at: int | None) -> Flow[tuple[int, int]]:
    """See ``Store.clears_after``."""
    text = f"SELECT coalesce(%s, {schema}.clock()), {schema}.look(%s::bytea[])"
    [(now, [before])] = yield Trip(text, (at, array_of([key_of(charge)])))
    return charge.limit.rule.clears_after(read_state(charge.limit, before), now, charge.cost), now


def requota(schema: str, namespace: str, old: Limit, new: Limit, at: int | None) -> Flow[int]:
    """Every key of a limit to the same share of the new quota; a page of keys in each transaction."""
    low, high = _range(namespace, new)
    count = 0
    while keys := (yield from _page(schema, low, high)):
        hold = f"SELECT * FROM {schema}.hold(%s::bigint[], %s::bytea[], %s)"
        [(now, texts)] = yield Trip(hold, (locks_of(keys), array_of(keys), at), ends=False)
        scaled: list[tuple[bytes, str | None, int]] = []
        for key, before in zip(keys, texts, strict=True):
            state: State | None = read_state(new, before)
            if state is not None:
                scaled.append((key, *row(new, new.rule.scaled(state, now, old.rule))))
        columns = [list(column) for column in zip(*scaled, strict=True)] if scaled else [[], [], []]
        yield Trip(f"SELECT {schema}.put(%s::bytea[], %s::text[], %s::bigint[])", tuple(columns))
        count += len(scaled)
        low = keys[-1]
    return count


def clear(schema: str, namespace: str, limit: Limit) -> Flow[int]:
    """Forget every key of a limit, a page of keys in each transaction; how many there were."""
    low, high = _range(namespace, limit)
    count = 0
    while keys := (yield from _page(schema, low, high)):
        yield Trip(f"SELECT {schema}.reset(%s::bigint[], %s::bytea[])", (locks_of(keys), array_of(keys)))
        count += len(keys)
        low = keys[-1]
    return count


def _page(schema: str, low: bytes, high: bytes) -> Flow[list[bytes]]:
    rows = yield Trip(f"SELECT {schema}.page(%s, %s, %s)", (low, high, _PAGE))
    return [bytes(key) for (key,) in rows]


def _undecided(limits: Sequence[Limit]) -> StoreError:
    """Why the functions could not say, though they were told the calendar around their own clock."""
    if any(isinstance(limit.rule, CalendarWindow) for limit in limits):
        return StoreUnavailable("PostgreSQL's clock moves by more than a window at a time")
    return foreign(f"a row of limit {' or '.join(repr(limit.name) for limit in limits)}")


def _agree(said: bool, worked_out: bool) -> None:
    if said != worked_out:
        raise StoreUnavailable("PostgreSQL's functions and this headway disagree: apply the schema of one version")


def _range(namespace: str, limit: Limit) -> tuple[bytes, bytes]:
    prefix = kept_prefix(key_prefix(namespace, limit.name, limit.algorithm.stored, limit.by))
    return prefix, prefix + b"\xff"
