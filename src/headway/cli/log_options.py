"""Options that every command which reads logs of any format takes, and what they mean."""

from __future__ import annotations

import argparse

from headway.analysis.logs.block import FIELDS
from headway.analysis.logs.formats import FORMATS
from headway.analysis.logs.names import check_columns

__all__ = ["add_columns", "add_format", "read_columns"]


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``."""
    parser.add_argument(
        "--format",
        metavar="NAME",
        help=f"the logs' format: {', '.join(FORMATS)} (default: told by each log's beginning)",
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add ``--columns``."""
    parser.add_argument(
        "--columns",
        metavar="FIELD=COLUMN[,…]",
        help="what fields are called in JSON, CSV, TSV and Parquet, such as time=ts,address=ip; numbers from 1 for a table "
        f"without a header; fields: {', '.join(FIELDS)}",
    )


def read_columns(text: str | None) -> dict[str, str]:
    """The columns that ``--columns`` names, by field.

    Raises:
        ValueError: no such pairs, a field twice, or one that there is not.
    """
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        field, equals, column = (word.strip() for word in part.partition("="))
        if not (field and equals and column):
            raise ValueError(
                f"--columns is {text!r}; expected FIELD=COLUMN, several separated by commas: time=ts,address=ip"
            )
        if field in found:
            raise ValueError(f"--columns names {field!r} twice; expected one column")
        found[field] = column
    check_columns(found)
    return found
