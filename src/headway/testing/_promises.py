"""What the conformance suite's tests are made of: how a store is opened, and how its answers are compared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.lease import Lease, Receipt
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Admitted, Outcome, Refused
from headway.stores.base import Answer, Store
from headway.testing.clock import ManualClock

__all__ = ["DAY", "SECOND", "Promises", "agree", "expect", "hit", "receipt", "run_threads", "wait_of"]

SECOND: Final = 1_000_000_000
DAY: Final = 86_400 * SECOND
KEYS: Final = ("k", "a", "b", "c", "other")


class Promises:
    """See ``StoreConformance``, which documents what a store's author sets."""

    limits: ClassVar[Sequence[Limit]] = (
        Limit("gcra", "5 per 10s", by="id"),
        Limit("gcra-burst", "100/s burst 20", by="id"),
        Limit("gcra-third", "3/s", by="id"),
        Limit("gcra-eleven", "11/day", by="id"),
        Limit("gcra-fast", "3000000/s burst 7", by="id"),
        Limit("gcra-slow", "1 per 365 days", by="id"),
        Limit("queue", "1/s burst 5", by="id", algorithm="leaky-bucket-queue", undelayed=2),
        Limit("interval", "1 per 2s", by="id", algorithm="minimum-interval"),
        Limit("aligned", "5 per 10s", by="id", algorithm="fixed-window"),
        Limit("anchored", "5 per 10s", by="id", algorithm="anchored-window"),
        Limit("counted", "3 per 10s", by="id", algorithm="anchored-window", count_refused=True),
        Limit("log", "5 per 10s", by="id", algorithm="sliding-log"),
        Limit("counters", "5 per 10s", by="id", algorithm="sliding-window"),
        Limit("calendar", "5/day in Europe/Berlin", by="id"),
        Limit("slots", "5 at once for 10 s", by="id"),
        Limit("growing", "1 per 2s burst 3", by="id", algorithm="growing-wait", longest="16s", forgiven_after="60s"),
        Limit("watched", "2 per 10s", by="id", shadow=True),
        Limit("blocked", "0/s", by="id"),
    )
    grid_ns: ClassVar[int] = 1
    shared: ClassVar[bool] = False

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        """A store on this test's state.

        Args:
            clock: ns since 1970, to decide by; None: the store's own clock (only asked for when ``shared``).
        """
        raise NotImplementedError(
            f"{type(self).__name__} has to say how its store is opened: def open_store(self, clock)"
        )

    @contextmanager
    def _opened(self) -> Iterator[tuple[Store, ManualClock]]:
        clock = ManualClock()
        store = self.open_store(clock)
        try:
            store.reset([Charge("n", limit, key, 0) for limit in self._used() for key in KEYS])
            yield store, clock
        finally:
            store.close()

    def _used(self) -> list[Limit]:
        names = ("l", "other")
        more = [Limit(name, "1/s", by="id", algorithm=each) for name in names for each in self._algorithms()]
        return [*self.limits, *more]

    def _algorithms(self) -> list[str]:
        """Those of the limits that a quota such as "1/s" can have."""
        special = {Algorithm.CALENDAR_WINDOW, Algorithm.CONCURRENCY, Algorithm.GROWING_WAIT}
        stored = {limit.algorithm.stored for limit in self.limits if limit.algorithm not in special}
        return sorted({"gcra", *stored})

    def _same(self, got: Outcome, exact: Outcome, where: str) -> None:
        agree(type(got).__name__, type(exact).__name__, where)
        for name in exact.__slots__:
            told, right = getattr(got, name), getattr(exact, name)
            if self.grid_ns > 1 and name.endswith("_after"):
                expect(right <= told < right + self.grid_ns, f"{where}: {name} is {told}, expected {right} rounded up")
            else:
                agree(told, right, f"{where}: {name}")


def hit(store: Store, limit: Limit, key: Key = "k", cost: int = 1, lease: Lease | None = None) -> Answer:
    """One charge in the namespace of all these tests."""
    return store.advance([Charge("n", limit, key, cost, lease)])


def wait_of(answer: Answer) -> int:
    """The wait of an answer that has to be a refusal."""
    outcome = answer.outcomes[0]
    expect(isinstance(outcome, Refused), f"expected a refusal, not {outcome}")
    wait: int = getattr(outcome, "retry_after")  # noqa: B009  # just checked
    return wait


def receipt(answer: Answer, index: int = 0, lease: Lease | None = None) -> Receipt:
    """What is kept of a charge that has to have been admitted."""
    outcome = answer.outcomes[index]
    if not isinstance(outcome, Admitted):
        raise AssertionError(f"expected to be admitted, not {outcome}")
    return Receipt(answer.now, answer.costs[index], lease.token if lease else 0, outcome)


def run_threads(work: Sequence[Callable[[], None]]) -> None:
    """All at once; the first error of any of them is raised here."""
    errors: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:  # told in the thread that runs the test
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def expect(fact: object, promise: str) -> None:
    """Fail, naming the promise, unless the fact holds."""
    if not fact:
        raise AssertionError(f"not so: {promise}")


def agree(got: object, expected: object, what: str) -> None:
    """Fail, showing both, unless they are equal."""
    if got != expected:
        raise AssertionError(f"{what}: got {got!r}, expected {expected!r}")
