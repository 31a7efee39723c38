"""The catalogs: complete, compiled from their sources, and with every placeholder where it belongs."""

from __future__ import annotations

import ast
import re
from gettext import GNUTranslations
from pathlib import Path

import pytest

from headway import presentation
from headway.presentation.language import LOCALES, language

FOLDER = Path(presentation.__file__).parent
TRANSLATED = [locale for locale in LOCALES if locale != "en"]
PLACEHOLDERS = re.compile(r"\{\w*\}")


def messages_in_the_code() -> set[str | tuple[str, str]]:
    """Every text that the code asks a catalog for."""
    found: set[str | tuple[str, str]] = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if name in ("gettext", "mark") and texts:
                found.add(texts[0])
            elif name in ("ngettext", "mark_plural") and len(texts) == 2:
                found.add((texts[0], texts[1]))
    return found


def source(locale: str) -> dict[str | tuple[str, str], tuple[str, ...]]:
    """The translations in a .po file, by message."""
    path = FOLDER / "locale" / locale.replace("-", "_") / "LC_MESSAGES" / "headway.po"
    found: dict[str | tuple[str, str], tuple[str, ...]] = {}
    for entry in re.split(r"\n\s*\n", path.read_text("utf-8")):
        parts: dict[str, str] = {}
        key = ""
        for line in entry.splitlines():
            if line.startswith("#"):
                assert "fuzzy" not in line, f"{locale}: {entry}"
                continue
            keyword = re.match(r"(msg\w+(?:\[\d\])?) ", line)
            if keyword:
                key, line = keyword[1], line[keyword.end() :]
            parts[key] = parts.get(key, "") + ast.literal_eval(line)
        if parts.get("msgid"):
            one, many = parts["msgid"], parts.get("msgid_plural")
            strings = tuple(text for name, text in parts.items() if name.startswith("msgstr"))
            found[(one, many) if many is not None else one] = strings
    return found


@pytest.mark.parametrize("locale", TRANSLATED)
def test_every_text_is_translated_and_none_is_left_over(locale: str) -> None:
    """A catalog has exactly the texts that the code says, none of them empty."""
    found = source(locale)
    assert set(found) == messages_in_the_code()
    assert all(all(strings) for strings in found.values())


@pytest.mark.parametrize("locale", TRANSLATED)
def test_placeholders_survive_translation(locale: str) -> None:
    """Every translation has the placeholders of its text, no more and no fewer."""
    for message, strings in source(locale).items():
        one = message if isinstance(message, str) else message[1]
        for text in strings:
            assert sorted(PLACEHOLDERS.findall(text)) == sorted(PLACEHOLDERS.findall(one)), text


@pytest.mark.parametrize("locale", TRANSLATED)
def test_the_compiled_catalog_is_the_source(locale: str) -> None:
    """The .mo file says exactly what the .po file says, in every plural form."""
    words = language(locale)
    assert isinstance(words, GNUTranslations)
    compiled = {key: text for key, text in words._catalog.items() if key}  # type: ignore[attr-defined]
    expected: dict[object, str] = {}
    for message, strings in source(locale).items():
        if isinstance(message, str):
            expected[message] = strings[0]
        else:
            expected |= {(message[0], form): text for form, text in enumerate(strings)}
    assert compiled == expected


def test_no_template_is_broken_by_what_it_is_given() -> None:
    """The texts hold no format specification or attribute access, only plain names."""
    for locale in TRANSLATED:
        for strings in source(locale).values():
            assert all("{" not in PLACEHOLDERS.sub("", text) and "%" not in text for text in strings)
