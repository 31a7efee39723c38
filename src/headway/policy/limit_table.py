"""One ``[[policies.NAME.limits]]`` table: from TOML's values to a limit, or every problem in it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from headway.core.limit import Algorithm, FailureMode, Limit, check_name
from headway.core.quota import MAX_COUNT, Quota, parse_duration
from headway.errors import LimitError, QuotaError
from headway.policy.choice import Choice
from headway.policy.choice_table import CHOICE_KEYS, read_choice, report_conditions
from headway.policy.locate import KeyPath
from headway.policy.problems import Problems
from headway.policy.quota_keys import QUOTA_KEYS, Quotas, read_quotas
from headway.policy.spelling import described, header_name, identifier, nearest

__all__ = ["LIMIT_KEYS", "read_limit"]


def _one_of(kind: type[StrEnum]) -> str:
    return "one of " + ", ".join(f'"{member.value}"' for member in kind)


LIMIT_KEYS: Final = {
    "name": 'a string such as "per-phone"',
    **QUOTA_KEYS,
    "by": 'the name of an attribute or an array of names, such as ["phone"]',
    "algorithm": _one_of(Algorithm),
    "cost": f"a whole number from 1 to {MAX_COUNT}",
    "secret": "true, false or an array of names among by",
    "on_store_failure": _one_of(FailureMode),
    "count_refused": "true or false",
    "shadow": "true or false",
    "undelayed": "a whole number from 1 to the burst",
    "longest": 'a duration such as "1 hour"',
    "forgiven_after": 'a duration such as "1 day"',
    "text": 'a sentence such as "Too many codes for this phone."',
    **CHOICE_KEYS,
}
"""The keys of a limit (all of ``Limit``'s arguments, and what makes it depend on the request), and what each takes."""

_HINTS: Final = {
    **dict.fromkeys(
        ("burst", "count", "limit", "max", "period", "rate", "requests", "window"),
        'the numbers belong into quota, such as quota = "100/s burst 20"',
    ),
    **dict.fromkeys(
        ("tiers", "plans"), 'a quota for each tier is said with quota = { free = "60/min" } and tier = "plan"'
    ),
    **dict.fromkeys(("if", "condition", "conditions", "match"), 'conditions are said with when = { method = "POST" }'),
    **dict.fromkeys(("ban", "exempt"), "it belongs to the policy, beside its limits: [policies.NAME]"),
    "deadline": "the store's deadline stands at the top of the file",
    "provider": "a function that says quotas is for programs: ProvidedLimit",
}
_ONLY_FOR: Final = {
    "undelayed": Algorithm.LEAKY_BUCKET_QUEUE,
    "longest": Algorithm.GROWING_WAIT,
    "forgiven_after": Algorithm.GROWING_WAIT,
}
_STEPS: Final = (
    ("by", ()),
    ("secret", ("by",)),
    ("algorithm", ("quota", "longest", "forgiven_after")),
    ("undelayed", ("quota", "algorithm")),
    ("count_refused", ("quota", "algorithm")),
    *((key, ()) for key in ("cost", "on_store_failure", "shadow", "text")),
)
"""In this order keys are judged, and on which others each hangs."""
_PLAIN: Final = frozenset({*(key for key, _ in _STEPS), "longest", "forgiven_after"})
_STAND_IN: Final = "limit"


def read_limit(table: object, path: KeyPath, problems: Problems) -> Limit | Choice | None:
    """The limit of one table, or None after its problems were noted.

    Args:
        table: TOML's value; anything but a table is a problem.
        path: where it stands.
        problems: takes what is wrong, each with its place.
    """
    if not isinstance(table, dict):
        problems.add(path, f"is {described(table)}; expected a table with name and quota")
        return None
    before = len(problems)
    problems.unknown_keys(table, path, LIMIT_KEYS, _HINTS)
    meant = {nearest(key, LIMIT_KEYS) for key in table if key not in LIMIT_KEYS}
    if "name" not in table and "name" not in meant:
        problems.add((*path, "name"), f"is missing; expected {LIMIT_KEYS['name']}")
    fields = {key: value for key, value in table.items() if key in LIMIT_KEYS and _typed(key, value, path, problems)}
    broken = {*table, *meant} - {*fields}
    quotas = read_quotas(fields, broken, path, problems)
    limit = _built(fields, quotas, set(broken), path, problems)
    if quotas is None:
        if "when" in fields:
            report_conditions(fields["when"], (*path, "when"), problems)
        return None
    choice = read_choice(limit, quotas, fields, broken, path, problems)
    return choice if len(problems) == before else None


def _typed(key: str, value: object, path: KeyPath, problems: Problems) -> bool:
    match key:
        case "cost" | "undelayed" | "capacity":
            right = type(value) is int
        case "count_refused" | "shadow" | "block":
            right = isinstance(value, bool)
        case "quota":
            right = isinstance(value, str | dict)
        case "overrides" | "when":
            right = isinstance(value, dict | list)
        case "by" | "secret" if isinstance(value, list):
            return _all_text(key, value, path, problems)
        case "secret":
            right = isinstance(value, bool | str)
        case _:
            right = isinstance(value, str)
    if not right:
        problems.add((*path, key), f"is {described(value)}; expected {LIMIT_KEYS[key]}")
    return right


def _all_text(key: str, values: list[object], path: KeyPath, problems: Problems) -> bool:
    wrong = [(index, value) for index, value in enumerate(values) if not isinstance(value, str)]
    for index, value in wrong:
        problems.add((*path, key, index), f"is {described(value)}; expected the name of an attribute")
    return not wrong


def _built(
    fields: Mapping[str, Any], quotas: Quotas | None, failed: set[str | None], path: KeyPath, problems: Problems
) -> Limit:
    """The limit, put together one key at a time, so that each problem is found at its own key.

    A key whose meaning hangs on one that has failed is not judged beyond its own words.
    """
    name = fields.get("name")
    if name is None or not _name(name, (*path, "name"), problems):
        name = _STAND_IN
    quota = Quota.parse("1/s") if quotas is None else quotas.model
    if quotas is None:
        failed.add("quota")
    fields = {key: value for key, value in fields.items() if key in _PLAIN}
    if quotas is not None and quotas.algorithms:
        _named_by_its_words(quotas, fields, failed, path, problems)
    for key, value in fields.items():
        if not _words(key, value, (*path, key), problems):
            failed.add(key)
    _belongs(fields, failed, path, problems)
    options: dict[str, Any] = {}
    for key, hangs_on in _STEPS:
        if key not in fields or not failed.isdisjoint({key, *hangs_on}):
            failed |= {key} & {*fields}
            continue
        added = {key: fields[key]}
        if key == "algorithm":
            added |= {other: fields[other] for other in ("longest", "forgiven_after") if other in fields}
        try:
            Limit(name, quota, **options, **added)
        except LimitError as error:
            failed.add(key)
            problem = str(error).removeprefix(f"limit {name!r}: ")
            blamed = next((other for other in reversed(added) if other in problem), key)
            problems.add((*path, blamed), problem)
        else:
            options |= added
    return Limit(name, quota, **options)


def _named_by_its_words(
    quotas: Quotas, fields: dict[str, Any], failed: set[str | None], path: KeyPath, problems: Problems
) -> None:
    """The algorithm that ``refill``, ``leak`` or ``interval`` stands for, unless another is named that does not take it."""
    chosen = fields.setdefault("algorithm", quotas.algorithms[0].value)
    if "algorithm" not in failed and chosen not in list(quotas.algorithms) and chosen in list(Algorithm):
        expected = " or ".join(f'"{one.value}"' for one in quotas.algorithms)
        problems.add((*path, "algorithm"), f"{chosen!r} takes no {quotas.word}; expected {expected}, or a quota")
        failed.add("algorithm")


def _belongs(fields: Mapping[str, Any], failed: set[str | None], path: KeyPath, problems: Problems) -> None:
    """Keys that mean something to one algorithm only are not silently ignored beside another."""
    if "algorithm" in failed:
        return
    chosen = fields.get("algorithm")
    for key, algorithm in _ONLY_FOR.items():
        if key in fields and chosen != algorithm:
            beside = f"not to {chosen!r}" if chosen else "which has to be named"
            failed.add(key)
            problems.add((*path, key), f'belongs to algorithm = "{algorithm.value}", {beside}')


def _name(name: str, place: KeyPath, problems: Problems) -> bool:
    try:
        check_name("limit", name)
    except LimitError as error:
        problems.add(place, str(error) + problems.proposal(header_name(name, "limit")))
        return False
    return True


def _words(key: str, value: object, place: KeyPath, problems: Problems) -> bool:
    """Whether a key's words are known by themselves: a choice among few, names of attributes."""
    if key in ("algorithm", "on_store_failure"):
        kind = Algorithm if key == "algorithm" else FailureMode
        known = [member.value for member in kind]
        if value not in known:
            proposal = problems.proposal(nearest(str(value), known))
            problems.add(place, f"{value!r} is not known; expected {_one_of(kind)}{proposal}")
            return False
    if key in ("longest", "forgiven_after"):
        try:
            parse_duration(str(value))
        except QuotaError as error:
            problems.add(place, str(error))
            return False
    if key in ("by", "secret") and not isinstance(value, bool):
        return _attributes(key, value, place, problems)
    return True


def _attributes(key: str, value: Any, place: KeyPath, problems: Problems) -> bool:
    right = True
    for index, name in enumerate([value] if isinstance(value, str) else value):
        try:
            Limit(_STAND_IN, "1/s", by=name)
        except LimitError as error:
            right = False
            where = place if isinstance(value, str) else (*place, index)
            proposal = identifier(name)
            said = str(error).removeprefix(f"limit {_STAND_IN!r}: by ")
            problems.add(where, f"{key} {said}" + problems.proposal(proposal if proposal != name else None))
    return right
