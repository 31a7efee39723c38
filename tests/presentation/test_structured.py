"""Structured Fields: agreement with an independent implementation, and a round trip."""

import random
from decimal import Decimal
from typing import Any

import http_sf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.presentation import structured
from headway.presentation.structured import Date, DisplayString, InnerList, Item, Token

PARSERS = {"list": structured.parse_list, "dictionary": structured.parse_dictionary, "item": structured.parse_item}
SEEDS = (
    '"burst";q=100;w=60,"daily";q=1000;w=86400',
    'a=1, b;x=?0, c=(1 2 "x";y);z=:aGk:',
    "1.5;a=@123",
    '%"f%c3%bc";q',
    "tok/en;a=-3.125",
    '("a" b)  , ( )',
    "limit=100, remaining=0, reset=7",
    '"a\\"b\\\\"',
    ":ip:;a=1",
    "999999999999999",
    "0.0;q=*x",
)


def plain(value: Any) -> Any:
    """Bring the values of either implementation into one form."""
    if type(value).__name__ in ("datetime", "Date"):
        return "date", int(value.timestamp()) if hasattr(value, "timestamp") else int(value)
    if isinstance(value, Item):
        return plain(value.value), {key: plain(one) for key, one in value.params.items()}
    if isinstance(value, InnerList):
        return [plain(one) for one in value.items], {key: plain(one) for key, one in value.params.items()}
    if type(value).__name__ in ("Token", "DisplayString"):
        return type(value).__name__, str(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, tuple):
        return plain(value[0]), plain(value[1])
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return type(value).__name__, value


def outcome(parse: Any, *arguments: Any, **options: Any) -> Any:
    """Parse, or say that the text is malformed."""
    try:
        return plain(parse(*arguments, **options))
    except (ValueError, OverflowError):
        return "malformed"


def test_parsing_agrees_with_an_independent_parser() -> None:
    """Mutated fields are valid or malformed, and mean, what http-sf says."""
    chance = random.Random(9651)
    letters = 'abz09"\\;=,() ?@%:-.*_\t\x7fé~'
    for _ in range(4_000):
        text = chance.choice(SEEDS)
        for _ in range(chance.randint(0, 3)):
            at = chance.randint(0, len(text))
            text = text[:at] + chance.choice(letters) * chance.randint(0, 1) + text[at + chance.randint(0, 1) :]
        for kind, parse in PARSERS.items():
            assert outcome(parse, text) == outcome(http_sf.parse, text.encode(), tltype=kind), (kind, text)


bare = st.one_of(
    st.booleans(),
    st.integers(min_value=-(10**15) + 1, max_value=10**15 - 1),
    st.integers(min_value=-(10**15) + 1, max_value=10**15 - 1).map(Date),
    st.decimals(min_value=-(10**12) + 1, max_value=10**12 - 1, places=3),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)),
    st.from_regex(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*", fullmatch=True).map(Token),
    st.binary(),
    st.text().filter(lambda text: text.isascii() or max(text) < "\ud800").map(DisplayString),
)
params = st.dictionaries(st.from_regex(r"[a-z*][a-z0-9_.*-]*", fullmatch=True), bare, max_size=3)
items = st.builds(Item, bare, params)
members = st.one_of(items, st.builds(InnerList, st.lists(items, max_size=3).map(tuple), params))


@given(st.lists(members, max_size=4))
def test_lists_survive_a_round_trip(written: list[Item | InnerList]) -> None:
    """What is serialised parses to the same values, types included."""
    assert plain(structured.parse_list(structured.serialise_list(written))) == plain(written)


@given(st.dictionaries(st.from_regex(r"[a-z*][a-z0-9_.*-]*", fullmatch=True), members, max_size=4))
def test_dictionaries_survive_a_round_trip(written: dict[str, Item | InnerList]) -> None:
    """A dictionary keeps its members, true ones written as a key alone."""
    assert plain(structured.parse_dictionary(structured.serialise_dictionary(written))) == plain(written)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Item("a", {"q": 100, "w": 60}), '"a";q=100;w=60'),
        (Item(Token("burst"), {"pk": b"hi"}), "burst;pk=:aGk=:"),
        (Item(Decimal("1.50")), "1.5"),
        (Item(Decimal("0.0005")), "0.0"),
        (Item(DisplayString("ü%")), '%"%c3%bc%25"'),
        (Item(Date(5), {"x": True, "y": False}), "@5;x;y=?0"),
    ],
)
def test_canonical_form(item: Item, text: str) -> None:
    """Items are written in the RFC's canonical form."""
    assert structured.serialise_item(item) == text
    assert structured.parse_item(text).params == item.params


@pytest.mark.parametrize(
    "value", ["é", "a\n", Token("1a"), Token(""), 10**15, Decimal(10**12), Decimal("NaN"), Decimal("999999999999.9996")]
)
def test_what_cannot_be_written_is_refused(value: Any) -> None:
    """A value outside its type's range is an error, not a broken field."""
    with pytest.raises(ValueError, match="not"):
        structured.serialise_item(Item(value))


def test_a_bad_key_is_refused() -> None:
    """A parameter key that the grammar doesn't allow is an error."""
    with pytest.raises(ValueError, match="key"):
        structured.serialise_item(Item(1, {"Q": 1}))
