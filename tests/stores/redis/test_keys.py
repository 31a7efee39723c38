"""Stored keys: injective, constant in length, one slot for limits that share their key parts."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.stores.redis.keys import limit_pattern, slot_of, stored_key

texts = st.text(max_size=20)
values = st.one_of(texts, st.binary(max_size=8))
pairs = st.tuples(values, values)
keys = st.one_of(values, pairs, st.tuples(pairs, values), st.tuples(values, pairs), st.tuples(pairs, pairs))


def stored(key: Key, *, name: str = "l", namespace: str = "n", by: str | list[str] = "id") -> bytes:
    return stored_key(Charge(namespace, Limit(name, "1/s", by=by), key, 1))


@given(keys, keys)
def test_no_two_keys_are_one(one: Key, other: Key) -> None:
    """Different values have different stored keys; each is 30 printable characters with one pair of braces."""
    assert (stored(one) == stored(other)) == (one == other)
    assert re.fullmatch(rb"[\w-]{10}\{[\w-]{18}\}", stored(one))


def test_names_and_namespaces_do_not_run_together() -> None:
    """A limit's name, its namespace, its attributes and its values cannot be shifted into each other."""
    made = {
        stored(key, name=name, namespace=namespace, by=by)
        for key, name, namespace, by in product(["a", "ab", ""], ["a", "ab", "b"], ["a", "ab", ""], ["a", "ab", "b"])
    }
    assert len(made) == 81


def test_limits_with_the_same_key_parts_share_a_slot() -> None:
    """FS-11: limits keyed by the same values live in one slot of a cluster, those of other callers are spread."""
    slots = {slot_of(stored("phone-1", name=name)) for name in ("a", "b", "c")}
    assert len(slots) == 1
    assert len({slot_of(stored(f"phone-{number}")) for number in range(1000)}) > 900
    assert len({slot_of(stored(key)) for key in ("a}b{c", "{", "{}x", "user:{42}", "{}")}) == 5


def test_slots_are_the_clusters() -> None:
    """The slot is what CLUSTER KEYSLOT says (specification: CRC16 of what is between the first braces, modulo 16384)."""
    assert slot_of(b"0123456789{user-1}") == 12542


def test_a_limits_pattern_finds_its_keys_alone() -> None:
    """What SCAN matches is the beginning of that limit's keys and of no other's."""
    pattern = limit_pattern("n", "l", "gcra", ("id",))
    assert pattern.endswith(b"{*")
    assert stored("x").startswith(pattern[:-1])
    assert not stored("x", name="m").startswith(pattern[:-1])
