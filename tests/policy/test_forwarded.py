"""``Forwarded`` from the right, however long a caller has made it on the left."""

from __future__ import annotations

import time
from itertools import islice

import pytest

from headway.policy.forwarded import forwarded_nodes


@pytest.mark.parametrize("piece", ["sid=1; ", "for=6.6.6.6, ", "for=6.6.6.6;", '"', "\\", 'for="\\', ";", "=", ","])
def test_what_a_caller_wrote_neither_hides_the_proxy_s_word_nor_takes_time(piece: str) -> None:
    """A megabyte before what the trusted proxy added: its node is read, at once, and none is made of a part."""
    line = piece * (1_000_000 // len(piece)) + ", for=1.1.1.1, for=10.0.0.1"
    began = time.thread_time()
    nodes = list(forwarded_nodes([line]))
    assert nodes[:2] == ["10.0.0.1", "1.1.1.1"]
    assert set(nodes[2:]) <= {None, "6.6.6.6"}
    assert nodes[-1] is None
    assert time.thread_time() - began < 2


def test_an_element_that_is_cut_has_no_node() -> None:
    """Wherever the cut falls."""
    for length in range(4070, 4100):
        line = "for=6.6.6.6, for=7.7.7.7" + ";a=b" * 1000 + "x" * (length - 4000) + ", for=1.1.1.1"
        assert list(islice(forwarded_nodes([line]), 2)) in (["1.1.1.1", None], ["1.1.1.1", "7.7.7.7"])
