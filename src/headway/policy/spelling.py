"""The nearest accepted spelling of what somebody wrote, and the words for TOML's types. Pure text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, time
from difflib import get_close_matches
from typing import Final

__all__ = ["described", "header_name", "identifier", "nearest"]

_LONGEST: Final = 200
"""Characters; names have at most 64."""


def nearest(written: str, accepted: Iterable[str]) -> str | None:
    """The accepted spelling that ``written`` was probably meant to be, or None.

    Case and separators do not count (``onStoreFailure``, ``on-store-failure``), then small slips are forgiven. A text
    that is longer than anything accepted is no slip, and is not compared: strangers may have sent it.
    """
    if len(written) > _LONGEST:
        return None
    spellings = {_bare(spelling): spelling for spelling in accepted}
    wanted = _bare(written)
    if wanted in spellings:
        return spellings[wanted]
    close = get_close_matches(wanted, spellings, n=1, cutoff=0.6)
    if close:
        return spellings[close[0]]
    longer = [spelling for bare, spelling in spellings.items() if len(wanted) > 2 and bare.startswith(wanted)]
    return longer[0] if len(longer) == 1 else None


def header_name(written: str, prefix: str) -> str | None:
    """A name that can go into a header, made from one that cannot: "Per Phone" → "per-phone"; None where nothing is left.

    Args:
        written: any text.
        prefix: put before a name that would begin with a digit or a sign.
    """
    slug = re.sub(r"[^a-z0-9_.:/*-]+", "-", _lower_words(written, "-")).strip("-")
    if not slug:
        return None
    return (slug if slug[0].isalpha() or slug[0] == "*" else f"{prefix}-{slug.lstrip('_.:/')}")[:64].rstrip("-")


def identifier(written: str) -> str | None:
    """An attribute name made from text that is none: "client-ip" → "client_ip"; None where nothing is left."""
    name = re.sub(r"[^a-z0-9_]+", "_", _lower_words(written, "_")).strip("_")
    return f"_{name}"[:64] if name[:1].isdigit() else name[:64] or None


def described(value: object) -> str:
    """A value's kind for a message, in TOML's words, with the value where it is short: ``5, an integer``."""
    match value:
        case None:
            return "None"
        case bool():
            return f"{str(value).lower()}, a boolean"
        case str():
            return f"{value if len(value) <= 60 else value[:57] + '...'!r}, a string"
        case int():
            return f"{value if abs(value) < 10**20 else 'a long number'}, an integer"
        case float():
            return f"{value}, a float"
        case list() | tuple():
            return "an array of tables" if value and all(isinstance(part, dict) for part in value) else "an array"
        case dict():
            return "a table"
        case date() | time():
            return f"{value}, a date or time"
        case _:
            shown, kind = repr(value), type(value).__name__
            return f"{shown if len(shown) <= 60 else shown[:57] + '...'}, a value of type {kind}"


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _lower_words(text: str, separator: str) -> str:
    """Without accents, in lower case, ``camelCase`` taken apart."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", separator, plain).lower()
