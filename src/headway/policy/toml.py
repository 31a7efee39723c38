"""Policy files: TOML in, policies out, or every problem with its file, line, key and the nearest accepted spelling.

store = "sqlite:///limits.db"

[[policies.one-time-codes.limits]]
name = "per-phone"
quota = "5 per day"
by = "phone"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.core.limit import Limit, check_name
from headway.errors import ConfigError, LimitError
from headway.policy.limit_table import LIMIT_KEYS, read_limit
from headway.policy.locate import KeyPath, locate
from headway.policy.policy import Policy, PolicyFile
from headway.policy.problems import Problems, dotted
from headway.policy.spelling import described, header_name, nearest

__all__ = ["Reading", "read_policy_file", "read_policy_text"]

_FILE_KEYS: Final = {
    "store": 'a store\'s URL such as "sqlite:///limits.db" or "memory://"',
    "namespace": 'a string such as "default"',
    "policies": "tables of limits: [[policies.NAME.limits]]",
}
_POLICY_KEYS: Final = {"limits": "an array of tables: [[policies.NAME.limits]]"}
_SYNTAX_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading a policy file.

    Attributes:
        file: the policies, or None where there are problems.
        problems: all of them, by line.
        warnings: what is legal and hardly meant, by line.
    """

    file: PolicyFile | None
    problems: tuple[ConfigError, ...]
    warnings: tuple[ConfigError, ...]

    def policies(self) -> PolicyFile:
        """The policies.

        Raises:
            ConfigError: the one problem, or one error whose message holds all of them, a line each, and whose place is
                the first one's.
        """
        if self.file is not None:
            return self.file
        first = self.problems[0]
        if len(self.problems) == 1:
            raise first
        error = ConfigError("\n".join(map(str, self.problems)))
        error.file, error.line, error.key = first.file, first.line, first.key
        raise error


def read_policy_file(path: Path, *, check_store: Callable[[str], object] | None = None) -> Reading:
    """Read a policy file; a file that cannot be read is a problem too.

    Args:
        path: the file, UTF-8.
        check_store: raises ``ConfigError`` on a URL that names no store; None leaves that to whoever opens it.
    """
    name = str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return _unreadable(name, "no such file; expected a policy file in TOML")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return _unreadable(name, f"is not UTF-8 ({error.reason}); save the file as UTF-8", line)
    except OSError as error:
        return _unreadable(name, f"cannot be read ({error.strerror}); expected a policy file in TOML")
    return read_policy_text(text, file=name, folder=path.absolute().parent, check_store=check_store)


def read_policy_text(
    text: str, *, file: str, folder: Path, check_store: Callable[[str], object] | None = None
) -> Reading:
    """Read the text of a policy file.

    Args:
        text: TOML.
        file: what messages call it.
        folder: where a relative store starts from.
        check_store: see ``read_policy_file``.
    """
    try:
        document = tomllib.loads(text)
        lines = locate(text)
    except tomllib.TOMLDecodeError as error:
        return _syntax_error(file, text, str(error))
    except RecursionError:
        return _unreadable(file, "is nested too deeply; expected tables of limits")
    except ValueError as error:  # an integer of more digits than Python reads, a date such as 2024-02-30
        return _unreadable(file, f"holds a value that cannot be read: {error}")
    problems = Problems(file, lines)
    problems.unknown_keys(document, (), _FILE_KEYS, {"limits": "limits belong to a policy: [[policies.NAME.limits]]"})
    store = _store(document.get("store", "memory://"), problems, check_store)
    namespace = document.get("namespace", "default")
    if not isinstance(namespace, str) or not namespace:
        problems.add(("namespace",), f"is {described(namespace)}; expected {_FILE_KEYS['namespace']}")
    policies = _policies(document, str(namespace), problems)
    errors, warnings = (
        tuple(sorted(found, key=lambda problem: problem.line or 0)) for found in (problems.errors, problems.warnings)
    )
    if errors:
        return Reading(None, errors, warnings)
    return Reading(PolicyFile(file, folder, store, policies, warnings), (), warnings)


def _store(url: object, problems: Problems, check: Callable[[str], object] | None) -> str:
    if not isinstance(url, str):
        problems.add(("store",), f"is {described(url)}; expected {_FILE_KEYS['store']}")
    elif check is not None:
        try:
            check(url)
        except ConfigError as error:
            problems.add(("store",), error.problem)
    return str(url)


def _policies(document: Mapping[str, object], namespace: str, problems: Problems) -> dict[str, Policy]:
    policies = document.get("policies")
    if policies is None or policies == {}:
        if not any(nearest(key, _FILE_KEYS) == "policies" or key == "limits" for key in document):
            problems.add(("policies",), f"there is no policy; expected at least one of {_FILE_KEYS['policies']}")
        return {}
    if not isinstance(policies, dict):
        problems.add(("policies",), f"is {described(policies)}; expected {_FILE_KEYS['policies']}")
        return {}
    found: dict[str, Policy] = {}
    names: dict[str, KeyPath] = {}
    for name, table in policies.items():
        path: KeyPath = ("policies", name)
        _check_policy_name(name, path, names, problems)
        names.setdefault(name.lower(), path)
        limits = _limits(table, path, problems)
        if limits is not None:
            found[name] = Policy(name, limits, f"{namespace}#{name}")
    return found


def _check_policy_name(name: str, path: KeyPath, names: Mapping[str, KeyPath], problems: Problems) -> None:
    try:
        check_name("policy", name)
    except LimitError as error:
        problems.add(path, f"{error}{problems.proposal(header_name(name, 'policy'))}")
    if name.lower() in names:
        other = names[name.lower()]
        problems.add(path, f"differs only in case from {dotted(other)} on line {problems.line(other)}; rename one")


def _limits(table: object, path: KeyPath, problems: Problems) -> tuple[Limit, ...] | None:
    header = f"[[{dotted((*path, 'limits'))}]]"
    if not isinstance(table, dict):
        problems.add(path, f"is {described(table)}; expected a table with limits: {header}")
        return None
    hints = dict.fromkeys(LIMIT_KEYS, f"{{}} belongs to a limit: {header}")
    problems.unknown_keys(table, path, _POLICY_KEYS, {key: hint.format(key) for key, hint in hints.items()})
    limits = table.get("limits")
    if limits is None:
        if not any(key in hints or nearest(key, _POLICY_KEYS) for key in table):
            problems.add((*path, "limits"), f"is missing; expected {header}, or limits = [] to limit nothing")
        return None
    if not isinstance(limits, list):
        problems.add((*path, "limits"), f"is {described(limits)}; expected an array of tables: {header}")
        return None
    if not limits:
        problems.warn((*path, "limits"), "is empty, so this policy limits nothing: every request is allowed")
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


def _syntax_error(file: str, text: str, message: str) -> Reading:
    found = _SYNTAX_PLACE.search(message)
    problem = message[: found.start()] if found else message
    lines = text.split("\n")
    if found is None or found[1] is None:
        return _unreadable(file, f"is not TOML: {problem} at the end of the file", len(text.rstrip().split("\n")))
    line = int(found[1])
    shown = lines[line - 1].strip() if line <= len(lines) else ""
    excerpt = f", in {shown if len(shown) <= 80 else shown[:77] + '...'!r}" if shown else ""
    return _unreadable(file, f"is not TOML: {problem} (column {found[2]}){excerpt}", line)


def _unreadable(file: str, problem: str, line: int | None = None) -> Reading:
    return Reading(None, (ConfigError(problem, file=file, line=line),), ())
