"""The schema: its version, its text, and how it is put in place."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import Final

from headway.core.quota import MAX_RECOVERY_NS
from headway.core.reserved import NOTHING_YET
from headway.core.rule import CLOCK_SLACK_NS
from headway.errors import ConfigError

__all__ = ["FOREIGN", "SCHEMA_VERSION", "check_schema", "functions", "grant_sql", "quoted", "schema_sql"]

SCHEMA_VERSION: Final = 3

FOREIGN: Final = "HWY01"
"""The SQLSTATE of a schema that has other things in it."""

_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")


def check_schema(schema: object) -> str:
    """A schema's name that needs no quotes.

    Raises:
        ConfigError: names the value and what is accepted.
    """
    if (
        isinstance(schema, str)
        and _NAME.match(schema)
        and not schema.startswith("pg_")
        and schema not in ("public", "information_schema")
    ):
        return schema
    raise ConfigError(
        f"schema is {schema!r}; expected one of its own: 1 to 63 lower-case letters, digits or _, not a digit or pg_ "
        "first, and not public"
    )


def quoted(schema: str) -> str:
    """A schema's name as statements have it: some names are words of SQL's, such as "order"."""
    return f'"{schema}"'


def schema_sql(schema: str, *, unlogged: bool) -> str:
    """The statements that put everything in place, to be run in one transaction."""
    values = {
        "schema": quoted(check_schema(schema)),
        "name": schema,
        "unlogged": "UNLOGGED" if unlogged else "",
        "number": SCHEMA_VERSION,
        "foreign": FOREIGN,
        "slack": CLOCK_SLACK_NS,
        "nothing_yet": NOTHING_YET,
        "max_recovery": MAX_RECOVERY_NS,
    }
    return re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), _text())


def functions() -> list[str]:
    """The names of all functions that are put in place."""
    return sorted(set(re.findall(r"CREATE FUNCTION \{schema\}\.(\w+)", _text())))


@lru_cache(maxsize=1)
def _text() -> str:
    folder = resources.files(__package__)
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("schema.sql", "rules.sql"))


def grant_sql(schema: str, role: str) -> str:
    """The statement that lets a role call the functions, and nothing else."""
    name = role.replace('"', '""')
    return f'GRANT USAGE ON SCHEMA {quoted(check_schema(schema))} TO "{name}"'
