"""``Distinct``: how many different keys were seen, in bounded memory: exact up to a thousand, within a few percent after.

The k smallest of the keys' hashes are kept (Bar-Yossef et al., "Counting distinct elements in a data stream", 2002): the
k-th of n evenly spread hashes lies about k/n of the way. No key is kept, and Python's hashes of texts differ from process
to process, so nobody can be found again by one. (A text and its bytes have one hash and count as one.) The standard error
is 1/√k, about 3 %.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headway.core.key import Key

__all__ = ["Distinct"]

_KEPT: Final = 1024
_RANGE: Final = 2**61


class Distinct:
    """The number of different keys among those that were added."""

    __slots__ = ("_below", "_hashes")

    def __init__(self, hashes: Iterable[int] = (), below: int = _RANGE) -> None:
        self._hashes = set(hashes)
        self._below = below

    def add(self, key: Key) -> None:
        """Count a key, once however often it comes."""
        mark = hash(key) % _RANGE
        if mark < self._below:
            self._hashes.add(mark)
            if len(self._hashes) >= 2 * _KEPT:
                self._prune()

    def __len__(self) -> int:
        """How many; exact while that is ``exact``."""
        if self.exact:
            return len(self._hashes)
        self._prune()
        return round((len(self._hashes) - 1) * _RANGE / max(self._hashes))

    @property
    def exact(self) -> bool:
        """Whether every key that was added is told apart; else the number is an estimate."""
        return self._below == _RANGE

    def __or__(self, other: Distinct) -> Distinct:
        """Those of both, each once."""
        below = min(self._below, other._below)
        return Distinct((mark for mark in self._hashes | other._hashes if mark < below), below)

    def _prune(self) -> None:
        """Keep the smallest; nothing that is not smaller than the largest of them matters any more."""
        if len(self._hashes) > _KEPT:
            kept = sorted(self._hashes)[:_KEPT]
            self._hashes = set(kept)
            self._below = kept[-1] + 1
