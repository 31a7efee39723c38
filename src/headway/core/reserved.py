"""Open reservations on a GCRA key, and what was given back: how much can still be given back without making a burst.

Giving units back must leave the key as if they had never been charged. Moving the TAT back by the whole charge would
go too far where the key would have idled without it: credit that idling loses must stay lost. What a reservation can
still move the TAT back by is the least the key owed just before any later arrival. Each record keeps that minimum
for the arrivals between its own and the next record's; so an arrival touches one record only.

A plain charge leaves no record. What it can still move the TAT back by is what time has not paid of it: the key owed at
least that much at every later arrival, unless an earlier charge was given back from under it. ``GivenBack`` keeps how
much was.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "NOTHING",
    "NOTHING_YET",
    "GivenBack",
    "Ledger",
    "Reserved",
    "after_arrival",
    "give_back",
    "pack",
    "unexpired",
    "unpack",
]

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


class GivenBack(NamedTuple):
    """All that was given back from under later charges.

    Attributes:
        at: when, the last time; ns since 1970.
        ticks: what the TAT was moved back by, in all.
        floor: the TAT just after the oldest of the charges that were given back; ticks; 0: no charge from before gives
            anything back.
        expires: ns since 1970; whatever was charged before ``at`` is paid from then on.
    """

    at: int
    ticks: int
    floor: int
    expires: int


class Ledger(NamedTuple):
    """What a key remembers besides its TAT; the records oldest first."""

    given: GivenBack | None
    records: list[Reserved]

    @property
    def moved(self) -> int:
        """Ticks that the TAT was moved back by, as far as that matters still."""
        return 0 if self.given is None else self.given.ticks

    def ended(self, at: int, tat: int, least: int) -> int:
        """A charge made at ``at`` (ns) that moved the TAT to ``tat``: where the TAT is if nothing came after it.

        Some of what was given back may have lain above it or been gone before it: then this is too low, and the charge
        gives less back than it might. It is never below ``least`` (ticks), where an unused key's TAT is just after it.
        """
        given = self.given
        if given is None or at > given.at or tat <= given.floor:
            return tat
        return max(tat - given.ticks, min(tat, least)) if given.floor else tat - given.ticks

    def after(self, at: int, ticks: int, floor: int, expires: int) -> Ledger:
        """The ledger once ``ticks`` more were given back."""
        if self.given is not None:
            ticks += self.given.ticks
            floor = min(floor, self.given.floor)
            expires = max(expires, self.given.expires)
        return Ledger(GivenBack(at, ticks, floor, expires), self.records)


NOTHING: Final = Ledger(None, [])
"""Of a key that remembers nothing but its TAT."""


def unpack(numbers: tuple[int, ...], now: int) -> Ledger:
    """The ledger that ``pack`` made flat, as it stands at ``now`` (ns since 1970)."""
    groups = [numbers[index : index + 4] for index in range(0, len(numbers), 4)]
    given = None
    if groups and groups[0][0] <= 0:  # tokens are above 0
        at, *rest = groups.pop(0)
        given = GivenBack(-at, *rest)
    records = unexpired([Reserved(*group) for group in groups], now)
    return Ledger(None if given is None or given.expires <= now else given, records)


def pack(ledger: Ledger) -> tuple[int, ...]:
    """Flat numbers, four for each record."""
    given, records = ledger
    first = () if given is None else (-given.at, *given[1:])
    return (*first, *(number for record in records for number in record))


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
