"""How a limit's table says its quota: one text, one text a tier, or in the words of its algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headway.core.limit import Algorithm
from headway.core.quota import MAX_COUNT, Quota, parse_duration
from headway.errors import QuotaError
from headway.policy.locate import KeyPath
from headway.policy.problems import Problems
from headway.policy.spelling import described
from headway.policy.tiers import wrong_tier
from headway.policy.variants import BLOCK, UNLIMITED

__all__ = ["BLOCKING", "QUOTA_KEYS", "Quotas", "read_quota", "read_quotas"]

QUOTA_KEYS: Final = {
    "quota": 'a string such as "5 per day" or "100/s burst 20", or a table with one for each tier',
    "block": "true, instead of a quota: nothing is admitted",
    "capacity": f"a whole number from 1 to {MAX_COUNT}, with refill (token-bucket) or leak (leaky-bucket)",
    "refill": 'a string such as "10 per 30 s"',
    "leak": 'a string such as "10 per 30 s"',
    "interval": 'a duration such as "30 s" (minimum-interval)',
}
"""The keys that say a quota, and what each takes, in words."""

BLOCKING: Final = Quota.parse("0/s")

_ONE_TEXT: Final = 'a string such as "5 per day" or "100/s burst 20"'
_TIER_TEXT: Final = f'{_ONE_TEXT}, "{BLOCK}" or "{UNLIMITED}"'
_WORDS: Final = {
    "refill": (Algorithm.TOKEN_BUCKET,),
    "leak": (Algorithm.LEAKY_BUCKET, Algorithm.LEAKY_BUCKET_QUEUE),
    "interval": (Algorithm.MINIMUM_INTERVAL,),
}


@dataclass(frozen=True, slots=True)
class Quotas:
    """What was read.

    Attributes:
        model: the quota of the limit, or of the first tier that limits.
        tiers: quotas, ``block`` or ``unlimited`` by tier; None where there are no tiers.
        algorithms: that the words stand for, the first where none is named; empty for any.
        word: the key that they belong to.
    """

    model: Quota
    tiers: Mapping[str, Quota | str] | None = None
    algorithms: tuple[Algorithm, ...] = ()
    word: str = "quota"


def read_quotas(fields: Mapping[str, Any], broken: set[str | None], path: KeyPath, problems: Problems) -> Quotas | None:
    """The quota or quotas of a limit, or None after the problems were noted.

    Args:
        fields: the limit's keys whose values are of the right type.
        broken: the keys that are there and not among them, or were meant by a misspelt one.
        path: where the table stands.
        problems: takes what is wrong.
    """
    ways = [way for way in ("quota", "block", "refill", "leak", "interval") if fields.get(way)]
    if len(ways) > 1:
        problems.add((*path, ways[1]), f"stands beside {ways[0]}, and a limit has one quota; drop one of them")
        return None
    if not ways:
        if not broken.isdisjoint(QUOTA_KEYS):
            return None
        for key in ("capacity", "quota"):
            if key == "capacity" and key in fields:
                problems.add((*path, key), 'needs its pace: expected refill = "10/s" (token-bucket) or leak = "10/s"')
                return None
        given = "quota" in fields
        problems.add(
            (*path, "quota"), f"is {'empty' if given else 'missing'}; expected {QUOTA_KEYS['quota'].split(',')[0]}"
        )
        return None
    way, place = ways[0], (*path, ways[0])
    if way in ("refill", "leak"):
        return _bucket(way, fields, broken, path, problems)
    if "capacity" in fields:
        problems.add((*path, "capacity"), f'belongs to refill = "10/s" or leak = "10/s", not to {way}')
        return None
    match way:
        case "block":
            return Quotas(BLOCKING, word=way)
        case "interval":
            try:
                return Quotas(Quota(1, parse_duration(fields[way])), algorithms=_WORDS[way], word=way)
            except QuotaError as error:
                problems.add(place, str(error))
                return None
        case _ if isinstance(fields[way], dict):
            return _tiers(fields[way], place, problems)
    quota = read_quota(fields[way], place, problems)
    return None if quota is None else Quotas(BLOCKING if isinstance(quota, str) else quota)


def read_quota(
    text: object, place: KeyPath, problems: Problems, *, words: tuple[str, ...] = (BLOCK,)
) -> Quota | str | None:
    """A quota, or one of the words that stand for one; None after the problem was noted."""
    if not isinstance(text, str):
        expected = _TIER_TEXT if len(words) > 1 else _ONE_TEXT
        problems.add(place, f"is {described(text)}; expected {expected}")
        return None
    if text in words:
        return text
    try:
        return Quota.parse(text)
    except QuotaError as error:
        parts = [part.strip() for part in text.split(";")]
        if len(parts) > 1 and all(parts):
            wanted = " and ".join(f'quota = "{part}"' for part in parts)
            problems.add(place, f"{text!r} holds {len(parts)} quotas; write one limit for each: {wanted}")
        elif text.strip().lower() in words:
            problems.add(place, f"{text!r} is not known; did you mean {text.strip().lower()!r}?")
        elif text == UNLIMITED:
            problems.add(
                place, "a limit that is unlimited is none; leave it out, or say for whom with tiers or overrides"
            )
        else:
            problems.add(place, str(error))
        return None


def _tiers(table: Mapping[str, object], place: KeyPath, problems: Problems) -> Quotas | None:
    for tier in table:
        if problem := wrong_tier(tier):
            problems.add((*place, tier), problem)
            return None
    read = {tier: read_quota(text, (*place, tier), problems, words=(BLOCK, UNLIMITED)) for tier, text in table.items()}
    tiers = {tier: quota for tier, quota in read.items() if quota is not None}
    if len(tiers) < len(read):
        return None
    limiting = (quota for quota in tiers.values() if isinstance(quota, Quota) and quota.count)
    return Quotas(next(limiting, BLOCKING), tiers)


def _bucket(
    way: str, fields: Mapping[str, Any], broken: set[str | None], path: KeyPath, problems: Problems
) -> Quotas | None:
    capacity = fields.get("capacity")
    if capacity is None:
        if "capacity" not in broken:
            problems.add((*path, "capacity"), f"is missing beside {way}; expected {QUOTA_KEYS['capacity']}")
        return None
    try:
        pace = Quota.parse(fields[way])
    except QuotaError as error:
        problems.add((*path, way), str(error))
        return None
    if pace.burst != pace.count or pace.zone or pace.concurrent or not pace.count:
        problems.add(
            (*path, way), f'is {fields[way]!r}; expected a pace such as "10 per 30 s": capacity says the burst'
        )
        return None
    try:
        return Quotas(replace(pace, burst=capacity), algorithms=_WORDS[way], word=way)
    except QuotaError as error:
        problems.add((*path, "capacity"), f"is {capacity}: {str(error).split(': ', 1)[1]}")
        return None
