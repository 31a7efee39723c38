"""From a converted text to what decides: the policy file is read as an operator's would be."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from headway import Limiter, MemoryStore
from headway.analysis.convert.convert import Converted, convert
from headway.policy.toml import read_policy_text
from headway.testing.clock import ManualClock


def converted(text: str, source: str | None = None, **options: Any) -> Converted:
    """The conversion; its policy file is sound."""
    found = convert(text, "given", source, **options)
    reading = read_policy_text(found.text, file="made.toml", folder=Path())
    assert not reading.problems
    return found


def limiter(text: str, clock: ManualClock, policy: str | None = None, source: str | None = None) -> Limiter:
    """A limiter of the converted policy, of the first one where none is named."""
    policies = read_policy_text(converted(text, source).text, file="made.toml", folder=Path()).policies().policies
    chosen = policies[policy] if policy else next(iter(policies.values()))
    return Limiter(*chosen.limits, store=MemoryStore(clock=clock))


def limits(found: Converted, policy: str | None = None) -> list[dict[str, Any]]:
    """The tables of a policy's limits."""
    policies = tomllib.loads(found.text)["policies"]
    return list((policies[policy] if policy else next(iter(policies.values())))["limits"])


def notes(found: Converted) -> str:
    """All notes, a line each."""
    return "\n".join(note.what for note in found.notes)
