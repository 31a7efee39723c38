"""What is done about every recorded refusal: as the benchmark counts it, with zeros where it matters."""

from __future__ import annotations

import pytest
from benchmarks.client import outcome, with_headway
from tests.client.corpus import Case, cases

from headway.client import read

GOOD = {"waits as told", "backs off, nothing told", "stops, rightly"}


@pytest.mark.parametrize("case", [case for case in cases() if case.expected["kind"]], ids=lambda case: case.id)
def test_every_recorded_refusal_is_handled_rightly(case: Case) -> None:
    """Never early, never missed, never in vain, never a crash; where the server forbids a retry there is none."""
    rejection = read(case.status, case.headers, case.body, received_at=case.received_at)
    assert rejection is not None
    if rejection.no_retry:
        assert with_headway(case) is None
    else:
        assert outcome(with_headway, case) in GOOD
