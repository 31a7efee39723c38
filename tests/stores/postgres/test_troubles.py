"""What is no outage and what is one: things that go from under us, time-outs that others set, standbys, too many callers."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from headway import AsyncLimiter, Limit, Limiter, StoreUnavailable, StoreUnusable
from headway.core.charge import Charge
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.base import MOST_CONNECTIONS
from headway.stores.postgres.places import hosts_of
from headway.stores.postgres.sync import PostgresStore
from stores.postgres.server import PostgresServer, postgres_server

pytestmark = pytest.mark.xdist_group("postgres")

LIMIT = Limit("l", "9 per 365 days", by="id")
OTHER = Limit("other", "9 per 365 days", by="id", algorithm="sliding-log")


@pytest.fixture
def owner(server: PostgresServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("gone", ["TABLE {}.state", "FUNCTION {}.decide", "FUNCTION {}.hit", "FUNCTION {}.advance"])
def test_what_somebody_drops_is_put_in_place_again(gone: str, url: str, schema: str, owner: psycopg.Connection) -> None:
    """A call or two fail and say why; then it is there again, also for who starts anew, and for `headway store init`."""
    store = PostgresStore(url)
    limits = (LIMIT,) if gone.endswith("hit") else (LIMIT, OTHER)
    limiter = Limiter(*limits, store=store)
    assert limiter.hit(id="x").degraded is None
    owner.execute(f"DROP {gone.format(schema)}")
    told = [limiter.hit(id="x").degraded for _ in range(3)]
    assert told[-1] is None, told
    assert not store.breaker.open
    owner.execute(f"DROP {gone.format(schema)}")
    with pytest.raises(StoreUnusable, match="has lost its table or a function; put version"):
        PostgresStore(f"{url}&install=false").advance([Charge("n", LIMIT, "x", 1)])
    assert "was put in place" in PostgresStore(f"{url}&install=false").init()[0]
    assert Limiter(LIMIT, OTHER, store=f"{url}&install=false").hit(id="x").degraded is None


def test_a_version_table_that_is_gone_is_told_as_it_is(url: str, schema: str, owner: psycopg.Connection) -> None:
    """What is left of a schema could be anybody's then: it is not touched."""
    PostgresStore(url).init()
    owner.execute(f"DROP TABLE {schema}.version")
    with pytest.raises(StoreUnusable, match="has other things in it"):
        PostgresStore(url).advance([Charge("n", LIMIT, "x", 1)])


@pytest.mark.parametrize(
    "setting",
    [
        "default_transaction_read_only = on",
        "statement_timeout = '1ms'",
        "lock_timeout = '1ms'",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_deferrable = on",
        "search_path = nowhere",
        "client_encoding = latin1",
        "standard_conforming_strings = off",
        "TimeZone = 'Asia/Kathmandu'",
        "row_security = off",
    ],
)
def test_a_role_s_settings_do_not_matter(setting: str, url: str, schema: str, owner: psycopg.Connection) -> None:
    """Whatever a role's defaults are: the schema is put in place, and everything works."""
    role = f"role_{schema}"
    owner.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
    owner.execute(f"ALTER ROLE {role} SET {setting}")
    limiter = Limiter(LIMIT, OTHER, store=url.replace("postgres@", f"{role}@"))
    decision = limiter.hit(id="x", cost=3)
    assert (decision.degraded, decision.remaining) == (None, 6)
    assert limiter.refund(decision)
    limiter.change_quota("l", "90 per 365 days", keep="proportional")
    limiter.reset(id="x")
    limiter.close()


def test_a_held_key_is_no_outage(url: str, owner: psycopg.Connection) -> None:
    """However often it is waited for in vain: the breaker stays closed, and other keys are decided."""
    PostgresStore(url).init()
    store = PostgresStore(url, deadline=4)
    limiter = Limiter(Limit("l", "9 per 365 days", by="id", on_store_failure="allow"), store=store)
    assert limiter.hit(id="held").degraded is None
    with psycopg.connect(url.partition("?")[0]) as holder:
        mine = Limiter(LIMIT, store=PostgresStore(holder, schema=store.schema))
        assert mine.hit(id="held").degraded is None
        with ThreadPoolExecutor(4) as four:
            told = list(four.map(lambda _: limiter.hit(id="held").degraded or "", range(4)))
        assert all("lock timeout" in text for text in told), told
        assert limiter.hit(id="free").degraded is None
        holder.rollback()
    assert (store.breaker.failed_count, store.breaker.open) == (0, False)
    assert limiter.peek(id="held", cost=0).remaining == 8


def test_too_many_callers_are_no_outage(url: str) -> None:
    """Who finds all connections in use is told so in time; the server is not thought away by that, and goes on deciding."""
    PostgresStore(url).init()
    store = PostgresStore(url, deadline=2)
    connections = store._connections
    assert connections is not None
    taken = [connections.take(time.monotonic() + 10) for _ in range(MOST_CONNECTIONS)]
    told: list[str] = []

    def ask() -> None:
        try:
            store.advance([Charge("n", LIMIT, "x", 1)])
        except StoreUnavailable as error:
            told.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(told) == 6
    assert all("connections are in use" in text for text in told)
    assert not store.breaker.open
    for connection in taken:
        connections.put_back(connection)
    assert store.advance([Charge("n", LIMIT, "x", 1)]).allowed
    store.close()


def test_an_answer_of_any_kind_ends_an_outage(url: str, owner: psycopg.Connection, schema: str) -> None:
    """A server that is back and says no is back: its reason is told from then on, not the outage's."""
    store = PostgresStore(url)
    limiter = Limiter(LIMIT, store=store)
    assert limiter.hit(id="x").degraded is None
    for _ in range(3):
        store.breaker.failed(StoreUnavailable("it burns"))
    store.breaker._next_try = 0.0
    owner.execute(f"UPDATE {schema}.state SET state = 'nonsense'")
    assert "burns" not in (limiter.hit(id="x").degraded or "burns")
    assert not store.breaker.open


def test_a_standby_is_an_outage_until_it_is_promoted(schema: str) -> None:
    """Who may not write cannot decide: connections to it are not kept, the breaker opens, and a promotion ends it."""
    with postgres_server() as server:
        url = f"{server.url}?schema={schema}&deadline=10s"
        store = PostgresStore(url)
        limiter = Limiter(Limit("l", "9 per 365 days", by="id", on_store_failure="allow"), store=store)
        store.breaker._pause = 0.05
        assert limiter.hit(id="x").remaining == 8
        server.stop()
        (server.log.parent / "standby.signal").touch()
        server.start()
        told = [limiter.hit(id="x").degraded or "" for _ in range(4)]
        assert "read-only transaction" in told[-1], told
        assert store.breaker.open
        connections = store._connections
        assert connections is not None
        assert connections._idle == []
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        until = time.monotonic() + 20
        while limiter.hit(id="x").degraded:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert limiter.peek(id="x", cost=0).remaining == 7
        store.close()


def test_ended_backends_fail_a_call_each_at_most(url: str, schema: str, owner: psycopg.Connection) -> None:
    """`pg_terminate_backend` in mid-load: nobody hangs, every unit told is counted, and calls go on by themselves."""
    limit = Limit("l", "100000 per 365 days", on_store_failure="allow")
    named = f"{url}&application_name={schema}"
    PostgresStore(named).init()
    over = threading.Event()
    admitted, longest = [0] * 4, [0.0] * 4

    def load(index: int) -> None:
        limiter = Limiter(limit, store=named)
        while not over.is_set():
            begin = time.monotonic()
            decision = limiter.hit()
            longest[index] = max(longest[index], time.monotonic() - begin)
            admitted[index] += decision.allowed and not decision.degraded

    threads = [threading.Thread(target=load, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        over.wait(0.02)
        with suppress(psycopg.Error):
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s LIMIT 2", (schema,)
            )
    before = sum(admitted)
    limit_time = time.monotonic() + 20
    while sum(admitted) < before + 50:
        assert time.monotonic() < limit_time
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join(20)
    used = 100_000 - (Limiter(limit, store=named).peek(cost=0).remaining or 0)
    assert sum(admitted) <= used <= sum(admitted) + 40
    assert max(longest) < 10 + 5


@pytest.mark.parametrize("first", ["silent", "nobody"])
def test_a_first_host_that_is_away_leaves_the_next_its_time(first: str, server: PostgresServer, schema: str) -> None:
    """With several hosts in the URL a silent one does not take the whole deadline, for threads and for tasks."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if first == "silent":
            listening.listen(64)
        port = listening.getsockname()[1]
        hosts = f"127.0.0.1:{port},127.0.0.1:{server.port}"
        url = f"postgresql://postgres@{hosts}/postgres?schema={schema}&deadline=3s"
        begin = time.monotonic()
        assert Limiter(LIMIT, store=url).hit(id="x").remaining == 8
        for more in ("&target_session_attrs=read-write", "&application_name=a%20b"):

            async def main(place: str) -> None:
                async with AsyncLimiter(LIMIT, store=place) as limiter:
                    assert (await limiter.hit(id="x")).degraded is None

            asyncio.run(main(url + more))
        assert time.monotonic() - begin < 3 * 3 + 5


def test_a_single_host_is_connected_to_as_libpq_reads_it() -> None:
    """Only a list of hosts is taken apart, each with its port; where libpq chooses among them it does so by itself."""
    one = "postgresql://u@h/db?host=/tmp"
    assert hosts_of(one) == (one,)
    two = hosts_of("postgresql://u:p%20w@a:1,b:2/db?connect_timeout=3")
    assert [conninfo_to_dict(place) for place in two] == [
        {"user": "u", "password": "p w", "dbname": "db", "connect_timeout": "3", "host": host, "port": port}
        for host, port in (("a", "1"), ("b", "2"))
    ]
    assert [conninfo_to_dict(place)["port"] for place in hosts_of("postgresql://a,b/db?port=7")] == ["7", "7"]
    for chosen in ("target_session_attrs=prefer-standby", "load_balance_hosts=random"):
        url = f"postgresql://a,b/db?{chosen}"
        assert hosts_of(url) == (url,)


def test_a_server_that_says_no_is_logged_once(
    url: str, schema: str, owner: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """What is let through because a right is missing is no secret: one line a minute, with the reason."""
    role = f"poor_{schema}"
    owner.execute(f"CREATE ROLE {role} LOGIN")
    PostgresStore(url).init(roles=[role])
    store = PostgresStore(url.replace("postgres@", f"{role}@"))
    limiter = Limiter(Limit("l", "9 per 365 days", by="id", on_store_failure="allow"), store=store)
    assert limiter.hit(id="x").remaining == 8
    owner.execute(f"REVOKE USAGE ON SCHEMA {schema} FROM {role}")
    with caplog.at_level(logging.INFO, "headway.stores"):
        assert all("permission denied" in (limiter.hit(id="x").degraded or "") for _ in range(10))
    (line,) = caplog.messages
    assert "does not decide: permission denied" in line
    assert "let a role that may run `headway store init" in line
    assert not store.breaker.open


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_server_that_lets_no_more_in_is_no_outage(
    kind: str, url: str, schema: str, owner: psycopg.Connection
) -> None:
    """Three connections for twenty callers, who want sixteen: they wait for one of the three, and all are decided."""
    role = f"few_{schema}"
    owner.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 3")
    PostgresStore(url).init(roles=[role])
    limit = Limit("l", "100000 per 365 days", by="id")
    place = url.replace("postgres@", f"{role}@", 1).replace("deadline=10s", "deadline=20s")
    degraded: list[str | None] = []
    if kind == "sync":
        store = PostgresStore(place)
        limiter = Limiter(limit, store=store)
        degraded.append(limiter.hit(id="x").degraded)

        def work() -> None:
            degraded.extend(limiter.hit(id="x").degraded for _ in range(20))

        threads = [threading.Thread(target=work) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        remaining, failed = limiter.peek(id="x", cost=0).remaining, store.breaker.failed_count
        store.close()
    else:

        async def main() -> tuple[int | None, int]:
            store = AsyncPostgresStore(place)
            limiter = AsyncLimiter(limit, store=store)
            degraded.append((await limiter.hit(id="x")).degraded)

            async def work() -> None:
                degraded.extend([(await limiter.hit(id="x")).degraded for _ in range(20)])

            await asyncio.gather(*(work() for _ in range(20)))
            told = (await limiter.peek(id="x", cost=0)).remaining, store.breaker.failed_count
            await store.close()
            return told

        remaining, failed = asyncio.run(main())
    assert degraded == [None] * 401
    assert remaining == 100000 - 401
    assert failed == 0
