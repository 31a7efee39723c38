"""What the surroundings tell of worker processes."""

from __future__ import annotations

import pytest

from headway.stores.workers import each_by_itself


@pytest.mark.parametrize("told", ["2", "4", "16"])
def test_the_factor_is_said(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable, the number of workers, and what the limit becomes."""
    monkeypatch.setenv("WEB_CONCURRENCY", told)
    said = each_by_itself()
    assert said is not None
    assert f"WEB_CONCURRENCY is {told}" in said
    assert f"up to {told} times each limit" in said


@pytest.mark.parametrize("told", [None, "", "0", "1", "auto", "-3", "2.5", " ", "²", "9" * 5000])
def test_one_worker_or_no_number_is_nothing_to_say(told: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not set, one, or nonsense: no sentence and no error."""
    if told is None:
        monkeypatch.delenv("WEB_CONCURRENCY", raising=False)
    else:
        monkeypatch.setenv("WEB_CONCURRENCY", told)
    assert each_by_itself() is None
