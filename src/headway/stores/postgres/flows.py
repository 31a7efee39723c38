"""What a PostgreSQL store asks for, once for both kinds of connection: generators that yield trips to the server."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from headway.core.bill import settle
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import key_prefix
from headway.core.limit import Limit
from headway.core.rule import State
from headway.errors import StoreUnavailable
from headway.stores.base import Answer, settled_bill
from headway.stores.postgres.codec import bill, lock_of, read_state, row

__all__ = ["Flow", "Trip", "advance", "change", "clean", "clear", "clears_after", "requota", "reset"]

_PAGE = 500
_CLEAN_BATCH = 256


class Trip(NamedTuple):
    """Statements that travel together; the answer is the rows of each.

    Attributes:
        statements: (text with %s, arguments) in order.
        ends: the transaction ends with it; a trip that does not end one leaves it open for the next.
    """

    statements: tuple[tuple[str, tuple[Any, ...]], ...]
    ends: bool = True


_Result = TypeVar("_Result")
Rows = list[tuple[Any, ...]]
Flow = Generator[Trip, list[Rows], _Result]


def advance(schema: str, charges: Sequence[Charge], commit: bool, now: int, at: int | None) -> Flow[Answer]:
    """One call of ``advance``; what it leaves to the rules is decided here, with the keys held between two trips."""
    asked = bill(charges, now)
    if asked is not None:
        [[(decided_at, allowed, texts)]] = yield Trip(
            (
                (
                    f"SELECT * FROM {schema}.advance(%s::bigint[], %s::bytea[], %s::text[], %s::text[], %s::numeric[], "
                    "%s::boolean[], %s, %s)",
                    (*asked, commit, at),
                ),
            )
        )
        if allowed is not None:
            states = [read_state(charge.limit, text) for charge, text in zip(charges, texts, strict=True)]
            rules = [charge.limit.rule for charge in charges]
            settled = settle(rules, states, asked.costs, decided_at, shadows=asked.shadows)
            if settled.allowed != allowed:
                raise StoreUnavailable(
                    "PostgreSQL's functions and this headway disagree: apply the schema of one version"
                )
            return Answer(allowed, decided_at, settled.outcomes, tuple(asked.costs))
    held_at, states, keys = yield from _held(schema, charges, at)
    settled, costs = settled_bill(charges, states, held_at)
    writes = settled.writes if commit else ()
    yield from _put(schema, [(charges[index].limit, keys[index], state) for index, state in writes])
    return Answer(settled.allowed, held_at, settled.outcomes, costs)


def change(schema: str, changes: Sequence[Change], at: int | None) -> Flow[tuple[bool, ...]]:
    """Changes to charges, with their keys held."""
    charges = [change.charge for change in changes]
    held_at, states, keys = yield from _held(schema, charges, at)
    in_time = []
    writes: dict[bytes, tuple[Limit, bytes, State | None]] = {}
    now_states = dict(zip(keys, states, strict=True))
    for asked, key in zip(changes, keys, strict=True):
        state = now_states[key]
        new, in_time_too = asked.applied(state, held_at)
        in_time.append(in_time_too)
        if new is not state:
            now_states[key] = new
            writes[key] = (asked.charge.limit, key, new)
    yield from _put(schema, list(writes.values()))
    return tuple(in_time)


def reset(schema: str, charges: Sequence[Charge]) -> Flow[None]:
    """Forget keys, in one step."""
    keys = [charge.stored_key() for charge in charges]
    nothing: list[str | None] = [None] * len(keys)
    yield Trip(
        (
            (f"SELECT 1 FROM {schema}.hold(%s::bigint[], %s::bytea[], %s)", (_locks(keys), keys, None)),
            (f"SELECT {schema}.put(%s::bytea[], %s::text[], %s::bigint[])", (keys, nothing, [0] * len(keys))),
        )
    )


def clears_after(schema: str, charge: Charge, at: int | None) -> Flow[tuple[int, int]]:
    """See ``Store.clears_after``."""
    held_at, [state], _ = yield from _held(schema, [charge], at, ends=True)
    return charge.limit.rule.clears_after(state, held_at, charge.cost), held_at


def requota(schema: str, namespace: str, old: Limit, new: Limit, at: int | None) -> Flow[int]:
    """Every key of a limit to the same share of the new quota; a page of keys in each transaction."""
    low, high = _range(namespace, new)
    count = 0
    while True:
        [page] = yield Trip(((f"SELECT key FROM {schema}.page(%s, %s, %s)", (low, high, _PAGE)),))
        keys = [bytes(key) for (key,) in page]
        if not keys:
            return count
        held_at, states = yield from _hold(schema, new, keys, at)
        scaled = [
            (new, key, new.rule.scaled(state, held_at, old.rule))
            for key, state in zip(keys, states, strict=True)
            if state is not None
        ]
        yield from _put(schema, scaled)
        count += len(scaled)
        low = keys[-1]


def clear(schema: str, namespace: str, limit: Limit) -> Flow[int]:
    """Forget every key of a limit."""
    [[(count,)]] = yield Trip(((f"SELECT {schema}.forget(%s, %s)", _range(namespace, limit)),))
    return int(count)


def clean(schema: str, past: bytes, at: int | None) -> Flow[bytes]:
    """Forget some recovered keys after ``past``; where to go on the next time."""
    [[(reached,)]] = yield Trip(((f"SELECT {schema}.clean(%s, %s, %s)", (past, _CLEAN_BATCH, at)),))
    return bytes(reached)


def _held(
    schema: str, charges: Sequence[Charge], at: int | None, *, ends: bool = False
) -> Flow[tuple[int, list[State | None], list[bytes]]]:
    keys = [charge.stored_key() for charge in charges]
    statement = f"SELECT * FROM {schema}.hold(%s::bigint[], %s::bytea[], %s)"
    [[(held_at, texts)]] = yield Trip(((statement, (_locks(keys), keys, at)),), ends)
    return held_at, [read_state(charge.limit, text) for charge, text in zip(charges, texts, strict=True)], keys


def _hold(schema: str, limit: Limit, keys: list[bytes], at: int | None) -> Flow[tuple[int, list[State | None]]]:
    statement = f"SELECT * FROM {schema}.hold(%s::bigint[], %s::bytea[], %s)"
    [[(held_at, texts)]] = yield Trip(((statement, (_locks(keys), keys, at)),), ends=False)
    return held_at, [read_state(limit, text) for text in texts]


def _put(schema: str, writes: Sequence[tuple[Limit, bytes, State | None]]) -> Flow[None]:
    """Write what is held, and end the transaction."""
    rows = [(key, *row(limit, state)) for limit, key, state in writes]
    statement = f"SELECT {schema}.put(%s::bytea[], %s::text[], %s::bigint[])"
    keys, texts, expires = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    yield Trip(((statement, (keys, texts, expires)),) if rows else ())


def _locks(keys: Sequence[bytes]) -> list[int]:
    return sorted({lock_of(key) for key in keys})


def _range(namespace: str, limit: Limit) -> tuple[bytes, bytes]:
    prefix = key_prefix(namespace, limit.name, limit.algorithm.stored, limit.by)
    return prefix, prefix + b"\xff"
