"""What nginx counts by: the variables of a zone's key, and the ``map`` and ``geo`` blocks that leave some requests out.

An empty key is not limited; that is how exceptions are written in nginx.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from headway.analysis.convert.draft import Draft, attribute
from headway.analysis.convert.nginx_syntax import Directive

__all__ = ["Key", "Variables"]

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ADDRESSES: Final = frozenset({"binary_remote_addr", "remote_addr", "realip_remote_addr"})
_ALWAYS: Final = frozenset({"address", "host", "path", "uri", "method"})
_NAMES: Final = {
    **dict.fromkeys(_ADDRESSES, "address"),
    **dict.fromkeys(("host", "http_host", "server_name"), "host"),
    **dict.fromkeys(("uri", "document_uri"), "path"),
    "request_uri": "uri",
    "request_method": "method",
    "remote_user": "user",
}
_Network = IPv4Network | IPv6Network


@dataclass(slots=True)
class Key:
    """What a zone counts by.

    Attributes:
        by: attributes.
        when: conditions under which there is a key at all: None asks nothing; several are alternatives.
        notes: what of it is not exact.
        comments: how to give the attributes.
    """

    by: list[str] = field(default_factory=list)
    when: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Table:
    """A ``map`` or ``geo`` block: from the value of ``source`` to another."""

    kind: str
    source: str
    entries: list[tuple[str, str, int]] = field(default_factory=list)
    default: str = ""
    special: list[str] = field(default_factory=list)
    line: int = 0


class Variables:
    """The variables that a configuration makes.

    Args:
        draft: takes errors.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._tables: dict[str, _Table] = {}

    def add(self, directive: Directive) -> None:
        """Take a ``map`` or ``geo`` block."""
        words = [str(word) for word in directive.words]
        if directive.name == "map" and len(words) != 2:
            raise self._draft.error(
                "map needs a source and a variable, such as map $source $limited { … }", directive.line
            )
        if not words or not words[-1].startswith("$"):
            raise self._draft.error(
                f"{directive.name} makes no variable; expected one such as $limited", directive.line
            )
        source = words[0] if len(words) == 2 else "$remote_addr"
        table = _Table(directive.name, source, line=directive.line)
        for one in directive.block or ():
            value = str(one.words[0]) if one.words else ""
            if one.name == "default":
                table.default = value
            elif one.name in ("hostnames", "volatile", "ranges", "proxy", "proxy_recursive", "delete", "include"):
                table.special.append(one.name)
            else:
                table.entries.append((one.name.removeprefix("\\"), value, one.line))
        self._tables[words[-1].removeprefix("$")] = table

    def key(self, text: str) -> Key:
        """What a key such as ``$binary_remote_addr$server_name`` counts by."""
        found = Key()
        names = [first or second for first, second in _VARIABLE.findall(text)]
        if len(names) == 1 and _VARIABLE.fullmatch(text) and names[0] in self._tables:
            return self._mapped(names[0])
        for name in dict.fromkeys(names):
            if name in self._tables:
                found.notes.append(
                    f"${name} is worked out by a {self._tables[name].kind}: give its value as the attribute {attribute(name)}"
                )
            self._plain(found, name)
        optional = [name for name in found.by if name not in _ALWAYS]
        if optional and len(optional) == len(found.by):
            if len(optional) > 1:
                found.notes.append(
                    f"nginx limits a request that has any of {', '.join(optional)}; here it has to have all of them"
                )
            found.when = [{name: {"not": "", "missing": False} for name in optional}]
        elif optional:
            found.notes.append(
                f"nginx takes an absent {' and '.join(optional)} for empty; here it has to be given, if need be as an empty text"
            )
        return found

    def _plain(self, found: Key, name: str) -> None:
        known = _NAMES.get(name) or attribute(name)
        if known not in found.by:
            found.by.append(known)
        if known != name and name not in _ADDRESSES:
            found.comments.append(f"The attribute {known} is nginx's ${name}.")

    def _mapped(self, name: str) -> Key:
        table = self._tables[name]
        values = {value for _, value, _ in table.entries} | {table.default}
        counted = sorted(value for value in values if value)
        if len(counted) != 1 or not _VARIABLE.search(counted[0]):
            return self._given(name, table)
        found = self.key(counted[0])
        condition = self._limited(table, found)
        if condition is None:
            return self._given(name, table)
        found.when = _both(found.when, condition)
        return found

    def _given(self, name: str, table: _Table) -> Key:
        """A variable that cannot be worked out here: it is an attribute, and an empty one is not limited."""
        known = attribute(name)
        note = f"${name} is worked out by a {table.kind} on line {table.line}: give its value as the attribute {known}; without it, or where it is empty, nothing is limited"
        return Key([known], [{known: {"not": "", "missing": False}}], [note])

    def _limited(self, table: _Table, found: Key) -> list[dict[str, Any]] | None:
        """Under which conditions a table gives a key that is not empty; None where that cannot be said."""
        if table.special or any(pattern.startswith("~") for pattern, _, _ in table.entries):
            return None
        source = _VARIABLE.fullmatch(table.source)
        if source is None:
            return None
        name = source[1] or source[2]
        outer = self._tables.get(name)
        if table.kind == "geo":
            if name not in _ADDRESSES:
                return None
            return self._by_address(
                [(pattern, bool(value)) for pattern, value, _ in table.entries], bool(table.default)
            )
        if (
            outer is not None
            and outer.kind == "geo"
            and not outer.special
            and outer.source in ("$remote_addr", "$binary_remote_addr")
        ):
            limited = {pattern: bool(value) for pattern, value, _ in table.entries}
            entries = [(pattern, limited.get(value, bool(table.default))) for pattern, value, _ in outer.entries]
            return self._by_address(entries, limited.get(outer.default, bool(table.default)))
        if outer is not None:
            return None
        known = _NAMES.get(name) or attribute(name)
        if known == "address":
            return (
                None
                if any("/" in pattern for pattern, _, _ in table.entries)
                else self._by_value("address", table, found)
            )
        return self._by_value(known, table, found)

    def _by_value(self, known: str, table: _Table, found: Key) -> list[dict[str, Any]] | None:
        if any("*" in pattern for pattern, _, _ in table.entries):
            return None
        if any(char.isalpha() for pattern, _, _ in table.entries for char in pattern) and known != "address":
            found.notes.append(f"nginx ignores the case of {known} in the map on line {table.line}; here it counts")
        if table.default:
            out = [pattern for pattern, value, _ in table.entries if not value]
            missing = "" not in out
            return [{known: {"not": out, "missing": missing}}] if out else []
        return [{known: {"is": [pattern for pattern, value, _ in table.entries if value], "missing": False}}]

    def _by_address(self, entries: list[tuple[str, bool]], default: bool) -> list[dict[str, Any]] | None:
        """Ranges that nest are told apart by their length, as nginx does; two levels can be said here."""
        networks: list[tuple[_Network, bool]] = []
        for pattern, limited in entries:
            try:
                networks.append((ip_network(pattern, strict=False), limited))
            except ValueError:
                return None
        other = [network for network, limited in networks if limited is not default]
        back = [
            network
            for network, limited in networks
            if limited is default and any(_within(network, one) for one in other)
        ]
        if any(_within(network, one) for network in other for one in back):
            return None
        texts, inner = [str(network) for network in other], [str(network) for network in back]
        if default:
            conditions: list[dict[str, Any]] = [{"address": {"not": texts}}] if texts else []
            return [*conditions, {"address": inner}] if inner else conditions
        return [{"address": {"is": texts, **({"not": inner} if inner else {})}}]


def _within(network: _Network, other: _Network) -> bool:
    return network != other and network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]  # of one version


def _both(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Alternatives of both: every one of the first with every one of the second."""
    if not first or not second:
        return first or second
    return [_merged(one, other) for one in first for other in second]


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for name, asked in other.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(asked, dict) and "not" in before and "not" in asked:
            both = [*_several(before["not"]), *_several(asked["not"])]
            merged[name] = {
                **before,
                **asked,
                "not": both,
                "missing": before.get("missing", True) and asked.get("missing", True),
            }
        elif isinstance(before, dict) and isinstance(asked, dict):
            merged[name] = {**asked, **before}
        else:
            merged[name] = asked
    return merged


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
