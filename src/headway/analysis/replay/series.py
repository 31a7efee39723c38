"""``Timeline``: what came of a log's requests over time, in clock-aligned steps; bounded, however long the log is."""

from __future__ import annotations

from typing import Final

__all__ = ["MOST_STEPS", "Timeline"]

MOST_STEPS: Final = 10_000
"""A timeline of more steps is made coarser: each step becomes twice as long."""


class Timeline:
    """Counts by steps of time.

    Args:
        step: a step's length in ns.
        kinds: the names of what is counted.

    Attributes:
        step: as given, or a multiple by a power of two of it.
        kinds: as given.
    """

    def __init__(self, step: int, kinds: tuple[str, ...]) -> None:
        self.step = step
        self.kinds = kinds
        self._counts: dict[int, list[int]] = {}

    def at(self, now: int) -> list[int]:
        """The counts of the step that holds this time (ns since 1970), one for each kind, to be added to."""
        found = self._counts.get(now // self.step)
        if found is None:
            if len(self._counts) >= MOST_STEPS:
                self._coarsen()
            found = self._counts.setdefault(now // self.step, [0] * len(self.kinds))
        return found

    def rows(self) -> list[tuple[int, list[int]]]:
        """(the step's beginning in ns since 1970, its counts), in order; steps without any are left out."""
        return [(place * self.step, counts) for place, counts in sorted(self._counts.items())]

    def _coarsen(self) -> None:
        while len(self._counts) >= MOST_STEPS:
            self.step *= 2
            merged: dict[int, list[int]] = {}
            for place, counts in self._counts.items():
                into = merged.setdefault(place // 2, [0] * len(self.kinds))
                for kind, count in enumerate(counts):
                    into[kind] += count
            self._counts = merged
