"""A PostgreSQL that is killed, frozen, slow or cut off: the budget holds, nobody hangs, nothing is left half applied."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from headway import AsyncLimiter, FailureMode, Limit, Limiter, StoreUnavailable
from headway.core.charge import Charge
from headway.stores.postgres.sync import PostgresStore
from servers import Proxy, proxy
from stores.postgres.server import PostgresServer, postgres_server

pytestmark = pytest.mark.xdist_group("postgres")

PAIR = (Limit("budget", "600 per 365 days", by="id"), Limit("beside", "100000 per 365 days", by="id"))
PATIENCE_S = 5.0
"""What a call may take beyond its deadline on a machine that has other things to do."""


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that these tests may kill."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def before(mortal: PostgresServer) -> Iterator[Proxy]:
    """A proxy before it."""
    with proxy(mortal.port) as made:
        yield made


def through(made: Proxy, schema: str, options: str = "deadline=200ms") -> str:
    return f"postgresql://postgres@127.0.0.1:{made.port}/postgres?schema={schema}&{options}"


class Load:
    """Threads that hit one key until they are told to stop; what they were told, and the longest call."""

    def __init__(self, url: str, threads: int = 6) -> None:
        self.url = url
        self.over = threading.Event()
        self.remaining: list[int] = []
        self.refused = 0
        self.degraded = 0
        self.longest = 0.0
        self.errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        try:
            limiter = Limiter(*PAIR, store=PostgresStore(self.url))
            while not self.over.is_set():
                begin = time.monotonic()
                decision = limiter.hit(id="k")
                took = time.monotonic() - begin
                with self._lock:
                    self.longest = max(self.longest, took)
                    if decision.degraded:
                        self.degraded += 1
                    elif decision.allowed:
                        self.remaining.append(decision.outcomes["budget"].remaining)
                    else:
                        self.refused += 1
                time.sleep(0.001 if not decision.degraded else 0.01)
        except BaseException as error:
            self.errors.append(error)

    def until(self, what: str, count: int, since: int | None = None) -> None:
        """Wait until so many more were told that, than now or than ``since``."""
        begin = self.told(what) if since is None else since
        limit = time.monotonic() + 30
        while self.told(what) < begin + count:
            assert time.monotonic() < limit, f"{what}: {self.told(what)}; {self.errors}"
            time.sleep(0.005)

    def told(self, what: str) -> int:
        return {"admitted": len(self.remaining), "refused": self.refused, "degraded": self.degraded}[what]

    def stop(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(30)
        assert self.errors == []


def half_applied(url: str) -> tuple[int, int]:
    """What is used of both limits, which every decision charges alike."""
    outcomes = PostgresStore(url).advance([Charge("default", limit, "k", 0) for limit in PAIR]).outcomes
    return 600 - outcomes[0].remaining, 100_000 - outcomes[1].remaining


@pytest.mark.parametrize("fault", ["kill", "freeze", "cut", "drop", "delay", "drip"])
def test_the_budget_holds_through(fault: str, mortal: PostgresServer, before: Proxy, schema: str) -> None:
    """A fault in mid-load: no remaining is told twice, no call hangs, both limits are charged alike, and it goes on after.

    What the server has acknowledged it does not lose, so nothing is admitted beyond the budget; what it decided without
    being able to say so stays charged.
    """
    sure = f"{mortal.url}?schema={schema}&deadline=30s"
    PostgresStore(sure).init()
    load = Load(through(before, schema))
    try:
        load.until("admitted", 20)
        if fault == "kill":
            mortal.kill()
            load.until("degraded", 10)
            admitted = load.told("admitted")
            mortal.start()
        elif fault == "freeze":
            mortal.pause()
            load.over.wait(3)  # frozen for so long
            admitted = load.told("admitted")
            mortal.resume()
        else:
            before.mode = fault
            load.until("degraded", 10)
            admitted = load.told("admitted")
            before.mode = "pass"
        load.until("admitted", 20, admitted)
        load.until("refused", 5)
    finally:
        mortal.resume()
        load.stop()
    assert load.degraded > 0
    assert load.longest < 0.2 + PATIENCE_S
    assert len(set(load.remaining)) == len(load.remaining) <= 600
    budget, beside = half_applied(sure)
    assert budget == beside == 600


def test_a_restart_between_two_calls_is_not_noticed(mortal: PostgresServer, schema: str) -> None:
    """Connections that the server has closed meanwhile are replaced before they are used: nothing is degraded or lost."""
    url = f"{mortal.url}?schema={schema}&deadline=30s"
    limit = Limit("l", "100 per 365 days", by="id")
    limiter = Limiter(limit, store=url)
    threads = [threading.Thread(target=limiter.hit, kwargs={"id": "x"}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def main() -> None:
        async with AsyncLimiter(limit, store=url) as later:
            assert all(decision.allowed for decision in await asyncio.gather(*[later.hit(id="x") for _ in range(4)]))
            mortal.kill()
            mortal.start()
            assert [limiter.hit(id="x").degraded for _ in range(10)] == [None] * 10
            assert [(await later.hit(id="x")).degraded for _ in range(5)] == [None] * 5
            assert (await later.peek(id="x", cost=0)).remaining == 100 - 8 - 4 - 15

    asyncio.run(main())
    limiter.close()


def test_an_unlogged_table_begins_anew_after_a_crash(mortal: PostgresServer, schema: str) -> None:
    """What ``unlogged`` gives up: after a crash every limit is as if unused, and is kept again from then on."""
    with Limiter(
        Limit("l", "5 per 365 days"), store=f"{mortal.url}?schema={schema}&deadline=30s&unlogged=true"
    ) as limiter:
        assert [limiter.hit().remaining for _ in range(3)] == [4, 3, 2]
        mortal.kill()
        mortal.start()
        assert [limiter.hit().remaining for _ in range(3)] == [4, 3, 2]


def test_a_dead_server_costs_microseconds(mortal: PostgresServer, before: Proxy, schema: str) -> None:
    """After three calls that took their deadline the breaker is open: thousands of calls take less than one deadline each."""
    url = through(before, schema, "deadline=300ms")
    PostgresStore(f"{mortal.url}?schema={schema}&deadline=30s").init()
    store = PostgresStore(url)
    limiter = Limiter(Limit("l", "5/hour", on_store_failure="allow"), store=store)
    before.mode = "drop"
    while not store.breaker.open:
        assert limiter.hit().degraded
    begin = time.perf_counter()
    for _ in range(2000):
        assert limiter.hit().degraded
    assert time.perf_counter() - begin < 2 * 0.3 + PATIENCE_S  # a call a second is let through
    assert store.breaker.skipped_count >= 1990


@pytest.mark.parametrize("mode", list(FailureMode))
def test_an_outage_is_told_and_ends(
    mode: FailureMode, mortal: PostgresServer, before: Proxy, schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Degraded with the reason, one log line an outage, counters; then the shared state rules again, uncharged meanwhile."""
    PostgresStore(f"{mortal.url}?schema={schema}&deadline=30s").init()
    store = PostgresStore(through(before, schema, "deadline=10s&share=1/4"))
    store.breaker._pause = 0.05
    limiter = Limiter(Limit("l", "8 per 365 days", on_store_failure=mode), store=store)
    with caplog.at_level(logging.INFO, "headway.stores"):
        assert limiter.hit().remaining == 7
        for outage in (1, 2):
            before.mode = "cut"
            decisions = [limiter.hit() for _ in range(7)]
            assert all(decision.degraded and "127.0.0.1" in decision.degraded for decision in decisions)
            fresh = 2 if outage == 1 else 0
            wanted = {"deny": [False] * 7, "allow": [True] * 7, "local": [True] * fresh + [False] * (7 - fresh)}[mode]
            assert [decision.allowed for decision in decisions] == wanted
            assert store.breaker.outages == outage
            before.mode = "pass"
            limit = time.monotonic() + 20
            while (decision := limiter.peek(cost=0)).degraded:
                assert time.monotonic() < limit
                time.sleep(0.02)
            assert decision.remaining is not None
            assert 7 - 3 * outage <= decision.remaining <= 7  # what was decided while the answer was cut off
        away = [record for record in caplog.records if record.levelname == "WARNING"]
        assert [record.name for record in away] == ["headway.stores"] * 2
        assert len([record for record in caplog.records if record.levelname == "INFO"]) == 2


def test_a_refusal_is_no_outage(mortal: PostgresServer, schema: str) -> None:
    """Ordinary refusals never reach the fallback, and never count as failures."""
    store = PostgresStore(f"{mortal.url}?schema={schema}&deadline=30s")
    limiter = Limiter(Limit("l", "1 per 365 days", on_store_failure="allow"), store=store)
    decisions = [limiter.hit() for _ in range(20)]
    assert [decision.allowed for decision in decisions] == [True] + [False] * 19
    assert not any(decision.degraded for decision in decisions)
    assert store.breaker.failed_count == 0


def test_a_database_that_is_made_anew_gets_its_schema_again(mortal: PostgresServer, schema: str) -> None:
    """Where the schema is dropped under a running process, a failed call later it is put in place again."""
    import psycopg

    store = PostgresStore(f"{mortal.url}?schema={schema}&deadline=30s")
    limiter = Limiter(Limit("l", "5 per 365 days"), store=store)
    assert limiter.hit().remaining == 4
    with psycopg.connect(mortal.url, autocommit=True) as owner:
        owner.execute(f"DROP SCHEMA {schema} CASCADE")
    assert [limiter.hit().degraded is None for _ in range(2)] == [False, True]
    assert limiter.peek(cost=0).remaining == 4


def test_tasks_are_told_in_time_and_others_go_on(mortal: PostgresServer, before: Proxy, schema: str) -> None:
    """On asyncio a frozen server holds up nobody else; a task that is cancelled meanwhile leaves at once."""
    PostgresStore(f"{mortal.url}?schema={schema}&deadline=30s").init()

    async def main() -> None:
        limit = Limit("l", "9 per 365 days", by="id")
        limiter = AsyncLimiter(limit, store=through(before, schema, "deadline=500ms"))
        patient = AsyncLimiter(limit, store=through(before, schema, "deadline=30s"))
        assert (await patient.hit(id="x")).remaining == 8
        before.mode = "drop"
        ticks = 0
        task = asyncio.create_task(limiter.hit(id="x"))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0)
        assert (await task).degraded
        assert ticks > 10
        begin = time.monotonic()
        task = asyncio.create_task(patient.hit(id="x"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begin < PATIENCE_S
        before.mode = "pass"
        await limiter.close()
        await patient.close()

    asyncio.run(main())


def test_a_cancelled_task_gets_its_units_back(mortal: PostgresServer, schema: str) -> None:
    """Fifty tasks that are cancelled at any moment: in the end no unit is missing and none was given twice."""
    limit = Limit("l", "50 per 365 days", by="id")
    url = f"{mortal.url}?schema={schema}&deadline=30s"
    PostgresStore(url).init()

    async def main() -> int:
        limiter = AsyncLimiter(limit, store=url)
        told = 0
        for turn in range(50):
            task = asyncio.create_task(limiter.hit(id="x"))
            for _ in range(turn % 10):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                told += (await task).allowed
        for _ in range(500):
            remaining = (await limiter.peek(id="x", cost=0)).remaining
            if remaining == 50 - told:
                break
            await asyncio.sleep(0.02)
        await limiter.close()
        assert remaining == 50 - told
        return told

    assert asyncio.run(main()) < 50


def test_nobody_there_is_said_at_once() -> None:
    """A port where nobody listens is a store error that names the place and no password."""
    store = PostgresStore("postgresql://u:secret@127.0.0.1:1/db")
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL postgresql://127\.0\.0\.1:1/db: .*refused") as said:
        store.advance([Charge("n", PAIR[0], "x", 1)])
    assert "secret" not in str(said.value)
