"""What is asked of a log's requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.analysis.logs.block import Block
from headway.analysis.suggest import duckdb_numpy_traffic
from headway.analysis.suggest.duckdb_numpy_requests import NEEDED
from headway.analysis.suggest.duckdb_numpy_traffic import Traffic

SECOND = 10**9


@pytest.mark.parametrize("rows", [2, 3, 500])
def test_the_most_in_a_window_does_not_depend_on_the_pieces_that_are_read(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window across pieces counts whole, one client's apart from everybody's, and requests not to be limited not at all."""
    monkeypatch.setattr(duckdb_numpy_traffic, "PIECE", rows)
    seen = [("a", 3), ("b", 3), ("a", 1), ("c", 3), ("a", 2), ("b", 4), ("x", 3), ("a", 9), ("a", 3), ("b", 3)]
    columns: dict[str, list[Any]] = {field: [None] * len(seen) for field in NEEDED}
    columns |= {"time": [at * SECOND for _, at in seen], "address": [f"10.0.0.{ord(who)}" for who, _ in seen]}
    columns["path"] = ["/other" if who == "x" else "/" for who, _ in seen]
    traffic = Traffic(tmp_path, lambda method, path: path == "/")
    try:
        traffic.add(Block(columns, len(seen)))
        traffic.given()
        traffic.settle(("address",))
        assert traffic.most_within(2 * SECOND) == 3  # a: 2, 3, 3; b: 3, 3, 4
        assert traffic.most_within(2 * SECOND, together=True) == 6  # 2, then 3 five times
        assert traffic.most_within(1) == 2
        assert traffic.most_within(1, together=True) == 5
    finally:
        traffic.close()
