"""Calendar windows on every store: around the instants at which zones do what clocks seldom do, the core's answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime

import pytest

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.quota import DAY, HOUR, SECOND
from headway.core.rule import State
from headway.stores.base import Store, settled_bill
from headway.stores.postgres.codec import said
from headway.stores.postgres.sync import PostgresStore
from headway.stores.redis.codec import form_of
from headway.stores.redis.sync import RedisStore
from headway.testing.clock import ManualClock
from servers import redis_server
from stores.postgres.server import postgres_server
from ways import STORES

pytestmark = pytest.mark.xdist_group("calendars")

CHANGES = {
    "a day that did not exist": ("Pacific/Apia", "2011-12-30T10:00Z"),
    "a day that did not exist, before": ("Pacific/Kwajalein", "1993-08-21T12:00Z"),
    "a midnight that came twice": ("America/Havana", "2026-11-01T05:00Z"),
    "a midnight that was missing": ("Asia/Beirut", "2026-03-28T22:00Z"),
    "a clock set back over midnight": ("America/Goose_Bay", "2010-11-07T03:01Z"),
    "two hours at once": ("Antarctica/Troll", "2026-03-29T01:00Z"),
    "after 2037": ("America/Nuuk", "2070-03-30T01:00Z"),
    "the end of a leap year's February": ("America/Los_Angeles", "2028-03-01T08:00Z"),
}
PERIODS = ("day", "week", "week starting sunday", "month")
MOVES = (-DAY, -HOUR, -30 * SECOND, -1000, 0, 1000, HOUR // 2 - 1000, HOUR // 2, HOUR - 1000, HOUR, 2 * HOUR, DAY)


@pytest.fixture(scope="module", params=["memory", "sqlite", "redis", "postgres"])
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, ManualClock]]:
    clock = ManualClock()
    with ExitStack() as stack:
        store: Store
        if request.param == "redis":
            store = RedisStore(stack.enter_context(redis_server("redis-6.2")).url, clock=clock, deadline=5)
        elif request.param == "postgres":
            server = stack.enter_context(postgres_server())
            store = PostgresStore(f"{server.url}?schema=limits&deadline=10s", clock=clock)
            store.init()
        else:
            store = STORES[request.param](clock, tmp_path_factory.mktemp("store"))
        stack.callback(store.close)
        yield store, clock


@pytest.mark.parametrize(("zone", "change"), CHANGES.values(), ids=list(CHANGES))
def test_every_store_counts_in_the_core_s_windows(zone: str, change: str, opened: tuple[Store, ManualClock]) -> None:
    """Days, weeks and months around a change: hits, refusals, units given back, and a clock that steps back."""
    store, clock = opened
    at = int(datetime.fromisoformat(change).timestamp()) * SECOND
    states: dict[str, State | None] = {}
    for move in (*MOVES, -5 * SECOND, 31 * DAY):
        clock.now = at + move
        for number, period in enumerate(PERIODS):
            limit = Limit(f"l{number}", f"3/{period} in {zone}", by="id")
            given: Change | None = None
            for cost in (2, 1, 1):
                charge = Charge("n", limit, zone, cost)
                settled, _ = settled_bill([charge], [states.get(period)], clock.now)
                for _, state in settled.writes:
                    states[period] = state
                answer = store.advance([charge], commit=True)
                assert (answer.allowed, answer.outcomes) == (settled.allowed, settled.outcomes), (period, move)
                if isinstance(answer.outcomes[0], Admitted):
                    given = Change(charge, Receipt(clock.now, cost, 0, answer.outcomes[0]), 1, 0)
            if given is not None:
                states[period], in_time = given.applied(states.get(period), clock.now)
                assert store.change([given]) == (in_time,)


@pytest.mark.parametrize(("zone", "change"), CHANGES.values(), ids=list(CHANGES))
def test_what_the_servers_are_told_of_a_calendar_is_that_of_the_window_now_open(zone: str, change: str) -> None:
    """What is remembered of another window, or of another limit, is not told."""
    at = int(datetime.fromisoformat(change).timestamp()) * SECOND
    kept = [Limit(f"l{number}", f"3/{period} in {zone}") for number, period in enumerate(PERIODS)]
    for move in (*MOVES, -5 * SECOND, 31 * DAY, 0):
        for limit in kept:
            fresh = replace(limit, shadow=False)
            assert said(limit, at + move) == said(fresh, at + move)
            assert form_of(limit).line(1, None, False, at + move) == form_of(fresh).line(1, None, False, at + move)
