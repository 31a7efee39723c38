"""Traffic of which everything is known, because it was made up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from headway.analysis.logs.block import Block
from headway.analysis.suggest.duckdb_numpy_requests import NEEDED
from headway.analysis.suggest.suggestion import Suggestion, suggest

SECOND = 10**9
START = 1_767_225_600 * SECOND
"""1 January 2026, a Thursday, 00:00 UTC, in ns since 1970."""
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:{}.0) Gecko/20100101 Firefox/{}.0"
GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def browser(number: int) -> str:
    """One of many browsers."""
    return BROWSER.format(60 + number, 60 + number)


@dataclass
class Made:
    """Requests as they are made up, in any order.

    Attributes:
        rows: (ns since 1970, address, user, api_key, agent, method, path, status).
    """

    rows: list[tuple[int, Any, Any, Any, Any, Any, Any, Any]] = field(default_factory=list)

    def add(
        self,
        at: float,
        address: str | None,
        *,
        user: str | None = None,
        api_key: str | None = None,
        agent: str | None = browser(1),
        method: str = "GET",
        path: str | None = "/",
        status: int = 200,
    ) -> None:
        """A request, ``at`` seconds after ``START``."""
        self.rows.append((START + round(at * SECOND), address, user, api_key, agent, method, path, status))

    def people(self, count: int, chance: random.Random, *, hours: int = 24, a_minute: int = 6) -> None:
        """People with a browser each, of whom nobody sends more than ``a_minute`` in any minute; person n is 10.0.0.n."""
        for person in range(count):
            address = f"10.0.{person // 250}.{person % 250 + 1}"
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(hours * 60) * 60.0
                for second in sorted(chance.sample(range(50), chance.randrange(1, a_minute + 1))):
                    path = f"/items/{chance.randrange(1000)}"
                    self.add(at + second, address, agent=browser(person % 40), path=path)

    def blocks(self, size: int = 1000) -> Iterable[Block]:
        """As a reader gives them, in the order of time."""
        rows = sorted(self.rows, key=lambda row: row[0])
        for at in range(0, len(rows), size):
            part = rows[at : at + size]
            columns = dict(zip(("time", *NEEDED), map(list, zip(*part, strict=True)), strict=True))
            yield Block(columns, len(part))

    def suggested(self, folder: Path, **options: Any) -> Suggestion:
        """What is suggested for it."""
        folder.mkdir(exist_ok=True)
        return suggest(self.blocks(), folder, **options)

    def counted(self, window: int, which: int | None = 1) -> list[int]:
        """The sorted counts of non-empty clock-aligned windows in ns, for each value of a column; None for everybody."""
        found = Counter((None if which is None else row[which], row[0] // window) for row in self.rows)
        return sorted(found.values())

    def refused(self, count: int, period: int, burst: int, which: int = 1) -> Counter[Any]:
        """How many requests of each value of a column a limit of exact arithmetic refuses."""
        arrival: dict[Any, Fraction] = {}
        refused: Counter[Any] = Counter()
        for row in sorted(self.rows, key=lambda row: row[0]):
            theoretical = max(arrival.get(row[which], Fraction(0)), Fraction(row[0])) + Fraction(period, count)
            if theoretical - Fraction(period * burst, count) <= row[0]:
                arrival[row[which]] = theoretical
            else:
                refused[row[which]] += 1
        return refused


def nearest_rank(values: list[int], share: Fraction) -> int:
    """The percentile, by its definition."""
    return next(value for place, value in enumerate(values, 1) if place >= share * len(values))
