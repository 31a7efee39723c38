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
from typing import Any, Final

from headway.core.quota import parse_duration
from headway.errors import ConfigError, ExtraMissing, QuotaError
from headway.policy.locate import has_long_key, locate
from headway.policy.policy import Policy, PolicyFile
from headway.policy.policy_table import read_policies
from headway.policy.problems import Problems
from headway.policy.spelling import described

__all__ = ["Reading", "read_policy_file", "read_policy_text"]

_FILE_KEYS: Final = {
    "store": 'a store\'s URL such as "sqlite:///limits.db" or "memory://"',
    "namespace": 'a string such as "default"',
    "deadline": 'how long a networked store may take: text such as "100 ms", or whole milliseconds from 1',
    "policies": "tables of limits: [[policies.NAME.limits]]",
}
_AT_HAND: Final = ("memory", "sqlite")
"""Stores that are reached over no network; an outage of theirs is one of the program itself."""

_LARGEST: Final = 16 * 1024 * 1024
_LONGEST_DEADLINE_NS: Final = 3_600_000_000_000
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
        with path.open("rb") as stream:
            raw = stream.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            return _unreadable(name, f"holds more than {_LARGEST >> 20} MiB; expected a policy file in TOML")
        text = raw.decode("utf-8-sig")
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
    if has_long_key(text):
        return _unreadable(file, "is nested too deeply; expected tables of limits")
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
    deadline = _deadline(document.get("deadline"), problems)
    policies = read_policies(document, str(namespace), _FILE_KEYS, problems)
    if store.partition(":")[0] not in _AT_HAND and not problems.errors:
        _ask_for_outages(policies, document, problems)
    errors, warnings = (
        tuple(sorted(found, key=lambda problem: problem.line or 0)) for found in (problems.errors, problems.warnings)
    )
    if errors:
        return Reading(None, errors, warnings)
    return Reading(PolicyFile(file, folder, store, policies, warnings, str(namespace), deadline), (), warnings)


def _store(url: object, problems: Problems, check: Callable[[str], object] | None) -> str:
    if not isinstance(url, str):
        problems.add(("store",), f"is {described(url)}; expected {_FILE_KEYS['store']}")
    elif check is not None:
        try:
            check(url)
        except ExtraMissing as error:
            problems.lack(("store",), error)
        except ConfigError as error:
            problems.add(("store",), error.problem)
    return str(url)


def _ask_for_outages(policies: Mapping[str, Policy], document: Mapping[str, Any], problems: Problems) -> None:
    """A store that can be away: whether a limit then costs money or customers is known to nobody but its author."""
    for name, policy in policies.items():
        for index, limit in enumerate(document["policies"][name].get("limits", ())):
            found = next((one for one in policy.plain_limits if one.name == limit.get("name")), None)
            if found is None or found.shadow or "on_store_failure" in limit:
                continue
            if found.quota.count:
                problems.warn(
                    ("policies", name, "limits", index),
                    "does not say on_store_failure, so while the store is away this limit refuses every request (503); "
                    'say "deny" if that is meant, as where a call costs money, else "allow" or "local"',
                )


def _deadline(given: object, problems: Problems) -> int | None:
    """The store's deadline in ns, or None where none is given."""
    if given is None:
        return None
    found = given * 1_000_000 if type(given) is int else 0
    if isinstance(given, str):
        try:
            found = parse_duration(given)
        except QuotaError as error:
            problems.add(("deadline",), str(error))
            return None
    if not 0 < found <= _LONGEST_DEADLINE_NS:
        problems.add(("deadline",), f"is {described(given)}; expected {_FILE_KEYS['deadline']}, up to an hour")
    return found


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
