"""Which language a reader gets, and its catalog.

The catalogs are package data, read once a language as an import would; English needs none: its texts are the code's.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Protocol

__all__ = ["LOCALES", "Language", "choose", "language", "mark", "mark_plural", "resolve"]

LOCALES: Final = ("en", "de", "es", "fr", "ja", "zh-Hans")
"""The languages that are shipped, as BCP 47 tags; English is the one for everybody else."""

_TRADITIONAL: Final = ("zh-hant", "zh-tw", "zh-hk", "zh-mo")


class Language(Protocol):
    """Texts of one language, looked up by their English ones (the interface of ``gettext``)."""

    def gettext(self, message: str, /) -> str:
        """The translation, or the message itself where there is none."""
        ...

    def ngettext(self, singular: str, plural: str, count: int, /) -> str:
        """The translation in the plural form for ``count``."""
        ...


class _English:
    def gettext(self, message: str, /) -> str:
        return message

    def ngettext(self, singular: str, plural: str, count: int, /) -> str:
        return singular if count == 1 else plural


def mark(message: str) -> str:
    """Mark a text for extraction into the catalogs; it is translated where it is used."""
    return message


def mark_plural(singular: str, plural: str) -> tuple[str, str]:
    """Mark a text with a number for extraction into the catalogs."""
    return singular, plural


@cache
def language(locale: str) -> Language:
    """The catalog of one of ``LOCALES``; English where there is none for it (see ``resolve``)."""
    if locale == "en" or locale not in LOCALES:
        return _English()
    from gettext import GNUTranslations
    from importlib.resources import files

    path = files("headway.presentation").joinpath("locale", locale.replace("-", "_"), "LC_MESSAGES", "headway.mo")
    with path.open("rb") as catalog:
        return GNUTranslations(catalog)


def resolve(tag: str) -> str | None:
    """The shipped language of a tag such as ``de-AT`` or ``zh_CN``, or None where none is near.

    RFC 4647 §3.4 (Lookup), except that Traditional Chinese is not taken for Simplified here; ``choose`` does so when a
    reader names nothing better.
    """
    wanted = tag.strip().lower().replace("_", "-")
    if any(wanted == one or wanted.startswith(f"{one}-") for one in _TRADITIONAL):
        return None
    primary = wanted.split("-", 1)[0]
    return next((locale for locale in LOCALES if locale.lower().split("-", 1)[0] == primary), None)


def choose(accept_language: str | None, default: str = "en") -> str:
    """The language for an ``Accept-Language`` field (RFC 9110 §12.5.4), one of ``LOCALES``.

    The highest weight wins, then the order in the field. What cannot be read is ignored; ``*`` stands for the default.

    Args:
        accept_language: the field's value, several lines joined by commas, or None.
        default: used when nothing fits.
    """
    from headway.presentation.weights import weights

    fallback = resolve(default) or "en"
    ranked = sorted(weights(accept_language or ""), key=lambda pair: -pair[1])
    refused = {resolve(tag) for tag, weight in ranked if weight == 0}
    wanted = [tag for tag, weight in ranked if weight > 0]
    for tag in wanted:
        found = next((one for one in (fallback, *LOCALES) if one not in refused), None) if tag == "*" else resolve(tag)
        if found is not None and found not in refused:
            return found
    if any(tag.lower().startswith(_TRADITIONAL) for tag in wanted):
        return "zh-Hans"
    return fallback
