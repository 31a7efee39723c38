"""Counting different keys in bounded memory."""

from __future__ import annotations

import sys

import pytest

from headway.limiter.distinct import Distinct


def distinct(keys: range) -> Distinct:
    """These numbers as keys, each twice."""
    found = Distinct()
    for _ in range(2):
        for key in keys:
            found.add(f"key {key}")
    return found


@pytest.mark.parametrize("keys", [0, 1, 1000, 2000])
def test_few_keys_are_counted_exactly(keys: int) -> None:
    """Up to two thousand keys are told apart, however often each comes."""
    found = distinct(range(keys))
    assert (len(found), found.exact) == (keys, True)


@pytest.mark.parametrize("keys", [2500, 10_000, 100_000])
def test_many_keys_are_estimated_in_bounded_memory(keys: int) -> None:
    """More are right within a fifth (six standard errors), and take no more memory than two thousand."""
    found = distinct(range(keys))
    assert not found.exact
    assert keys * 0.8 < len(found) < keys * 1.2
    assert len(found._hashes) <= 2048
    assert sys.getsizeof(found._hashes) < 150_000


@pytest.mark.parametrize(("left", "right"), [(10, 20), (1500, 1500), (100, 50_000), (50_000, 50_000), (3000, 1000)])
def test_the_union_counts_each_key_once(left: int, right: int) -> None:
    """What both saw is counted once, whichever of them is estimated; half of the keys are seen by both."""
    both = distinct(range(left)) | distinct(range(left // 2, left // 2 + right))
    whole = max(left, left // 2 + right)
    assert whole * 0.8 < len(both) < whole * 1.2
    assert both.exact == (max(left, right) < 2048)
    if both.exact:
        assert len(both) == whole


def test_keys_of_every_shape_are_told_apart() -> None:
    """Text, tuples of text, nested ones and the empty key are different keys."""
    found = Distinct()
    for key in ("a", ("a",), ("a", "b"), ("b", "a"), (("a",), "b"), (), ""):
        found.add(key)
    assert len(found) == 7
