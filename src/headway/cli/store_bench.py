"""What ``headway store bench`` measures: one decision after the other, for a bounded time, on keys of its own."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Sequence
from typing import Final

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import StoreUnavailable
from headway.limiter.limiter import Limiter
from headway.stores.base import Store

__all__ = ["look", "measure", "remembers", "table"]

_KEYS: Final = 64
_PLENTY: Final = "1 per 10s burst 100000000"
_SPENT: Final = "1 per hour"

Row = dict[str, object]


def look(store: Store) -> int:
    """Ask a store something that changes nothing; its clock, ns since 1970.

    Raises:
        StoreError: it does not answer.
    """
    return store.clears_after(Charge("headway-look", Limit("look", _SPENT), (), 1))[1]


def measure(store: Store, seconds: float) -> list[Row]:
    """Decide for about so many seconds in all; one row a case.

    Raises:
        StoreError: the store does not answer.
    """
    look(store)
    namespace = f"headway-bench-{secrets.token_hex(8)}"
    rows = []
    for quota, what in ((_PLENTY, "admitted"), (_SPENT, "refused")):
        for count in (1, 4):
            limits = [Limit(f"{what}-{count}-{number}", quota, by="key") for number in range(count)]
            try:
                times = _times(Limiter(*limits, store=store, namespace=namespace), seconds / 4, what == "admitted")
            finally:
                store.reset([Charge(namespace, limit, f"k{key}", 0) for limit in limits for key in range(_KEYS)])
            rows.append(_row(what, count, times))
    return rows


def _times(limiter: Limiter, seconds: float, admitted: bool) -> list[int]:
    """The ns of each decision."""
    keys = [f"k{number}" for number in range(_KEYS)]
    for key in keys:
        _agreed(limiter, key)
    times: list[int] = []
    clock = time.perf_counter_ns
    end = clock() + round(seconds * 1e9)
    while True:
        for key in keys:
            begin = clock()
            decision = limiter.hit(key=key)
            done = clock()
            times.append(done - begin)
            if decision.allowed is not admitted:
                raise StoreUnavailable(
                    decision.degraded or f"a decision was not {(admitted and 'admitted') or 'refused'}"
                )
            if done >= end:
                return times


def _agreed(limiter: Limiter, key: str) -> None:
    """The first hit of a key, which is admitted."""
    decision = limiter.hit(key=key)
    if not decision.allowed:
        raise StoreUnavailable(decision.degraded or "a first decision was refused")


def _row(what: str, limits: int, times: Sequence[int]) -> Row:
    ordered = sorted(times)
    return {
        "case": what,
        "limits": limits,
        "decisions": len(times),
        "per_second": round(1e9 / statistics.fmean(times)),
        "p50_us": round(ordered[len(ordered) // 2] / 1e3, 1),
        "p99_us": round(ordered[len(ordered) * 99 // 100] / 1e3, 1),
    }


def remembers(store: Store) -> bool:
    """Whether a refused key is answered in this process for a while, without asking the server."""
    return bool(getattr(store, "refusal_cache", 0))


def table(store: str, rows: Sequence[Row], *, remembered: bool = False) -> str:
    """The rows for a person; ``remembered`` as ``remembers`` says."""
    lines = [store, f"{'':22}{'decisions/s':>12}{'p50':>12}{'p99':>12}"]
    for row in rows:
        limits = "1 limit" if row["limits"] == 1 else f"{row['limits']} limits"
        lines.append(
            f"{limits + ', ' + str(row['case']):22}{row['per_second']:>12,}{str(row['p50_us']) + ' us':>12}"
            f"{str(row['p99_us']) + ' us':>12}"
        )
    if remembered:
        lines.append("A refused key is answered in the process while refusal_cache lasts.")
    return "\n".join(lines)
