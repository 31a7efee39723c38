"""PostgreSQL: the conformance suite, the translation beside the core, transactions, roles, outages."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import psycopg
import psycopg_pool
import pytest

from headway import AsyncLimiter, FailureMode, Limit, Limiter, StoreUnavailable, StoreUnusable
from headway.core.charge import Charge
from headway.stores.base import Store
from headway.stores.breaker import Breaker
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.sync import PostgresStore
from headway.testing import StoreConformance, blocking

pytestmark = pytest.mark.xdist_group("postgres")

EVERY = (
    Limit("gcra", "7/min burst 5"),
    Limit("gcra-third", "100/s burst 20"),
    Limit("fixed", "5 per 10s", algorithm="fixed-window"),
    Limit("anchored", "3 per 10s", algorithm="anchored-window", count_refused=True),
    Limit("counters", "7 per 10s", algorithm="sliding-window"),
    Limit("log", "6 per 10s", algorithm="sliding-log"),
    Limit("growing", "2 per 2s", algorithm="growing-wait", longest="20s", forgiven_after="60s"),
    Limit("calendar", "9/day in Asia/Kathmandu"),
    Limit("queue", "5/s burst 3", algorithm="leaky-bucket-queue"),
)


def plain(url: str) -> str:
    """The URL without what is ours in it."""
    return url.partition("?")[0]


def schema_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["schema"][0]


class TestPostgresStore(StoreConformance):
    """The synchronous store keeps the contract, between processes too."""

    shared = True
    grid_ns = 1000

    @pytest.fixture(autouse=True)
    def place(self, url: str) -> None:
        self.url = url

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return PostgresStore(self.url, clock=clock)


class TestAsyncPostgresStore(TestPostgresStore):
    """So does its twin."""

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return blocking(AsyncPostgresStore(self.url, clock=clock))


def test_a_charge_in_the_callers_transaction_is_undone_with_it(url: str) -> None:
    """On a connection that does not commit by itself, a rollback gives the units back and a commit keeps them."""
    PostgresStore(url).init()
    limits = (Limit("orders", "3/hour", by="user"),)
    with psycopg.connect(plain(url)) as connection:
        mine = Limiter(*limits, store=PostgresStore(connection, schema=schema_of(url)))
        assert mine.hit(user="u").remaining == 2
        assert mine.reserve(user="u").decision.remaining == 1
        connection.rollback()
        assert mine.hit(user="u").remaining == 2
        connection.commit()
    assert Limiter(*limits, store=PostgresStore(url)).peek(user="u", cost=0).remaining == 2


def test_a_pool_that_somebody_brings_is_left_as_it_was(url: str) -> None:
    """Connections of a psycopg pool are borrowed for a decision and go back with their own settings."""
    PostgresStore(url).init()
    with psycopg_pool.ConnectionPool(plain(url), min_size=1, max_size=2, open=True) as pool:
        limiter = Limiter(Limit("a", "5/hour"), store=PostgresStore(pool, schema=schema_of(url)))
        assert [limiter.hit().allowed for _ in range(6)] == [True] * 5 + [False]
        with pool.connection() as connection:
            assert not connection.autocommit


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_no_isolation_level_admits_more(level: str, url: str) -> None:
    """Eight transactions at once, of any isolation, never admit more than the budget; one that is too late fails."""
    PostgresStore(url).init()
    limit = Limit("budget", "5 per 365 days", by="id")
    admitted: list[bool] = []

    def work() -> None:
        for _ in range(4):
            try:
                with psycopg.connect(plain(url)) as connection:
                    connection.isolation_level = psycopg.IsolationLevel[level.replace(" ", "_")]
                    connection.execute("SELECT 1")  # the snapshot is taken here
                    store = PostgresStore(connection, schema=schema_of(url))
                    store.breaker = Breaker("one that never opens", failures=10**6)
                    decision = Limiter(limit, store=store).hit(id="x")
                    connection.commit()
                    admitted.append(decision.allowed and not decision.degraded)
            except psycopg.Error:
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= sum(admitted) <= 5
    assert level != "READ COMMITTED" or sum(admitted) == 5


def test_a_url_names_it(url: str) -> None:
    """``Limiter(store="postgresql://…?deadline=…")`` is all that is needed, with and without ``await``."""
    limits = (Limit("a", "2/hour"),)
    with Limiter(*limits, store=url) as limiter:
        assert limiter.hit().remaining == 1

    async def main() -> int | None:
        async with AsyncLimiter(*limits, store=url) as limiter:
            return (await limiter.hit()).remaining

    assert asyncio.run(main()) == 0


def test_everybody_may_be_first(url: str) -> None:
    """Many first users at once put one schema in place."""
    results: list[object] = []

    def work() -> None:
        results.append(Limiter(Limit("a", "100/hour"), store=PostgresStore(url)).hit().allowed)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


def test_a_role_that_may_only_call_is_enough(url: str) -> None:
    """A role with USAGE on the schema decides; it cannot read or write the table, nor make the schema."""
    PostgresStore(url).init()
    role = f"caller_{schema_of(url)}"
    with psycopg.connect(plain(url), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(f"GRANT USAGE ON SCHEMA {schema_of(url)} TO {role}")
    as_role = url.replace("//postgres@", f"//{role}@")
    assert as_role != url
    limiter = Limiter(Limit("a", "2/hour", by="k"), Limit("held", "3 at once", by="k"), store=PostgresStore(as_role))
    assert [limiter.hit(k="x").allowed for _ in range(3)] == [True, True, False]
    with psycopg.connect(plain(as_role)) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f"SELECT * FROM {schema_of(url)}.state")
    elsewhere = as_role.replace(f"schema={schema_of(url)}", "schema=not_there")
    with pytest.raises(StoreUnusable, match="headway store init"):
        PostgresStore(elsewhere).advance([Charge("n", EVERY[0], (), 1)])
    with pytest.raises(StoreUnusable, match="headway store init"):
        PostgresStore(elsewhere, install=False).advance([Charge("n", EVERY[0], (), 1)])


def test_a_newer_schema_is_left_alone(url: str) -> None:
    """A schema of a newer headway is one clear error."""
    PostgresStore(url).init()
    with psycopg.connect(plain(url), autocommit=True) as owner:
        owner.execute(f"UPDATE {schema_of(url)}.version SET number = 99")
    with pytest.raises(StoreUnusable, match="has version 99, of a newer headway"):
        PostgresStore(url).advance([Charge("n", EVERY[0], (), 1)])


@pytest.mark.parametrize("mode", list(FailureMode))
def test_a_server_that_is_away_or_hangs(mode: FailureMode) -> None:
    """A refused and a silent server both cost no more than the deadline; then the limit's own choice decides."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for port in (silent.getsockname()[1], 1):
            store = PostgresStore(f"postgresql://u@127.0.0.1:{port}/db?deadline=50ms")
            limiter = Limiter(Limit("a", "1/hour", on_store_failure=mode), store=store)
            decisions = [limiter.hit() for _ in range(6)]
            assert all(decision.degraded for decision in decisions)
            wanted = {"deny": [False] * 6, "allow": [True] * 6, "local": [True] + [False] * 5}[mode]
            assert [decision.allowed for decision in decisions] == wanted
            assert store.breaker.open


def test_the_event_loop_is_never_blocked_by_a_silent_server() -> None:
    """While a decision waits for its deadline, other tasks go on."""

    async def main() -> int:
        ticks = 0
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/db?deadline=50ms"
            limiter = AsyncLimiter(Limit("a", "1/hour"), store=url)
            task = asyncio.create_task(limiter.hit())
            while not task.done():
                ticks += 1
                await asyncio.sleep(0)
            assert (await task).degraded
        return ticks

    assert asyncio.run(main()) > 10


def test_recovered_keys_are_forgotten(url: str) -> None:
    """Keys that owe nothing any more go, a batch at a time, while decisions come."""
    now = [1_800_000_000 * 10**9]
    store = PostgresStore(url, clock=lambda: now[0])
    limiter = Limiter(Limit("a", "1/s", by="k"), store=store)
    for number in range(130):
        limiter.hit(k=f"old-{number}")
    now[0] += 60 * 10**9
    for number in range(130):
        limiter.hit(k=f"new-{number}")
    with psycopg.connect(plain(url)) as connection:
        old = connection.execute(
            f"SELECT count(*) FROM {schema_of(url)}.state WHERE expires < %s", (now[0],)
        ).fetchone()
    assert old == (0,)


def test_a_pickled_store_connects_for_itself(url: str) -> None:
    """A copy, as another process would make it, works on the same state."""
    limits = (Limit("a", "2/hour"),)
    first = PostgresStore(url)
    assert Limiter(*limits, store=first).hit().allowed
    assert Limiter(*limits, store=pickle.loads(pickle.dumps(first))).hit().remaining == 0
    with pytest.raises(StoreUnavailable):
        PostgresStore("postgresql://u@127.0.0.1:1/db").advance([Charge("n", EVERY[0], (), 1)])
