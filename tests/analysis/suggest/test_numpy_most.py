"""The most requests in any window, from times that come a piece at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy
from hypothesis import given
from hypothesis import strategies as st

from headway.analysis.suggest.numpy_most import Most


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 30)), max_size=60),
    st.integers(1, 12),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_the_most_in_any_window_is_what_counting_from_each_request_finds(
    requests: list[tuple[int, int]], window: int, cuts: list[int]
) -> None:
    """However the requests are cut into pieces, the most in a half-open window is that of counting one by one."""
    requests.sort()
    most = Most(window)
    ends = sorted({0, len(requests), *(min(cut, len(requests)) for cut in cuts)})
    for first, last in pairwise(ends):
        piece = numpy.array(requests[first:last], dtype=numpy.int64).reshape(-1, 2)
        most.add(piece[:, 0], piece[:, 1])
    assert most.found == max(
        (sum(c == client and time <= t < time + window for c, t in requests) for client, time in requests), default=0
    )
