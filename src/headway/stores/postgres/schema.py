"""The schema: its version, its text, and how it is put in place."""

from __future__ import annotations

import re
from importlib import resources
from typing import Final

from headway.errors import ConfigError

__all__ = ["SCHEMA_VERSION", "check_schema", "schema_sql"]

SCHEMA_VERSION: Final = 1
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")


def check_schema(schema: str) -> str:
    """A schema's name that needs no quotes.

    Raises:
        ConfigError: names the value and what is accepted.
    """
    if _NAME.match(schema):
        return schema
    raise ConfigError(f"schema is {schema!r}; expected 1 to 63 lower-case letters, digits or _, not a digit first")


def schema_sql(schema: str, *, unlogged: bool) -> str:
    """The statements that put everything in place, to be run in one transaction."""
    text = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    filled = text.replace("{schema}", check_schema(schema)).replace("{unlogged}", "UNLOGGED" if unlogged else "")
    return filled.replace("{number}", str(SCHEMA_VERSION))
