"""``RateLimit`` and ``RateLimit-Policy`` read strictly (draft-ietf-httpapi-ratelimit-headers-11 and before): values and faults.

A draft's own rule is that a malformed field is ignored as a whole (-11 §7), so what is wrong with it is worth a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headway.presentation.structured import BareItem, InnerList, Item, parse_dictionary, parse_list

__all__ = ["Quota", "Shown", "Standard", "read_standard"]


@dataclass(frozen=True, slots=True)
class Shown:
    """How one limit stands.

    Attributes:
        name: the limit's; None in drafts without names.
        remaining: units left.
        replenish: ``t``: seconds until more than that can be spent (-11); None where it is not said.
        limit: the most, in drafts that say it here.
        reset: seconds until the limit is as if unused, in drafts that say that instead of ``t``.
        partition_key: ``pk``, or None.
    """

    name: str | None
    remaining: int
    replenish: int | None = None
    limit: int | None = None
    reset: int | None = None
    partition_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """One item of ``RateLimit-Policy``: its name or None, units, window in seconds or None, ``pk`` or None."""

    name: str | None
    quota: int
    window: int | None
    partition_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Standard:
    """What the two fields say.

    Attributes:
        shown: from ``RateLimit``; empty where it is absent or malformed.
        quotas: from ``RateLimit-Policy``.
        faults: (field name, what is wrong with it).
    """

    shown: tuple[Shown, ...] = ()
    quotas: tuple[Quota, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()


def read_standard(ratelimit: str | None, policy: str | None) -> Standard:
    """Read both fields, each as one text: several lines joined with ``", "``; None where a field is absent."""
    faults: list[tuple[str, str]] = []
    shown: tuple[Shown, ...] = ()
    quotas: tuple[Quota, ...] = ()
    if ratelimit is not None:
        try:
            shown = _shown(ratelimit)
        except ValueError as error:
            faults.append(("RateLimit", str(error)))
    if policy is not None:
        try:
            quotas = tuple(_quota(item) for item in _items(policy))
        except ValueError as error:
            faults.append(("RateLimit-Policy", str(error)))
    return Standard(shown, quotas, tuple(faults))


def _items(text: str) -> list[Item]:
    members = parse_list(text)
    if not members:
        raise ValueError("it is empty; expected at least one item")
    items: list[Item] = []
    for member in members:
        if isinstance(member, InnerList):
            raise ValueError('it holds an inner list; expected items such as "per-ip";r=0;t=1')
        items.append(member)
    return items


def _shown(text: str) -> tuple[Shown, ...]:
    try:
        items = _items(text)
    except ValueError as error:
        try:
            return (_from_dictionary(text),)
        except ValueError:
            raise error from None
    if any(not isinstance(item.value, str) for item in items) or not any(item.params for item in items):
        # a List of Tokens such as "limit" is what the Dictionary of draft -07 looks like where it has no values
        return (_from_dictionary(text),)
    return tuple(_one(item) for item in items)


def _one(item: Item) -> Shown:
    name = _name(item)
    remaining = _whole(item.params, "r", "a")
    if remaining is None:
        raise ValueError(f'"{name}" has no r; expected the units that are left, such as "{name}";r=0;t=1')
    replenish = _whole(item.params, "t", "w")
    return Shown(name, remaining, replenish, partition_key=_key(item.params, name))


def _from_dictionary(text: str) -> Shown:
    """Draft -07: ``limit=100, remaining=0, reset=7``."""
    members = parse_dictionary(text)
    numbers = {key: member.value for key, member in members.items() if isinstance(member, Item)}
    limit, remaining, reset = (_whole(numbers, key) for key in ("limit", "remaining", "reset"))
    if limit is None or remaining is None or reset is None:
        missing = next(key for key in ("limit", "remaining", "reset") if key not in numbers)
        raise ValueError(f'it names no {missing}; expected "name";r=0;t=1, or limit=10, remaining=0, reset=1')
    return Shown(None, remaining, None, limit, reset)


def _quota(item: Item) -> Quota:
    if isinstance(item.value, int) and not isinstance(item.value, bool):  # drafts -04 to -07: 100;w=60
        if item.value < 0:
            raise ValueError(f"the quota is {item.value}; expected a whole number from 0")
        window = _window(item.params)
        if window is None:
            raise ValueError(f"{item.value} has no w; expected the window in seconds, such as {item.value};w=60")
        return Quota(None, int(item.value), window)
    name = _name(item)
    quota = _whole(item.params, "q")
    if quota is None:
        raise ValueError(f'"{name}" has no q; expected the quota, such as "{name}";q=100;w=60')
    unit = item.params.get("qu", "requests")
    if not isinstance(unit, str):
        raise ValueError(f'"{name}": qu is {unit!r}; expected a String such as "requests"')
    return Quota(name, quota, _window(item.params), _key(item.params, name))


def _window(params: Mapping[str, BareItem]) -> int | None:
    window = _whole(params, "w")
    if window == 0:
        raise ValueError("w is 0; expected a whole number of seconds from 1")
    return window


def _name(item: Item) -> str:
    if not isinstance(item.value, str):
        raise ValueError(f'an item is {item.value!r}; expected a limit\'s name in quotes, such as "per-ip"')
    return str(item.value)


def _key(params: Mapping[str, BareItem], name: str) -> bytes | None:
    key = params.get("pk")
    if key is not None and not isinstance(key, bytes):
        raise ValueError(f'"{name}": pk is {key!r}; expected a Byte Sequence such as :c2Vzc2lvbg==:')
    return key


def _whole(params: Mapping[str, BareItem], *keys: str) -> int | None:
    """The first of some parameters as a whole number from 0; None where there is none of them."""
    for key in keys:
        if key in params:
            value = params[key]
            if type(value) is not int or value < 0:
                shown = str(value) if isinstance(value, int) else repr(value) if isinstance(value, str) else str(value)
                raise ValueError(f"{key} is {shown}; expected a whole number from 0")
            return value
    return None
