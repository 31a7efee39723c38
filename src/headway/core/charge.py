"""``Charge``: one line of the bill handed to a store."""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.key import Key, encode_key
from headway.core.lease import Lease
from headway.core.limit import Limit

__all__ = ["Charge"]


@dataclass(frozen=True, slots=True)
class Charge:
    """Charge ``cost`` units to one key of one limit.

    Attributes:
        namespace: keeps limiters that share a store apart.
        limit: the limit.
        key: the canonical value of the one attribute in ``by``, or the tuple of several (empty for none).
        cost: whole units, at least 0.
        lease: asks to remember the charge so that it can be given back; None: it stays.
        flexible: the cost may be lowered to what fits now, but not below 1.
    """

    namespace: str
    limit: Limit
    key: Key
    cost: int
    lease: Lease | None = None
    flexible: bool = False

    def stored_key(self) -> bytes:
        """The bytes that name this counter in a store outside the process; see ``encode_key``."""
        limit = self.limit
        key = (self.key,) if len(limit.by) == 1 else self.key
        return encode_key(self.namespace, limit.name, limit.algorithm.stored, limit.by, key)
