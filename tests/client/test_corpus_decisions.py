"""What is done about every recorded refusal: as the benchmark counts it, with zeros where it matters."""

from __future__ import annotations

import pytest

from benchmarks.client import outcome, with_headway
from tests.client.corpus import Case, cases

GOOD = {"waits as told", "backs off, nothing told", "stops, rightly"}


@pytest.mark.parametrize("case", [case for case in cases() if case.expected["kind"]], ids=lambda case: case.id)
def test_every_recorded_refusal_is_handled_rightly(case: Case) -> None:
    """Never early, never missed, never in vain, never a crash."""
    assert outcome(with_headway, case) in GOOD
