"""``Draft``: a policy file before it is written: policies, their limits, and notes of what is not carried over exactly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import ConfigError, LimitError, QuotaError

__all__ = ["Draft", "LimitDraft", "Names", "Note", "PolicyDraft", "attribute", "quota_text", "safe_name"]

_UNSAFE: Final = re.compile(r"[^a-z0-9_.:/*]+")
_LONGEST: Final = 64
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the policy file cannot say exactly.

    Attributes:
        what: one sentence: what was asked for, and what happens instead.
        line: where it was asked for, from 1; None for the source as a whole.
        limit: the limit that it is about, or empty.
        policy: that limit's policy, where several have limits of one name; or empty.
    """

    what: str
    line: int | None = None
    limit: str = ""
    policy: str = ""


def safe_name(text: str, default: str = "limit") -> str:
    """A name that fits into a header: lower case, ``-`` for what is not accepted, at most 60 characters."""
    return _UNSAFE.sub("-", text.lower()).lstrip("0123456789_.:/-")[:60].rstrip("-") or default


class Names:
    """Gives each thing a name of its own: one that is taken gets ``-2``, the next ``-3``, and so on."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        """The names, and up to which number each has been counted."""

    def take(self, text: str, default: str = "limit") -> str:
        """A safe name that nothing else has, at most 64 characters."""
        name = own = safe_name(text, default)
        number = self._taken.get(name, 0)
        while own in self._taken:
            number += 1
            own = f"{name[: _LONGEST - len(str(number)) - 1]}-{number}"
        self._taken[name] = max(number, 1)
        self._taken.setdefault(own, 1)
        return own


@dataclass(slots=True)
class LimitDraft:
    """One limit.

    Attributes:
        name: safe for a header.
        keys: the keys of its table besides the name, in order; what is None is left out.
        comments: lines above it.
        line: where it comes from.
    """

    name: str
    keys: dict[str, Any]
    comments: list[str] = field(default_factory=list)
    line: int | None = None


@dataclass(slots=True)
class PolicyDraft:
    """One policy: its name, its limits, and its conditions of exemption."""

    name: str
    limits: list[LimitDraft] = field(default_factory=list)
    exempt: list[Mapping[str, Any]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    names: Names = field(default_factory=Names, repr=False, compare=False)
    """Of its limits."""


@dataclass(slots=True)
class Draft:
    """A policy file.

    Attributes:
        file: what the source is called.
        origin: what it is, such as ``nginx``.
        policies: in order.
        notes: what is not exact, in the order of the source.
        store: the URL that the source names, or None.
        comments: lines at the top: how to read what follows.
    """

    file: str
    origin: str
    policies: list[PolicyDraft] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    store: str | None = None
    comments: list[str] = field(default_factory=list)
    _noted: set[Note] = field(default_factory=set, init=False, repr=False, compare=False)

    def note(self, what: str, line: int | None = None, limit: str = "", policy: str = "") -> None:
        """Note something, once."""
        note = Note(what, line, limit, policy)
        if note not in self._noted:
            self._noted.add(note)
            self.notes.append(note)

    def error(self, problem: str, line: int | None = None) -> ConfigError:
        """An error at a line of the source."""
        return ConfigError(problem, file=self.file, line=line)

    def checked(self, limit: LimitDraft) -> LimitDraft:
        """The same limit, if headway can have it.

        Raises:
            ConfigError: a count, period or burst beyond what headway counts, at its line.
        """
        quota = limit.keys.get("quota")
        for text in quota.values() if isinstance(quota, dict) else [quota]:
            if isinstance(text, str) and text not in ("block", "unlimited"):
                try:
                    Limit("checked", Quota.parse(text), algorithm=limit.keys.get("algorithm"))
                except (QuotaError, LimitError) as error:
                    raise self.error(str(error).removeprefix("limit 'checked': "), limit.line) from error
        return limit


def quota_text(count: int, seconds: int, burst: int | None = None) -> str:
    """A quota as headway reads it: ``10 per 60 s``, in the largest unit that is whole; such as ``100/day burst 20``."""
    units = (("day", 86_400), ("hour", 3600), ("min", 60), ("s", 1))
    unit, times = next((name, seconds // length) for name, length in units if seconds % length == 0)
    period = f"/{unit}" if times == 1 else f" per {times} {unit}{'s' if unit in ('day', 'hour') else ''}"
    return f"{count}{period}{f' burst {burst}' if burst is not None else ''}"


def attribute(text: str) -> str:
    """A name that an attribute can have: ``remote-address`` is ``remote_address``."""
    name = _NO_WORD.sub("_", text)[:60] or "value"
    name = f"_{name}" if name[0].isdigit() else name
    try:
        Limit("named", "1/s", by=name)
    except LimitError:  # a word that hit() takes for itself
        return f"{name}_"
    return name
