"""What a response says is left of a service's limits, and which of a caller's own limits that is about. Pure.

Only ever used to lower a budget: r > 0 is no promise (IETF draft-ietf-httpapi-ratelimit-headers-11, §6).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.client._headers import HeaderFields, HeadersLike
from headway.client._ietf import limits_from_ratelimit, with_policy
from headway.client._limit_fields import limits_from_fields
from headway.client._limits import ShownLimit
from headway.client._moments import instant, number
from headway.client._prose import period_of_name
from headway.core.quota import MAX_COUNT, SECOND, Quota

__all__ = ["Left", "discovered", "matching", "shown_limits"]

_PLAIN = re.compile(r"[^a-z0-9]+")
_USUAL = (1, 60, 3_600, 86_400)
_LONGEST_WINDOW = 366 * 86_400


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of one limit: ``remaining`` units until ``reset`` seconds from the response on (None: not said)."""

    remaining: int
    reset: float | None


def shown_limits(headers: HeadersLike, received_at: float) -> list[ShownLimit]:
    """Every limit a response's header fields show; none on a cached response.

    Args:
        headers: the response's fields.
        received_at: seconds since 1970 on the caller's clock; only counts where there is no `Date`.
    """
    fields = HeaderFields(headers)
    if (number(fields.get("age") or "") or 0) > 0:
        return []
    date = fields.get("date")
    now = instant(date) if date else None
    warnings: list[str] = []
    ietf, policies = limits_from_ratelimit(fields, warnings)
    shown, _ = limits_from_fields(fields, received_at if now is None else now, warnings)
    return ietf + [with_policy(one, policies) for one in shown]


def matching(shown: Iterable[ShownLimit], quotas: Mapping[str, Quota]) -> dict[str, Left]:
    """What is left of the caller's own limits, by their names.

    A shown limit is one of ours where it is named like it, else where period and count agree as far as both are said;
    the only one of each side belong together. What could be two is none.

    Args:
        shown: what a response shows.
        quotas: the caller's quotas by their limits' names.
    """
    told = [one for one in shown if one.remaining is not None]
    found: dict[str, Left] = {}
    for one in told:
        name = _by_name(one, quotas) or _by_numbers(one, quotas)
        if name is None and len(told) == len(quotas) == 1 and not (one.label or one.name or one.window):
            name = next(iter(quotas))
        if name is None or one.remaining is None:
            continue
        left = Left(max(0, one.remaining), one.wait if one.wait is not None else one.reset)
        if name not in found or left.remaining < found[name].remaining:
            found[name] = left
    return found


def discovered(shown: Iterable[ShownLimit]) -> dict[str, Quota]:
    """Quotas to keep to where none is configured, by names made of what the wire calls them.

    A period that is not said is that of the name, else the usual one (second, minute, hour, day) the reset fits into.
    """
    quotas: dict[str, Quota] = {}
    for one in shown:
        label = one.name or one.label
        window = one.window or period_of_name(label) or next((u for u in _USUAL if (one.reset or u + 1) <= u), None)
        if not one.limit or not 0 < one.limit <= MAX_COUNT or not window or not 0 < window <= _LONGEST_WINDOW:
            continue
        quotas.setdefault(_PLAIN.sub("-", label.lower()).strip("-")[:24], Quota(one.limit, round(window * SECOND)))
    return quotas


def _by_name(one: ShownLimit, quotas: Mapping[str, Quota]) -> str | None:
    labels = {_PLAIN.sub("", label.lower()) for label in (one.name, one.label) if label}
    named = [name for name in quotas if _PLAIN.sub("", name.rpartition(":")[2]) in labels]
    return named[0] if len(named) == 1 else None


def _by_numbers(one: ShownLimit, quotas: Mapping[str, Quota]) -> str | None:
    fitting = [
        name
        for name, quota in quotas.items()
        if not quota.concurrent
        and (one.limit is not None or one.window is not None)
        and (one.limit is None or one.limit == quota.count)
        and (one.window is None or abs(one.window * SECOND - quota.period_ns) < SECOND / 2)
    ]
    return fitting[0] if len(fitting) == 1 else None
