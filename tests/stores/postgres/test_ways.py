"""Ways to one PostgreSQL: through PgBouncer, on connections and pools that somebody brings, in one round trip each."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import psycopg_pool
import pytest
from psycopg.rows import dict_row, namedtuple_row, scalar_row

from headway import AsyncLimiter, DeadlineTooSoon, Limit, Limiter
from headway.client import Pace
from headway.core.charge import Charge
from headway.core.lease import Lease
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.connections import Connection
from headway.stores.postgres.sync import PostgresStore
from stores.postgres.server import PostgresServer, pgbouncer

pytestmark = pytest.mark.xdist_group("postgres")

EVERY = (
    Limit("gcra", "100/s burst 20", by="id"),
    Limit("queue", "50/s burst 30", by="id", algorithm="leaky-bucket-queue"),
    Limit("fixed", "500 per 10s", by="id", algorithm="fixed-window"),
    Limit("calendar", "900/day in Asia/Kathmandu", by="id"),
    Limit("counters", "700 per 10s", by="id", algorithm="sliding-window"),
    Limit("log", "600 per 10s", by="id", algorithm="sliding-log"),
    Limit("growing", "1 per 2s burst 90", by="id", algorithm="growing-wait", longest="20s", forgiven_after="60s"),
    Limit("held", "50 at once", by="id"),
)


SLOW = (Limit("bucket", "5 per day", by="id"), Limit("log", "5 per day", by="id", algorithm="sliding-log"))


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent on connections of the store's own, a statement a round trip."""
    sent: list[str] = []
    execute = psycopg.Cursor.execute

    def counted(self: Any, text: Any, *words: Any, **named: Any) -> Any:
        sent.append(str(text))
        return execute(self, text, *words, **named)

    ask = Connection.ask

    def asked(self: Connection, text: bytes, *words: Any) -> Any:
        sent.append(text.decode())
        return ask(self, text, *words)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    monkeypatch.setattr(Connection, "ask", asked)
    return sent


def test_every_call_is_one_round_trip(url: str, trips: list[str]) -> None:
    """Any number of limits and algorithms, reservations, leases, partial grants, refunds, peeks, renewals and resets."""
    limiter = Limiter(*EVERY, store=url)
    one = Limiter(EVERY[0], store=url)
    decision = limiter.hit(id="warm")
    one.hit(id="warm")
    reservation = limiter.reserve(id="x", cost=3)
    calls = {
        "hit": lambda: limiter.hit(id="x"),
        "one": lambda: one.hit(id="x"),
        "refused": lambda: limiter.hit(id="x", cost=20),
        "never": lambda: limiter.hit(id="x", cost=10**9),
        "up to": lambda: limiter.hit(id="x", up_to=5),
        "peek": lambda: limiter.peek(id="x"),
        "reserve": lambda: limiter.reserve(id="x"),
        "commit": lambda: reservation.commit(5),
        "refund": lambda: limiter.refund(decision),
        "renew": lambda: limiter.renew(decision),
        "release": lambda: limiter.release(decision),
        "reset": lambda: limiter.reset(id="x"),
    }
    for name, call in calls.items():
        trips.clear()
        call()
        assert len(trips) == 1, (name, trips)
    trips.clear()
    for number in range(300):
        one.hit(id=f"key {number}")
    assert len(trips) == 300  # looking for recovered keys travels with decisions
    limiter.close()
    one.close()


@pytest.fixture(scope="module")
def bouncer(server: PostgresServer) -> Iterator[str]:
    with pgbouncer(server) as url:
        yield url


def test_through_pgbouncer_in_transaction_mode(bouncer: str, url: str) -> None:
    """Twelve threads over two shared backends, far more calls than it takes to prepare a statement: exact, no error."""
    PostgresStore(url).init()
    there = url.replace(url.partition("?")[0], bouncer)
    limits = (Limit("budget", "120 per 365 days", by="id"), *EVERY[2:4], EVERY[7])
    remaining: list[int] = []
    problems: list[object] = []

    def work() -> None:
        try:
            limiter = Limiter(*limits, store=PostgresStore(there))
            one = Limiter(Limit("other", "100000/day", by="id"), store=PostgresStore(there))
            for _ in range(12):
                decision = limiter.hit(id="x")
                problems.extend(why for why in (decision.degraded, one.hit(id="y").degraded) if why)
                if decision.allowed:
                    remaining.append(decision.outcomes["budget"].remaining)
                    limiter.release(decision)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(remaining) == list(range(120))
    with psycopg.connect(bouncer, autocommit=True) as shared:  # nothing of ours is left on backends that others use
        shared.prepare_threshold = None
        for _ in range(8):
            assert shared.execute("SHOW lock_timeout").fetchone() == ("0",)
            assert shared.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_asynchronously_through_pgbouncer(bouncer: str, url: str) -> None:
    """So does the twin, first use included."""
    there = url.replace(url.partition("?")[0], bouncer)

    async def main() -> list[int | None]:
        async with AsyncLimiter(Limit("budget", "90 per 365 days", by="id"), store=there) as limiter:
            decisions = await asyncio.gather(*[limiter.hit(id="x") for _ in range(100)])
        assert not any(decision.degraded for decision in decisions)
        return sorted(decision.outcomes["budget"].remaining for decision in decisions if decision.allowed)

    assert asyncio.run(main()) == list(range(90))


def test_directly_statements_are_prepared(url: str, server: PostgresServer) -> None:
    """Without a pooler in between a decision is prepared once and run many times."""
    store = PostgresStore(url)
    limiter = Limiter(EVERY[0], store=store)
    for _ in range(10):
        store.advance([Charge("n", limit, "x", 1) for limit in EVERY])
        limiter.hit(id="x")
    assert store._connections is not None
    connection = store._connections.take(time.monotonic() + 10)
    prepared = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    store._connections.put_back(connection)
    names = [text.partition(f"{store.inside}.")[2].partition("(")[0] or text for (text,) in prepared]
    assert sorted(names) == ["advance", "hit"]


def test_asynchronous_connections_and_pools_that_somebody_brings(url: str, schema: str) -> None:
    """A connection's open transaction takes the charge with it; a pool's connections go back as they were."""
    PostgresStore(url).init()
    limit = Limit("orders", "3/hour", by="user")

    async def main() -> None:
        connection = await psycopg.AsyncConnection.connect(url.partition("?")[0])
        mine = AsyncLimiter(limit, store=AsyncPostgresStore(connection, schema=schema))
        assert (await mine.hit(user="u")).remaining == 2
        assert (await mine.reserve(user="u")).decision.remaining == 1
        await connection.rollback()
        assert (await mine.hit(user="u")).remaining == 2
        await connection.commit()
        await connection.close()
        async with psycopg_pool.AsyncConnectionPool(url.partition("?")[0], min_size=1, max_size=2, open=False) as pool:
            pooled = AsyncLimiter(limit, store=AsyncPostgresStore(pool, schema=schema))
            assert (await pooled.hit(user="u")).remaining == 1
            async with pool.connection() as borrowed:
                assert not borrowed.autocommit

    asyncio.run(main())
    assert Limiter(limit, store=PostgresStore(url)).peek(user="u", cost=0).remaining == 1


@pytest.mark.parametrize("rows", [dict_row, namedtuple_row, scalar_row])
@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
def test_rows_and_cursors_that_an_owner_likes_make_no_difference(
    rows: Any, cursor: type[psycopg.Cursor[Any]], url: str, schema: str
) -> None:
    """A connection and a pool whose rows are dicts, or whose cursors bind by themselves, decide like any other."""
    conninfo = url.partition("?")[0]
    named = {"row_factory": rows, "cursor_factory": cursor}
    with psycopg.connect(conninfo, autocommit=True, **named) as connection:  # type: ignore[call-overload]  # as users write it
        store = PostgresStore(connection, schema=schema)
        assert store.init()
        assert [Limiter(*EVERY, store=store).hit(id="x").degraded for _ in range(2)] == [None, None]
        assert Limiter(EVERY[0], store=store).hit(id="x").degraded is None
    with psycopg_pool.ConnectionPool(conninfo, kwargs=named, open=True, min_size=1) as pool:
        assert Limiter(*EVERY, store=PostgresStore(pool, schema=schema)).hit(id="x").degraded is None

    async def main() -> object:
        later = {psycopg.Cursor: psycopg.AsyncCursor, psycopg.ClientCursor: psycopg.AsyncClientCursor}
        kind: Any = later.get(cursor, psycopg.AsyncRawCursor)
        async with await psycopg.AsyncConnection.connect(conninfo, row_factory=rows, cursor_factory=kind) as connection:
            limiter = AsyncLimiter(*EVERY, store=AsyncPostgresStore(connection, schema=schema))
            return (await limiter.hit(id="x")).degraded

    assert asyncio.run(main()) is None


def test_a_database_without_an_encoding_serves(url: str, schema: str, server: PostgresServer) -> None:
    """In SQL_ASCII, by a URL; a connection that is brought is told what it needs."""
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {schema} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    own = server.url.removesuffix("postgres") + schema
    for limits in (EVERY, EVERY[:1]):
        with Limiter(*limits, store=f"{own}?deadline=10s") as limiter:
            assert [limiter.hit(id="ключ").degraded for _ in range(2)] == [None, None]

    async def main() -> object:
        async with AsyncLimiter(*EVERY, store=f"{own}?deadline=10s") as limiter:
            return (await limiter.hit(id="x")).degraded

    assert asyncio.run(main()) is None
    with psycopg.connect(own) as connection:
        degraded = Limiter(*EVERY, store=PostgresStore(connection)).hit(id="x").degraded
    assert "connect with client_encoding=utf8" in str(degraded)


@pytest.mark.parametrize("length", [900, 1_100, 5_000, 1_000_000])
def test_a_key_of_any_length_is_a_key(length: int, url: str) -> None:
    """Keys that no index holds are told apart like others, on each way in; they are changed, refunded and cleared as others."""
    key, other = [secrets.token_hex(length // 2) + end for end in "ab"]
    long = "n" * length
    for namespace in ("default", long):
        for limits in (SLOW, SLOW[:1]):
            with Limiter(*limits, store=url, namespace=namespace) as limiter:
                decision = limiter.hit(id=key)
                assert decision.degraded is None
                assert limiter.peek(id=key, cost=0).remaining == decision.remaining
                assert limiter.peek(id=other, cost=0).remaining > decision.remaining
                assert limiter.refund(decision)
                limiter.hit(id=key)
                limiter.reset(id=key)
                assert limiter.peek(id=key, cost=0).remaining > decision.remaining
                limiter.hit(id=key)
                limiter.change_quota(limits[0].name, limits[0].quota, keep="reset")
                assert limiter.store.clear(namespace, limits[0]) == 0


def test_a_task_that_is_cancelled_in_its_own_transaction(url: str, schema: str) -> None:
    """On a connection that the caller brings, a cancelled decision is over, and its transaction is the caller's to end."""
    PostgresStore(url).init()
    limit = Limit("orders", "9/hour", by="user")

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(url.partition("?")[0]) as connection:
            mine = AsyncLimiter(limit, store=AsyncPostgresStore(connection, schema=schema))
            assert (await mine.hit(user="u")).allowed
            await connection.commit()
            for turns in range(6):
                task = asyncio.create_task(mine.hit(user="u"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                await connection.rollback()
            assert (await mine.peek(user="u", cost=0)).remaining == 8

    asyncio.run(main())
    assert Limiter(limit, store=PostgresStore(url)).peek(user="u", cost=0).remaining == 8


def test_a_charge_and_its_refund_in_one_transaction(url: str, schema: str) -> None:
    """Charges, refunds and reservations in the caller's transaction see each other and go together."""
    PostgresStore(url).init()
    limits = (Limit("orders", "9/hour", by="user"), Limit("held", "4 at once", by="user"))
    with psycopg.connect(url.partition("?")[0]) as connection:
        mine = Limiter(*limits, store=PostgresStore(connection, schema=schema))
        first, second = mine.hit(user="u"), mine.hit(user="u", cost=2)
        assert second.outcomes["held"].remaining == 1
        assert mine.refund(second)
        assert mine.peek(user="u", cost=0).outcomes["held"].remaining == 3
        assert mine.renew(first)
        connection.rollback()
        assert mine.peek(user="u", cost=0).outcomes["orders"].remaining == 9
        mine.hit(user="u")
        connection.commit()
    outside = Limiter(*limits, store=PostgresStore(url))
    assert outside.peek(user="u", cost=0).outcomes["orders"].remaining == 8


def test_a_block_on_a_connection_that_commits_by_itself_is_a_transaction_too(url: str, schema: str) -> None:
    """In ``connection.transaction()`` a charge goes with the block; a decision that fails never ends somebody's transaction."""
    PostgresStore(url).init()
    orders, all_orders = (
        Limit("orders", "9/hour", by="user"),
        Limit("log", "9/hour", by="user", algorithm="sliding-log"),
    )
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {schema}.theirs (id integer)")
        mine = Limiter(orders, all_orders, store=PostgresStore(connection, schema=schema))
        with suppress(ZeroDivisionError), connection.transaction():
            assert mine.hit(user="u").remaining == 8
            raise ZeroDivisionError
        assert mine.peek(user="u", cost=0).remaining == 9
        with connection.transaction():
            connection.execute(f"INSERT INTO {schema}.theirs VALUES (1)")
            mine.store.requota("default", all_orders, Limit("log", "18/hour", by="user", algorithm="sliding-log"))
            assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.InFailedSqlTransaction), connection.transaction():
            connection.execute(f"INSERT INTO {schema}.theirs VALUES (2)")
            with suppress(psycopg.Error):
                connection.execute("SELECT 1 / 0")
            assert mine.hit(user="u").degraded
            assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
            connection.execute("SELECT 1")
        assert connection.execute(f"SELECT id FROM {schema}.theirs").fetchall() == [(1,)]
        assert mine.hit(user="u").remaining == 8


def test_a_pace_is_shared_through_it(url: str) -> None:
    """A client's paces of one name share a budget, and a slot that one holds is held for both; later ones wait."""
    quotas = ("3 per hour", "1 at once for 60 s")
    with Pace(*quotas, store=url) as first, Pace(*quotas, store=url) as second:
        with first.slot(deadline=0), pytest.raises(DeadlineTooSoon) as held, second.slot(deadline=0):
            pass
        assert held.value.at_most
        for pace in (second, first):
            with pace.slot(deadline=0):
                pass
        with pytest.raises(DeadlineTooSoon) as spent, second.slot(deadline=1):
            pass
        assert 3500 < spent.value.retry_after <= 3600


def test_a_pace_waits_its_turn_on_it(url: str) -> None:
    """Threads of two paces at 20 per second are let go one after the other, no faster than that."""
    went: list[float] = []
    began = time.monotonic()
    with Pace("20/s burst 1", store=url) as first, Pace("20/s burst 1", store=url) as second:

        def work(pace: Pace) -> None:
            for _ in range(4):
                with pace.slot(deadline=30):
                    went.append(time.monotonic())

        threads = [threading.Thread(target=work, args=(pace,)) for pace in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(went) == 8
    assert max(went) - began >= 7 * 0.05 - 0.01  # the first may begin a while after it was let go


def test_one_reservation_is_one_row(url: str, schema: str) -> None:
    """A key's reservations live in its row: nothing else is written, and it goes when all have ended."""
    store = PostgresStore(url)
    limit = Limit("l", "5/s", by="id")
    for token in (1, 2, 3):
        assert store.advance([Charge("n", limit, "x", 1, Lease(token, 10**9))]).allowed
    with psycopg.connect(url.partition("?")[0]) as connection:
        found = connection.execute(f"SELECT count(*), max(expires) FROM {schema}.state").fetchone()
    assert found is not None
    assert found[0] == 1
    assert found[1] > 0
