"""Which format a log is in: told by its first lines, or by whoever reads it."""

from __future__ import annotations

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from typing import Final

from headway.analysis.logs.block import printable
from headway.analysis.logs.delimited import DELIMITERS
from headway.analysis.logs.json_lines import JSON_FORMATS, concerns_request, object_in
from headway.analysis.logs.lines import LINE_FORMATS, line_pattern
from headway.analysis.logs.names import GENERIC

__all__ = ["FORMATS", "PARQUET_MAGIC", "detect", "format_named"]

PARQUET_MAGIC: Final = b"PAR1"

FORMATS: Final = (
    "common",
    "combined",
    "vhost",
    "nginx-json",
    "caddy-json",
    "traefik-json",
    "traefik",
    "alb",
    "csv",
    "tsv",
    "parquet",
)
"""``common`` and ``traefik`` are read as ``combined`` is. ``nginx-json`` is any JSON whose names are known or given."""

_SAME: Final = {"common": "combined", "traefik": "combined", "json": "nginx-json"}
_LOOKED_AT: Final = 200
_TIME: Final = frozenset(name.lower() for name in GENERIC["time"])


def format_named(name: str) -> str:
    """The format as a reader knows it.

    Raises:
        ValueError: no format; names it and what is accepted.
    """
    if name not in FORMATS and name not in _SAME:
        raise ValueError(f"format is {name!r}; expected any of {', '.join(FORMATS)}")
    return _SAME.get(name, name)


def detect(beginning: bytes, source: str, columns: Mapping[str, str] | None = None) -> str:
    """The format of a log's first lines: the one that most of them are in.

    Args:
        beginning: the first bytes, decompressed; whole lines, but for Parquet.
        source: the log's name, for the error.
        columns: names that somebody gave to columns.

    Raises:
        ValueError: no line is in any format; shows the first one that is not empty. Or the log is in UTF-16.
    """
    if beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # what PowerShell's > writes
        raise ValueError(f"{source}: is in UTF-16; expected UTF-8: iconv -f UTF-16 -t UTF-8 LOG | headway … -")
    if beginning.startswith(PARQUET_MAGIC):
        return "parquet"
    lines = [line for line in beginning.decode("utf-8", "backslashreplace").split("\n")[:_LOOKED_AT] if line.strip()]
    if not lines:
        return "combined"
    found = {form: _lines_in(form, lines) for form in LINE_FORMATS}
    found |= _objects(lines)
    best = max(found, key=lambda form: found[form])
    if found[best]:
        return best
    header = lines[0].lower()
    for form, delimiter in (*((form, DELIMITERS[form]) for form in ("tsv", "csv")), ("csv", ";"), ("csv", "|")):
        names = {name.strip(' "\r\ufeff') for name in header.split(delimiter)}
        wanted = {name.lower() for name in (columns or {}).values()}
        if len(names) > 1 and (names & _TIME or (wanted and (wanted <= names or all(map(str.isdigit, wanted))))):
            return form
    none = f"none of the first {len(lines)} lines" if len(lines) > 1 else "no line"
    raise ValueError(
        f"{source}: {none} is in a known format: '{printable(lines[0])}'; expected one of "
        f"{', '.join(FORMATS)}; a table needs a header with a column for the time, or --columns time=COLUMN"
    )


def _lines_in(form: str, lines: list[str]) -> int:
    pattern, _ = line_pattern(form, frozenset())
    return sum(not found[-1] for line in lines for found in pattern.findall(line + "\n"))


def _objects(lines: list[str]) -> dict[str, int]:
    found = dict.fromkeys(JSON_FORMATS, 0)
    for line in lines:
        try:
            record = json.loads(object_in(line))
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found[
                next(form for form in ("caddy-json", "traefik-json", "nginx-json") if concerns_request(record, form))
            ] += 1
    if found["caddy-json"] or found["traefik-json"]:  # both also write lines of other kinds
        found["nginx-json"] = 0
    return found
