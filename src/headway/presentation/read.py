"""Header fields read back: what ``fields`` wrote, as values. Strict: a field that is not what its draft says is an error.

This is the other direction of rendering, for tests, the service and whoever checks a server of ours. A client that has
to live with other people's servers reads any dialect, leniently, in ``headway.client``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headway.presentation.dialect import Dialect
from headway.presentation.structured import BareItem, Item, parse_dictionary, parse_list

__all__ = ["LimitItem", "QuotaItem", "Reading", "read_fields"]

_DIGITS: Final = re.compile(r"[0-9]{1,30}")


@dataclass(frozen=True, slots=True)
class QuotaItem:
    """One item of ``RateLimit-Policy``.

    Attributes:
        name: the limit's; None in the drafts up to -07, which have no names.
        quota: units a window, at least 0.
        window: whole seconds, at least 1; None where the quota counts what is held at once.
        burst: the most units at once, where it is said.
        unit: what is counted: ``requests``, ``content-bytes`` or ``concurrent-requests``.
    """

    name: str | None
    quota: int
    window: int | None
    burst: int | None = None
    unit: str = "requests"


@dataclass(frozen=True, slots=True)
class LimitItem:
    """How one limit stands.

    Attributes:
        name: the limit's; None in dialects that show one limit without its name.
        remaining: units that could be spent now.
        replenish: seconds until more can be spent; None where nothing is owed or the dialect has no such number.
        most: the most units at once, in dialects that say it here.
        reset: whole seconds until the limit is as if unused, or since 1970 in ``x-ratelimit-epoch``; else None.
        cost: units the request asked for, where it is said.
        partition_key: the opaque tag ``pk``, or None.
    """

    name: str | None
    remaining: int
    replenish: int | None = None
    most: int | None = None
    reset: int | None = None
    cost: int | None = None
    partition_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one dialect's fields say.

    Attributes:
        quotas: from ``RateLimit-Policy``, in its order; empty where the field is absent.
        limits: how they stand, in order.
        retry_after: whole seconds, or None.
    """

    quotas: tuple[QuotaItem, ...] = ()
    limits: tuple[LimitItem, ...] = ()
    retry_after: int | None = None


def read_fields(headers: Iterable[tuple[str, str]], dialect: Dialect | str = Dialect.DRAFT11) -> Reading:
    """Read the fields of one dialect among ``headers``; several lines of one name are one list.

    Raises:
        ValueError: a field that is not what the dialect says, naming the field and what was expected.
    """
    dialect = Dialect(dialect)
    lines: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        lines[low] = f"{lines[low]}, {value}" if low in lines else value
    wait = lines.get("retry-after")
    retry_after = None if wait is None else _digits("Retry-After", wait)
    quotas: tuple[QuotaItem, ...] = ()
    limits: tuple[LimitItem, ...] = ()
    match dialect:
        case Dialect.DRAFT11 | Dialect.DRAFT12_PREVIEW:
            quotas = tuple(_quota(item) for item in _items("RateLimit-Policy", lines))
            keys = ("r", "t") if dialect is Dialect.DRAFT11 else ("a", "w")
            limits = tuple(_limit(item, *keys) for item in _items("RateLimit", lines))
        case Dialect.DRAFT7:
            quotas = _old_quotas(lines)
            limits = _draft7(lines)
        case Dialect.DRAFT6:
            quotas = _old_quotas(lines)
            limits = _three("RateLimit-", lines)
        case Dialect.X_RATELIMIT_EPOCH | Dialect.X_RATELIMIT_DELTA:
            limits = _three("X-RateLimit-", lines)
        case Dialect.NONE:
            pass
    return Reading(quotas, limits, retry_after)


def _items(field: str, lines: dict[str, str]) -> list[Item]:
    text = lines.get(field.lower())
    if text is None:
        return []
    members = parse_list(text)
    if not members:
        raise ValueError(f"{field} is empty; expected at least one item")
    for member in members:
        if not isinstance(member, Item):
            raise ValueError(f"{field} has an inner list; expected items")
    return [member for member in members if isinstance(member, Item)]


def _quota(item: Item) -> QuotaItem:
    unit = item.params.get("qu", "requests")
    if not isinstance(unit, str):
        raise ValueError(f"RateLimit-Policy: qu is {unit!r}; expected a String such as requests")
    return QuotaItem(
        _name("RateLimit-Policy", item),
        _number("RateLimit-Policy", "q", item.params.get("q")),
        _optional("RateLimit-Policy", "w", item.params.get("w"), least=1),
        _optional("RateLimit-Policy", "headway-burst", item.params.get("headway-burst")),
        str(unit),
    )


def _limit(item: Item, remaining: str, replenish: str) -> LimitItem:
    tag = item.params.get("pk")
    if tag is not None and not isinstance(tag, bytes):
        raise ValueError(f"RateLimit: pk is {tag!r}; expected a Byte Sequence")
    return LimitItem(
        _name("RateLimit", item),
        _number("RateLimit", remaining, item.params.get(remaining)),
        _optional("RateLimit", replenish, item.params.get(replenish)),
        cost=_optional("RateLimit", "c", item.params.get("c")) if remaining == "a" else None,
        partition_key=tag,
    )


def _old_quotas(lines: dict[str, str]) -> tuple[QuotaItem, ...]:
    return tuple(
        QuotaItem(
            None,
            _number("RateLimit-Policy", "the quota", item.value),
            _number("RateLimit-Policy", "w", item.params.get("w"), least=1),
            _optional("RateLimit-Policy", "burst", item.params.get("burst")),
        )
        for item in _items("RateLimit-Policy", lines)
    )


def _draft7(lines: dict[str, str]) -> tuple[LimitItem, ...]:
    text = lines.get("ratelimit")
    if text is None:
        return ()
    numbers = {}
    members = parse_dictionary(text)
    for name in ("limit", "remaining", "reset"):
        member = members.get(name)
        numbers[name] = _number("RateLimit", name, member.value if isinstance(member, Item) else None)
    return (LimitItem(None, numbers["remaining"], None, numbers["limit"], numbers["reset"]),)


def _three(prefix: str, lines: dict[str, str]) -> tuple[LimitItem, ...]:
    names = [f"{prefix}{part}" for part in ("Limit", "Remaining", "Reset")]
    present = [name for name in names if name.lower() in lines]
    if not present:
        return ()
    if len(present) < len(names):
        missing = next(name for name in names if name not in present)
        raise ValueError(f"{present[0]} is sent without {missing}; expected all three fields")
    most, remaining, reset = (_digits(name, lines[name.lower()]) for name in names)
    return (LimitItem(None, remaining, None, most, reset),)


def _name(field: str, item: Item) -> str:
    if not isinstance(item.value, str):
        raise ValueError(f"{field}: an item is {item.value!r}; expected a limit's name as a String")
    return str(item.value)


def _number(field: str, name: str, value: BareItem | None, *, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{field}: {name} is {value!r}; expected a whole number from {least}")
    return value


def _optional(field: str, name: str, value: BareItem | None, *, least: int = 0) -> int | None:
    return None if value is None else _number(field, name, value, least=least)


def _digits(field: str, text: str) -> int:
    if not _DIGITS.fullmatch(text.strip()):
        raise ValueError(f"{field} is {text!r}; expected a whole number of digits")
    return int(text)
