"""The values of limit fields (`X-RateLimit-*`, `RateLimit-Limit` and their kin), put together limit by limit.

A reset may be seconds, an instant in seconds or milliseconds, a date or a duration; a limit may be a list
(`100, 100;w=60`, `200,2000`, `20:1,100:120`), a fraction (`40/40`), or pairs (`total=100; remaining=0; resets=41`).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headway.client._field_names import QUANTITIES, FieldName, Quantity, field_name
from headway.client._headers import HeaderFields
from headway.client._limits import ShownLimit
from headway.client._moments import FAR, duration, number, offset
from headway.client._prose import period_of_name

_LONGEST_NAME = 80
_LONGEST_VALUE = 1024
_USED_OF = re.compile(r"(?<![\w-])([A-Za-z][\w-]*+)\s*=\s*(\d{1,18})\s*/\s*(\d{1,18})", re.A)  # api-usage=18/5000
_PAIR = re.compile(r"([a-z]+)\s*=\s*(\d+(?:\.\d+)?)", re.A)
_MEMBER = re.compile(r"(\d+(?:\.\d+)?)(?:\s*([:/])\s*(\d+(?:\.\d+)?))?((?:\s*;.*)?)", re.A)
_OWN_NAME = re.compile(r';\s*name="([^"]{1,96})"')
_OWN_WINDOW = re.compile(r";\s*(?:w|window)=(\d{1,15})", re.A)
_QUOTA = re.compile(
    r"(\d{1,15})[\w\s]{0,24}?\s*(?:/|\bper\b|\bin\b|\bevery\b)\s*(\d{1,6})?\s*([a-z]{1,12})\b\.?", re.I | re.A
)
_BELOW_ZERO = re.compile(r"-[0-9]{1,15}(?:\.[0-9]+)?")


@dataclass(slots=True)
class _Gathered:
    """The numbers of one limit while its fields are read; `amounts` keeps lists for pairing by place."""

    label: str
    amounts: dict[Quantity, list[ShownLimit]]
    resets: list[float]
    remaining: int | None = None
    limit: int | None = None
    used: float | None = None
    reset: float | None = None
    wait: float | None = None
    window: float | None = None
    name: str | None = None
    refill: float | None = None
    cost: float = 1.0
    source: str = ""
    implied: bool = False


def limits_from_fields(fields: HeaderFields, now: float, warnings: list[str]) -> tuple[list[ShownLimit], list[str]]:
    """Read every limit shown by header fields.

    Args:
        fields: The response's header fields.
        now: The server's time, seconds since 1970.
        warnings: Gets one sentence for each malformed number.

    Returns:
        The limits, and what fields such as `X-RateLimit-Scope` name as violated.
    """
    gathered: dict[tuple[str, str], _Gathered] = {}
    shown: list[ShownLimit] = []
    reasons: list[str] = []
    for lower, values in fields.lines.items():
        name = field_name(fields.spelling[lower]) if len(lower) <= _LONGEST_NAME else None
        if name is None or not values[0]:
            continue
        value = (values[0] if len(values) == 1 else ", ".join(values))[:_LONGEST_VALUE]
        if name.quantity == "reason":
            reasons.append(values[0][:_LONGEST_NAME])
            continue
        if "/" in value and (used_of := _USED_OF.findall(value)):
            shown.extend(_of(label, limit, used) for label, used, limit in used_of[:8])
            continue
        if name.family.endswith("ratelimits"):
            shown.extend(_in_force(value))
            continue
        key = (name.family, name.label.lower())
        one = gathered.get(key)
        if one is None:
            one = gathered[key] = _Gathered(name.label, {}, [], implied=name.quantity == "implied")
        if not _take(one, name, value, now, lower):
            warnings.append(f"{fields.spelling[lower]}: {value[:60]!r} is not understood and was ignored.")
    for one in gathered.values():
        shown.extend(_put_together(one))
    return shown, reasons


def _take(one: _Gathered, name: FieldName, value: str, now: float, source: str) -> bool:
    """Take one field's value; False when it is malformed."""
    quantity = name.quantity
    if quantity == "name":
        one.name = value
        return True
    if quantity in ("reset", "wait"):
        moments = _moments(value, now, name.unit or 1.0)
        if not moments:
            return False
        seconds = max(moments)
        if quantity == "wait":
            one.wait, one.source = max(seconds, 0.0), source
        elif one.reset is None:
            one.reset, one.resets, one.source = seconds, moments, one.source or source
        return True
    if quantity == "window":
        one.window = offset(value, 0.0, unit=name.unit or 1.0) or period_of_name(value[:40])
        return one.window is not None
    amount = number(value)
    if amount is None:
        return _take_written(one, name, value, now, source)
    if quantity == "remaining":
        one.remaining = int(amount)
    elif quantity == "used":
        one.used = amount
    elif quantity == "refill":
        one.refill = amount
    elif quantity == "cost":
        one.cost = amount
    elif one.limit is None and amount == int(amount):
        one.limit = int(amount)
        one.implied = quantity == "implied"
    return True


def _take_written(one: _Gathered, name: FieldName, value: str, now: float, source: str) -> bool:
    """Take an amount that is no plain number: a list, a fraction, pairs, or less than nothing."""
    members = _members(name, value)
    if len(members) > 1:
        one.amounts[name.quantity] = members
        return True
    if members:
        (only,) = members
        if only.window is not None:
            one.window = only.window
        one.name = one.name or only.name
        if only.remaining is not None:
            one.limit, one.remaining = only.limit, only.remaining
        elif name.quantity == "remaining":
            one.remaining = only.limit
        elif name.quantity == "used":
            one.used = only.limit
        else:
            one.limit = only.limit
        return True
    quota = _QUOTA.fullmatch(value)
    if quota is not None and name.quantity in ("limit", "implied"):
        count, times, unit = quota.groups()
        one.limit, one.window = _count(count), duration(f"{times or 1} {unit}")
        return one.window is not None
    if name.quantity == "limit" and (period := duration(value)) is not None:
        one.window = period  # some call the period the limit
        return True
    pairs = _PAIR.findall(value.lower()[:200])
    for word, text in pairs:
        quantity = QUANTITIES.get(word)
        if quantity == "limit":
            one.limit = _count(text)
        elif quantity == "remaining":
            one.remaining = _count(text)
        elif quantity == "reset":
            one.reset, one.source = offset(text, now, reset=True), source
    if not pairs and name.quantity == "remaining" and _BELOW_ZERO.fullmatch(value):
        one.remaining = 0  # more was used than allowed
        return True
    return bool(pairs) or name.quantity == "implied"


def _moments(value: str, now: float, unit: float) -> list[float]:
    """Read a reset, or several joined by commas; empty when one of them is malformed."""
    seconds = offset(value, now, unit=unit, reset=True)
    if seconds is not None or "," not in value:
        return [] if seconds is None else [seconds]
    parts = [offset(part, now, unit=unit, reset=True) for part in value.split(",")[:16]]
    read = [part for part in parts if part is not None]
    return read if len(read) == len(parts) else []


def _members(name: FieldName, value: str) -> list[ShownLimit]:
    """Read `100, 100;w=60`, `200,2000`, `20:1,100:120` or `40/40`; empty when the value has another form."""
    members: list[ShownLimit] = []
    for text in value.split(",")[:16]:
        found = _MEMBER.fullmatch(text.strip())
        if found is None:
            return []
        count, sign, second, params = found.groups()
        if sign == "/":
            members.append(_of(name.label, second, count))
            continue
        window = _OWN_WINDOW.search(params) if params else None
        own_name = _OWN_NAME.search(params) if params else None
        members.append(
            ShownLimit(
                name.label,
                _count(count),
                window=_period(second or (window.group(1) if window else None)),
                name=own_name.group(1) if own_name else None,
            )
        )
    first = members[0]
    if name.quantity == "limit" and first.window is None and any(one.window for one in members[1:]):
        # draft-polli to draft-03: the expiring limit, then the policies, one of which is its own
        policy = next((one for one in members[1:] if one.limit == first.limit), first)
        return [replace(first, window=policy.window, name=policy.name)]
    return members


def _of(label: str, limit: str, used: str) -> ShownLimit:
    """Build the limit of `used/limit`."""
    return ShownLimit(label, _count(limit), max(_count(limit) - _count(used), 0))


def _in_force(value: str) -> Iterator[ShownLimit]:
    """Read limits in force, as `60:error;default:organization:reason` lists them: each with the seconds it lasts."""
    for member in value.split(",")[:16]:
        parts = [part.strip() for part in member.split(":")]
        seconds = number(parts[0])
        if seconds is not None and len(parts) > 1:
            label = next((part for part in reversed(parts[2:4]) if part), "")
            yield ShownLimit(label, wait=seconds, source="rate-limits")


def _put_together(one: _Gathered) -> Iterator[ShownLimit]:
    """Build the limits of one family and label: one, or one a place of its lists."""
    window = one.window
    if window is None and one.label:
        window = period_of_name(one.label)
    if one.amounts.get("limit") and one.remaining is not None:
        # several limits, one number left: it is left of one of them, which isn't said
        yield ShownLimit(one.label, None, one.remaining, one.reset, one.wait, None, one.name, one.source)
        return
    if one.amounts.get("limit"):
        yield from _paired(one, window)
        return
    remaining, wait, source = one.remaining, one.wait, one.source
    if remaining is None and one.used is not None and one.limit is not None and one.used >= one.limit:
        remaining = 0
    if one.refill and remaining is not None and wait is None and one.reset is None:
        # a bucket that says how much it refills: in its interval, else in a second
        wait = round(max(one.cost - remaining, 0.0) / one.refill * (one.window or 1.0), 6)
        source = "replenish rate"
    if one.implied and remaining is None:
        return
    limit = one.limit
    if limit == 0 and not remaining:
        limit = remaining = None  # placeholders: a limit that refuses for another reason shows only its reset
    yield ShownLimit(one.label, limit, remaining, one.reset, wait, window, one.name, source)


def _paired(gathered: _Gathered, window: float | None) -> Iterator[ShownLimit]:
    """Pair the members of `200,2000` with those of the sibling that says what is used or left, by window or place."""
    amounts = gathered.amounts
    limits = amounts["limit"]
    resets = gathered.resets if len(gathered.resets) == len(limits) else [gathered.reset] * len(limits)
    for place, one in enumerate(limits):
        left = None
        for quantity in ("remaining", "used"):
            siblings = amounts.get(quantity, [])
            sibling = next((each for each in siblings if each.window is not None and each.window == one.window), None)
            if sibling is None and len(siblings) == len(limits):
                sibling = siblings[place]
            if sibling is not None and sibling.limit is not None and one.limit is not None:
                left = sibling.limit if quantity == "remaining" else max(one.limit - sibling.limit, 0)
                break
        yield replace(one, remaining=left, window=one.window or window, reset=resets[place], source=gathered.source)


def _period(text: str | None) -> float | None:
    """Return a window in seconds; None for none, or for nothing at all."""
    return min(float(text), FAR) or None if text else None


def _count(text: str) -> int:
    """Return a written amount as a whole number, rounded down: a part of a request is no request."""
    return int(min(float(text), FAR))


def json_in_fields(fields: HeaderFields) -> Iterator[object]:
    """Yield JSON that limit- or usage-named header fields carry."""
    for lower, values in fields.lines.items():
        if values[0][:1] in ("{", "[") and ("usage" in lower or "limit" in lower or "quota" in lower):
            try:
                yield json.loads(values[0][:8192])
            except (ValueError, RecursionError):
                continue
