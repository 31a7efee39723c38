"""Clocks that no calendar and no database holds: a decision is still a decision, and what is told of it is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway import Limit, Limiter
from headway.testing import StoreConformance
from headway.testing.clock import ManualClock
from ways import STORES

YEAR_10000 = 253_402_300_800 * 10**9


@pytest.mark.parametrize("now", [2**70, -(2**70), 2**63, 2**63 - 1, -(2**63), YEAR_10000, YEAR_10000 - 1, -1, 0])
@pytest.mark.parametrize("store", STORES)
def test_every_algorithm_decides_at_any_instant(store: str, now: int, tmp_path: Path) -> None:
    """No error and no degraded answer from hits, looks, reservations, headers, problems, sentences and explanations."""
    clock = ManualClock()
    clock.now = now
    opened = STORES[store](clock, tmp_path)
    for limit in StoreConformance.limits:
        limiter = Limiter(limit, store=opened)
        admitted = 0
        for _ in range(limit.quota.burst + 1):
            decision = limiter.hit(id="k")
            assert decision.degraded is None
            admitted += decision.allowed
            assert decision.headers() or limit.shadow
            assert decision.sentence()
            assert json.dumps(decision.to_dict())
            assert decision.allowed or decision.problem()
            assert decision.decided_at.tzinfo is UTC
        assert str(limiter.explain(id="k"))
        assert admitted == limit.quota.burst + limit.shadow
        limiter.reset(id="k")
        reservation = limiter.reserve(id="k")
        assert reservation.commit(0) is reservation.allowed
    opened.close()


def test_a_moment_that_no_date_holds_is_told_as_none(clock: ManualClock) -> None:
    """``retry_at`` is None, ``decided_at`` the nearest date, and the wait itself is exact."""
    limiter = Limiter(Limit("l", "1/s"), store=STORES["memory"](clock, Path()))
    clock.now = YEAR_10000 - 500_000_000
    limiter.hit()
    refused = limiter.hit()
    assert refused.retry_after == 1.0
    assert refused.retry_at is None
    assert refused.decided_at == datetime(9999, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    assert "a time after the year 9999" in str(limiter.explain())
    clock.now = 2**70
    assert limiter.hit().decided_at == datetime.max.replace(tzinfo=UTC)
    clock.now = -(2**70)
    assert limiter.hit().decided_at == datetime.min.replace(tzinfo=UTC)
