"""CSV and TSV with named columns, or with numbered ones where the first line is no header; one line a request."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from headway.analysis.logs.block import Block, Fault, printable
from headway.analysis.logs.moments import moments
from headway.analysis.logs.names import GENERIC, Names, known_names, readers_of, request_part

__all__ = ["DELIMITERS", "placed", "read_delimited"]

DELIMITERS: Final = {"csv": ",", "tsv": "\t"}
"""What is between the columns. A CSV's header may show that it is a semicolon or a bar instead."""

_Row = list[str]


def read_delimited(
    blocks: Iterable[bytes],
    form: str,
    fields: Collection[str],
    source: str,
    columns: Mapping[str, str] | None = None,
) -> Iterator[Block]:
    r"""Read blocks of whole lines, each of which ends with ``\n``.

    Args:
        blocks: the log.
        form: "csv" or "tsv".
        fields: what to read besides the time.
        source: the log's name, for its faults.
        columns: what some fields' columns are called; whole numbers from 1 throughout where there is no header.

    Raises:
        ValueError: there is no column for the time; says which there are.
    """
    names = known_names(GENERIC, columns)
    numbered = bool(columns) and all(name.isdigit() for name in (columns or {}).values())
    header: _Row | None = None
    width = 0
    delimiter = DELIMITERS[form]
    getters: dict[str, Callable[[_Row], Any]] = {}
    number = 0
    for block in blocks:
        lines = block.decode("utf-8", "backslashreplace").split("\n")
        lines.pop()
        faults: list[Fault] = []
        rows: list[tuple[int, _Row]] = []
        for index, line in enumerate(lines, number + 1):
            line = line.removesuffix("\r")
            if not line.strip():
                faults.append(Fault(source, index, "empty"))
                continue
            if header is None:
                delimiter = _delimiter(line, form)
                row = _cells(line, delimiter)
                header = [str(place) for place in range(1, len(row) + 1)] if numbered else row
                getters = _getters(header, names, fields, form, source, columns)
                width = len(header)
                if not numbered:
                    continue
            row = _cells(line, delimiter)
            if len(row) != width:
                faults.append(Fault(source, index, f"{len(row)} columns, expected {width}: '{printable(line)}'"))
            else:
                rows.append((index, row))
        stamps = [getters["time"](row) for _, row in rows]
        times = moments(stamps)
        if None in times:
            for (index, _), stamp, time in zip(rows, stamps, times, strict=True):
                if time is None:
                    faults.append(Fault(source, index, _no_time(stamp)))
            faults.sort(key=lambda fault: fault.number)
            rows = [row for row, time in zip(rows, times, strict=True) if time is not None]
            times = [time for time in times if time is not None]
        values: dict[str, list[Any]] = {"time": times}
        for field in fields:
            if field != "time":
                getter = getters.get(field)
                values[field] = [getter(row) for _, row in rows] if getter else [None] * len(rows)
        yield Block(values, len(rows) + len(faults), tuple(faults))
        number += len(lines)


def placed(header: Collection[str], names: Names, columns: Mapping[str, str] | None, source: str) -> dict[str, str]:
    """The column that each field (and a whole ``request``) is in, for those that have one; letters' case does not matter.

    Raises:
        ValueError: there is none for the time, or none that somebody named; says which there are.
    """
    known = {name.strip().lstrip("\ufeff").lower(): name for name in reversed(list(header))}
    found = {
        field: next(known[name.lower()] for name in candidates if name.lower() in known)
        for field, candidates in names.items()
        if any(name.lower() in known for name in candidates)
    }
    there = printable(", ".join(header), 300)
    for field, name in (columns or {}).items():
        if field not in found:
            raise ValueError(f"{source}: has no column {name!r} for {field}; its columns are {there}")
    if "time" not in found:
        raise ValueError(
            f"{source}: has no column for the time; its columns are {there}; say which with --columns time=COLUMN"
        )
    return found


def _getters(
    header: _Row,
    names: Names,
    fields: Collection[str],
    form: str,
    source: str,
    columns: Mapping[str, str] | None,
) -> dict[str, Callable[[_Row], Any]]:
    at = {field: header.index(name) for field, name in placed(header, names, columns, source).items()}
    getters = {"time": _cell(at["time"], str)}
    for field in fields:
        if field == "time":
            continue
        if field in at:
            getters[field] = _cell(at[field], readers_of(header[at[field]].strip().lower(), field, form))
        elif field in ("method", "path", "host") and "request" in at:
            getters[field] = _cell(at["request"], partial(request_part, field=field))
    return getters


def _cell(place: int, read: Callable[[Any], Any]) -> Callable[[_Row], Any]:
    return lambda row: read(row[place])


def _delimiter(line: str, form: str) -> str:
    usual = DELIMITERS[form]
    return usual if form != "csv" or usual in line else max((usual, ";", "|"), key=line.count)


def _cells(line: str, delimiter: str) -> _Row:
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader((line,), delimiter=delimiter))
    except csv.Error:  # a cell beyond the module's 128 KiB
        return line.split(delimiter)


def _no_time(stamp: str) -> str:
    if not stamp or stamp == "-":
        return "no time"
    return f"no clock shows the time '{printable(stamp)}', or it is not between 1970 and 2261"
