"""The published vectors and the tables of ``tests/cases`` on PostgreSQL: times floored to its microseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import floor

import psycopg
import pytest

from exact_gcra import ExactGcra
from headway import AsyncLimiter, Limiter
from headway.core.limit import Limit
from headway.core.quota import SECOND
from headway.core.verdict import Verdict
from headway.stores.memory import MemoryStore
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.sync import PostgresStore
from headway.testing.clock import ManualClock
from stores.redis.test_vectors import check
from stores.test_cases import CASES, nanoseconds
from stores.test_store_vectors import EPOCH, VECTORS, _compare, quota_of
from ways import Ask, bare, through_async_limiter, through_limiter

pytestmark = pytest.mark.xdist_group("postgres")

WAYS = ("bare", "limiter", "async")


class Place:
    """A schema whose table is emptied for each history."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema
        PostgresStore(url, unlogged=True).init()
        self.connection = psycopg.connect(url.partition("?")[0], autocommit=True)

    @contextmanager
    def opened(self, way: str, clock: ManualClock, *limits: Limit) -> Iterator[Ask]:
        """One way through the server, which decides by the test's clock."""
        self.connection.execute(f"DELETE FROM {self.schema}.state")
        if way == "async":
            loop = asyncio.new_event_loop()
            later = AsyncPostgresStore(self.url, clock=clock)
            yield through_async_limiter(AsyncLimiter(*limits, store=later), loop)
            loop.run_until_complete(later.close())
            loop.close()
            return
        store = PostgresStore(self.url, clock=clock)
        yield bare(store, *limits) if way == "bare" else through_limiter(Limiter(*limits, store=store))
        store.close()


@pytest.fixture
def place(url: str, schema: str) -> Iterator[Place]:
    made = Place(url, schema)
    yield made
    made.connection.close()


@pytest.mark.parametrize("way", WAYS)
def test_postgres_answers_the_vectors(way: str, place: Place, clock: ManualClock) -> None:
    """Every field of every step is the exact one at the microsecond that PostgreSQL counts, alone and in company."""
    for index, vector in enumerate(VECTORS):
        model = ExactGcra(vector["emission_interval"], vector["burst"], Fraction(10))
        limits = [Limit("l", quota_of(vector), by="id"), *[Limit("loose", "1000000000/s", by="id")] * (index % 2)]
        with place.opened(way, clock, *limits) as ask:
            for number, step in enumerate(vector["steps"]):
                clock.now = EPOCH * SECOND + floor(step["t"] * 1_000_000) * 1000
                expected = model.decide(Fraction(clock.now, SECOND), step["cost"])
                peeked = ask(step["cost"], commit=False)
                allowed, outcomes = ask(step["cost"])
                where = f"{vector['id']} step {number}"
                assert peeked == (allowed, outcomes), where
                assert allowed is expected.allowed, where
                _compare(outcomes["l"], expected, where)


@pytest.mark.parametrize("way", WAYS)
def test_postgres_keeps_the_tables(way: str, place: Place, clock: ManualClock) -> None:
    """Each step of each table is answered as the memory store does at that microsecond, and as the table says on the grid."""
    start = clock.now
    for table, case in CASES:
        on_grid = all(Fraction(step["at"]) * 10**6 % 1 == 0 for step in case["steps"])
        described = case.get("limits") or [{"name": "l", **case["limit"]}]
        limits = tuple(
            Limit(one.get("name", "l"), one["quota"], by="id", algorithm=one.get("algorithm")) for one in described
        )
        clock.now = start
        model = bare(MemoryStore(clock=clock), *limits)
        with place.opened(way, clock, *limits) as ask:
            for number, step in enumerate(case["steps"]):
                clock.now = (start + nanoseconds(step["at"])) // 1000 * 1000
                looked = ask(step.get("cost", 1), commit=False)
                allowed, outcomes = ask(step.get("cost", 1))
                where = f"{table}: {case['title']}: step {number}: {step}"
                assert looked == (allowed, outcomes), where
                assert (allowed, outcomes) == model(step.get("cost", 1)), where
                if on_grid:
                    check(Verdict(limits, tuple(outcomes.values()), allowed, clock.now), step, where)
