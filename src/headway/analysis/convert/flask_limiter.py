"""The ``limits`` library's strings, and Flask-Limiter's configuration (``RATELIMIT_*``) as Python, JSON or ``KEY=value`` lines.

Python is read as text: only assignments of plain values count, and nothing of it runs. A month is 30 days there, and a year
360.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headway.analysis.convert.draft import Draft, LimitDraft, Names, PolicyDraft, quota_text
from headway.analysis.convert.places import KeyLines
from headway.analysis.convert.python_source import Code, decorated, parsed
from headway.analysis.convert.python_source import settings as python_settings

__all__ = ["convert_flask_limiter", "looks_like_limits"]

_SEPARATOR: Final = re.compile(r"[,;|]")
_LIMIT: Final = re.compile(r"\s*([0-9]+)\s*(?:/|\s+per\s+|\s*per\s*)\s*([0-9]+)?\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS: Final = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "month": 30 * 86_400,
    "year": 360 * 86_400,
}
_ASSIGNMENT: Final = re.compile(r"\bRATELIMIT_[A-Z_]+[\"']?\]?\s*[=:]")
_PROGRAM: Final = re.compile(r"\b(?:from|import) +(?:flask_limiter|slowapi)\b|@\w+\.(?:shared_)?limit\(")
_ENVIRONMENT: Final = re.compile(r"\s*(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*?)\s*\Z")
_STRATEGIES: Final = {
    "fixed-window": "anchored-window",
    "moving-window": "sliding-log",
    "sliding-window-counter": "sliding-window",
}
_LISTS: Final = {
    "RATELIMIT_DEFAULT": ("default", ("address",)),
    "RATELIMIT_APPLICATION": ("application", ("address",)),
    "RATELIMIT_META": ("meta", ("address",)),
}
_SILENT: Final = frozenset(
    [
        "RATELIMIT_HEADERS_ENABLED",
        "RATELIMIT_HEADER_LIMIT",
        "RATELIMIT_HEADER_REMAINING",
        "RATELIMIT_HEADER_RESET",
        "RATELIMIT_HEADER_RETRY_AFTER",
        "RATELIMIT_HEADER_RETRY_AFTER_VALUE",
        "RATELIMIT_KEY_PREFIX",
    ]
)
"""About fields and names of keys, which are headway's own."""


class _Item(NamedTuple):
    """One limit: its count, its length in seconds, its words, and its line."""

    amount: int
    seconds: int
    text: str
    line: int


def looks_like_limits(text: str) -> bool:
    """Whether a text is a configuration or a string of this library."""
    if _ASSIGNMENT.search(text) or _PROGRAM.search(text):
        return True
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    return bool(lines) and all(
        all(_LIMIT.fullmatch(part) for part in _SEPARATOR.split(line.strip("\"'"))) for line in lines[:20]
    )


def convert_flask_limiter(text: str, file: str) -> Draft:
    """Convert a configuration, or plain limit strings: all strings of the lines count together.

    Raises:
        ConfigError: with the line: a string that ``limits`` would not read either, or a text without any.
    """
    draft = Draft(file, "limits / Flask-Limiter")
    program = bool(_PROGRAM.search(text))
    settings = _settings(text, draft) if program or _ASSIGNMENT.search(text) else None
    if settings is None:
        _strings(text, draft)
    else:
        _configuration(settings, draft, text if program else "")
    return draft


def _strings(text: str, draft: Draft) -> None:
    policy = PolicyDraft("limits")
    draft.policies.append(policy)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip().strip("\"'")
        if words and not words.startswith("#"):
            for item in _items(words, number, draft):
                _add(policy, item, "fixed-window", ("address",), draft)
    if not policy.limits:
        raise draft.error("holds no limit; expected a string such as 10 per minute; 100/hour")
    draft.comments.append(
        "Counted by address, as Flask-Limiter's get_remote_address does; the strategy is its default, fixed-window."
    )
    _partly(policy, draft)


def _items(words: str, line: int, draft: Draft) -> Iterator[_Item]:
    for part in _SEPARATOR.split(words):
        found = _LIMIT.fullmatch(part)
        if found is None:
            raise draft.error(
                f"{part.strip()[:60]!r} is no limit; expected one such as 10 per minute, 100/hour or 5/2 seconds", line
            )
        count, times, unit = found.groups()
        name = unit.lower()
        seconds = _UNITS.get(name, _UNITS.get(name.removesuffix("s"), 0))
        if not seconds or (name.endswith("s") and name.removesuffix("s") not in _UNITS):
            raise draft.error(f"{unit!r} is no unit; expected one of {', '.join(_UNITS)}", line)
        if len(count) > 18 or len(times or "") > 12:
            raise draft.error(f"{part.strip()[:60]!r} has a number that is too large", line)
        # 0 times a unit is the unit once, as the library has it
        yield _Item(int(count), seconds * (int(times or 1) or 1), part.strip(), line)


def _add(policy: PolicyDraft, item: _Item, strategy: str, by: tuple[str, ...], draft: Draft, **more: Any) -> None:
    name = policy.names.take(f"per-{item.text.partition('per')[2] or item.text.partition('/')[2]}")
    if strategy == "sliding-window-counter":
        draft.note(
            "limits rounds what it counts of the window before down; here it is not rounded, so a request fewer may pass",
            item.line,
            name,
            policy.name,
        )
    if item.amount == 0:
        draft.note("0 is refused with 429 there, and blocked with 403 here", item.line, name, policy.name)
        keys: dict[str, Any] = {"block": True, "by": list(by) or None}
    else:
        algorithm = _STRATEGIES[strategy]
        counting = True if algorithm == "anchored-window" else None
        keys = {
            "quota": quota_text(item.amount, item.seconds),
            "algorithm": algorithm,
            "by": list(by) or None,
            "count_refused": counting,
        }
    limit = LimitDraft(name, {**keys, **more}, [item.text], item.line)
    policy.limits.append(draft.checked(limit))


def _partly(policy: PolicyDraft, draft: Draft) -> None:
    if len(policy.limits) > 1:
        draft.note(
            "where several limits count, limits charges those that are asked before the one that refuses; here none is charged then"
        )


def _settings(text: str, draft: Draft) -> dict[str, tuple[Any, int]] | None:
    """Every setting with its line: of a JSON object, of Python, or of lines as a shell reads them."""
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError as error:
            raise draft.error(f"is no JSON: {error}", getattr(error, "lineno", None)) from error
        except RecursionError as error:
            raise draft.error("is nested too deeply") from error
        if not isinstance(document, dict):
            return None
        lines = KeyLines(text)
        return {name: (value, lines.next(name)) for name, value in document.items()}
    tree = parsed(text)
    return dict(_shell(text)) if tree is None else dict(python_settings(tree))


def _shell(text: str) -> Iterator[tuple[str, tuple[Any, int]]]:
    words = {"true": True, "false": False, "none": None}
    for number, line in enumerate(text.splitlines(), 1):
        found = _ENVIRONMENT.match(line)
        if found:
            value = found[2].strip("\"'")
            yield found[1], (words.get(value.lower(), value), number)


def _configuration(settings: dict[str, tuple[Any, int]], draft: Draft, program: str) -> None:
    strategy = _strategy(settings, draft)
    more = _failure(settings, draft)
    _store(settings, draft)
    for key, (name, by) in _LISTS.items():
        if key not in settings:
            continue
        value, line = settings[key]
        policy = PolicyDraft(
            name, comments=[f"{key}, by the client's address{' and route' if name == 'default' else ''}."]
        )
        keyed: tuple[str, ...] = by
        if name == "default":
            per_method = settings.get("RATELIMIT_DEFAULTS_PER_METHOD", (False, 0))[0] is True
            keyed = (*by, "route", "method") if per_method else (*by, "route")
        for words in _texts(key, value, line, draft):
            for item in _items(words, line, draft):
                _add(policy, item, strategy, keyed, draft, **more)
        draft.policies.append(policy)
        _partly(policy, draft)
        if name == "meta":
            draft.note("meta limits count refusals of the other limits; here every request counts", line)
    tree = parsed(program) if program else None
    if tree is not None:
        _decorators(tree, strategy, more, draft)
    if not draft.policies:
        raise draft.error(f"sets none of {', '.join(_LISTS)}, so there is no limit to convert")
    _rest(settings, draft)


def _decorators(tree: ast.Module, strategy: str, more: dict[str, Any], draft: Draft) -> None:
    """A policy for each function, or for each scope that several functions share."""
    policies: dict[str, PolicyDraft] = {}
    names = Names()
    for policy in draft.policies:
        names.take(policy.name)
    for one in decorated(tree):
        if not isinstance(one.words, str):
            draft.note(f"the limit of {one.name} is code, so it is left out", one.line)
            continue
        if one.name not in policies:
            what = f"Shared by all of the scope {one.name}" if one.shared else f"The function {one.name}"
            policies[one.name] = PolicyDraft(
                names.take(one.name, "view"),
                comments=[f"{what}, by the client's address; these limits replace the default ones."],
            )
            draft.policies.append(policies[one.name])
        elif one.shared:
            continue  # the same limits once more, on another function
        for item in _items(one.words, one.line, draft):
            _add(policies[one.name], item, strategy, ("address",), draft, **more)
        for option in one.options:
            draft.note(f"{option} of {one.name}'s limit is not carried over", one.line)
    for policy in policies.values():
        _partly(policy, draft)


def _texts(key: str, value: Any, line: int, draft: Draft) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return list(value)
    raise draft.error(
        f"{key} is {'code' if isinstance(value, Code) else repr(value)[:60]}; expected a string such as 200 per day;50 per hour",
        line,
    )


def _strategy(settings: dict[str, tuple[Any, int]], draft: Draft) -> str:
    value, line = settings.get("RATELIMIT_STRATEGY", ("fixed-window", 1))
    if value == "fixed-window-elastic-expiry":
        draft.note("fixed-window-elastic-expiry extends a window with every request; here it ends when it should", line)
        return "fixed-window"
    if value not in _STRATEGIES:
        raise draft.error(f"RATELIMIT_STRATEGY is {value!r}; expected one of {', '.join(_STRATEGIES)}", line)
    return str(value)


def _failure(settings: dict[str, tuple[Any, int]], draft: Draft) -> dict[str, Any]:
    """What happens while the store is away."""
    fallback, line = settings.get("RATELIMIT_IN_MEMORY_FALLBACK", (None, 0))
    if fallback:
        draft.note("RATELIMIT_IN_MEMORY_FALLBACK has limits of its own; here the same limits count in memory", line)
    if fallback or settings.get("RATELIMIT_IN_MEMORY_FALLBACK_ENABLED", (False, 0))[0] is True:
        return {"on_store_failure": "local"}
    return {"on_store_failure": "allow"} if settings.get("RATELIMIT_SWALLOW_ERRORS", (False, 0))[0] is True else {}


def _store(settings: dict[str, tuple[Any, int]], draft: Draft) -> None:
    value, line = settings.get("RATELIMIT_STORAGE_URI", settings.get("RATELIMIT_STORAGE_URL", (None, 0)))
    if value is None:
        return
    url = str(value).removeprefix("async+")
    scheme, _, rest = url.partition("://")
    known = {
        "memory": "memory", "redis": "redis", "rediss": "rediss", "redis+cluster": "redis+cluster", "redis+sentinel": "redis+sentinel",
        "valkey": "redis", "valkeys": "rediss", "valkey+cluster": "redis+cluster", "valkey+sentinel": "redis+sentinel", "redis+unix": "unix",
    }  # fmt: skip
    if scheme in known:
        draft.store = f"{known[scheme]}://{rest}"
    else:
        draft.note(
            f"there is no store for {'code' if isinstance(value, Code) else scheme!r}; here it is memory://, for one process",
            line,
        )


def _rest(settings: dict[str, tuple[Any, int]], draft: Draft) -> None:
    done = {
        *_LISTS, *_SILENT, "RATELIMIT_STRATEGY", "RATELIMIT_STORAGE_URI", "RATELIMIT_STORAGE_URL", "RATELIMIT_SWALLOW_ERRORS",
        "RATELIMIT_IN_MEMORY_FALLBACK", "RATELIMIT_IN_MEMORY_FALLBACK_ENABLED", "RATELIMIT_DEFAULTS_PER_METHOD",
    }  # fmt: skip
    for name, (value, line) in settings.items():
        if not name.startswith("RATELIMIT_") or name in done:
            continue
        if name == "RATELIMIT_ENABLED":
            if value is False:
                draft.note("RATELIMIT_ENABLED is False, so nothing is limited there; here it is", line)
        elif name == "RATELIMIT_FAIL_ON_FIRST_BREACH":
            continue  # the same decision either way
        else:
            draft.note(f"{name} is not carried over", line)
