"""The `X-RateLimit-*` families: how header fields of any vendor show limits.

A name is read as words: a *family* (`ratelimit`, `rate-limit`, `…limit`, `quota`), a *quantity* (limit, remaining,
reset, used, window, …) and what is left over, the *label* (`requests`, `Hour`, `input-tokens`), in any order.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from headway.client._headers import HeaderFields
from headway.client._limits import ShownLimit
from headway.client._moments import FAR, number, offset
from headway.client._prose import period_of_name

Quantity: TypeAlias = Literal[
    "limit", "implied", "remaining", "reset", "wait", "used", "window", "name", "reason", "rate", "cost"
]

_QUANTITIES: dict[str, Quantity] = {
    **dict.fromkeys(["limit", "max", "maximum", "allowed", "total", "capacity"], "limit"),
    **dict.fromkeys(["remaining", "remain", "left", "available"], "remaining"),
    **dict.fromkeys(["reset", "resets", "resettime", "resetat", "resetafter", "resetin"], "reset"),
    **dict.fromkeys(["next", "retry", "retryafter", "backoff"], "wait"),
    **dict.fromkeys(["used", "usage", "observed", "count", "consumed"], "used"),
    **dict.fromkeys(["window", "period", "interval"], "window"),
    **dict.fromkeys(["name", "resource"], "name"),
    **dict.fromkeys(["replenish", "refill", "restore", "fillrate"], "rate"),
    **dict.fromkeys(["requested"], "cost"),
    **dict.fromkeys(["reason", "scope", "problem", "type", "violated", "exceeded"], "reason"),
}
_NO_LIMIT = frozenset("policy bucket precision category source cost nearlimit status".split())
_PARTITIONS = frozenset("app user method key ip token account client org team project service endpoint".split())
_UNITS = {
    **dict.fromkeys(["ms", "millis", "milliseconds"], 0.001),
    **dict.fromkeys(["s", "sec", "seconds"], 1.0),
    "minutes": 60.0,
}
_QUALIFIERS = {
    "reset": frozenset("after at in time timestamp date on utc epoch".split()),
    "rate": frozenset(["rate"]),
    "cost": frozenset(["tokens"]),
}


@dataclass(frozen=True, slots=True)
class FieldName:
    """What the name of a limit's header field says: which family, which label, which quantity, in which unit."""

    family: str
    label: str
    quantity: Quantity
    unit: float | None


@lru_cache(maxsize=1024)
def field_name(name: str) -> FieldName | None:
    """Read the name of a header field, in the spelling of the wire; None when it shows no limit."""
    wire = re.split(r"[-_]", name)
    lower = [word.lower() for word in wire]
    at = 0
    while at + 1 < len(lower):
        if lower[at] == "rate" and lower[at + 1] in ("limit", "limits", "limited"):
            lower[at : at + 2] = ["ratelimit"]
            wire[at : at + 2] = [f"{wire[at]}-{wire[at + 1]}"]
        at += 1
    family = next((i for i, word in enumerate(lower) if word.endswith(("limit", "ratelimits")) or word == "quota"), None)
    if family is None or _NO_LIMIT.intersection(lower[family:]) or lower == ["ratelimit"]:
        return None
    quantity: Quantity | None = None
    unit = None
    label = [wire[i] for i in range(family) if lower[i] in _PARTITIONS]
    if label and lower[family] == "limit" and len(lower) > family + 1:
        label.append(wire[family])
    if lower[family] != "ratelimit" and (stem := re.sub(r"(?i)(?:rate)?limits?$|quota$", "", wire[family])):
        label.append(stem)
    for i in range(family + 1, len(lower)):
        word = lower[i]
        if word in _QUANTITIES and not (quantity == "reset" and word != "reset"):
            if quantity is not None and quantity != "limit":
                label.append(wire[i])
            else:
                quantity = _QUANTITIES[word]
        elif word in _UNITS and i == len(lower) - 1 and quantity is not None:
            unit = _UNITS[word]
        elif quantity is not None and word in _QUALIFIERS.get(quantity, ()):
            continue
        elif word in ("burst", "info"):
            continue
        elif word.endswith(("limit", "remaining", "reset")) and word != "limit":
            stem, quantity = _split(wire[i])
            label.append(stem)
        else:
            label.append(wire[i])
    if quantity is None:
        quantity = "limit" if not label or len(lower) == family + 1 else "implied"
    return FieldName("-".join(lower[: family + 1]), "-".join(label), quantity, unit)


def _split(word: str) -> tuple[str, Quantity]:
    """Split `ConcurrentLimit` into its label and its quantity."""
    for quantity in ("limit", "remaining", "reset"):
        if word.lower().endswith(quantity):
            return word[: -len(quantity)], _QUANTITIES[quantity]
    return word, "limit"


def limits_from_fields(fields: HeaderFields, now: float, warnings: list[str]) -> tuple[list[ShownLimit], list[str]]:
    """Read every limit shown by header fields.

    Args:
        fields: The response's header fields.
        now: The server's time, seconds since 1970.
        warnings: Gets one sentence for each malformed number.

    Returns:
        The limits, and what fields such as `X-RateLimit-Scope` name as violated.
    """
    shown: dict[tuple[str, str], ShownLimit] = {}
    refills: dict[tuple[str, str], dict[str, float]] = {}
    reasons: list[str] = []
    lists: dict[tuple[str, str], dict[str, list[ShownLimit]]] = {}
    implied: set[tuple[str, str]] = set()
    for lower, values in fields.lines.items():
        name = field_name(fields.spelling[lower])
        if name is None or not values[0]:
            continue
        key = (name.family, name.label.lower())
        if name.quantity == "reason":
            reasons.append(values[0])
            continue
        value = ", ".join(values)
        if name.quantity in ("rate", "cost"):
            amount = number(value)
            if amount is not None:
                refills.setdefault(key, {})[name.quantity] = amount
            continue
        if pairs := _USED_OF.findall(value):
            for label, used, limit in pairs[:8]:
                left = max(_count(limit) - _count(used), 0)
                shown[name.family, label.lower()] = ShownLimit(label, _count(limit), left)
            continue
        parts = _parts(name, value)
        if len(parts) > 1 and name.quantity in ("limit", "remaining", "used"):
            lists.setdefault(key, {})[name.quantity] = parts
            continue
        known = shown.get(key) or ShownLimit(label=name.label)
        read = _read(known, name, value, parts, now, lower)
        if read is None:
            warnings.append(f"{fields.spelling[lower]}: {value[:60]!r} is not understood and was ignored.")
            continue
        shown[key] = read
        if name.quantity == "implied":
            implied.add(key)
        elif name.quantity in ("limit", "remaining"):
            implied.discard(key)
    for key, refill in refills.items():
        if key in shown and (rate := refill.get("rate")):
            shown[key] = _refilled(shown[key], rate, refill.get("cost", 1.0))
    found = [_finished(one) for key, one in shown.items() if not (key in implied and one.remaining is None)]
    for by_quantity in lists.values():
        found.extend(_finished(one) for one in _from_lists(by_quantity))
    return found, reasons


_USED_OF = re.compile(r"([A-Za-z][\w-]*)\s*=\s*(\d+)\s*/\s*(\d+)", re.A)  # api-usage=18/5000
_PART = re.compile(r"^(\d+(?:\.\d+)?)(?:\s*[:/]\s*(\d+(?:\.\d+)?))?((?:\s*;.*)?)$", re.A)
_NAME = re.compile(r';\s*name="([^"]{1,96})"')
_WINDOW = re.compile(r";\s*(?:w|window)=(\d+)", re.A)


def _parts(name: FieldName, value: str) -> list[ShownLimit]:
    """Read `100, 100;w=60`, `200,2000`, `20:1,100:120` or `40/40`; empty when the value has another form."""
    if value.isdigit() or name.quantity not in ("limit", "implied", "remaining", "used"):
        return []
    parts: list[ShownLimit] = []
    for text in value.split(",")[:16]:
        found = _PART.match(text.strip())
        if found is None:
            return []
        count, second, params = found.groups()
        window = _WINDOW.search(params)
        amount = _count(count)
        if second is not None and "/" in text:
            limit = _count(second)
            parts.append(ShownLimit(name.label, limit, max(limit - amount, 0)))
            continue
        seconds = float(second) if second is not None else float(window.group(1)) if window else None
        own_name = _NAME.search(params)
        parts.append(
            ShownLimit(name.label, amount, None, window=seconds, name=own_name.group(1) if own_name else None)
        )
    first = parts[0]
    if name.quantity == "limit" and first.window is None and any(one.window for one in parts[1:]):
        # draft-polli to draft-03: the expiring limit, then the policies it is one of
        policy = next((one for one in parts[1:] if one.limit == first.limit), first)
        return [replace(first, window=policy.window, name=policy.name)]
    return parts


def _read(
    known: ShownLimit, name: FieldName, value: str, parts: list[ShownLimit], now: float, source: str
) -> ShownLimit | None:
    """Add one field to a limit; None when its value is malformed."""
    match name.quantity:
        case "name":
            return replace(known, name=value)
        case "reset" | "wait":
            unit = name.unit or 1.0
            seconds = offset(value, now, unit=unit, reset=True)
            if seconds is None:
                return None
            if name.quantity == "wait":
                return replace(known, wait=max(seconds, 0.0), source=source)
            return known if known.reset is not None else replace(known, reset=seconds, source=source)
        case "window":
            seconds = offset(value, 0.0, unit=name.unit or 1.0)
            return None if seconds is None else replace(known, window=seconds)
    if parts and parts[0].remaining is not None:
        return replace(known, limit=parts[0].limit, remaining=parts[0].remaining)
    pairs = dict(re.findall(r"([a-z]+)\s*=\s*(\d+(?:\.\d+)?)", value.lower()[:200]))
    if pairs and not parts:
        return _from_pairs(known, pairs, now, source)
    amount = number(value) if not parts else float(parts[0].limit or 0)
    if amount is None:
        # below zero: more was used than allowed
        return replace(known, remaining=0) if name.quantity == "remaining" and _BELOW.fullmatch(value) else None
    window = parts[0].window if parts and parts[0].window is not None else known.window
    match name.quantity:
        case "remaining":
            return replace(known, remaining=_count(value) if not parts else int(amount), window=window)
        case "used":
            if known.limit is not None and known.remaining is None and amount >= known.limit:
                return replace(known, remaining=0)
            return known
        case _:
            if known.limit is not None:
                return known
            own_name = known.name or (parts[0].name if parts else None)
            return replace(known, limit=int(amount) if amount == int(amount) else None, window=window, name=own_name)


_BELOW = re.compile(r"-[0-9]{1,15}(?:\.[0-9]+)?")


def _from_pairs(known: ShownLimit, pairs: dict[str, str], now: float, source: str) -> ShownLimit | None:
    """Read `total=100; remaining=0; resets=41` in one field."""
    for word, text in pairs.items():
        quantity = _QUANTITIES.get(word)
        if quantity == "limit":
            known = replace(known, limit=_count(text))
        elif quantity == "remaining":
            known = replace(known, remaining=_count(text))
        elif quantity == "reset":
            known = replace(known, reset=offset(text, now, reset=True), source=source)
    return known


def _refilled(one: ShownLimit, rate: float, cost: float) -> ShownLimit:
    """Derive the wait of a bucket that says how much it refills: in its interval, else in a second."""
    if one.remaining is None or one.wait is not None or one.reset is not None:
        return one
    lacking = max(cost - one.remaining, 0.0)
    return replace(one, wait=round(lacking / rate * (one.window or 1.0), 6), source="x-ratelimit-replenish-rate")


def _from_lists(by_quantity: dict[str, list[ShownLimit]]) -> Iterator[ShownLimit]:
    """Pair the members of `200,2000` with those of the sibling that says what is used or left, by place or window."""
    limits = by_quantity.get("limit", [])
    for place, one in enumerate(limits):
        for quantity, siblings in by_quantity.items():
            sibling = next((s for s in siblings if s.window is not None and s.window == one.window), None)
            if sibling is None and len(siblings) == len(limits):
                sibling = siblings[place]
            if quantity == "limit" or sibling is None or sibling.limit is None or one.limit is None:
                continue
            left = sibling.limit if quantity == "remaining" else max(one.limit - sibling.limit, 0)
            one = replace(one, remaining=left)
        yield one


def _finished(one: ShownLimit) -> ShownLimit:
    """Give a limit the period that its label states."""
    if one.window is None and one.label:
        return replace(one, window=period_of_name(one.label))
    return one


def _count(text: str) -> int:
    """Return a written amount as a whole number, rounded down: what is left of a request is no request."""
    return int(min(float(text), FAR))


def json_in_fields(fields: HeaderFields) -> Iterator[object]:
    """Yield JSON objects that limit- or usage-named header fields carry."""
    for lower, values in fields.lines.items():
        if values[0][:1] in ("{", "[") and ("usage" in lower or "limit" in lower or "quota" in lower):
            try:
                yield json.loads(values[0][:8192])
            except (ValueError, RecursionError):
                continue
