"""A lease as text: what /v1/check answers for units that are held, and what /v1/release and /v1/renew take.

It says all that has to be known to give the units back, so the service remembers nothing and any process on the same
store takes it. Nobody can free what they were not given: the token in it is one of 2**63, made for each decision.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final, NamedTuple

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.lease import Lease
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted
from headway.core.verdict import Verdict
from headway.limiter.decision import Decision
from headway.policy.choice import limits_of
from headway.policy.policy import Policy
from headway.service.fault import Fault

__all__ = ["Held", "lease_text", "read_lease"]

_LONGEST: Final = 100_000
_EXPECTED: Final = 'the text that /v1/check gave as "lease"'


class Held(NamedTuple):
    """Units that one decision holds.

    Attributes:
        policy: the policy's name.
        at: the store's clock when they were charged, ns since 1970.
        parts: (limit, its period in ns, key, units, token) for each limit that holds some.
    """

    policy: str
    at: int
    parts: tuple[tuple[str, int, Key, int, int], ...]

    def decision(self, policy: Policy) -> Decision | None:
        """The decision that held them, as far as giving back needs it; None where the policy has no such limit now."""
        charges = []
        for name, period, key, units, token in self.parts:
            limit = _limit(policy, name, period)
            if limit is None:
                return None
            charges.append(Charge(policy.namespace, limit, key, units, Lease(token, 0)))
        limits = tuple(charge.limit for charge in charges)
        outcomes = (Admitted(0, 0, 0),) * len(limits)
        costs = tuple(charge.cost for charge in charges)
        return Decision.of(Verdict(limits, outcomes, True, self.at, None, costs), tuple(charges))


def lease_text(policy: str, held: tuple[Change, ...]) -> str:
    """What gives back the units of these changes, at least one."""
    parts = [_part(change) for change in held]
    document = json.dumps([policy, held[0].receipt.at, parts], separators=(",", ":"))
    return base64.urlsafe_b64encode(document.encode()).rstrip(b"=").decode()


def read_lease(text: object, where: str) -> Held | Fault:
    """The lease that a request gives back.

    Args:
        text: the request's member "lease".
        where: a JSON pointer to it.
    """
    fault = Fault(422, "this is no lease that the service has given", "urn:headway:invalid-request", _EXPECTED, where)
    if not isinstance(text, str) or len(text) > _LONGEST:
        return fault
    try:
        found = json.loads(base64.b64decode(f"{text}{'=' * (-len(text) % 4)}", b"-_", validate=True))
        policy, at, parts = found
        read = tuple(_read_part(*part) for part in parts)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        return fault
    return Held(policy, at, read) if isinstance(policy, str) and type(at) is int and read else fault


def _part(change: Change) -> tuple[str, int, Any, int, int]:
    charge, receipt = change.charge, change.receipt
    return charge.limit.name, charge.limit.quota.period_ns, charge.key, receipt.cost, receipt.token


def _read_part(
    name: object, period: object, key: object, units: object, token: object
) -> tuple[str, int, Key, int, int]:
    """One limit's part.

    Raises:
        ValueError: it is none.
    """
    parts = key if isinstance(key, list) else [key]
    numbers = (period, units, token)
    if not isinstance(name, str) or any(type(number) is not int for number in numbers):
        raise ValueError("no part of a lease")
    if not all(isinstance(part, str) for part in parts) or not all(0 < number < 2**63 for number in numbers):  # type: ignore[operator]  # ints
        raise ValueError("no part of a lease")
    return name, period, tuple(key) if isinstance(key, list) else key, units, token  # type: ignore[return-value]  # just checked


def _limit(policy: Policy, name: str, period: int) -> Limit | None:
    """The limit of that name that holds units, of several tiers' the one with that period: its leases last as long."""
    limits = [limit for part in policy.limits for limit in limits_of(part) if limit.name == name]
    found = [limit for limit in limits if limit.algorithm is Algorithm.CONCURRENCY]
    return next((limit for limit in found if limit.quota.period_ns == period), found[0] if found else None)
