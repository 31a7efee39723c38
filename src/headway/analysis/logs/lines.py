r"""Formats of one text line a request: common and combined, Apache's vhost_combined, Traefik's common, AWS's ALB.

Values stay as they were logged, escapes such as ``\"`` included; bytes that are no UTF-8 become escapes such as ``\xff``.
No input raises, and no text, however long, is scanned twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from headway.analysis.access_log import SHAPES
from headway.analysis.logs.block import Block, Fault, printable
from headway.analysis.logs.moments import moments, seconds, stamps
from headway.core.quota import MILLISECOND

__all__ = ["LINE_FORMATS", "read_lines", "split_request"]

_WORD: Final = r"[^ \n]++"
_QUOTED: Final = SHAPES["request"].decode()
_AHEAD: Final = r"(?![^ \r\n])"
_COMMON: Final = (
    r'(?P<address>{address}) {identity}(?P<user>{user})(?<= )\[(?P<time>{stamp})\] "(?P<request>{request})" '
    r"(?P<status>{status}) (?P<bytes>[0-9]++|-)"
).format_map({name: shape.decode() for name, shape in SHAPES.items()}) + _AHEAD
_COMBINED: Final = rf'(?: "(?P<referer>{_QUOTED})" "(?P<agent>{_QUOTED})")?+'
_TRAEFIK: Final = rf'(?: [0-9]++ "{_QUOTED}" "{_QUOTED}" (?P<milliseconds>[0-9]++)ms)?+'
_ALB: Final = (
    rf"(?:https?|h2|grpcs|wss?) (?P<answered>{_WORD}) {_WORD} (?P<client>{_WORD}) {_WORD} "
    rf"(?P<receiving>{_WORD}) (?P<working>{_WORD}) (?P<sending>{_WORD}) (?P<status>[0-9]{{3}}|-) {_WORD} "
    rf'{_WORD} (?P<bytes>[0-9]++|-) "(?P<request>{_QUOTED})" "(?P<agent>{_QUOTED})"'
    rf'(?: {_WORD} {_WORD} {_WORD} "{_QUOTED}" "(?P<domain>{_QUOTED})" "{_QUOTED}" {_WORD} (?P<time>{_WORD}))?+'
)

LINE_FORMATS: Final = {
    "combined": _COMMON + _COMBINED + _TRAEFIK,
    "vhost": rf"(?P<vhost>{_WORD}) " + _COMMON + _COMBINED,
    "alb": _ALB,
}
"""A pattern for each; ``combined`` reads the common format and Traefik's, which add to one another at the end."""

_EXAMPLES: Final = {
    "combined": "neither common nor combined log format",
    "vhost": "no line of vhost_combined",
    "alb": "no line of an AWS load balancer's log",
}
_SOURCES: Final = {
    "method": ("request",),
    "path": ("request",),
    "host": ("request", "vhost", "domain"),
    "duration": ("milliseconds", "receiving", "working", "sending"),
    "address": ("address", "client"),
    "time": ("time", "answered"),
}
"""Which parts of a line a field comes from, where it is not the one of its name."""


def read_lines(
    blocks: Iterable[bytes], form: str, fields: Collection[str], source: str, columns: object = None
) -> Iterator[Block]:
    r"""Read blocks of whole lines, each of which ends with ``\n``.

    Args:
        blocks: the log.
        form: one of ``LINE_FORMATS``.
        fields: what to read besides the time.
        source: the log's name, for its faults.
        columns: not used; these formats have no names.
    """
    pattern, at = line_pattern(form, frozenset(fields))
    number = 0
    for block in blocks:
        rows = pattern.findall(block.decode("utf-8", "backslashreplace"))
        parts: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * (len(at) + 1)
        written: Sequence[str] = parts[at["time"]]
        if "answered" in at:  # the time of arrival, where the line has it
            written = [arrived or answered for arrived, answered in zip(written, parts[at["answered"]], strict=True)]
            times = moments(written)
        else:
            times = stamps(written)
        values: dict[str, list[Any]] = {"time": times}
        split: list[tuple[str | None, str | None, str | None]] = []
        if "method" in fields or "path" in fields:
            split = [split_request(value, form == "alb") for value in parts[at["request"]]]
        for field in fields:
            if field in ("method", "path"):
                place = ("method", "path").index(field)
                values[field] = [request[place] for request in split]
            elif field != "time":
                values[field] = _FIELDS.get(field, _text)(parts, at, field)
        faults: list[Fault] = []
        if None in times:
            for index, (time, stamp, text) in enumerate(zip(times, written, parts[-1], strict=True), number + 1):
                if time is None:
                    faults.append(Fault(source, index, _problem(stamp, text, form)))
            kept = [index for index, time in enumerate(times) if time is not None]
            values = {name: [column[index] for index in kept] for name, column in values.items()}
        yield Block(values, len(rows), tuple(faults))
        number += len(rows)


@lru_cache(maxsize=64)
def line_pattern(form: str, fields: frozenset[str]) -> tuple[re.Pattern[str], dict[str, int]]:
    r"""A pattern that takes one line and its ``\n``, whatever is in it, and where its parts are among the groups.

    The last group is the whole of a line that does not parse. Parts that no field needs are not captured.
    """
    wanted = {part for field in {*fields, "time"} for part in _SOURCES.get(field, (field,))}
    text = LINE_FORMATS[form]
    names = [name for name in re.findall(r"\(\?P<(\w+)>", text) if name in wanted]
    text = re.sub(r"\(\?P<(\w+)>", lambda found: "(" if found[1] in wanted else "(?:", text)
    return re.compile(rf"(?:{text}[^\n]*+|([^\n]*+))\n"), {name: index for index, name in enumerate(names)}


@lru_cache(maxsize=8192)  # a log's lines share their requests
def split_request(request: str, absolute: bool = True) -> tuple[str | None, str | None, str | None]:
    """Method, path without query, and host of ``GET http://site.example:80/a?b HTTP/1.1``; None where there is none.

    Args:
        request: a request line as logged.
        absolute: whether a target with scheme and host is taken apart; if not it is all path, which is what it is to a
            server that is no proxy.
    """
    method, _, rest = request.partition(" ")
    target, _, protocol = rest.rpartition(" ")
    if not protocol.startswith("HTTP/"):
        target = rest
    target = target.strip(" ")
    path, host = split_target(target) if absolute else (target.partition("?")[0] or None, None)
    return (method, path, host) if path else (None, None, None)


def split_target(target: str) -> tuple[str | None, str | None]:
    """Path without query, and host, of a request's target: ``/a?b``, ``http://site.example:80/a?b``, ``*``."""
    host = None
    if target[:7].lower() == "http://" or target[:8].lower() == "https://":
        authority, slash, path = target.partition("://")[2].partition("/")
        host = without_port(authority.partition("?")[0])
        target = "/" + path if slash else "/"
    return target.partition("?")[0].partition("#")[0] or None, host


def without_port(text: str) -> str | None:
    """``198.51.100.7:5678``, ``[2001:db8::1]:443`` and ``site.example:80`` without the port; None where nothing is left."""
    if text.startswith("["):
        return text[1:].partition("]")[0] or None
    head, colon, port = text.rpartition(":")
    return (head if colon and port.isdigit() and ":" not in head else text) or None


def _problem(stamp: str, text: str, form: str) -> str:
    if stamp:
        return f"no clock shows the time '{printable(stamp)}', or it is not between 1970 and 2261"
    if not text.strip():
        return "empty"
    return f"{_EXAMPLES[form]}: '{printable(text)}'"


Parts = Sequence[Sequence[str]]


def _text(parts: Parts, at: dict[str, int], field: str) -> list[str | None]:
    if field not in at:
        return [None] * len(parts[-1])
    return [None if value == "-" else value or None for value in parts[at[field]]]


def _user(parts: Parts, at: dict[str, int], field: str) -> list[str | None]:
    if field not in at:
        return [None] * len(parts[-1])
    return [None if value in ("- ", '"" ') else value.strip(" ") or None for value in parts[at[field]]]


def _number(parts: Parts, at: dict[str, int], field: str) -> list[int | None]:
    return [int(value) if value.isdigit() and len(value) < 19 else None for value in parts[at[field]]]


def _address(parts: Parts, at: dict[str, int], field: str) -> list[str | None]:
    if field in at:
        return [None if value == "-" else value or None for value in parts[at[field]]]
    found = []
    for value in parts[at["client"]]:  # with a port, always: 2001:db8::1:5678 too
        head = value.rpartition(":")[0]
        found.append(head.strip("[]") or None)
    return found


def _host(parts: Parts, at: dict[str, int], field: str) -> list[str | None]:
    hosts = [split_request(value)[2] for value in parts[at["request"]]]
    for name in ("vhost", "domain"):
        if name in at:
            hosts = [
                host or (without_port(value) if value != "-" else None)
                for host, value in zip(hosts, parts[at[name]], strict=True)
            ]
    return hosts


def _duration(parts: Parts, at: dict[str, int], field: str) -> list[int | None]:
    if "milliseconds" in at:
        return [seconds(value, MILLISECOND) if value else None for value in parts[at["milliseconds"]]]
    if "receiving" not in at:
        return [None] * len(parts[-1])
    stages = [[seconds(value) for value in parts[at[name]]] for name in ("receiving", "working", "sending")]
    return [
        None if None in stage else sum(part for part in stage if part is not None)
        for stage in zip(*stages, strict=True)
    ]


_FIELDS: Final[dict[str, Callable[[Parts, dict[str, int], str], list[Any]]]] = {
    "user": _user,
    "status": _number,
    "bytes": _number,
    "address": _address,
    "host": _host,
    "duration": _duration,
}
