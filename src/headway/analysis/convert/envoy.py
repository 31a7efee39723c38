"""envoyproxy/ratelimit's YAML: domains of nested descriptors, each a limit in fixed windows.

Read as its ``config_impl.go`` reads it: at each level an exact value wins over wildcards (in the order of the file), and
these over a bare key; a rule counts for requests with exactly as many entries as it is deep. A month is 30 days and a year
365; windows begin at multiples of their length since 1970; what is refused counts too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

from headway.analysis.convert.draft import Draft, LimitDraft, PolicyDraft, attribute, quota_text, safe_name
from headway.analysis.yaml import Located

__all__ = ["convert_envoy"]

_UNITS: Final = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
    "year": 365 * 86_400,
}
_FILE_KEYS: Final = ("domain", "descriptors")
_DESCRIPTOR_KEYS: Final = (
    "key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric",
    "share_threshold", "metadata",
)  # fmt: skip
_LIMIT_KEYS: Final = ("unit", "requests_per_unit", "unlimited", "name", "replaces")
_MOST_REQUESTS: Final = 2**32 - 1


class _Entry(NamedTuple):
    """One level of a rule: its key, its value or None, and the values of its level that win over it."""

    key: str
    value: str | None
    before: tuple[str, ...]
    shared: bool

    @property
    def wild(self) -> bool:
        return self.value is not None and "*" in self.value

    @property
    def counted(self) -> bool:
        """Each value that fits has a counter of its own."""
        return self.value is None or (self.wild and not self.shared)

    @property
    def condition(self) -> dict[str, Any]:
        asked: dict[str, Any] = {} if self.value is None else {"is": self.value}
        if self.before:
            asked["not"] = list(self.before)
        return {**asked, "missing": False}


def convert_envoy(document: Located, file: str) -> Draft:
    """Convert a file of one domain.

    Raises:
        ConfigError: with the line: what envoyproxy/ratelimit would not load either.
    """
    draft = Draft(file, "envoyproxy/ratelimit")
    root = document.value
    if not isinstance(root, dict):
        raise draft.error("holds no mapping; expected domain and descriptors", 1)
    _Reader(draft, document).read(root)
    return draft


class _Reader:
    """Reads one domain into a draft."""

    def __init__(self, draft: Draft, document: Located) -> None:
        self._draft = draft
        self._document = document
        self._policy = PolicyDraft("")
        self._attributes: dict[str, str] = {}
        self._taken: set[str] = set()

    def read(self, root: dict[Any, Any]) -> None:
        self._known(root, _FILE_KEYS, ())
        domain = root.get("domain")
        if not isinstance(domain, str) or not domain:
            raise self._error(f"domain is {domain!r}; expected a name", ("domain",))
        self._policy = PolicyDraft(safe_name(domain, default="domain"), comments=[f"The domain {domain}."])
        self._draft.policies.append(self._policy)
        self._draft.comments.append(
            "Each entry of a descriptor is an attribute of the request, under its key. A request has the entries of one "
            "descriptor: a rule counts only where no deeper one of its tree is asked for."
        )
        self._level(root.get("descriptors"), ("descriptors",), ())
        tops = {one.get("key") for one in root["descriptors"]} if isinstance(root.get("descriptors"), list) else set()
        if len(self._policy.limits) > 1 and len(tops) > 1:
            self._draft.note(
                "where several descriptors of a request have limits, envoyproxy/ratelimit charges all of them although one "
                "refuses; here none is charged then"
            )

    def _level(self, given: Any, path: tuple[Hashable, ...], above: tuple[_Entry, ...]) -> None:
        if given is None:
            return
        if not isinstance(given, list):
            raise self._error(f"descriptors is {_shown(given)}; expected a list", path)
        nodes = [self._node(one, (*path, index)) for index, one in enumerate(given)]
        seen: dict[tuple[str, str | None], int] = {}
        below: dict[str, dict[str, None]] = {}
        for node in nodes:
            below.setdefault(node["key"], {}).update(dict.fromkeys(_keys_below(node)))
        for index, (node, entry) in enumerate(zip(nodes, self._entries(nodes, path), strict=True)):
            twin = seen.setdefault((entry.key, entry.value), index)
            if twin != index:
                line = self._document.line(*path, twin)
                raise self._error(
                    f"key {entry.key!r} with value {entry.value!r} is there already, on line {line}", (*path, index)
                )
            self._descriptor(node, (*path, index), (*above, entry), list(below[entry.key]))

    def _node(self, node: Any, path: tuple[Hashable, ...]) -> dict[Any, Any]:
        if not isinstance(node, dict):
            raise self._error(f"a descriptor is {_shown(node)}; expected a mapping with key", path)
        self._known(node, _DESCRIPTOR_KEYS, path)
        if not isinstance(node.get("key"), str) or not node["key"]:
            raise self._error(f"key is {node.get('key')!r}; expected the name of an entry", (*path, "key"))
        return node

    def _entries(self, nodes: list[dict[Any, Any]], path: tuple[Hashable, ...]) -> Iterator[_Entry]:
        values = [self._text(node.get("value"), (*path, index, "value")) for index, node in enumerate(nodes)]
        exact: dict[str, list[str]] = {}
        wild: dict[str, list[str]] = {}
        for node, value in zip(nodes, values, strict=True):
            if value:
                (wild if "*" in value else exact).setdefault(node["key"], []).append(value)
        earlier: dict[str, int] = {}
        for node, value in zip(nodes, values, strict=True):
            key = node["key"]
            before: tuple[str, ...] = ()
            if value is None:
                before = (*exact.get(key, ()), *wild.get(key, ()))
            elif "*" in value:
                before = (*exact.get(key, ()), *wild[key][: earlier.setdefault(key, 0)])
                earlier[key] += 1
            yield _Entry(key, value, before, node.get("share_threshold") is True)

    def _text(self, value: Any, path: tuple[Hashable, ...]) -> str | None:
        if value is None or value == "":
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value)
        raise self._error(f"value is {_shown(value)}; expected text", path)

    def _descriptor(
        self, node: dict[Any, Any], path: tuple[Hashable, ...], entries: tuple[_Entry, ...], below: list[str]
    ) -> None:
        limit = node.get("rate_limit")
        if limit is not None:
            self._limit(node, limit, path, entries, below)
        self._level(node.get("descriptors"), (*path, "descriptors"), entries)

    def _limit(
        self,
        node: dict[Any, Any],
        table: Any,
        path: tuple[Hashable, ...],
        entries: tuple[_Entry, ...],
        below: list[str],
    ) -> None:
        at = (*path, "rate_limit")
        line = self._document.line(*at)
        if not isinstance(table, dict):
            raise self._error(f"rate_limit is {_shown(table)}; expected a mapping with unit and requests_per_unit", at)
        self._known(table, _LIMIT_KEYS, at)
        path_name = "_".join(entry.key if entry.value is None else f"{entry.key}_{entry.value}" for entry in entries)
        if table.get("unlimited") is True:
            if "unit" in table:
                raise self._error("unit stands beside unlimited; expected one of them", (*at, "unit"))
            self._policy.comments.append(f"{path_name} is unlimited (line {line}).")
            return
        name = self._policy.names.take(str(table.get("name") or path_name))
        keys: dict[str, Any] = self._quota(table, at, name, line)
        by = [self._attribute(entry.key) for entry in entries if entry.counted]
        when = {self._attribute(entry.key): entry.condition for entry in entries}
        for key in below:
            when.setdefault(self._attribute(key), {"missing": True})
        keys |= {
            "by": by or None,
            "when": when,
            "count_refused": True if "quota" in keys else None,
            "shadow": True if node.get("shadow_mode") is True else None,
        }
        limit = LimitDraft(name, keys, [" → ".join(_described(entry) for entry in entries)], line)
        self._policy.limits.append(self._draft.checked(limit))
        self._inexact(node, table, entries, path, name)

    def _quota(self, table: dict[Any, Any], at: tuple[Hashable, ...], name: str, line: int | None) -> dict[str, Any]:
        unit, requests = table.get("unit"), table.get("requests_per_unit")
        seconds = _UNITS.get(str(unit).lower())
        if seconds is None:
            raise self._error(f"unit is {unit!r}; expected one of {', '.join(_UNITS)}", (*at, "unit"))
        if type(requests) is not int or not 0 <= requests <= _MOST_REQUESTS:
            raise self._error(
                f"requests_per_unit is {requests!r}; expected a whole number from 0 to {_MOST_REQUESTS}",
                (*at, "requests_per_unit"),
            )
        if requests == 0:
            self._draft.note("0 requests are refused with 429 there, and blocked with 403 here", line, name)
            return {"block": True}
        return {"quota": quota_text(requests, seconds), "algorithm": "fixed-window"}

    def _inexact(
        self,
        node: dict[Any, Any],
        table: dict[Any, Any],
        entries: tuple[_Entry, ...],
        path: tuple[Hashable, ...],
        name: str,
    ) -> None:
        def line(key: str) -> int | None:
            return self._document.line(*path, key)

        if node.get("quota_mode") is True:
            self._draft.note(
                "quota_mode refuses only where all descriptors of that kind are spent; here this limit refuses by itself",
                line("quota_mode"), name,
            )  # fmt: skip
        if table.get("replaces"):
            names = ", ".join(
                str(one.get("name")) if isinstance(one, dict) else str(one) for one in _list(table["replaces"])
            )
            self._draft.note(
                f"it replaces {names} where a request has both; here both count",
                self._document.line(*path, "rate_limit", "replaces"), name,
            )  # fmt: skip
        for key in ("detailed_metric", "value_to_metric"):
            if node.get(key) is True:
                self._draft.note(f"{key} is about metrics, which have other names here", line(key), name)
        if node.get("metadata") is not None:
            self._draft.note("metadata is not answered here", line("metadata"), name)
        for entry in entries:
            if (
                entry.value is not None
                and "/" in entry.value
                and entry.value.replace("/", "").replace(".", "").isdigit()
            ):
                self._draft.note(
                    f"{entry.value} is a text there, and an address range here, which also takes the addresses within it",
                    line("value"), name,
                )  # fmt: skip

    def _attribute(self, key: str) -> str:
        if key not in self._attributes:
            name = attribute(key)
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self._attributes[key] = name
            if name != key:
                self._draft.comments.append(f"The entry {key} is the attribute {name}.")
        return self._attributes[key]

    def _known(self, table: dict[Any, Any], keys: tuple[str, ...], path: tuple[Hashable, ...]) -> None:
        for key in table:
            if key not in keys:
                raise self._error(f"unknown key {key!r}; expected any of {', '.join(keys)}", (*path, key))

    def _error(self, problem: str, path: tuple[Hashable, ...]) -> Exception:
        return self._draft.error(problem, self._document.line(*path))


def _keys_below(node: dict[Any, Any]) -> Iterator[str]:
    """The keys of the next level, which make a request one of a deeper rule."""
    children = node.get("descriptors")
    for one in children if isinstance(children, list) else ():
        if isinstance(one, dict) and isinstance(one.get("key"), str):
            yield one["key"]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _described(entry: _Entry) -> str:
    return entry.key if entry.value is None else f"{entry.key} = {entry.value}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
