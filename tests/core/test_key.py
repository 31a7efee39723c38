"""Keys: one entity by its text, bytes apart, tuples by their parts, and no two things under one name."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Limiter
from headway.core.charge import Charge
from headway.core.key import Key, encode_key, key_part
from headway.core.limit import Limit
from headway.errors import AttributeUnusable

awkward = st.one_of(
    st.text(max_size=8),
    st.text(alphabet="s:b0123456789t1/|,\x00\n{}%\\'\"*. ", max_size=12),
    st.text(st.characters(codec=None, categories=["Cs", "So", "Lo"]), max_size=4),
)
parts: st.SearchStrategy[Key] = st.recursive(
    st.one_of(awkward, st.binary(max_size=8)), lambda part: st.lists(part, max_size=3).map(tuple), max_leaves=6
)
names = st.text(alphabet="ab_", min_size=1, max_size=3)


@given(
    st.tuples(awkward, names, names, st.lists(names, max_size=3).map(tuple), parts),
    st.tuples(awkward, names, names, st.lists(names, max_size=3).map(tuple), parts),
)
def test_two_different_counters_never_share_stored_bytes(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    """Namespace, limit, algorithm, attribute names and values: all different, all told apart."""
    assert (encode_key(*one) == encode_key(*other)) is (one == other)  # type: ignore[arg-type]


def read_back(stored: bytes) -> list[object]:
    """The parts of a stored key: each says its kind and its length, a tuple the number of its parts."""
    assert stored.startswith(b"h1")
    rest, found = stored[2:], []

    def part() -> object:
        nonlocal rest
        tag, (digits, _, rest) = rest[:1], rest[1:].partition(b":")
        if tag == b"t":
            return tuple(part() for _ in range(int(digits)))
        raw, rest = rest[: int(digits)], rest[int(digits) :]
        assert len(raw) == int(digits)
        return raw.decode("utf-8", "surrogatepass") if tag == b"s" else raw

    while rest:
        found.append(part())
    return found


@given(awkward, names, names, st.lists(names, max_size=3).map(tuple), parts)
def test_what_a_stored_key_names_can_be_read_back(
    namespace: str, limit: str, algorithm: str, by: tuple[str, ...], key: Key
) -> None:
    """The bytes hold every part with its kind and length, so no two counters can have the same ones."""
    assert read_back(encode_key(namespace, limit, algorithm, by, key)) == [namespace, limit, algorithm, by, key]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a/b", "c"), ("a", "b/c")),
        (("as:b", "c"), ("a", "bs:c")),
        (("as1:b", "c"), ("a", "bs1:c")),
        (("a", "bc"), ("ab", "c")),
        (("a", ""), ("", "a")),
        (("a\x00b", "c"), ("a", "b\x00c")),
        (("s1:a", "b"), ("s1:a,b", "")),
        (("1:a", "1:b"), ("1:a1", ":b")),
        (("👩‍👩‍👧", "x"), ("👩", "‍👩‍👧x")),
        (("\xe9", "x"), ("e\u0301", "x")),
        (("x" * 10_000, "y"), ("x" * 9_999, "xy")),
        ((b"a", "b"), ("a", "b")),
        ((("a", "b"), "c"), ("a", ("b", "c"))),
        (((), "a"), ("", "a")),
        (("\ud800", "a"), ("\ud801", "a")),
    ],
)
def test_pairs_that_joining_would_confuse_have_keys_of_their_own(one: tuple[Key, ...], other: tuple[Key, ...]) -> None:
    """Separators, NUL, emoji, combining letters, 10 kB values, bytes and nesting: two keys, stored and in memory."""
    limit = Limit("l", "5/s", by=["a", "b"])
    first, second = (tuple(key_part("a", part) for part in pair) for pair in (one, other))
    assert first != second
    assert Charge("n", limit, first, 1).stored_key() != Charge("n", limit, second, 1).stored_key()


def test_a_tuple_of_one_attribute_is_not_several_attributes() -> None:
    """by="a" with the value ("x", "y") and by=["a", "b"] with "x" and "y" are different counters."""
    one = Charge("n", Limit("l", "5/s", by="a"), ("x", "y"), 1)
    two = Charge("n", Limit("l", "5/s", by=["a", "b"]), ("x", "y"), 1)
    assert one.stored_key() != two.stored_key()


def test_str_int_and_uuid_are_one_entity_by_their_text() -> None:
    """42 and "42" are the same user, as are a UUID and its text; b"42" is not."""
    uuid = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    assert key_part("a", 42) == key_part("a", "42") == "42"
    assert key_part("a", uuid) == key_part("a", str(uuid)) == str(uuid)
    assert key_part("a", b"42") == key_part("a", bytearray(b"42")) == b"42"
    assert key_part("a", -0) == "0"
    assert key_part("a", (1, ("x", b"y"))) == ("1", ("x", b"y"))


def test_enums_count_as_what_they_are() -> None:
    """A StrEnum member is its text and an IntEnum member its number, not their names."""
    colour = StrEnum("colour", {"RED": "red"})
    level = IntEnum("level", {"HIGH": 3})
    assert key_part("a", colour("red")) == "red"
    assert type(key_part("a", colour("red"))) is str
    assert key_part("a", level(3)) == "3"


def test_an_enormous_int_is_a_key_too() -> None:
    """More digits than the interpreter prints: still a key, still its own."""
    assert key_part("a", 10**5000) != key_part("a", 10**5000 + 1)


@pytest.mark.parametrize("depth", [33, 100, 50_000])
def test_tuples_within_tuples_without_end_are_refused_by_name(depth: int) -> None:
    """32 deep is a key; deeper is one clear error, not the interpreter's, whatever builds the key."""
    value: Any = "a"
    for _ in range(32):
        value = (value,)
    assert key_part("phone", value) == value
    assert encode_key("n", "l", "gcra", ("phone",), (value,)).count(b"t1:") == 34
    for _ in range(depth - 32):
        value = (value,)
    with pytest.raises(
        AttributeUnusable, match="attribute 'phone' is nested more than 32 tuples deep; a key is made of"
    ):
        key_part("phone", value)
    for secret in (False, True):
        limiter = Limiter(Limit("l", "5/s", by="phone", secret=secret), secret_key=b"k" * 16)
        with pytest.raises(AttributeUnusable, match="'phone' is nested"):
            limiter.hit(phone=value)
        with pytest.raises(AttributeUnusable, match="'phone' is nested"):
            limiter.reset(phone=value)


@pytest.mark.parametrize(
    "bad", [None, True, False, 1.5, float("nan"), ["a"], {"a": 1}, {1}, object(), (None,), ("a", 1.0), 1j]
)
def test_what_cannot_be_a_key_is_refused_by_name(bad: object) -> None:
    """None, bools, floats and containers are TypeErrors that name the attribute and what a key is made of."""
    with pytest.raises(
        AttributeUnusable, match=r"attribute 'phone' is an? \w+; a key is made of str, int, UUID, bytes"
    ) as caught:
        key_part("phone", bad)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [(None, "NoneType"), (True, "bool"), (1.5, "float"), (["a"], "list"), (("a", ("b", 1j)), "complex")],
)
def test_what_cannot_be_a_key_is_called_by_its_type(bad: object, kind: str) -> None:
    """Of a tuple, the part that is at fault."""
    with pytest.raises(AttributeUnusable, match=rf"^attribute 'phone' is a {kind}; a key is made of"):
        key_part("phone", bad)


def test_stored_keys_stay_as_they_are() -> None:
    """Other versions of the program read them: one byte changed, and every counter would begin anew."""
    assert encode_key("n", "per-é", "gcra", ("a", "b"), ("x\ud800", b"\x00y")) == (
        b"h1s1:ns6:per-\xc3\xa9s4:gcrat2:s1:as1:bt2:s4:x\xed\xa0\x80b2:\x00y"
    )
    assert encode_key("", "l", "gcra", (), ()) == b"h1s0:s1:ls4:gcrat0:t0:"
