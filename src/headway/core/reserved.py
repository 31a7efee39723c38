"""Open reservations on a GCRA key: how much of each can still be given back without making a burst.

Giving units back must leave the key as if they had never been charged. Moving the TAT back by the whole charge would
go too far where the key would have idled without it: credit that idling loses must stay lost. What a reservation can
still move the TAT back by is the least the key owed just before any later arrival. Each record keeps that minimum
for the arrivals between its own and the next record's; so an arrival touches one record only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["NOTHING_YET", "Reserved", "after_arrival", "give_back", "pack", "unexpired", "unpack"]

NOTHING_YET: Final = 1 << 120
"""The minimum of no arrivals: more ticks than any key can owe."""


class Reserved(NamedTuple):
    """One open reservation; times in ticks.

    Attributes:
        token: of its lease.
        charged: what it moved the TAT by.
        low: the least owed just before an arrival after this one, up to and with the next record's.
        expires: ns since 1970.
    """

    token: int
    charged: int
    low: int
    expires: int


def unpack(numbers: tuple[int, ...]) -> list[Reserved]:
    """Records from flat numbers, oldest first."""
    return [Reserved(*numbers[index : index + 4]) for index in range(0, len(numbers), 4)]


def pack(records: Iterable[Reserved]) -> tuple[int, ...]:
    """The reverse of ``unpack``."""
    return tuple(number for record in records for number in record)


def unexpired(records: list[Reserved], now: int) -> list[Reserved]:
    """Without those whose lease has ended: they stay charged, and what is known of later arrivals is kept."""
    kept: list[Reserved] = []
    for record in records:
        if record.expires > now:
            kept.append(record)
        elif kept:
            kept[-1] = kept[-1]._replace(low=min(kept[-1].low, record.low))
    return kept


def after_arrival(records: list[Reserved], owed: int) -> list[Reserved]:
    """The records after an arrival that found ``owed`` ticks."""
    if not records:
        return records
    last = records[-1]
    return [*records[:-1], last._replace(low=min(last.low, owed))]


def give_back(records: list[Reserved], token: int, units: int, cost: int) -> tuple[int, list[Reserved]] | None:
    """End a reservation, giving back ``units`` of its ``cost``.

    Returns:
        The ticks that the TAT may move back by, and the other records; None where the token is not open (any more).
    """
    index = next((index for index, record in enumerate(records) if record.token == token), None)
    if index is None:
        return None
    ticks = records[index].charged * min(units, cost) // cost
    back = min(ticks, *(record.low for record in records[index:]))
    later = [record._replace(low=max(0, record.low - ticks)) for record in records[index:]]
    kept = records[:index]
    if kept:
        kept[-1] = kept[-1]._replace(low=min(kept[-1].low, later[0].low))
    return back, kept + later[1:]
