"""What a policy asks for out of what a log has: attributes from fields, by their names or as somebody maps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from headway.analysis.logs.block import FIELDS, Block
from headway.analysis.suggest.routes import template
from headway.policy.address import group, read_address
from headway.policy.policy import Policy

__all__ = ["ABSENT", "KEYED", "MADE_OF", "Mapped", "mapped", "read_fields", "values_of"]

MADE_OF: Final = {"network": "address", "route": "path"}
"""Made of another field: who shares a counter by address (an IPv6 address's /64), a path whose values are folded."""

KEYED: Final = (*(name for name in FIELDS if name not in ("time", "duration", "bytes")), *MADE_OF)
"""The fields that an attribute can be taken from, by itself or the first that a request has of several: ``user_or_address``."""

ABSENT: Final = "-"
"""Where an attribute is mapped to it, the log does not have it."""

_KNOWN_AS: Final = {
    "address": ("ip", "client_ip", "remote_ip", "remote_addr", "client_address", "client", "addr"),
    "user": ("account", "account_id", "user_id", "username", "user_name", "remote_user"),
    "agent": ("user_agent",),
    "path": ("uri", "url"),
    "route": ("endpoint",),
    "api_key": ("key", "apikey", "token"),
    "referer": ("referrer",),
    "status": ("status_code",),
}
_ALIASES: Final = {alias: field for field, aliases in _KNOWN_AS.items() for alias in aliases}
_PREFIX: Final = 64
_SPARE: Final = ("api_key", "referer", "host", "agent", "user")
"""Fields that can carry a column that no field is for, the least asked for first."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """How attributes come out of a log.

    Attributes:
        fields: for each attribute the fields it is taken from: the first that a request has.
        fixed: attributes that every request has with the same value.
        columns: what ``read_logs`` has to call some fields, because they carry other columns of the log.
        absent: what stands for a field that a request does not have; None leaves the attribute out.
    """

    fields: Mapping[str, tuple[str, ...]]
    fixed: Mapping[str, str]
    columns: Mapping[str, str]
    absent: str | None = None

    @property
    def secrets(self) -> frozenset[str]:
        """The attributes whose values a report must not show as they are: API keys."""
        return frozenset(
            name for name, fields in self.fields.items() if "api_key" in fields and "api_key" not in self.columns
        )

    @property
    def needs(self) -> frozenset[str]:
        """The fields that have to be read."""
        return frozenset(MADE_OF.get(field, field) for fields in self.fields.values() for field in fields)

    def rows(self, block: Block) -> Iterator[dict[str, object]]:
        """Each request's attributes."""
        columns = [self._column(block, fields) for fields in self.fields.values()]
        if self.absent is not None:
            columns = [[self.absent if value is None else value for value in column] for column in columns]
        names = tuple(self.fields)
        if not columns:
            return iter([dict(self.fixed) for _ in range(len(block))])
        rows = zip(*columns, strict=True)
        if any(None in column for column in columns):
            fixed = self.fixed
            return ({**fixed, **{n: v for n, v in zip(names, row, strict=True) if v is not None}} for row in rows)
        if self.fixed:
            fixed = self.fixed
            return ({**fixed, **dict(zip(names, row, strict=True))} for row in rows)
        return (dict(zip(names, row, strict=True)) for row in rows)

    @staticmethod
    def _column(block: Block, fields: tuple[str, ...]) -> list[Any]:
        """One field's values, or those of the first field that a request has, each with which field it is."""
        columns = [values_of(block, field) for field in fields]
        if len(fields) == 1:
            return columns[0]
        rows = zip(*columns, strict=True)
        return [
            next(((field, value) for field, value in zip(fields, row, strict=True) if value is not None), None)
            for row in rows
        ]


def values_of(block: Block, field: str) -> list[Any]:
    """A field's values, of one that is made of another too."""
    column = block.columns[MADE_OF.get(field, field)]
    match field:
        case "network":
            return [None if value is None else _network(value) for value in column]
        case "route":
            return [None if value is None else _route(value) for value in column]
        case _:
            return column


@lru_cache(maxsize=8192)
def _network(address: str) -> str:
    """The adapters' way: an address as itself, an IPv6 one as its /64; what is none, as it is."""
    read = read_address(address)
    return address if read is None else group(read, _PREFIX)


_route: Final = lru_cache(maxsize=8192)(template)


def read_fields(text: str, place: str) -> tuple[str, ...]:
    """The fields that ``user_or_address`` names.

    Raises:
        ValueError: one that a log does not have; names it, the place and what is accepted.
    """
    fields = tuple(text.split("_or_"))
    for field in fields:
        if field not in KEYED:
            raise ValueError(
                f"{place} names {field!r}, which an access log does not have; expected any of {', '.join(KEYED)}, "
                "or the first that a request has of several, such as user_or_address"
            )
    return fields


def mapped(
    policies: Sequence[Policy], given: Mapping[str, str], fixed: Mapping[str, str], *, also: Sequence[str] = ()
) -> Mapped:
    """How the attributes that some policies ask for come out of a log.

    Args:
        policies: what asks.
        given: for some attributes the field, several joined by ``_or_``, ``-`` for one that the log does not have, or
            the name of a column or member of the log that is none of ``KEYED``.
        fixed: for some attributes a value that every request has.
        also: fields that are needed besides, so that no other column is read in their place.

    Raises:
        ValueError: an attribute that nothing says where to take it from, or more columns than can be carried.
    """
    asked = dict.fromkeys(name for policy in policies for name in policy.attributes)
    optional = dict.fromkeys(
        name
        for policy in policies
        if policy.exempt is not None
        for name in policy.exempt.attributes
        if name not in asked
    )
    for name in (*given, *fixed):
        if name not in asked and name not in optional:
            known = ", ".join((*asked, *optional)) or "none"
            raise ValueError(f"no limit asks for the attribute {name!r}; attributes that are asked for: {known}")
    fields: dict[str, tuple[str, ...]] = {}
    carried: dict[str, str] = {}
    for name in (*asked, *optional):
        if name in fixed or given.get(name) == ABSENT:
            continue
        text = given.get(name) or (name if _is_field(name) else _ALIASES.get(name))
        if text is None and name in asked:
            raise ValueError(
                f"the policy asks for the attribute {name!r}, and no field of a log is known by that name; map it: "
                f"{name}=FIELD with one of {', '.join(KEYED)}, or {name}={ABSENT} if the log does not have it"
            )
        if text is not None:
            if not _is_field(text):
                carried[name] = text
            fields[name] = tuple(text.split("_or_"))
    taken = {MADE_OF.get(field, field) for several in fields.values() for field in several} | {
        MADE_OF.get(field, field) for field in also
    }
    spare = [field for field in _SPARE if field not in taken]
    columns: dict[str, str] = {}
    for name, column in carried.items():
        field = next((field for field, other in columns.items() if other == column), None) or (spare and spare.pop(0))
        if not field:
            raise ValueError(
                f"attribute {name!r}: no more columns can be read besides those that are; at most {len(_SPARE)}"
            )
        columns[field] = column
        fields[name] = (field,)
    return Mapped(fields, fixed, columns)


def _is_field(text: str) -> bool:
    return all(part in KEYED for part in text.split("_or_"))
