"""Retrying: recorded refusals through urllib3, httpx-retries, tenacity, stamina and headway, and what reading one costs.

Run: ``uv run --group bench python -m benchmarks client``. Every library decides about every recorded refusal, with its
clock standing at the moment the response arrived. Prints a table and never fails.

tenacity and stamina bring no reading of their own: the rule is the one that users write, 429 and 503 with
``float(Retry-After)``. All are set to retry any method, with back-off, where no wait is stated.
"""

from __future__ import annotations

import datetime
import logging
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.client.corpus import Case, cases

from headway.client.attempt import Outgoing
from headway.client.reading import read
from headway.client.retry import Retry, Wait

Rule = Callable[[Case], float | None]
"""The wait in seconds before another attempt; None for no other attempt."""

STATUSES = frozenset([413, 429, 502, 503, 504])
OUTCOMES = (
    "waits as told",
    "too early",
    "missed",
    "retried what waiting can't fix",
    "crashed",
    "backs off, nothing told",
    "not seen as a limit",
    "stops, rightly",
)
REPEATS = 200


def with_urllib3(case: Case) -> float | None:
    """``urllib3.Retry`` with back-off and the usual statuses."""
    import urllib3
    from urllib3.util import retry as module

    response = urllib3.HTTPResponse(headers=urllib3.HTTPHeaderDict(case.headers), status=case.status)
    rule = urllib3.Retry(10, status_forcelist=STATUSES, allowed_methods=None, backoff_factor=1)
    if not rule.is_retry("GET", case.status, "Retry-After" in response.headers):
        return None
    with mock.patch.object(module, "time", SimpleNamespace(time=case.received_at.timestamp)):
        told = rule.increment("GET", "/", response=response).get_retry_after(response)
    return told or 1.0


def with_httpx_retries(case: Case) -> float | None:
    """``httpx_retries.Retry`` with its defaults and the usual statuses."""
    import httpx
    import httpx_retries
    from httpx_retries import retry as module

    class Standing(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return case.received_at.astimezone(tz)

    rule = httpx_retries.Retry(10, allowed_methods=["GET"], status_forcelist=list(STATUSES), backoff_factor=1)
    if not rule.is_retryable_status_code(case.status):
        return None
    with mock.patch.object(module, "datetime", SimpleNamespace(datetime=Standing, timezone=datetime.timezone)):
        return rule.increment()._calculate_sleep(httpx.Headers(case.headers))


class Refused(Exception):
    """What a user's own code raises for a bad status."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.id)
        self.case = case

    def told(self) -> float | None:
        """``float(Retry-After)``, as the examples have it."""
        value = next((value for name, value in self.case.headers if name.lower() == "retry-after"), None)
        return None if value is None else float(value)


def with_tenacity(case: Case) -> float | None:
    """``tenacity.Retrying`` with the rule of its examples."""
    import tenacity

    waits: list[float] = []

    def wait(state: tenacity.RetryCallState) -> float:
        assert state.outcome is not None
        error = state.outcome.exception()
        assert isinstance(error, Refused)
        told = error.told()
        return tenacity.wait_exponential()(state) if told is None else told

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: error.case.status in (429, 503)),  # type: ignore[attr-defined]
        wait=wait,
        stop=tenacity.stop_after_attempt(2),
        sleep=waits.append,
        reraise=True,
    )
    try:
        retrying(_raise, case)
    except Refused:
        return waits[0] if waits else None
    return None


def with_stamina(case: Case) -> float | None:
    """``stamina.retry`` with a hook that returns the told wait."""
    import stamina
    from stamina.instrumentation import RetryDetails, set_on_retry_hooks

    waits: list[float] = []

    def note(details: RetryDetails) -> None:
        waits.append(details.wait_for)
        raise InterruptedError  # nothing is slept

    def rule(error: Exception) -> bool | float:
        assert isinstance(error, Refused)
        told = error.told() if error.case.status in (429, 503) else None
        return error.case.status in (429, 503) if told is None else told

    set_on_retry_hooks([note])
    try:
        stamina.retry(on=rule, attempts=2)(_raise)(case)
    except (Refused, InterruptedError):
        return waits[0] if waits else None
    finally:
        set_on_retry_hooks(None)
    return None


def with_headway(case: Case) -> float | None:
    """``headway.client.Retry`` with a deadline that all stated waits fit."""
    rejection = read(case.status, case.headers, case.body, received_at=case.received_at)
    if rejection is None:
        return None
    step = Retry(deadline=1e11, attempts=99).after_refusal(Outgoing(), case.status, rejection, [], 1e11, 0.5)
    return step.seconds if isinstance(step, Wait) else None


RULES: dict[str, Rule] = {
    "urllib3": with_urllib3,
    "httpx-retries": with_httpx_retries,
    "tenacity": with_tenacity,
    "stamina": with_stamina,
    "headway": with_headway,
}


def outcome(rule: Rule, case: Case) -> str:
    """What a rule makes of a recorded refusal, by the right reading of it."""
    kind, told = case.expected["kind"], case.expected["retry_after_s"]
    final = kind in ("forbidden", "misconfigured") or (kind == "quota_exhausted" and told is None)
    try:
        wait = rule(case)
    except Exception:  # whatever it is, the caller of a retrying client did not ask for it
        return "crashed"
    if final:
        return "stops, rightly" if wait is None else "retried what waiting can't fix"
    if told is None:
        return "not seen as a limit" if wait is None else "backs off, nothing told"
    if wait is None:
        return "missed"
    return "waits as told" if wait >= told and wait > 0 else "too early"


def compare(corpus: str) -> dict[str, Counter[str]]:
    """The outcomes of every rule over a corpus, printed as a table."""
    recorded = [case for case in cases(corpus) if case.expected["kind"]]
    counts = {name: Counter(outcome(rule, case) for case in recorded) for name, rule in RULES.items()}
    print(f"\n{corpus}: {len(recorded)} recorded refusals\n{'':34}" + "".join(f"{name:>15}" for name in RULES))
    for what in OUTCOMES:
        print(f"{what:34}" + "".join(f"{counts[name][what]:15}" for name in RULES))
    return counts


def reading() -> tuple[float, float]:
    """Microseconds to read one response: the median over all recorded ones, and the slowest."""
    times = []
    for case in cases():
        best = min(_timed(case) for _ in range(REPEATS))
        times.append(best / 1_000)
    typical, worst = statistics.median(times), max(times)
    print(f"\nreading one of {len(times)} responses: typical {typical:.0f} µs, slowest {worst:.0f} µs")
    return typical, worst


def _timed(case: Case) -> int:
    start = time.perf_counter_ns()
    read(case.status, case.headers, case.body, received_at=case.received_at)
    return time.perf_counter_ns() - start


def _raise(case: Case) -> None:
    raise Refused(case)


def main(arguments: list[str] | None = None) -> None:
    """Both corpora, then the cost of reading."""
    del arguments
    logging.disable(logging.WARNING)
    try:
        for corpus in ("rejections", "header_edges"):
            compare(corpus)
        reading()
    finally:
        logging.disable(logging.NOTSET)


if __name__ == "__main__":
    main(sys.argv[1:])
