"""One JSON object a line: what nginx, Caddy and Traefik write, and anything else whose names are known or given."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from headway.analysis.logs.block import Block, Fault, printable
from headway.analysis.logs.moments import moments
from headway.analysis.logs.names import CADDY, GENERIC, TRAEFIK, Names, known_names, readers_of, request_part

__all__ = ["JSON_FORMATS", "concerns_request", "object_in", "read_json"]

JSON_FORMATS: Final[dict[str, Names]] = {"nginx-json": GENERIC, "caddy-json": CADDY, "traefik-json": TRAEFIK}
"""What each calls the fields. ``nginx-json`` is for any other program's names too."""

_MISSING: Final = object()
_LONGEST_PREFIX: Final = 200
_FROM_REQUEST: Final = ("method", "path", "host")


def read_json(
    blocks: Iterable[bytes],
    form: str,
    fields: Collection[str],
    source: str,
    columns: Mapping[str, str] | None = None,
) -> Iterator[Block]:
    r"""Read blocks of whole lines, each of which ends with ``\n``.

    Args:
        blocks: the log.
        form: one of ``JSON_FORMATS``.
        fields: what to read besides the time.
        source: the log's name, for its faults.
        columns: what some fields are called instead; a dot leads into an object, as in ``request.client_ip``.
    """
    names = known_names(JSON_FORMATS[form], columns)
    time_names = names["time"]
    getters = {field: _getter(field, names, form) for field in fields if field != "time"}
    number = 0
    for block in blocks:
        faults: list[Fault] = []
        records: list[tuple[int, dict[str, Any]]] = []
        lines = block.decode("utf-8", "backslashreplace").split("\n")
        lines.pop()  # what is behind the last line's end
        for index, line in enumerate(lines, number + 1):
            record, problem = _record(line)
            if record is not None and not concerns_request(record, form):
                record, problem = None, f"no request: '{printable(line)}'"
            if record is None:
                faults.append(Fault(source, index, problem))
            else:
                records.append((index, record))
        stamps = [_first(record, time_names) for _, record in records]
        times = moments(stamps)
        if None in times:
            for (index, record), stamp, time in zip(records, stamps, times, strict=True):
                if time is None:
                    faults.append(Fault(source, index, _no_time(stamp, record, time_names)))
            faults.sort(key=lambda fault: fault.number)
            records = [record for record, time in zip(records, times, strict=True) if time is not None]
            times = [time for time in times if time is not None]
        values: dict[str, list[Any]] = {"time": times}
        for field, getter in getters.items():
            values[field] = [getter(record) for _, record in records]
        yield Block(values, len(lines), tuple(faults))
        number += len(lines)


def object_in(line: str) -> str:
    """A line without what a container's or the system's log puts in front of an object, such as ``web-1  | ``."""
    if line.startswith("{"):
        return line
    place = line.find("{", 0, _LONGEST_PREFIX)
    return line[place:] if place > 0 else line


def concerns_request(record: Mapping[str, Any], form: str) -> bool:
    """Whether an object is a request's: Caddy and Traefik write lines of other kinds to the same place."""
    match form:
        case "caddy-json":
            request = record.get("request")
            return isinstance(request, dict) and ("uri" in request or "remote_ip" in request)
        case "traefik-json":
            return "RequestMethod" in record or "DownstreamStatus" in record or "ClientHost" in record
        case _:
            return True


def _record(line: str) -> tuple[dict[str, Any] | None, str]:
    if not line.strip():
        return None, "empty"
    try:
        found = json.loads(object_in(line), parse_float=str)
    except (ValueError, RecursionError):
        return None, f"no JSON object: '{printable(line)}'"
    if not isinstance(found, dict):
        return None, f"no JSON object: '{printable(line)}'"
    if "\\ud" in line or "\\uD" in line:  # half a character can be written so, and cannot be said
        found = _whole_characters(found)
    return found, ""


def _whole_characters(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_whole_characters(name): _whole_characters(inner) for name, inner in value.items()}
        case list():
            return [_whole_characters(inner) for inner in value]
        case _:
            return value


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first name that the record has one for; None where it has none."""
    for name in names:
        found = record.get(name, _MISSING)
        if found is _MISSING and "." in name:
            found = _inner(record, name)
        if found is not _MISSING and found is not None and found != "" and found != "-":
            return found
    return None


def _inner(record: dict[str, Any], name: str) -> Any:
    found: Any = record
    for part in name.split("."):
        if not isinstance(found, dict):
            return _MISSING
        found = found.get(part, _MISSING)
    return found


def _getter(field: str, names: Names, form: str) -> Callable[[dict[str, Any]], Any]:
    readers = [((name,), readers_of(name, field, form)) for name in names.get(field, ())]
    whole = names.get("request", ()) if field in _FROM_REQUEST else ()

    def get(record: dict[str, Any]) -> Any:
        for name, read in readers:
            found = _first(record, name)
            if found is not None:
                value = read(found)
                if value is not None:
                    return value
        return request_part(_first(record, whole), field) if whole else None

    return get


def _no_time(stamp: Any, record: dict[str, Any], names: tuple[str, ...]) -> str:
    if stamp is not None:
        return f"no clock shows the time '{printable(str(stamp))}', or it is not between 1970 and 2261"
    has = printable(", ".join(map(str, record)))
    return f"no time; expected one of {', '.join(names)}, but there is {has or 'nothing'}"
