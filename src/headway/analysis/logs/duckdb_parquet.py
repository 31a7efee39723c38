"""Parquet with named columns, read by DuckDB a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb

from headway.analysis.logs.block import Block, Fault, printable
from headway.analysis.logs.delimited import placed
from headway.analysis.logs.moments import LAST, moments
from headway.analysis.logs.names import GENERIC, known_names, readers_of, request_part

__all__ = ["read_parquet"]

_ROWS: Final = 4096
_MEMORY: Final = "256MB"


def read_parquet(
    path: Path, fields: Collection[str], source: str, columns: Mapping[str, str] | None = None
) -> Iterator[Block]:
    """Read a file in its own order; its rows are what other formats' lines are.

    Args:
        path: the file.
        fields: what to read besides the time.
        source: the log's name, for its faults.
        columns: what some fields' columns are called.

    Raises:
        ValueError: no Parquet file, or without a column for the time; says what is wrong.
    """
    with duckdb.connect(config={"memory_limit": _MEMORY, "threads": 1}) as database:
        try:
            file = str(path).replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
            described = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [file]).fetchall()
            types = {name: kind for name, kind, *_ in described}
            where = placed(types, known_names(GENERIC, columns), columns, source)
            chosen = [field for field in dict.fromkeys(("time", *fields, "request")) if field in where]
            shown = ", ".join(_expression(where[field], types[where[field]]) for field in chosen)
            rows = database.execute(f"SELECT {shown} FROM read_parquet(?)", [file])  # noqa: S608 - quoted names
        except duckdb.Error as error:
            raise ValueError(f"{source}: no Parquet file that can be read: {printable(str(error), 300)}") from error
        readers = {field: readers_of(where[field].lower(), field, "parquet") for field in chosen if field != "request"}
        exact = _is_time(types[where["time"]])
        number = 0
        while True:
            try:
                found = rows.fetchmany(_ROWS)
            except duckdb.Error as error:
                yield Block(
                    {field: [] for field in {"time", *fields}},
                    1,
                    (Fault(source, 0, f"the rest cannot be read: {printable(str(error), 300)}"),),
                )
                return
            if not found:
                return
            yield _block(found, chosen, readers, fields, source, number, exact)
            number += len(found)


def _block(
    rows: list[tuple[Any, ...]],
    chosen: list[str],
    readers: Mapping[str, Any],
    fields: Collection[str],
    source: str,
    number: int,
    exact: bool,
) -> Block:
    raw = dict(zip(chosen, map(list, zip(*rows, strict=True)), strict=True))
    times = (
        [time if time is None or 0 <= time < LAST else None for time in raw["time"]] if exact else moments(raw["time"])
    )
    faults: list[Fault] = []
    if None in times:
        for index, (stamp, time) in enumerate(zip(raw["time"], times, strict=True), number + 1):
            if time is None:
                shown = "no time" if stamp is None else f"no clock shows the time '{printable(str(stamp))}'"
                faults.append(Fault(source, index, shown))
        kept = [index for index, time in enumerate(times) if time is not None]
        raw = {name: [column[index] for index in kept] for name, column in raw.items()}
    values: dict[str, list[Any]] = {"time": [time for time in times if time is not None]}
    for field in fields:
        if field == "time":
            continue
        if field in raw:
            values[field] = [readers[field](value) for value in raw[field]]
        elif field in ("method", "path", "host") and "request" in raw:
            values[field] = [request_part(value, field) for value in raw["request"]]
        else:
            values[field] = [None] * len(values["time"])
    return Block(values, len(rows), tuple(faults))


def _is_time(kind: str) -> bool:
    return kind.startswith(("TIMESTAMP", "DATE"))


def _expression(name: str, kind: str) -> str:
    """A column as Python can take it: times in whole ns since 1970, numbers that are no whole ones as text."""
    quoted = '"' + name.replace('"', '""') + '"'
    if _is_time(kind):
        return f"epoch_ns({quoted}::TIMESTAMP_NS)"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"{quoted}::DECIMAL(38, 9)::VARCHAR" if kind.startswith("DECIMAL") else f"printf('%.9f', {quoted})"
    if kind == "BLOB":
        return f"{quoted}::VARCHAR"
    return quoted
