"""Which language a reader gets."""

from __future__ import annotations

import pytest

from headway.presentation.language import LOCALES, choose, resolve
from headway.presentation.weights import weights


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("de", "de"), ("de-AT", "de"), ("DE_at", "de"), ("fr-CA", "fr"), ("es-419", "es"), ("ja-JP", "ja"),
        ("zh", "zh-Hans"), ("zh-CN", "zh-Hans"), ("zh-SG", "zh-Hans"), ("zh-Hans-HK", "zh-Hans"), ("zh_Hans", "zh-Hans"),
        ("zh-TW", None), ("zh-Hant", None), ("zh-Hant-HK", None), ("den", None), ("it", None), ("", None), ("*", None),
    ],
)  # fmt: skip
def test_a_tag_finds_its_language(tag: str, found: str | None) -> None:
    """A tag finds the shipped language it is a kind of, whatever its case; no other."""
    assert resolve(tag) == found


@pytest.mark.parametrize(
    ("field", "chosen"),
    [
        (None, "en"),
        ("", "en"),
        ("de", "de"),
        ("en-US,en;q=0.9,de;q=0.8", "en"),
        ("de;q=0.5, fr;q=0.9", "fr"),
        ("it, pt;q=0.9, es;q=0.1", "es"),
        ("it", "en"),
        ("de;q=0, fr;q=0.1", "fr"),
        ("de;q=0", "en"),
        ("de-AT, de;q=0, fr;q=0.1", "fr"),
        ("*", "en"),
        ("*;q=0.5, ja;q=0.4", "en"),
        ("en;q=0, *", "de"),
        ("fr ; q=0.3 , ja ; Q=0.7", "ja"),
        ("de;q=2, fr", "fr"),
        ("de;q=abc, fr;q=0.1", "fr"),
        (";;;,,,de", "de"),
        ("zh-TW", "zh-Hans"),
        ("zh-TW, en;q=0.8", "en"),
        ("zh-HK, it;q=0.2", "zh-Hans"),
        ("\u00e9\u00e9, de", "de"),
    ],
)
def test_accept_language_is_followed(field: str | None, chosen: str) -> None:
    """The highest weight wins, then the order; what can't be read is ignored; 0 excludes; English otherwise."""
    assert choose(field) == chosen


def test_the_default_is_the_operators() -> None:
    """Where the reader names nothing that is shipped, the operator's language is used."""
    assert choose("it", "fr") == "fr"
    assert choose(None, "de-AT") == "de"
    assert choose("*", "ja") == "ja"
    assert choose("en", "ja") == "en"


def test_a_hostile_field_costs_little() -> None:
    """A field of any length is read up to a bound."""
    assert choose("x," * 1_000_000 + "de") == "en"
    assert len(weights("a,b;q=0.5," * 100_000)) < 5000


def test_six_languages_are_shipped() -> None:
    """English, German, French, Spanish, Simplified Chinese and Japanese."""
    assert set(LOCALES) == {"en", "de", "fr", "es", "zh-Hans", "ja"}
