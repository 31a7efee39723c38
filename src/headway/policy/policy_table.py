"""``[policies.NAME]`` tables: a policy's limits, its ban list and its exemptions, or every problem in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from headway.core.limit import Limit, check_name
from headway.errors import LimitError
from headway.policy.choice import Choice
from headway.policy.choice_table import report_conditions
from headway.policy.limit_table import LIMIT_KEYS, read_limit
from headway.policy.lists import AllowList, BanList
from headway.policy.locate import KeyPath
from headway.policy.policy import Policy
from headway.policy.problems import Problems, dotted
from headway.policy.spelling import described, header_name, nearest

__all__ = ["BAN", "read_policies"]

_EXPECTED: Final = "tables of limits: [[policies.NAME.limits]]"
_LIST: Final = 'conditions such as [{ ip = "10.0.0.0/8" }, { account = "internal" }]'
_POLICY_KEYS: Final = {
    "limits": "an array of tables: [[policies.NAME.limits]]",
    "exempt": _LIST,
    "ban": _LIST,
}
_POLICY_HINTS: Final = {
    **dict.fromkeys(
        ("allow", "allow_list", "allowlist", "whitelist"), "who is not limited is said with exempt = [{ … }]"
    ),
    "deadline": "the store's deadline stands at the top of the file",
    **dict.fromkeys(
        ("bans", "deny", "deny_list", "denylist", "blacklist"), "who is refused is said with ban = [{ … }]"
    ),
}
BAN: Final = "banned"
"""What the limit is called that refuses whoever is on a policy's ban list."""


def read_policies(
    document: Mapping[str, object], namespace: str, file_keys: Collection[str], problems: Problems
) -> dict[str, Policy]:
    """The policies by name.

    Args:
        document: the whole file.
        namespace: the file's.
        file_keys: the keys that a file takes; one that is near to ``policies`` is reported already.
        problems: takes what is wrong, each with its place.
    """
    policies = document.get("policies")
    if policies is None or policies == {}:
        if not any(nearest(key, file_keys) == "policies" or key == "limits" for key in document):
            problems.add(("policies",), f"there is no policy; expected at least one of {_EXPECTED}")
        return {}
    if not isinstance(policies, dict):
        problems.add(("policies",), f"is {described(policies)}; expected {_EXPECTED}")
        return {}
    found: dict[str, Policy] = {}
    names: dict[str, KeyPath] = {}
    for name, table in policies.items():
        path: KeyPath = ("policies", name)
        _check_policy_name(name, path, names, problems)
        names.setdefault(name.lower(), path)
        limits = _limits(table, path, problems)
        if limits is not None:
            ban, exempt = _ban(name, table, path, problems), _exempt(table, path, problems)
            found[name] = Policy(name, (*ban, *limits), f"{namespace}#{name}", exempt)
    return found


def _check_policy_name(name: str, path: KeyPath, names: Mapping[str, KeyPath], problems: Problems) -> None:
    try:
        check_name("policy", name)
    except LimitError as error:
        problems.add(path, f"{error}{problems.proposal(header_name(name, 'policy'))}")
    if name.lower() in names:
        other = names[name.lower()]
        problems.add(path, f"differs only in case from {dotted(other)} on line {problems.line(other)}; rename one")


def _ban(policy: str, table: Mapping[str, object], path: KeyPath, problems: Problems) -> tuple[Choice, ...]:
    """The policy's ban list as a limit of its own, if there is one."""
    who = _list("ban", table, path, problems)
    limits = table.get("limits")
    for index, limit in enumerate(limits if isinstance(limits, list) else ()):
        if "ban" in table and isinstance(limit, dict) and limit.get("name") == BAN:
            problems.add(
                (*path, "limits", index, "name"),
                f"{BAN!r} is what the ban list of {dotted(path)} is called; rename one",
            )
    return (BanList(BAN, *who),) if who else ()


def _exempt(table: Mapping[str, object], path: KeyPath, problems: Problems) -> AllowList | None:
    who = _list("exempt", table, path, problems)
    return AllowList(*who) if who else None


def _list(key: str, table: Mapping[str, object], path: KeyPath, problems: Problems) -> list[Mapping[str, object]]:
    """The alternatives of a list, each a table of conditions; empty where there are none, or problems."""
    given = table.get(key, [])
    if not isinstance(given, list | dict):
        problems.add((*path, key), f"is {described(given)}; expected {_POLICY_KEYS[key]}")
        return []
    if given == [] or not report_conditions(given, (*path, key), problems):
        return []
    return [given] if isinstance(given, dict) else given


def _limits(table: object, path: KeyPath, problems: Problems) -> tuple[Limit | Choice, ...] | None:
    header = f"[[{dotted((*path, 'limits'))}]]"
    if not isinstance(table, dict):
        problems.add(path, f"is {described(table)}; expected a table with limits: {header}")
        return None
    hints = {**{key: f"{key} belongs to a limit: {header}" for key in LIMIT_KEYS}, **_POLICY_HINTS}
    problems.unknown_keys(table, path, _POLICY_KEYS, hints)
    limits = table.get("limits")
    if limits is None:
        if table.get("ban"):
            return ()
        if not any(key not in _POLICY_KEYS and (key in hints or nearest(key, _POLICY_KEYS)) for key in table):
            problems.add((*path, "limits"), f"is missing; expected {header}, or limits = [] to limit nothing")
        return None
    if not isinstance(limits, list):
        problems.add((*path, "limits"), f"is {described(limits)}; expected an array of tables: {header}")
        return None
    if not limits:
        banned = "every request that is not banned" if table.get("ban") else "every request"
        problems.warn((*path, "limits"), f"is empty, so this policy limits nothing: {banned} is allowed")
    _duplicates(limits, (*path, "limits"), problems)
    read = [read_limit(limit, (*path, "limits", index), problems) for index, limit in enumerate(limits)]
    return tuple(limit for limit in read if limit is not None)


def _duplicates(limits: list[object], path: KeyPath, problems: Problems) -> None:
    first: dict[str, tuple[str, KeyPath]] = {}
    for index, limit in enumerate(limits):
        name = limit.get("name") if isinstance(limit, dict) else None
        if not isinstance(name, str):
            continue
        place = (*path, index, "name")
        other, where = first.setdefault(name.lower(), (name, place))
        if where != place:
            same = (
                f"{name!r} is also the name"
                if name == other
                else f"{name!r} differs only in case from {other!r}, the name"
            )
            problems.add(place, f"{same} of the limit on line {problems.line(where)}; give each limit its own name")
