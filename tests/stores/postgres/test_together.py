"""Many at once on one PostgreSQL: what they are told is told in some order, nobody waits in a circle, nobody gets more."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from headway import Limit, Limiter
from headway.core.charge import Charge
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.sync import PostgresStore
from headway.testing import blocking
from linearizable import assert_linearizable, record
from stores.postgres.server import PostgresServer

pytestmark = pytest.mark.xdist_group("postgres")


def opened(url: str, asynchronous: bool) -> object:
    return blocking(AsyncPostgresStore(url)) if asynchronous else PostgresStore(url)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_histories_of_eight_processes_have_an_order(url: str, asynchronous: bool) -> None:
    """Bills, peeks, refunds and resets of eight processes are explained by some order of the sequential core."""
    PostgresStore(url).init()
    assert_linearizable(record(partial(opened, url, asynchronous), seed=7 + asynchronous, calls=20))  # type: ignore[arg-type]  # a Store


def first(url: str, barrier: Any, told: Any) -> None:
    """What a process that comes first with others is told."""
    limiter = Limiter(Limit("yearly", "30 per 365 days", by="id"), store=url)
    barrier.wait(60)
    decisions = [limiter.hit(id="k") for _ in range(2)]
    told.put([[d.remaining for d in decisions if d.allowed], [d.degraded for d in decisions if d.degraded]])


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_twenty_processes_are_first_at_once(url: str) -> None:
    """The schema does not exist when twenty processes ask at once: no error, and each remaining is told once."""
    context = multiprocessing.get_context("fork")  # twenty new interpreters would cost more than what is looked at
    barrier, told = context.Barrier(20), context.Queue()
    patient = url.replace("deadline=10s", "deadline=60s")
    children = [context.Process(target=first, args=(patient, barrier, told)) for _ in range(20)]
    for child in children:
        child.start()
    seen = [told.get(timeout=120) for _ in children]
    for child in children:
        child.join(60)
    assert [problem for _, problems in seen for problem in problems] == []
    assert sorted(left for admitted, _ in seen for left in admitted) == list(range(30))


def test_opposite_orders_never_wait_in_a_circle(url: str, server: PostgresServer) -> None:
    """Bills over the same keys in opposite orders, refunds and resets among them: the server sees no deadlock."""
    PostgresStore(url).init()
    limits = [Limit(f"l{number}", "1000000/day", by="id") for number in range(5)]
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        order = limits if number % 2 else limits[::-1]
        try:
            limiter = Limiter(*order, store=PostgresStore(url))
            start.wait()
            for turn in range(40):
                decision = limiter.hit(id="same")
                assert decision.allowed, decision.degraded
                if turn % 5 == 0:
                    assert limiter.refund(decision)
                if turn % 13 == 0:
                    limiter.reset(id="same")
        except BaseException as error:
            errors.append(error)

    before = deadlocks(server)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert deadlocks(server) == before


def deadlocks(server: PostgresServer) -> int:
    """How many the server has broken up."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'").fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_a_role_of_any_isolation_is_told_the_same(level: str, url: str, schema: str, server: PostgresServer) -> None:
    """Where the role's transactions are serializable by default, eight threads still share a budget without an error."""
    PostgresStore(url).init()
    role = f"r_{schema}"
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(f"ALTER ROLE {role} SET default_transaction_isolation = '{level}'")
        owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    as_role = url.replace("//postgres@", f"//{role}@")
    limits = (Limit("budget", "40 per 365 days", by="id"), Limit("held", "99 at once", by="id"))
    remaining: list[int | None] = []
    degraded: list[str] = []

    def work() -> None:
        limiter = Limiter(*limits, store=PostgresStore(as_role))
        for _ in range(8):
            decision = limiter.hit(id="x")
            degraded.extend([decision.degraded] if decision.degraded else [])
            remaining.extend([decision.outcomes["budget"].remaining] if decision.allowed else [])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert degraded == []
    assert sorted(remaining, key=str) == sorted(range(40), key=str)


def test_a_key_is_held_by_nobody_who_looks(url: str, schema: str, server: PostgresServer) -> None:
    """While somebody's transaction holds a key, a peek answers what is committed; a hit waits, no longer than the deadline."""
    PostgresStore(url).init()
    limit = Limit("l", "5/hour", by="id")
    brief = PostgresStore(url.replace("deadline=10s", "deadline=1s"))
    with psycopg.connect(server.url) as connection:
        assert Limiter(limit, store=PostgresStore(connection, schema=schema)).hit(id="x").remaining == 4
        assert Limiter(limit, store=PostgresStore(url)).peek(id="x", cost=0).remaining == 5
        assert Limiter(limit, store=brief).hit(id="x").degraded
        assert Limiter(limit, store=PostgresStore(url)).hit(id="another").allowed
        connection.commit()
    assert (
        Limiter(limit, store=PostgresStore(url)).peek(id="x", cost=0).remaining == 4
    )  # the hit that gave up charged nothing


def test_cleaning_leaves_alone_what_somebody_is_at(url: str, schema: str, server: PostgresServer) -> None:
    """A recovered row that another transaction has locked holds up nobody's decision; it goes later."""
    now = [1_800_000_000 * 10**9]
    store = PostgresStore(url, clock=lambda: now[0])
    limiter = Limiter(Limit("l", "1/s", by="id"), store=store)
    limiter.hit(id="locked")
    limiter.hit(id="free")
    now[0] += 10**12

    def recovered() -> int:
        with psycopg.connect(server.url) as looking:
            found = looking.execute(f"SELECT count(*) FROM {schema}.state WHERE expires <= %s", (now[0],)).fetchone()
        assert found is not None
        return int(found[0])

    with psycopg.connect(server.url) as other:
        other.execute(f"SELECT FROM {schema}.state WHERE encode(key, 'escape') LIKE '%%locked' FOR UPDATE")
        for number in range(270):
            assert limiter.hit(id=f"new {number}").allowed
        assert recovered() == 1
    for number in range(270):
        assert limiter.hit(id=f"newer {number}").allowed
    assert recovered() == 0


def test_whoever_gives_up_waiting_is_not_charged_later(url: str, schema: str, server: PostgresServer) -> None:
    """A decision whose caller was told that the store is away, because a key was held, is not made after all."""
    PostgresStore(url).init()
    charge = Charge("n", Limit("l", "5/hour", by="id"), "x", 1)
    brief = PostgresStore(url.replace("deadline=10s", "deadline=4s"))
    with psycopg.connect(server.url) as connection:
        PostgresStore(connection, schema=schema).advance([charge])
        with ThreadPoolExecutor(4) as four:
            limiter = Limiter(charge.limit, store=brief, namespace="n")
            decisions = list(four.map(lambda _: limiter.hit(id="x"), range(4)))
        assert all("lock timeout" in (decision.degraded or "") for decision in decisions)
        assert not brief.breaker.open  # the server is there: other keys are decided
        assert Limiter(charge.limit, store=brief, namespace="n").hit(id="another").allowed
        connection.commit()
    assert PostgresStore(url).advance([charge]).outcomes[0].remaining == 3
