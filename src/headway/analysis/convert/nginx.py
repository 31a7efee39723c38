"""nginx's ``limit_req`` and ``limit_conn``: a zone is a limit, keyed as the zone is; a location that limits is a condition.

What ngx_http_limit_req_module does: a leaky bucket of ``burst`` beside the request that is being served, so burst + 1 here;
without ``nodelay`` it holds requests back. A context inherits all ``limit_req`` of the one around it, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headway.analysis.convert.draft import Draft, LimitDraft, Names, PolicyDraft, quota_text
from headway.analysis.convert.nginx_keys import Key, Variables
from headway.analysis.convert.nginx_syntax import Directive, parse_nginx

__all__ = ["convert_nginx"]

_RATE: Final = re.compile(r"([0-9]{1,12})r/(s|m)")
_SECONDS: Final = {"s": 1, "m": 60}
_SIZE: Final = re.compile(r"[0-9]+[kKmMgG]?")
_LEASE: Final = "1 hour"
_LIMITING: Final = ("limit_req", "limit_conn")


@dataclass(frozen=True, slots=True)
class _Zone:
    """A zone: its kind, its name, its key, and for ``limit_req`` its count and seconds."""

    kind: str
    name: str
    key: str
    line: int
    count: int = 0
    seconds: int = 1


@dataclass(frozen=True, slots=True)
class _Use:
    """How one directive uses a zone: ``count`` is the burst of a ``limit_req``, the connections of a ``limit_conn``."""

    kind: str
    zone: str
    count: int
    delay: int | None
    line: int
    """``delay``: requests that pass without one; None for ``nodelay``."""


@dataclass(slots=True)
class _Context:
    """A server or location that answers requests, and what limits them there."""

    name: str
    uses: tuple[_Use, ...]
    dry: frozenset[str]
    statuses: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


_Places = dict[_Use, list[_Context]]
"""Ways to use a zone, each without its line, and where."""


def convert_nginx(text: str, file: str) -> Draft:
    """Convert a configuration, also a part of one, or what ``nginx -T`` prints.

    Raises:
        ConfigError: with the line: what nginx would not load either, or a text without any limit.
    """
    draft = Draft(file, "nginx")
    _Reader(draft).read(parse_nginx(text, file))
    return draft


class _Reader:
    """Reads a configuration into a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._zones: dict[tuple[str, str], _Zone] = {}
        self._variables = Variables(draft)
        self._contexts: list[_Context] = []

    def read(self, directives: list[Directive]) -> None:
        self._declare(directives)
        self._walk(directives, _Context("", (), frozenset()), ())
        places = self._places()
        used = set(places)
        for zone in self._zones.values():
            if (zone.kind, zone.name) not in used:
                self._draft.note(f"the zone {zone.name} is used nowhere, so it is left out", zone.line)
        if not used:
            if not self._zones:
                raise self._draft.error(
                    "holds no limit_req and no limit_conn; expected nginx's configuration with a limit"
                )
            used = set(self._zones)
            raise self._draft.error("no limit_req and no limit_conn uses a zone", next(iter(self._zones.values())).line)
        policy = PolicyDraft("nginx")
        self._draft.policies.append(policy)
        for kind, name in (key for key in self._zones if key in used):
            policy.limits += self._limits(self._zones[kind, name], places[kind, name], policy.names)
        self._explain(policy)

    def _declare(self, directives: Iterable[Directive]) -> None:
        """Zones and variables, wherever they stand."""
        for one in directives:
            match one.name:
                case "limit_req_zone":
                    self._add(self._request_zone(one))
                case "limit_conn_zone":
                    key, options = self._zone_words(one)
                    self._add(_Zone("limit_conn", options["zone"], key, one.line))
                case "map" | "geo" if one.block is not None:
                    self._variables.add(one)
                case "include" if one.missing:
                    self._draft.note(f"include {one.missing[0]} is not read: convert the output of nginx -T", one.line)
                case _:
                    pass
            if one.block is not None and one.name not in ("map", "geo", "types"):
                self._declare(one.block)

    def _add(self, zone: _Zone) -> None:
        before = self._zones.setdefault((zone.kind, zone.name), zone)
        if before is not zone:
            raise self._draft.error(f"the zone {zone.name} is there already, on line {before.line}", zone.line)

    def _zone_words(self, one: Directive) -> tuple[str, dict[str, str]]:
        words = [str(word) for word in one.words]
        options = dict(word.partition("=")[::2] for word in words[1:])
        name, colon, size = options.get("zone", "").partition(":")
        if not words or not name or not colon or not _SIZE.fullmatch(size):
            raise self._draft.error(
                f"{one.name} needs a key and zone=NAME:SIZE, such as $binary_remote_addr zone=per_ip:10m", one.line
            )
        return words[0], {**options, "zone": name}

    def _request_zone(self, one: Directive) -> _Zone:
        key, options = self._zone_words(one)
        rate = _RATE.fullmatch(options.get("rate", "1r/s"))
        if rate is None or int(rate[1]) == 0:
            raise self._draft.error(
                f"rate is {options.get('rate')!r}; expected a number with r/s or r/m, such as 10r/s", one.line
            )
        return _Zone("limit_req", options["zone"], key, one.line, int(rate[1]), _SECONDS[rate[2]])

    def _walk(self, directives: list[Directive], around: _Context, path: tuple[str, ...]) -> None:
        """Every context below, with what it inherits; contexts that answer requests are kept."""
        here = self._own(directives, around)
        blocks = [
            one
            for one in directives
            if one.block is not None and one.name in ("http", "server", "location", "if", "limit_except")
        ]
        answering = path and not any(one.name == "location" and _catches_all(one) for one in blocks)
        if answering or (not path and not blocks):
            self._contexts.append(_Context(" ".join(path), here.uses, here.dry, here.statuses, here.lines))
        for one in blocks:
            self._walk(one.block or [], here, self._path(one, path))

    def _path(self, one: Directive, path: tuple[str, ...]) -> tuple[str, ...]:
        match one.name:
            case "server":
                names = next(
                    (inner.words for inner in one.block or () if inner.name == "server_name" and inner.words), None
                )
                return (str(names[0]) if names and names[0] else "server",)
            case "location":
                server = path[:1]
                return (*server, " ".join(str(word) for word in one.words))
            case "if":
                return (*path, f"if {' '.join(map(str, one.words))}")
            case _:
                return path

    def _own(self, directives: list[Directive], around: _Context) -> _Context:
        uses: dict[str, list[_Use]] = {kind: [] for kind in _LIMITING}
        here = _Context("", (), around.dry, dict(around.statuses), dict(around.lines))
        for one in directives:
            if one.name == "limit_req":
                uses["limit_req"].append(self._request_use(one))
            elif one.name == "limit_conn":
                uses["limit_conn"].append(self._connection_use(one))
            elif one.name in ("limit_req_dry_run", "limit_conn_dry_run"):
                kind = one.name.removesuffix("_dry_run")
                on = bool(one.words) and one.words[0] == "on"
                here.dry = here.dry | {kind} if on else here.dry - {kind}
            elif one.name in ("limit_req_status", "limit_conn_status") and one.words:
                kind = one.name.removesuffix("_status")
                here.statuses[kind], here.lines[kind] = str(one.words[0]), one.line
        inherited = {kind: [use for use in around.uses if use.kind == kind] for kind in _LIMITING}
        here.uses = tuple(use for kind in _LIMITING for use in uses[kind] or inherited[kind])
        return here

    def _request_use(self, one: Directive) -> _Use:
        words = [str(word) for word in one.words]
        options = dict(word.partition("=")[::2] for word in words)
        for word in options:
            if word not in ("zone", "burst", "delay", "nodelay"):
                raise self._draft.error(
                    f"limit_req has {word!r}; expected zone=NAME, burst=N, nodelay or delay=N", one.line
                )
        zone = options.get("zone", "")
        self._known("limit_req", zone, one)
        burst = self._whole(options.get("burst", "0"), "burst", one)
        delay = None if "nodelay" in options else self._whole(options.get("delay", "0"), "delay", one)
        return _Use("limit_req", zone, burst, delay, one.line)

    def _connection_use(self, one: Directive) -> _Use:
        words = [str(word) for word in one.words]
        if len(words) != 2:
            raise self._draft.error("limit_conn needs a zone and a number, such as limit_conn per_ip 10", one.line)
        self._known("limit_conn", words[0], one)
        return _Use("limit_conn", words[0], self._whole(words[1], "connections", one, least=1), None, one.line)

    def _known(self, kind: str, zone: str, one: Directive) -> None:
        if (kind, zone) not in self._zones:
            known = ", ".join(name for other, name in self._zones if other == kind) or "none"
            raise self._draft.error(
                f"{kind} uses the zone {zone!r}, which no {kind}_zone declares (there are: {known})", one.line
            )

    def _whole(self, text: str, what: str, one: Directive, least: int = 0) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= 10**9:
            raise self._draft.error(f"{what} is {text!r}; expected a whole number from {least}", one.line)
        return int(text)

    def _places(self) -> dict[tuple[str, str], _Places]:
        """For each zone, how it is used, and where each way of using it is."""
        found: dict[tuple[str, str], _Places] = {}
        for context in self._contexts:
            for use in context.uses:
                places = found.setdefault((use.kind, use.zone), {})
                places.setdefault(_Use(use.kind, use.zone, use.count, use.delay, 0), []).append(context)
        return found

    def _limits(self, zone: _Zone, used: _Places, names: Names) -> Iterator[LimitDraft]:
        """The limits of one zone: one, and one more for each smaller burst or number that some places have."""
        key = self._variables.key(zone.key)
        name = names.take(zone.name, "zone")
        for note in key.notes:
            self._draft.note(note, zone.line, name)
        self._explained(zone, list(used), name)
        algorithm, undelayed = self._algorithm(zone, list(used), name)
        by_count: dict[int, _Places] = {}
        for use, contexts in used.items():
            by_count.setdefault(use.count, {})[use] = contexts
        counts = sorted(by_count, reverse=True)
        if len(counts) > 1:
            what = "bursts" if zone.kind == "limit_req" else "numbers"
            self._draft.note(
                f"places with different {what} share one counter in nginx; here the largest is shared, and each smaller one "
                "counts its own places besides, so a few more may pass there", zone.line, name,
            )  # fmt: skip
        for place, count in enumerate(counts):
            here = by_count[count] if place else used
            contexts = list({id(context): context for several in here.values() for context in several}.values())
            own = names.take(f"{name}-{count}", "zone") if place else name
            self._status(zone, contexts, own)
            keys: dict[str, Any] = {"quota": self._text(zone, count), "algorithm": algorithm}
            keys["undelayed"] = undelayed if undelayed is None else min(undelayed, count + 1)
            keys["by"] = key.by or None
            keys["when"] = self._when(key, contexts)
            keys["shadow"] = self._shadow(zone, contexts, own)
            comments = [self._said(zone, here), *key.comments]
            yield self._draft.checked(LimitDraft(own, keys, comments, zone.line))

    def _shadow(self, zone: _Zone, contexts: list[_Context], name: str) -> bool | None:
        dry = [zone.kind in context.dry for context in contexts]
        if any(dry) and not all(dry):
            self._draft.note("it is only tried (dry_run) in some places; here it is enforced in all", zone.line, name)
        return True if all(dry) else None

    def _explained(self, zone: _Zone, uses: list[_Use], name: str) -> None:
        if zone.kind == "limit_conn":
            self._draft.note(
                f"nginx frees a connection when it ends; here it is held by a lease, for {_LEASE} at most where nobody gives "
                "it back", zone.line, name,
            )  # fmt: skip
        elif any(use.delay is not None and use.count for use in uses):
            self._draft.note(
                "nginx holds requests of the burst back by itself; here the decision says for how long, and whoever asks "
                "has to wait", zone.line, name,
            )  # fmt: skip
        if zone.kind == "limit_req" and zone.seconds == 60 and zone.count * 1000 % 60:
            self._draft.note(
                f"nginx itself counts {zone.count}r/m as {zone.count * 1000 // 60 / 1000:g} requests a second, a little "
                "less; here it is exact", zone.line, name,
            )  # fmt: skip

    def _text(self, zone: _Zone, count: int) -> str:
        if zone.kind == "limit_conn":
            return f"{count} at once for {_LEASE}"
        return quota_text(zone.count, zone.seconds, count + 1)

    def _algorithm(self, zone: _Zone, uses: list[_Use], name: str) -> tuple[str | None, int | None]:
        if zone.kind == "limit_conn":
            return None, None
        if all(use.delay is None or use.count == 0 for use in uses):
            return None, None
        free = {None if use.delay is None else min(use.delay, use.count) + 1 for use in uses}
        if len(free) == 1:
            undelayed = free.pop()
            return "leaky-bucket-queue", undelayed
        self._draft.note(
            "how many requests pass without a delay differs by place; here none is delayed", zone.line, name
        )
        return None, None

    def _when(self, key: Key, contexts: list[_Context]) -> list[dict[str, Any]] | dict[str, Any] | None:
        names = list(dict.fromkeys(context.name for context in contexts))
        everywhere = len(contexts) == len(self._contexts)
        place = None if everywhere else {"location": {"is": names, "missing": False}}
        if place is None:
            return _one_or_several(key.when)
        return _one_or_several([{**one, **place} for one in key.when] or [place])

    def _status(self, zone: _Zone, contexts: list[_Context], name: str) -> None:
        for context in contexts:
            status = context.statuses.get(zone.kind, "503")
            if status != "429":
                line = context.lines.get(zone.kind, zone.line)
                self._draft.note(f"nginx refuses with {status}; headway with 429", line, name)

    def _said(self, zone: _Zone, used: dict[_Use, list[_Context]]) -> str:
        if zone.kind == "limit_conn":
            return f"limit_conn {zone.name}, by {zone.key}: {' or '.join(str(use.count) for use in used)}"
        modes = []
        for use in used:
            mode = "nodelay" if use.delay is None else f"delay={use.delay}" if use.delay else ""
            modes.append(f"burst={use.count} {mode}".rstrip())
        unit = "s" if zone.seconds == 1 else "m"
        return f"limit_req {zone.name}, by {zone.key}: {zone.count}r/{unit}, {' or '.join(modes)}"

    def _explain(self, policy: PolicyDraft) -> None:
        limits = [limit.keys for limit in policy.limits]
        if any("location" in str(keys.get("when")) for keys in limits):
            names = ", ".join(dict.fromkeys(repr(context.name) for context in self._contexts if context.uses))
            self._draft.comments.append(f"The attribute location is where nginx would answer the request: {names}.")


def _catches_all(one: Directive) -> bool:
    return [str(word) for word in one.words] in (["/"], ["^~", "/"])


def _one_or_several(conditions: list[dict[str, Any]]) -> list[dict[str, Any]] | dict[str, Any] | None:
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else conditions
