"""``Rule``: what a finding means: why it matters, by which text, and how each kind of server mends it.

The words are data: ``rules.toml`` beside this module, and ``fixes.toml``, by topic and server.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["LEVELS", "SERVERS", "Rule", "rules"]

LEVELS: Final = ("error", "warning", "note")
SERVERS: Final = ("nginx", "envoy", "kong", "express", "flask", "django", "fastapi")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: stable, such as ``forbidden-for-limit``.
        level: ``error``, ``warning`` or ``note``.
        property: ``status``, ``reason``, ``wait`` or ``limits``.
        what: the mistake, in a few words.
        why: what it does to a client.
        source: the text that says so.
        topic: what its fixes are about; rules of one topic have the same.
        fixes: by server, of ``SERVERS``: lines of configuration or code, with a comment where words are needed.
    """

    id: str
    level: str
    property: str
    what: str
    why: str
    source: str
    topic: str
    fixes: Mapping[str, str]


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id, in the order of the file."""
    folder = files("headway.analysis.lint")
    fixes = tomllib.loads(folder.joinpath("fixes.toml").read_text("utf-8"))
    found = {}
    for name, table in tomllib.loads(folder.joinpath("rules.toml").read_text("utf-8")).items():
        mending = fixes[table["topic"]]
        found[name] = Rule(name, fixes={server: mending[server].strip() for server in SERVERS}, **table)
    return found
