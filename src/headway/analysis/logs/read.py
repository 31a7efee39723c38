"""Read logs: any number of files, in any format, as one stream of blocks in the order of time.

Memory does not grow with the logs: at any time one block of each file that is being read is held, and a file is opened
only when its first time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, BinaryIO, Final

from headway.analysis.access_log import whole_lines
from headway.analysis.logs.block import FIELDS, Block, Fault
from headway.analysis.logs.delimited import DELIMITERS, read_delimited
from headway.analysis.logs.formats import detect, format_named
from headway.analysis.logs.json_lines import JSON_FORMATS, read_json
from headway.analysis.logs.lines import read_lines
from headway.analysis.logs.names import check_columns
from headway.analysis.logs.sources import Source, first_bytes
from headway.errors import ExtraMissing

__all__ = ["ORDERS", "read_logs", "read_source"]

ORDERS: Final = ("time", "given")
"""``time``: the requests of several logs merged by their times; ``given``: one log after the other."""


def read_logs(
    names: Sequence[str],
    fields: Collection[str] = FIELDS,
    *,
    form: str | None = None,
    columns: Mapping[str, str] | None = None,
    order: str = "time",
    standard_input: BinaryIO | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Block]:
    """The requests of some logs, a few thousand at a time.

    Args:
        names: files, also compressed (gzip, Zstandard, bzip2, xz), or ``-`` for the standard input.
        fields: what to read, of ``FIELDS``; the time always comes.
        form: the format of all of them, of ``FORMATS``; None tells it by each log's beginning.
        columns: what fields are called in JSON, CSV, TSV and Parquet, by field; see ``FIELDS``.
        order: see ``ORDERS``. Within one log the order is always its own, so times may go back; where ``time`` merges
            several, requests that are out of order in their own log may be so in the whole too.
        standard_input: what ``-`` stands for; default: the process's.
        progress: called with the bytes of files read so far and the bytes of all, 0 where nobody knows.

    Raises:
        ValueError: a field, format or column that cannot be; a log in no known format; ``ExtraMissing``, for one whose reader is not installed.
        OSError: a log that cannot be read.
    """
    for field in fields:
        if field not in FIELDS:
            raise ValueError(f"field is {field!r}; expected any of {', '.join(FIELDS)}")
    if order not in ORDERS:
        raise ValueError(f"order is {order!r}; expected {' or '.join(ORDERS)}")
    check_columns(columns or {})
    known = format_named(form) if form is not None else None
    return _read(
        tuple(names), tuple(fields), known, columns, order, standard_input, progress or (lambda done, size: None)
    )


def read_source(
    source: Source, fields: Collection[str], form: str | None = None, columns: Mapping[str, str] | None = None
) -> Iterator[Block]:
    """The requests of one log in its own order; see ``read_logs``. Where it is damaged, its last block says so.

    Raises:
        ValueError: the log is in no known format, or lacks the column for the time.
    """
    if source.path is not None:
        try:
            from headway.analysis.logs.duckdb_parquet import read_parquet
        except ModuleNotFoundError as error:
            raise ExtraMissing("Parquet", "analysis", file=source.name) from error
        yield from read_parquet(source.path, fields, source.name, columns)
        return
    if form == "parquet":
        raise ValueError(f"{source.name}: no Parquet file: it does not begin with 'PAR1'")
    first, blocks = first_bytes(whole_lines(source.read))
    found = form or detect(first, source.name, columns)
    read = read_json if found in JSON_FORMATS else read_delimited if found in DELIMITERS else read_lines
    yield from read(blocks, found, fields, source.name, columns)
    if source.damage:
        yield Block({field: [] for field in {"time", *fields}}, 1, (Fault(source.name, 0, source.damage),))


def _read(
    names: tuple[str, ...],
    fields: tuple[str, ...],
    form: str | None,
    columns: Mapping[str, str] | None,
    order: str,
    standard_input: BinaryIO | None,
    progress: Callable[[int, int], None],
) -> Iterator[Block]:
    sizes = {}
    beginnings: dict[int, int] = {}
    for place, name in enumerate(names):
        if name == "-" or len(names) == 1:
            continue
        with Source(name) as source:
            sizes[place] = source.size
            if order == "time":
                beginnings[place] = _first_time(read_source(source, (), form, columns))
    whole = sum(sizes.values())

    def blocks_of(place: int) -> Generator[Block, None, None]:
        nonlocal whole
        with Source(names[place], standard_input) as source:
            whole = whole or source.size
            before = 0
            for block in read_source(source, fields, form, columns):
                now = source.done() if source.size else 0
                finished[0] += now - before
                before = now
                progress(finished[0], whole)
                yield block

    finished = [0]
    if order == "given" or len(names) == 1:
        for place in range(len(names)):
            yield from blocks_of(place)
        return
    yield from _merged(sorted((beginnings.get(place, 0), place) for place in range(len(names))), blocks_of, fields)


def _first_time(blocks: Iterator[Block]) -> int:
    for block in blocks:
        if block.columns["time"]:
            first: int = min(block.columns["time"])
            return first
    return 0


class _Seen:
    """What was read and is not said yet: lines, and the faults among them."""

    def __init__(self) -> None:
        self.lines = 0
        self.faults: list[Fault] = []


class _Open:
    """A log that is being merged: what of its block is still to come."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self.blocks = blocks
        self.block = Block({"time": []}, 0)
        self.latest = 0

    def fill(self, seen: _Seen) -> bool:
        """Read on until there are requests; False at the end."""
        while not len(self.block):
            block = next(self.blocks, None)
            if block is None:
                return False
            self.block = block
            seen.lines += block.lines
            seen.faults += block.faults
        self.latest = max(self.block.columns["time"])
        return True


def _merged(
    waiting: list[tuple[int, int]], blocks_of: Callable[[int], Generator[Block, None, None]], fields: tuple[str, ...]
) -> Iterator[Block]:
    """Blocks of all logs by time: what is at most as late as every open log's latest known time can go out."""
    opened: list[_Open] = []
    with ExitStack() as left:
        while waiting or opened:
            seen = _Seen()
            opened = [log for log in opened if log.fill(seen)]
            horizon = min((log.latest for log in opened), default=None)
            while waiting and (horizon is None or waiting[0][0] <= horizon):
                log = _Open(left.enter_context(closing(blocks_of(waiting.pop(0)[1]))))
                if log.fill(seen):
                    opened.append(log)
                    horizon = log.latest if horizon is None else min(horizon, log.latest)
            if opened or seen.lines:
                yield _due(opened, horizon or 0, seen, fields)


def _due(opened: list[_Open], horizon: int, seen: _Seen, fields: tuple[str, ...]) -> Block:
    columns: dict[str, list[Any]] = {field: [] for field in ("time", *fields)}
    for log in opened:
        times = log.block.columns["time"]
        if log.latest <= horizon:
            due, kept = log.block.columns, None
        else:
            due = log.block.picked([row for row, time in enumerate(times) if time <= horizon])
            kept = log.block.picked([row for row, time in enumerate(times) if time > horizon])
        for field, values in columns.items():
            values.extend(due[field])
        log.block = Block(kept if kept is not None else {field: [] for field in columns}, 0)
    if len(opened) > 1:
        times = columns["time"]
        rows = sorted(range(len(times)), key=times.__getitem__)
        columns = {field: [values[row] for row in rows] for field, values in columns.items()}
    return Block(columns, seen.lines, tuple(seen.faults))
