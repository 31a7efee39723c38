"""What a limit's table says of requests: its tiers, its overrides, the conditions under which it applies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import LimitError
from headway.policy.choice import Choice
from headway.policy.conditional import When
from headway.policy.locate import KeyPath
from headway.policy.matching import wrong_attribute, wrong_conditions
from headway.policy.overrides import Overridden, key_of
from headway.policy.problems import Problems
from headway.policy.quota_keys import Quotas, read_quota
from headway.policy.spelling import described, identifier, nearest
from headway.policy.tiers import CHOICES, ERROR, TieredLimit
from headway.policy.values import is_range
from headway.policy.variants import BLOCK, UNLIMITED, variant

__all__ = ["CHOICE_KEYS", "read_choice", "report_conditions"]

CHOICE_KEYS: Final = {
    "tier": 'the name of the attribute that says the tier, such as "plan"',
    "unknown_tier": 'a tier, or one of "error", "refuse", "unlimited"',
    "missing_tier": 'a tier, or one of "error", "refuse", "unlimited"',
    "overrides": 'a table of quotas by key, such as { acme = "1000/min" }, or an array of tables',
    "when": 'a table of conditions, such as { method = ["POST", "PUT"] }, or an array of such',
}
"""The keys that make a limit depend on the request, and what each takes, in words."""

_OF_TIERS: Final = ("tier", "unknown_tier", "missing_tier")


def read_choice(
    model: Limit, quotas: Quotas, fields: Mapping[str, Any], broken: set[str | None], path: KeyPath, problems: Problems
) -> Limit | Choice:
    """The limit, or what chooses among its variants; noted problems mean that it is not to be used.

    Args:
        model: the limit with its first quota.
        quotas: all of them.
        fields: the table's keys whose values are of the right type.
        broken: the keys that are there and not among them, or were meant by a misspelt one.
        path: where the table stands.
        problems: takes what is wrong.
    """
    found: Limit | Choice = _tiered(model, quotas.tiers, fields, broken, path, problems)
    if "overrides" in fields:
        own = _overrides(model, fields["overrides"], (*path, "overrides"), problems)
        found = Overridden(found, own) if own else found
    if "when" in fields and report_conditions(fields["when"], (*path, "when"), problems):
        found = When(fields["when"], found)
    return found


def report_conditions(wanted: object, place: KeyPath, problems: Problems) -> bool:
    """Note what is wrong with conditions; True where nothing is."""
    before = len(problems)
    if not wanted:
        problems.add(place, f"is empty; expected {CHOICE_KEYS['when']}")
        return False
    for inner, problem in wrong_conditions(wanted):
        problems.add((*place, *inner), problem)
    return len(problems) == before


def _tiered(
    model: Limit,
    tiers: Mapping[str, Quota | str] | None,
    fields: Mapping[str, Any],
    broken: set[str | None],
    path: KeyPath,
    problems: Problems,
) -> Limit | Choice:
    if tiers is None:
        for key in _OF_TIERS:
            if key in fields:
                wanted = 'quota = { free = "60/min", pro = "600/min" }'
                problems.add((*path, key), f"belongs to a quota for each tier: {wanted}")
        return model
    before = len(problems)
    if not tiers:
        problems.add((*path, "quota"), 'names no tier; expected quotas such as { free = "60/min", pro = "600/min" }')
    for tier, quota in tiers.items():
        _variant(model, quota, f"tier {tier!r}", (*path, "quota", tier), problems)
    attribute = fields.get("tier")
    if attribute is None and "tier" not in broken:
        problems.add((*path, "tier"), f"is missing beside a quota for each tier; expected {CHOICE_KEYS['tier']}")
    elif attribute is not None and (problem := wrong_attribute(attribute)):
        proposal = identifier(attribute)
        problems.add((*path, "tier"), problem + problems.proposal(proposal if proposal != attribute else None))
    known = [*tiers, *(word for word in CHOICES if word not in tiers)]
    for key in ("unknown_tier", "missing_tier"):
        choice = fields.get(key, ERROR)
        if choice not in known:
            problems.add(
                (*path, key),
                f"is {choice!r}; expected one of {', '.join(known)}{problems.proposal(nearest(choice, known))}",
            )
    if "unknown_tier" not in fields and "unknown_tier" not in broken:
        problems.warn(
            (*path, "quota"), f"what a request of another tier meets is not stated, so it is an error; expected "
            f"unknown_tier: {CHOICE_KEYS['unknown_tier']}",
        )  # fmt: skip
    if len(problems) > before or attribute is None:
        return model
    chosen = {option: fields.get(f"{option}_tier", ERROR) for option in ("unknown", "missing")}
    return TieredLimit.of(model, tiers, tier=attribute, **chosen)


def _overrides(model: Limit, given: object, place: KeyPath, problems: Problems) -> dict[object, Quota | str]:
    before = len(problems)
    if not model.by:
        problems.add(place, "the limit is keyed by nothing, so no key can have its own quota; give it by")
        return {}
    found: dict[object, Quota | str] = {}
    seen: dict[object, KeyPath] = {}
    entries = (
        _table_entries(model, given, place, problems)
        if isinstance(given, dict)
        else _array_entries(model, given, place, problems)
    )
    right: dict[object, Quota | str] = {}  # by text: few quotas for many keys
    for key, text, where in entries:
        known = right.get(text) if isinstance(text, str) else None
        quota = read_quota(text, where, problems, words=(BLOCK, UNLIMITED)) if known is None else known
        try:
            parts = key_of(model, key)
        except LimitError as error:
            problems.add(where, str(error).removeprefix(f"limit {model.name!r}: "))
            continue
        if parts in seen:
            problems.add(where, f"{key!r} already has its own quota on line {problems.line(seen[parts])}; drop one")
        seen.setdefault(parts, where)
        if any(isinstance(part, str) and ("*" in part or ("." in part and is_range(part))) for part in parts):
            problems.warn(
                where, f"{key!r} is one key as it stands, no pattern: for many keys say a second limit with when"
            )
        if quota is not None and (known or _variant(model, quota, f"override {key!r}", where, problems)):
            found[key] = right[text] = quota
    return found if len(problems) == before else {}


_Entries = list[tuple[object, object, KeyPath]]


def _table_entries(model: Limit, given: Mapping[str, object], place: KeyPath, problems: Problems) -> _Entries:
    if len(model.by) == 1:
        return [(key, text, (*place, key)) for key, text in given.items()]
    example = ", ".join(f'{name} = "…"' for name in model.by)
    problems.add(
        place,
        f'is a table, and a key has {len(model.by)} attributes; expected an array: [{{ {example}, quota = "…" }}]',
    )
    return []


def _array_entries(model: Limit, given: Any, place: KeyPath, problems: Problems) -> _Entries:
    entries: _Entries = []
    wanted = {**dict.fromkeys(model.by, "a value"), "quota": "a quota"}
    for index, entry in enumerate(given):
        where = (*place, index)
        if not isinstance(entry, dict):
            problems.add(where, f"is {described(entry)}; expected a table with {', '.join(wanted)}")
            continue
        problems.unknown_keys(entry, where, wanted, {})
        lacking = [name for name in wanted if name not in entry]
        if lacking:
            problems.add((*where, lacking[0]), f"is missing; expected a table with {', '.join(wanted)}")
            continue
        wrong = [name for name in model.by if type(entry[name]) not in (str, int)]
        if wrong:
            problems.add((*where, wrong[0]), f"is {described(entry[wrong[0]])}; expected a string or an integer")
            continue
        key = tuple(entry[name] for name in model.by)
        entries.append((key if len(key) > 1 else key[0], entry["quota"], (*where, "quota")))
    return entries


def _variant(model: Limit, quota: Quota | str, label: str, place: KeyPath, problems: Problems) -> bool:
    try:
        variant(model, quota, label)
    except LimitError as error:
        problems.add(place, str(error).removeprefix(f"limit {model.name!r}: {label}: "))
        return False
    return True
