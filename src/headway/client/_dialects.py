"""Service dialects: what only a service's documentation says, kept as data in `_dialects.toml`."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from headway.client._body import Said
from headway.client._headers import HeaderFields
from headway.client._moments import FAR
from headway.client._vocabulary import Meaning


@dataclass(frozen=True, slots=True)
class Dialect:
    """One entry of the table; its conditions are all that are given, its statements likewise."""

    service: str
    fields: tuple[frozenset[tuple[str, str]], ...] = ()
    codes: frozenset[str] = frozenset()
    text: re.Pattern[str] | None = None
    header: str | None = None
    means: Meaning | None = None
    zone: str | None = None
    minutes: frozenset[str] = frozenset()
    remaining: tuple[str, ...] = ()
    reset_unit: float = 1.0

    def applies(self, fields: HeaderFields, said: Said, present: set[tuple[str, str]], codes: set[str]) -> bool:
        """Whether all conditions hold for a response."""
        if self.header is not None and self.header not in fields.lines:
            return False
        if self.codes and self.codes.isdisjoint(codes):
            return False
        for values in self.fields:
            if values.isdisjoint(present):
                return False
        return self.text is None or any(self.text.search(text) for text in said.texts)


@cache
def dialects() -> tuple[Dialect, ...]:
    """Return the table, read once."""
    text = resources.files(__package__ or "headway.client").joinpath("_dialects.toml").read_text("utf-8")
    return tuple(_dialect(entry) for entry in tomllib.loads(text)["dialect"])


def spoken(fields: HeaderFields, said: Said) -> list[Dialect]:
    """Return the dialects that a response speaks."""
    if not said.fields and not said.codes and not said.texts:
        return [one for one in dialects() if one.header in fields.lines]
    present = {*said.fields, *said.codes}
    codes = {code for _, code in said.codes}
    return [one for one in dialects() if one.applies(fields, said, present, codes)]


def minutes_in(value: Any, names: set[str], depth: int = 8) -> Iterator[tuple[str, float]]:
    """Yield the waits, in seconds, of fields that count minutes; none for 0 minutes, which means: not refused."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        plain = re.sub("[^a-z0-9]", "", str(key).lower())
        if plain in names and isinstance(member, int | float) and 0 < member < FAR / 60:
            yield str(key), member * 60.0
        elif depth:
            yield from minutes_in(member, names, depth - 1)


def _dialect(entry: dict[str, Any]) -> Dialect:
    """Build one entry."""
    return Dialect(
        service=entry["service"],
        fields=tuple(frozenset((key, value) for value in values) for key, values in entry.get("fields", {}).items()),
        codes=frozenset(entry.get("codes", ())),
        text=re.compile(entry["text"], re.I) if "text" in entry else None,
        header=entry.get("header"),
        means=Meaning[entry["means"]] if "means" in entry else None,
        zone=entry.get("zone"),
        minutes=frozenset(entry.get("minutes", ())),
        remaining=tuple(entry.get("remaining", ())),
        reset_unit=entry.get("reset_unit_s", 1.0),
    )
