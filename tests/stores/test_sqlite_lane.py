"""The short way through a SQLite store says and writes what the long one does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from headway import Limit, Limiter
from headway.stores.sqlite import SqliteStore
from headway.testing import ManualClock

LIMITS = {
    "one": [Limit("one", "5 per 10s", by="id")],
    "several": [
        Limit("a", "5 per 10s", by="id"),
        Limit("b", "20 per 60s burst 3", by=("id", "ip")),
        Limit("c", "100/s"),
    ],
    "thirds": [Limit("a", "3/s", by="id"), Limit("b", "5 per 10s", by="id")],
    "algorithms": [
        Limit("a", "5 per 10s", by="id"),
        Limit("w", "5 per 10s", by="id", algorithm="fixed-window", count_refused=True),
        Limit("g", "2 per 1s", by="id", algorithm="growing-wait"),
        Limit("s", "9 per 10s", by="ip", algorithm="sliding-log"),
    ],
}


class Long:
    """A SQLite store without its short way."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def __getattr__(self, name: str) -> object:
        if name == "short":
            raise AttributeError(name)
        return getattr(self.store, name)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def two(tmp_path: Path, clock: ManualClock) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    stores = (SqliteStore(tmp_path / "short.db", clock=clock), SqliteStore(tmp_path / "long.db", clock=clock))
    yield stores
    for store in stores:
        store.close()


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("seed", range(3))
def test_the_short_way_answers_and_writes_what_the_long_one_does(
    limits: list[Limit], seed: int, two: tuple[SqliteStore, SqliteStore], clock: ManualClock
) -> None:
    """On one history of hits, peeks, reservations, clock steps and a changed quota: each answer, and the file's rows."""
    choose = random.Random(seed)
    short, long = Limiter(*limits, store=two[0]), Limiter(*limits, store=Long(two[1]))  # type: ignore[arg-type]  # a stand-in
    assert short._way.short is not None
    assert long._way.short is None
    for step in range(150):
        facts = {"id": choose.choice(["a", "b", "ü"]), "ip": choose.choice(["1", 2, b"1"])}
        cost, what = choose.choice([1, 1, 1, 2, 7]), choose.random()
        if what < 0.75:
            answers = [limiter.hit(facts, cost=cost) for limiter in (short, long)]
        elif what < 0.9:
            answers = [limiter.peek(facts, cost=cost) for limiter in (short, long)]
        else:
            answers = [limiter.reserve(facts, cost=1).decision for limiter in (short, long)]
        assert answers[0].verdict == answers[1].verdict, step
        clock.advance(choose.choice([0, 0.1, 1, 3, -2, -3600] if choose.random() < 0.5 else [0]))
        if step == 100 and limits[0].quota.burst == 5:
            for limiter in (short, long):
                limiter.change_quota(limits[0].name, "2 per 10s")
    rows = [store._connection.execute("SELECT key, state FROM headway_state").fetchall() for store in two]  # type: ignore[union-attr]  # open
    without_tokens = [[(key, state.split(":")[:3]) for key, state in found] for found in rows]
    assert without_tokens[0] == without_tokens[1] != []


@pytest.mark.parametrize("by", [("id",), ("id", "ip"), ()])
def test_every_kind_of_key_is_one_counter_by_either_way(
    by: tuple[str, ...], two: tuple[SqliteStore, SqliteStore]
) -> None:
    """Text, numbers, UUIDs, bytes, tuples and lone surrogates: what the one way charged the other finds."""
    limit = Limit("l", "9 per 1h", by=by)
    short, long = Limiter(limit, store=two[0]), Limiter(limit, store=Long(two[0]))  # type: ignore[arg-type]  # a stand-in
    for value in ("a", "", "ü\ud800", 42, b"a", ("a", 1), UUID(int=7)):
        before = short.peek(id=value, ip=value, cost=0).remaining
        assert before is not None
        assert short.hit(id=value, ip=value).remaining == before - 1
        if by:
            assert long.hit(id=value, ip=value).remaining == before - 2


def test_a_limit_in_shadow_has_no_short_way(two: tuple[SqliteStore, SqliteStore]) -> None:
    """Shadow limits are charged by other rules, which the long way knows."""
    assert two[0].short("default", [Limit("l", "9 per 1h", shadow=True)]) is None


@pytest.mark.parametrize("by", ["id", ("id", "other")], ids=["one attribute", "two attributes"])
@pytest.mark.parametrize("algorithm", ["gcra", "sliding-log"])
def test_long_keys_do_not_fill_the_disk(by: str | tuple[str, ...], algorithm: str, tmp_path: Path) -> None:
    """A megabyte that a caller writes into a key is counted, given back and reset like any key, and takes a short row."""
    path = tmp_path / "limits.db"
    limit, store = Limit("a", "2 per hour", by=by, algorithm=algorithm), SqliteStore(path, clock=ManualClock())
    limiter = Limiter(limit, store=store)
    for number in range(4):
        long = f"{number}" + "x" * 1_000_000
        for value in (long, long.encode(), (long, "y")):
            first = limiter.hit(id=value, other="z")
            assert first.allowed
            assert limiter.hit(id=value, other="z").allowed
            assert not limiter.hit(id=value, other="z").allowed
            limiter.refund(first)
            assert limiter.peek(id=value, other="z", cost=0).remaining == 1
            limiter.reset(id=value, other="z")
            assert limiter.peek(id=value, other="z", cost=0).remaining == 2
            limiter.hit(id=value, other="z")
    assert store.clear("default", limit) == 12
    store.close()
    assert path.stat().st_size < 200_000
