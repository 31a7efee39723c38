"""Replay: what a limit would have refused, from an access log, decided by the core on the log's own clock.

The log's clock is the latest time seen: a line with an earlier time than one before it is counted as out of order and
decided at that latest time, as a server's clock would have decided it. Memory grows with the keys, not with the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

from headway.analysis.access_log import (
    ABSENT,
    PARTS,
    instant,
    line_pattern,
    method_and_path,
    request_matcher,
    whole_lines,
)
from headway.analysis.counters import Counters
from headway.core.limit import Algorithm, Limit

__all__ = ["FIELDS", "DeniedKey", "Replay", "UnparsedLine", "check_fields", "replay_log"]

FIELDS: Final = ("address", "user", "agent", "method", "path", "status", "referer")
"""What a request can be keyed by. ``user_or_address`` is the user's name, or the address of a request without one."""

_SHOWN_UNPARSED: Final = 3
_SHOWN_BYTES: Final = 100
_Groups = tuple[bytes, ...]
_Value = bytes | tuple[str, bytes]
_Getter = Callable[[_Groups], _Value]


class UnparsedLine(NamedTuple):
    """A line that does not parse: its number from 1, and what is wrong with it, printable."""

    number: int
    problem: str


class DeniedKey(NamedTuple):
    """A key that was refused.

    Attributes:
        key: its values in the order of the limit's ``by``, printable.
        denied: how many of its requests were refused.
        behind: how many different values of the field ``behind`` its requests have, refused or not; None if not asked.
    """

    key: tuple[str, ...]
    denied: int
    behind: int | None


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a log.

    Attributes:
        lines: all lines.
        unparsed: lines that do not parse.
        out_of_order: lines with an earlier time than one before them.
        requests: the requests that were decided: lines that parse and match.
        denied: the requests that the limit refuses.
        keys: different keys among the requests.
        keys_denied: keys with a refused request.
        most_denied: the keys most often refused, first the most; ties in the order of their first refusal.
        first_unparsed: the first three lines that do not parse.
        partial: it was stopped; everything is of the lines until then.
    """

    lines: int
    unparsed: int
    out_of_order: int
    requests: int
    denied: int
    keys: int
    keys_denied: int
    most_denied: tuple[DeniedKey, ...]
    first_unparsed: tuple[UnparsedLine, ...]
    partial: bool = False


class Readable(Protocol):
    """A binary stream."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        ...


def check_fields(names: tuple[str, ...], place: str = "by") -> tuple[str, ...]:
    """The names, if a request in a log can be keyed by them: any of ``FIELDS``, or several of them joined by ``_or_``.

    Raises:
        ValueError: another name; says which and what is accepted.
    """
    for name in names:
        for field in name.split("_or_"):
            if field not in FIELDS:
                raise ValueError(
                    f"{place} names {field!r}, which an access log does not have; expected any of "
                    f"{', '.join(FIELDS)}, or the first that a request has of several, such as user_or_address"
                )
    return names


def replay_log(
    stream: Readable,
    limit: Limit,
    *,
    match: str | None = None,
    behind: str | None = None,
    top: int = 5,
    progress: Callable[[int], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Replay:
    """Put every request of an access log to a limit that begins unused.

    Args:
        stream: the log, binary, in the common or combined format; decompressed.
        limit: decides; its ``by`` names fields (see ``check_fields``). A request costs 1, or its fixed cost.
        match: which requests to decide, such as "POST /join_form"; see ``request_matcher``. None decides all.
        behind: a field; its different values are counted for each key, which takes memory for each of them.
        top: how many keys to list in ``most_denied``.
        progress: called with the number of lines so far, about every quarter of a mebibyte.
        stopped: asked as often; True ends the replay, whose result is then partial.

    Raises:
        ValueError: ``limit.by``, ``behind`` or ``match`` cannot be, or the limit is one of concurrency; says what is
            accepted.
        OSError, EOFError, zlib.error: what ``stream.read`` raises.
    """
    if limit.algorithm is Algorithm.CONCURRENCY:
        raise ValueError(
            f"limit '{limit.quota}' ({limit.algorithm}): an access log does not say when a request ended, so requests at "
            "once cannot be replayed; expected a quota such as '5 per 60s'"
        )
    check_fields(limit.by, "by")
    check_fields((behind,) if behind else (), "behind")
    parts = _parts_of((*limit.by, *((behind,) if behind else ())), match)
    at = {name: index for index, name in enumerate(parts)}
    find, stamp_at = line_pattern(parts).findall, at["stamp"]
    key_of = _key_of(limit.by, at)
    behind_of = _value_of(behind, at) if behind else None
    wanted = request_matcher(match) if match is not None else None
    request_at = at.get("request", 0)

    counters = Counters(limit)
    admit = counters.admit
    denials: Counter[Hashable] = Counter()
    values: dict[Hashable, set[Hashable]] = {}
    first_unparsed: list[UnparsedLine] = []
    lines = unparsed = out_of_order = requests = denied = latest = 0
    previous: bytes | None = None
    late = False

    for block in whole_lines(stream.read):
        if stopped is not None and stopped():
            break
        for groups in find(block):
            lines += 1
            stamp = groups[stamp_at]
            if stamp != previous:  # most lines share the second of the one before
                moment = instant(stamp)
                if moment is None:
                    unparsed += 1
                    if unparsed <= _SHOWN_UNPARSED:
                        first_unparsed.append(UnparsedLine(lines, _problem(stamp, groups[-1])))
                    continue
                previous, late = stamp, moment < latest
                if not late:
                    latest = moment
            if late:
                out_of_order += 1
            if wanted is not None and not wanted(groups[request_at]):
                continue
            requests += 1
            key = key_of(groups)
            if not admit(key, latest):
                denied += 1
                denials[key] += 1
            if behind_of is not None:
                values.setdefault(key, set()).add(behind_of(groups))
        counters.tidy(latest)
        if progress is not None:
            progress(lines)

    return Replay(
        lines,
        unparsed,
        out_of_order,
        requests,
        denied,
        len(counters),
        len(denials),
        tuple(
            DeniedKey(_shown_key(key, limit.by), count, len(values[key]) if behind else None)
            for key, count in denials.most_common(top)
        ),
        tuple(first_unparsed),
        stopped is not None and stopped(),
    )


def _parts_of(names: tuple[str, ...], match: str | None) -> tuple[str, ...]:
    """The parts of a line that these fields come from, in the line's order."""
    fields = {field for name in names for field in name.split("_or_")}
    if match is not None or fields & {"method", "path"}:
        fields.add("request")
    return tuple(part for part in PARTS if part in fields or part == "stamp")


def _key_of(by: tuple[str, ...], at: dict[str, int]) -> Callable[[_Groups], Hashable]:
    if by == ("address",):  # no line is without one; this is the fast path
        return itemgetter(at["address"])
    values = [_value_of(name, at) for name in by]
    if len(values) == 1:
        return values[0]
    return lambda groups: tuple([value(groups) for value in values])


def _value_of(name: str, at: dict[str, int]) -> _Getter:
    """How to read a field, ``ABSENT`` where a request has none; a joined one says with its value which field it is."""
    fields = name.split("_or_")
    if len(fields) == 1:
        return _field_of(name, at)
    getters = [(field, _field_of(field, at)) for field in fields]

    def first(groups: _Groups) -> _Value:
        for field, get in getters:
            value = get(groups)
            if value != ABSENT:
                return field, value
        return ABSENT

    return first


def _field_of(field: str, at: dict[str, int]) -> Callable[[_Groups], bytes]:
    if field in ("method", "path"):
        index, part = at["request"], ("method", "path").index(field)
        return lambda groups: method_and_path(groups[index])[part]
    index = at[field]
    if field == "user":  # its group ends with the space before the time
        return lambda groups: groups[index].strip(b" ") or ABSENT
    return lambda groups: groups[index] or ABSENT


def _problem(stamp: bytes, text: bytes) -> str:
    if stamp:
        return f"no clock shows the time '{_shown(stamp)}', or it is not between 1970 and 2261"
    if not text.strip():
        return "empty"
    short = _shown(text[:_SHOWN_BYTES]) + ("…" if len(text) > _SHOWN_BYTES else "")
    return f"neither common nor combined log format: '{short}'"


def _shown_key(key: Hashable, by: tuple[str, ...]) -> tuple[str, ...]:
    values = (key,) if len(by) == 1 else key
    return tuple(_shown(value[1] if isinstance(value, tuple) else value) for value in values)  # type: ignore[attr-defined]  # made by _key_of


def _shown(raw: bytes) -> str:
    """Text that is safe on a terminal: nothing but printable characters, everything else as escapes."""
    text = raw.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
