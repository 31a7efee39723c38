"""What a charge may carry and what it leaves behind: a lease to give back by, and the receipt of what was charged."""

from __future__ import annotations

from typing import NamedTuple

from headway.core.outcome import Admitted

__all__ = ["Lease", "Receipt"]


class Lease(NamedTuple):
    """A charge that may be given back, in part or whole, until it expires.

    Attributes:
        token: 1 to 2**63 − 1, unique among the leases of a key; the caller makes it up.
        ttl: ns from the decision until the lease expires by itself; concurrency uses its quota's period instead.
    """

    token: int
    ttl: int


class Receipt(NamedTuple):
    """What was charged, for giving it back.

    Attributes:
        at: the store's clock when it was charged, ns since 1970.
        cost: the units charged.
        token: of the lease, or 0 without one.
        outcome: what the limit answered.
    """

    at: int
    cost: int
    token: int
    outcome: Admitted
