"""The pages that are made of the lint's rules and of the recorded refusals."""

from __future__ import annotations

import functools
import runpy
from pathlib import Path
from typing import Any

import pytest

from headway.analysis.lint.rules import rules

ROOT = Path(__file__).parents[2]


@functools.cache
def _generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs/generate_lint.py"))


@pytest.mark.parametrize("name", ["lint-rules.md", "lint-scores.md"])
def test_generated_lint_pages_are_up_to_date(name: str) -> None:
    """They say what rules and records say; `uv run python docs/generate_lint.py` writes them anew."""
    written = (ROOT / "docs/reference" / name).read_text("utf-8")
    assert written == _generator()["generated"]()[name], "run: uv run python docs/generate_lint.py"


def test_every_recorded_refusal_is_scored() -> None:
    """All 97 have a row of their own, and every rule a heading and its fixes."""
    scores = (ROOT / "docs/reference/lint-scores.md").read_text("utf-8")
    assert scores.split("## Each of them")[1].count("\n| ") == 98  # and the head of the table
    page = (ROOT / "docs/reference/lint-rules.md").read_text("utf-8")
    assert all(f"### `{name}`\n" in page and f"### Fix: {rule.topic}\n" in page for name, rule in rules().items())
