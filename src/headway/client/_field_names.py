"""What the names of limit fields say, whoever the vendor: `X-RateLimit-Remaining-Hour`, `ratelimit-reset`, ….

A name is read as words: a *family* (`ratelimit`, `rate-limit`, `…limit`, `quota`), a *quantity* (limit, remaining,
reset, used, window, …) and what is left over, the *label* (`requests`, `Hour`, `input-tokens`), in any order.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

Quantity: TypeAlias = Literal[
    "limit", "implied", "remaining", "reset", "wait", "used", "window", "name", "reason", "refill", "cost"
]

QUANTITIES: dict[str, Quantity] = {
    **dict.fromkeys(["limit", "max", "maximum", "allowed", "total", "capacity"], "limit"),
    **dict.fromkeys(["remaining", "remain", "left", "available"], "remaining"),
    **dict.fromkeys(["reset", "resets", "resettime", "resetat", "resetafter", "resetin"], "reset"),
    **dict.fromkeys(["next", "retry", "retryafter", "backoff"], "wait"),
    **dict.fromkeys(["used", "usage", "observed", "count", "consumed"], "used"),
    **dict.fromkeys(["window", "period", "interval"], "window"),
    **dict.fromkeys(["name", "resource"], "name"),
    **dict.fromkeys(["replenish", "refill", "restore", "fillrate"], "refill"),
    **dict.fromkeys(["requested"], "cost"),
    **dict.fromkeys(["reason", "scope", "problem", "type", "violated", "exceeded"], "reason"),
}
_NO_LIMIT_TEXT = "policy bucket precision category source cost nearlimit status"
_NO_LIMIT = frozenset(_NO_LIMIT_TEXT.split())
_PARTITIONS_TEXT = "app user method key ip token account client org team project service endpoint"
_PARTITIONS = frozenset(_PARTITIONS_TEXT.split())
_UNITS = {
    **dict.fromkeys(["ms", "millis", "milliseconds"], 0.001),
    **dict.fromkeys(["s", "sec", "seconds"], 1.0),
    "minutes": 60.0,
}
_QUALIFIERS = {
    "reset": frozenset(["after", "at", "in", "time", "timestamp", "date", "on", "utc", "epoch"]),
    "wait": frozenset(["after", "at", "in"]),
    "refill": frozenset(["rate"]),
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
            lower[at : at + 2] = ["ratelimits" if lower[at + 1] == "limits" else "ratelimit"]
            wire[at : at + 2] = [f"{wire[at]}-{wire[at + 1]}"]
        at += 1
    family = next(
        (i for i, word in enumerate(lower) if word.endswith(("limit", "ratelimits")) or word == "quota"), None
    )
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
        if word == "quota" and quantity is None:
            quantity = "limit"  # of a limit, the quota is how many
        elif word in QUANTITIES and not (quantity == "reset" and word != "reset"):
            if quantity is not None and quantity != "limit":
                label.append(wire[i])
            else:
                quantity = QUANTITIES[word]
        elif word in _UNITS and i == len(lower) - 1 and quantity is not None:
            unit = _UNITS[word]
        elif (quantity is not None and word in _QUALIFIERS.get(quantity, ())) or word in ("burst", "info", "time"):
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
            return word[: -len(quantity)], QUANTITIES[quantity]
    return word, "limit"
