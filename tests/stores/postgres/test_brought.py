"""Connections and pools that somebody brings: whatever they are set to, decided alike; their transactions stay usable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import psycopg_pool
import pytest
from psycopg.rows import class_row, dict_row, scalar_row

from headway import AsyncLimiter, Limit, Limiter
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.sync import PostgresStore
from stores.postgres.server import PostgresServer, postgres_server

pytestmark = pytest.mark.xdist_group("postgres")

LIMITS = (
    Limit("gcra", "5 per 365 days", by="id"),
    Limit("log", "9 per 365 days", by="id", algorithm="sliding-log"),
    Limit("day", "9/day in Asia/Kathmandu", by="id"),
)
QUICK = 5.0
"""Seconds that are no hang, on a machine that has other things to do."""


@pytest.fixture
def place(url: str) -> str:
    """The server's URL for psycopg."""
    return url.partition("?")[0]


def eventually(wanted: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not wanted():
        assert time.monotonic() < until
        time.sleep(0.05)


def decided(limiter: Limiter) -> None:
    """One of each kind of call."""
    decision = limiter.hit(id="x", cost=2)
    assert (decision.degraded, decision.remaining) == (None, 3)
    assert limiter.refund(decision)
    reservation = limiter.reserve(id="x", cost=3)
    assert reservation.commit(4)
    assert [limiter.hit(id="x").allowed for _ in range(2)] == [True, False]
    assert limiter.peek(id="x", cost=0).remaining == 0
    limiter.change_quota("gcra", "10 per 365 days", keep="proportional")
    limiter.change_quota("gcra", "5 per 365 days", keep="reset")
    limiter.reset(id="x")


MADE: dict[str, dict[str, Any]] = {
    "dictionaries": {"row_factory": dict_row},
    "single values": {"row_factory": scalar_row},
    "objects": {"row_factory": class_row(dict)},
    "client's cursors": {"cursor_factory": psycopg.ClientCursor},
    "raw cursors": {"cursor_factory": psycopg.RawCursor},
    "prepared at once": {"prepare_threshold": 0},
    "never prepared": {"prepare_threshold": None},
    "latin": {"client_encoding": "latin1"},
    "old strings": {"options": "-c standard_conforming_strings=off -c bytea_output=escape -c search_path="},
    "odd settings": {"options": "-c TimeZone=Asia/Kathmandu -c DateStyle=German -c array_nulls=off -c IntervalStyle=iso_8601"},
    "odd plans": {"options": "-c plan_cache_mode=force_generic_plan -c transform_null_equals=on -c row_security=off"},
}  # fmt: skip


@pytest.mark.parametrize("own", [True, False], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("made", MADE)
def test_no_factory_or_setting_of_a_connection_matters(made: str, own: bool, place: str, schema: str) -> None:
    """Rows of any kind, cursors of any kind, encodings, time-outs in other units: the same decisions."""
    with psycopg.connect(place, autocommit=own, **MADE[made]) as connection:
        decided(Limiter(*LIMITS, store=PostgresStore(connection, schema=schema)))


@pytest.mark.parametrize("made", [name for name in MADE if "cursors" not in name])
def test_nor_does_one_of_an_asynchronous_one(made: str, place: str, schema: str) -> None:
    """The same with ``await``."""

    async def main() -> None:
        for own in (True, False):
            async with await psycopg.AsyncConnection.connect(place, autocommit=own, **MADE[made]) as connection:
                limiter = AsyncLimiter(*LIMITS, store=AsyncPostgresStore(connection, schema=schema))
                decision = await limiter.hit(id="x", cost=2)
                assert (decision.degraded, decision.remaining) == (None, 3)
                assert await limiter.refund(decision)
                await limiter.reset(id="x")

    asyncio.run(main())


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_key_that_somebody_holds_costs_a_transaction_its_deadline_and_nothing_else(
    asynchronous: bool, place: str, schema: str
) -> None:
    """What was done before in it is kept, its own time-outs are as they were, and it can go on and commit."""
    limit = Limit("l", "5 per 365 days", by="id", on_store_failure="allow")
    PostgresStore(f"{place}?schema={schema}&deadline=30s").init()
    with psycopg.connect(place) as holder, psycopg.connect(place) as owner:
        owner.execute(f"CREATE TABLE {schema}.orders (number int)")
        owner.commit()
        assert Limiter(limit, store=PostgresStore(holder, schema=schema, deadline=10)).hit(id="held").allowed

        def plain() -> None:
            with psycopg.connect(place) as waiting:
                waiting.execute("SET lock_timeout = '7s'")
                waiting.execute(f"INSERT INTO {schema}.orders VALUES (1)")
                limiter = Limiter(limit, store=PostgresStore(waiting, schema=schema))
                begin = time.monotonic()
                assert "lock timeout" in (limiter.hit(id="held").degraded or "")
                assert time.monotonic() - begin < QUICK
                assert limiter.hit(id="free").remaining == 4
                assert waiting.execute("SHOW lock_timeout").fetchone() == ("7s",)
                waiting.execute(f"INSERT INTO {schema}.orders VALUES (2)")

        async def later() -> None:
            async with await psycopg.AsyncConnection.connect(place) as waiting:
                await waiting.execute("SET lock_timeout = '7s'")
                await waiting.execute(f"INSERT INTO {schema}.orders VALUES (1)")
                limiter = AsyncLimiter(limit, store=AsyncPostgresStore(waiting, schema=schema))
                begin = time.monotonic()
                assert "lock timeout" in ((await limiter.hit(id="held")).degraded or "")
                assert time.monotonic() - begin < QUICK
                assert (await limiter.hit(id="free")).remaining == 4
                assert await (await waiting.execute("SHOW lock_timeout")).fetchone() == ("7s",)
                await waiting.execute(f"INSERT INTO {schema}.orders VALUES (2)")

        asyncio.run(later()) if asynchronous else plain()
        assert owner.execute(f"SELECT count(*) FROM {schema}.orders").fetchone() == (2,)
        holder.rollback()


def test_a_savepoint_takes_back_what_was_charged_after_it(place: str, schema: str) -> None:
    """A block within a block: its charges go with it, the others stay and are committed."""
    limit = Limit("l", "9 per 365 days")
    PostgresStore(f"{place}?schema={schema}&deadline=30s").init()
    with psycopg.connect(place) as connection:
        limiter = Limiter(limit, store=PostgresStore(connection, schema=schema))
        assert limiter.hit().remaining == 8
        with connection.transaction():
            assert limiter.hit(cost=3).remaining == 5
            raise psycopg.Rollback
        assert limiter.hit().remaining == 7
        with connection.transaction():
            assert limiter.hit().remaining == 6
    with Limiter(limit, store=f"{place}?schema={schema}&deadline=30s") as fresh:
        assert fresh.peek(cost=0).remaining == 6


def test_a_transaction_that_may_not_write_only_refuses_and_goes_on(place: str, schema: str) -> None:
    """In a read-only transaction a charge fails by itself; the transaction reads on, and the store is not thought away."""
    limit = Limit("l", "5 per 365 days", by="id", on_store_failure="allow")
    PostgresStore(f"{place}?schema={schema}&deadline=30s").init()
    with psycopg.connect(place) as connection:
        store = PostgresStore(connection, schema=schema)
        limiter = Limiter(limit, store=store)
        connection.read_only = True
        for _ in range(5):
            assert "read-only" in (limiter.hit(id="x").degraded or "")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert not store.breaker.open
        connection.rollback()
        connection.read_only = False
        assert limiter.hit(id="x").remaining == 4


def test_an_aborted_transaction_is_said_and_left_alone(place: str, schema: str) -> None:
    """A decision in a transaction that has failed is degraded with the server's reason; a rollback mends it."""
    limiter_of = Limit("l", "5 per 365 days", on_store_failure="allow")
    PostgresStore(f"{place}?schema={schema}&deadline=30s").init()
    with psycopg.connect(place) as connection:
        limiter = Limiter(limiter_of, store=PostgresStore(connection, schema=schema))
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0")
        assert "aborted" in (limiter.hit().degraded or "")
        connection.rollback()
        assert limiter.hit().remaining == 4


def test_two_limiters_of_one_transaction_do_not_wait_for_each_other(place: str, schema: str) -> None:
    """They see each other's charges, in any order of keys, and go or stay with the transaction together."""
    limits = Limit("a", "5 per 365 days", by="id"), Limit("b", "5 per 365 days", by="id")
    with psycopg.connect(place) as connection:
        first = Limiter(*limits, store=PostgresStore(connection, schema=schema))
        second = Limiter(*reversed(limits), store=PostgresStore(connection, schema=schema))
        assert [first.hit(id="x").remaining, second.hit(id="x").remaining, first.hit(id="x").remaining] == [4, 3, 2]
        connection.rollback()
        assert first.hit(id="x").remaining == 4  # the schema had gone with it, and came again


def test_a_schema_that_was_rolled_back_is_made_again(place: str, schema: str) -> None:
    """Put in place within a transaction, it is not relied on in the next one before it is seen there."""
    limit = Limit("l", "5 per 365 days")
    with psycopg.connect(place) as connection:
        limiter = Limiter(limit, store=PostgresStore(connection, schema=schema))
        for _ in range(3):
            assert [limiter.hit().remaining, limiter.hit().remaining] == [4, 3]
            connection.rollback()
        assert limiter.hit().remaining == 4
        connection.commit()
        connection.execute("SELECT 1")
        assert limiter.hit().remaining == 3


def test_recovered_keys_are_forgotten_through_a_pool_too(place: str, schema: str) -> None:
    """A table does not grow for ever because nobody's connections are the store's own."""
    brief = Limit("l", "1000/s burst 2", by="id")

    def rows(connection: psycopg.Connection[Any]) -> int:
        found = connection.execute(f"SELECT count(*) FROM {schema}.state").fetchone()
        return -1 if found is None else int(found[0])

    with (
        psycopg_pool.ConnectionPool(place, min_size=1) as pool,
        psycopg.connect(place, autocommit=True) as own,
    ):
        for where in (pool, own):
            limiter = Limiter(brief, store=PostgresStore(where, schema=schema, deadline=10))
            for number in range(400):
                assert limiter.hit(id=f"key {number}").degraded is None
            assert 0 < rows(own) < 300


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that these tests may freeze."""
    with postgres_server() as running:
        yield running


def test_nobody_waits_for_a_frozen_server_behind_a_pool(mortal: PostgresServer, schema: str) -> None:
    """A pool has no time-out for answers, the store has: threads and tasks are told in time, and the pool is whole after."""
    limit = Limit("l", "50 per 365 days", on_store_failure="allow")
    options: dict[str, Any] = {"min_size": 2, "max_size": 2, "kwargs": {"autocommit": False}}

    def told(call: Callable[[], Any]) -> None:
        begin = time.monotonic()
        assert call().degraded
        assert time.monotonic() - begin < QUICK

    async def going_on(limiter: AsyncLimiter) -> None:
        until = time.monotonic() + 20
        while (await limiter.hit()).degraded:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with psycopg_pool.AsyncConnectionPool(mortal.url, open=False, **options) as pool:
            limiter = AsyncLimiter(limit, store=AsyncPostgresStore(pool, schema=schema, deadline=0.5))
            await going_on(limiter)
            mortal.pause()
            begin = time.monotonic()
            assert all(decision.degraded for decision in await asyncio.gather(*[limiter.hit() for _ in range(4)]))
            assert time.monotonic() - begin < QUICK
            mortal.resume()
            await going_on(limiter)
            async with pool.connection() as connection:
                assert not connection.autocommit

    try:
        with psycopg_pool.ConnectionPool(mortal.url, **options) as pool:
            limiter = Limiter(limit, store=PostgresStore(pool, schema=schema, deadline=0.5))
            eventually(lambda: limiter.hit().degraded is None)
            mortal.pause()
            for _ in range(3):
                told(limiter.hit)
            mortal.resume()
            eventually(lambda: limiter.hit().degraded is None)
            with pool.connection() as connection:
                assert not connection.autocommit
        asyncio.run(main())
    finally:
        mortal.resume()
