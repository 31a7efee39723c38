"""Isolation of all limiters of the process, by hand; the pytest plugin is a thin layer over it."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from headway import AsyncLimiter, Limit, Limiter, MemoryStore, Overridden, ProvidedLimit, When
from headway.errors import ConfigError
from headway.limiter import base
from headway.stores import url
from headway.stores.sqlite import SqliteStore
from headway.testing import Isolation, ManualClock, isolated

HOUR = Limit("route", "5 per hour", by="ip")


def admitted(limiter: Limiter, hits: int, ip: str = "192.0.2.1") -> int:
    return sum(limiter.hit(ip=ip).allowed for _ in range(hits))


def test_isolated_limiters_begin_unused_and_get_their_counts_back() -> None:
    """What was counted before is out of sight inside and unchanged afterwards; what is counted inside is forgotten."""
    limiter = Limiter(HOUR, store=MemoryStore(clock=ManualClock()))
    assert admitted(limiter, 3) == 3
    with isolated():
        assert admitted(limiter, 6) == 5
    with isolated():
        assert admitted(limiter, 6) == 5
    assert admitted(limiter, 6) == 2


def test_a_limiter_made_inside_is_isolated_from_its_first_call(tmp_path: Path) -> None:
    """Its file is not written, and afterwards it works on its own store."""
    url = f"sqlite:///{tmp_path}/limits.db"
    with isolated() as limits:
        limiter = Limiter(HOUR, store=url)
        assert admitted(limiter, 6) == 5
        limits.travel(3600)
        assert admitted(limiter, 6) == 5
    with Limiter(HOUR, store=url) as other:
        assert admitted(other, 6) == 5
    assert admitted(limiter, 1) == 0, "the other limiter spent it in the file they share"
    limiter.close()


def test_limiters_that_share_a_store_go_on_sharing_one(tmp_path: Path) -> None:
    """One store object, or one file opened twice, is one fresh store inside; two stores stay two."""
    store = MemoryStore(clock=ManualClock())
    first, second, third = Limiter(HOUR, store=store), Limiter(HOUR, store=store), Limiter(HOUR)
    with isolated():
        assert admitted(first, 3) + admitted(second, 3) == 5
        assert admitted(third, 6) == 5
        files = [Limiter(HOUR, store=f"sqlite:///{tmp_path}/limits.db") for _ in range(2)]
        assert sum(admitted(limiter, 3) for limiter in files) == 5


def test_a_twin_of_either_kind_is_isolated_on_the_same_clock(tmp_path: Path) -> None:
    """An AsyncLimiter, over memory and over a file, is reset, moved through time and given back as a Limiter is."""

    async def run(store: object) -> None:
        limiter = AsyncLimiter(HOUR, store=store)  # type: ignore[arg-type]  # each kind in turn
        before = limiter.store
        with isolated() as limits:
            assert [(await limiter.hit(ip="a")).allowed for _ in range(6)] == [True] * 5 + [False]
            limits.travel(3600)
            assert (await limiter.hit(ip="a")).allowed
            limits.off()
            assert all([(await limiter.hit(ip="a")).allowed for _ in range(20)])
            limits.on()
            limits.reset()
            assert (await limiter.hit(ip="a")).remaining == 4
        assert limiter.store is before
        assert (await limiter.hit(ip="a")).remaining == 4
        await limiter.store.close()

    asyncio.run(run("memory://"))
    asyncio.run(run(f"sqlite:///{tmp_path}/a.db"))
    asyncio.run(run(SqliteStore(tmp_path / "b.db")))


def test_off_admits_everything_and_counts_nothing() -> None:
    """Switched off after it was made: twenty calls pass, and none of them is missed afterwards. Also those made while off."""
    limiter = Limiter(HOUR)
    with isolated() as limits:
        assert admitted(limiter, 2) == 2
        limits.off()
        later = Limiter(HOUR)
        assert admitted(limiter, 20) == admitted(later, 20) == 20
        limits.on()
        assert admitted(limiter, 6) == 3
        assert admitted(later, 6) == 5


def test_a_limiter_left_off_is_on_again_afterwards() -> None:
    """Neither ``off`` nor a changed quota leaks out of the block."""
    limiter = Limiter(HOUR)
    with isolated() as limits:
        limiter.change_quota("route", "1 per hour")
        assert admitted(limiter, 6) == 1
        limits.off()
    assert str(limiter.limits[0].quota) == "5/hour"
    assert admitted(limiter, 6) == 5


def test_reset_forgets_every_key_of_every_limiter_and_keeps_the_clock(tmp_path: Path) -> None:
    """One call clears them all, however many keys and limiters there are, those on a clock of their own too."""
    limiters = [Limiter(HOUR), Limiter(Limit("all", "5 per day"), store=f"sqlite:///{tmp_path}/limits.db")]
    with isolated() as limits:
        limiters.append(Limiter(HOUR, store=MemoryStore(clock=ManualClock())))
        limits.travel(Fraction(1, 3))
        before = limits.clock.now
        for ip in ("a", "b"):
            assert [admitted(limiter, 6, ip) for limiter in limiters] == [5, 5 if ip == "a" else 0, 5]
        limits.reset()
        assert [admitted(limiter, 6, "a") for limiter in limiters] == [5, 5, 5]
        assert limits.clock.now == before
    limiters[1].close()


def test_a_limiter_on_a_clock_of_its_maker_is_left_to_him() -> None:
    """A test that makes its limiter on its own ``ManualClock`` moves time itself; ``off`` still reaches it."""
    with isolated() as limits:
        clock = ManualClock()
        limiter = Limiter(HOUR, store=MemoryStore(clock=clock))
        assert admitted(limiter, 6) == 5
        limits.travel(3600)
        assert admitted(limiter, 1) == 0
        clock.advance(3600)
        assert admitted(limiter, 1) == 1
        limits.off()
        assert admitted(limiter, 20) == 20
    assert admitted(limiter, 6) == 4


def test_waiting_takes_no_real_time() -> None:
    """``wait`` inside moves the shared clock exactly as far as the limit says."""
    limiter = Limiter(Limit("pace", "1 per 60s", by="ip"))
    with isolated() as limits:
        start = limits.clock.now
        assert all(limiter.wait(ip="a").allowed for _ in range(4))
        assert limits.clock.now - start == 180 * 1_000_000_000


def test_a_function_decorated_long_before_is_isolated() -> None:
    """The decorator holds the limiter, so it sees the fresh store, the clock and the switch."""
    limiter = Limiter(Limit("route", "1 per hour", by="ip"))
    limited = limiter.limited(lambda ip: ip)
    limited("a")
    with isolated() as limits:
        assert limited("a") == "a"
        limits.travel(3600)
        assert limited("a") == "a"
        limits.off()
        assert [limited("a") for _ in range(20)] == ["a"] * 20


def test_isolations_nest() -> None:
    """The inner one has every limiter until it ends, those made in it too; the outer one finds its counts as they were."""
    limiter = Limiter(HOUR)
    with isolated() as outer:
        admitted(limiter, 4)
        with isolated() as inner:
            made = Limiter(HOUR)
            assert admitted(limiter, 6) == admitted(made, 6) == 5
            inner.travel(3600)
            assert admitted(made, 6) == 5
        assert admitted(limiter, 6) == 1
        outer.travel(3600)
        assert admitted(limiter, 6) == 5
    assert not base.on_creation


def test_an_error_inside_still_gives_everything_back() -> None:
    """A failing test does not leave the next one isolated."""
    limiter = Limiter(HOUR)
    store = limiter.store
    with pytest.raises(ZeroDivisionError), isolated():
        raise ZeroDivisionError
    assert limiter.store is store
    assert not base.on_creation


def test_isolation_keeps_no_limiter_alive() -> None:
    """A limiter that its test forgot is gone, and giving back the others goes well without it."""
    isolation = Isolation()
    with isolation:
        limiter = Limiter(HOUR)
        forgotten = weakref.ref(limiter)
        del limiter
        gc.collect()
        assert forgotten() is None


def test_a_store_opened_inside_is_closed_with_it(tmp_path: Path) -> None:
    """A limiter made and closed inside leaves no open file behind."""
    with isolated(), Limiter(HOUR, store=f"sqlite:///{tmp_path}/limits.db") as limiter:
        assert admitted(limiter, 1) == 1
    assert not list(tmp_path.glob("*-wal"))


def test_the_stand_in_of_a_store_that_is_away_is_fresh_too() -> None:
    """Keys counted by ``on_store_failure = local`` do not leak into a test or out of it."""
    limiter = Limiter(HOUR)
    stand_in = limiter._stand_in
    with isolated() as limits:
        inside = limiter._stand_in
        assert inside is not stand_in
        limits.reset()
        assert limiter._stand_in is not inside
    assert limiter._stand_in is not stand_in


@pytest.mark.parametrize("wrapped", [False, True])
def test_provided_quotas_are_asked_for_anew_inside_and_age_by_its_clock(wrapped: bool) -> None:
    """A test sees its own rows, not those of the test before; afterwards what was known before is known again."""
    rows = {"a": "5/min"}
    asked: list[str] = []

    def quota_of(request: Mapping[str, object]) -> str:
        asked.append(str(request["id"]))
        return rows[str(request["id"])]

    own = ProvidedLimit("own", quota_of, by="id", default="1/min", cache_seconds=30)
    limiter = Limiter(When({"id": "*"}, Overridden(own, {"z": "2/min"})) if wrapped else own)
    assert limiter.hit(id="a").remaining == 4
    with isolated() as isolation:
        rows["a"] = "7/min"
        assert limiter.hit(id="a").remaining == 6
        rows["a"] = "9/min"
        isolation.travel(29)
        assert str(limiter.peek(id="a").verdict.limits[0].quota) == "7/minute"
        isolation.travel(1)
        assert str(limiter.peek(id="a").verdict.limits[0].quota) == "9/minute"
        isolation.reset()
        rows["a"] = "3/min"
        assert limiter.hit(id="a").remaining == 2
        assert own.calls == 3
    assert limiter.hit(id="a").remaining == 3
    assert (own.calls, len(asked)) == (1, 4)


def test_shadow_limits_count_from_nothing_inside_and_go_on_afterwards() -> None:
    """What a test would have had refused is no part of the next one's report, nor of the application's."""
    limiter = Limiter(Limit("trial", "1/day", shadow=True))
    limiter.hit()
    with isolated():
        assert limiter.shadow_report().of("trial").requests == 0
        limiter.hit()
        limiter.hit()
        assert limiter.shadow_report().of("trial").would_refuse == 1
    assert limiter.shadow_report().of("trial").requests == 1


@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
def test_a_file_that_a_limiter_made_inside_names_is_not_touched(
    kind: type[Limiter] | type[AsyncLimiter], tmp_path: Path
) -> None:
    """It is not even created, be the limiter closed or not; outside it is, by the first decision."""
    file = tmp_path / "limits.db"
    with isolated():
        limiter = kind(HOUR, store=f"sqlite:///{file}")
        hit = limiter.hit(ip="a")
        assert (asyncio.run(hit) if isinstance(limiter, AsyncLimiter) else hit).allowed  # type: ignore[arg-type,union-attr]
        with pytest.raises(ConfigError, match="names no file"):
            kind(HOUR, store="sqlite:///")
    assert not list(tmp_path.iterdir())
    hit = limiter.hit(ip="a")
    assert (asyncio.run(hit) if isinstance(limiter, AsyncLimiter) else hit).remaining == 4  # type: ignore[arg-type,union-attr]
    assert file.exists()
    assert isinstance(pickle.loads(pickle.dumps(Limiter(HOUR, store=f"sqlite:///{file}"))), Limiter)
    closed = limiter.close()
    if closed is not None:
        asyncio.run(closed)
    assert type(Limiter(HOUR, store=f"sqlite:///{file}").store) is SqliteStore


def test_a_limiter_made_in_the_inner_one_is_the_outer_one_s_afterwards(tmp_path: Path) -> None:
    """Between the end of the inner isolation and the end of the outer one it does not work on its own store."""
    with isolated() as outer:
        with isolated():
            made = Limiter(HOUR, store=f"sqlite:///{tmp_path}/limits.db")
            assert admitted(made, 6) == 5
        assert admitted(made, 6) == 5
        outer.travel(3600)
        assert admitted(made, 6) == 5
        assert not list(tmp_path.iterdir())
    assert admitted(made, 6) == 5
    assert list(tmp_path.iterdir())
    made.close()


def test_isolations_that_stop_in_another_order_leave_no_trace() -> None:
    """Fixtures of different scopes may: the last to stop gives everything back."""
    limiter, store = Limiter(HOUR), None
    store = limiter.store
    assert admitted(limiter, 2) == 2
    first, second = Isolation(), Isolation()
    first.start()
    first.off()
    assert admitted(limiter, 9) == 9
    second.start()
    assert admitted(limiter, 6) == 5
    first.stop()
    assert admitted(limiter, 1) == 0, "the second one goes on"
    made = Limiter(HOUR, store=store)
    second.stop()
    assert limiter.store is made.store is store
    assert admitted(limiter, 6) == 3
    assert (base.on_creation, url.files) == ([], [])


def test_a_limiter_made_on_an_isolated_one_s_store_shares_it_inside_and_out(tmp_path: Path) -> None:
    """Also one of the other kind, and in an isolation within another: none is left on the test's memory and clock."""
    for place in ("memory://", f"sqlite:///{tmp_path}/limits.db"):
        first = Limiter(HOUR, store=place)
        own = first.store
        with isolated():
            outer = Limiter(HOUR, store=first.store)
            assert admitted(first, 3) + admitted(outer, 3) == 5
            with isolated() as inner:
                second, third = Limiter(HOUR, store=first.store), AsyncLimiter(HOUR, store=first.store)
                assert admitted(first, 3) + admitted(second, 1) == 4
                assert [asyncio.run(third.hit(ip="192.0.2.1")).allowed for _ in range(2)] == [True, False]
                inner.travel(3600)
                assert admitted(second, 6) == 5
            assert admitted(second, 1) == 0, "what the first and the outer one spent"
        assert first.store is second.store is outer.store is own
        assert admitted(first, 3) + admitted(second, 3) == 5
        assert not asyncio.run(third.hit(ip="192.0.2.1")).allowed
        assert second._timer is first._timer is not inner.clock
        first.close()


def test_an_isolation_starts_once_and_stops_once() -> None:
    """A second start is an error and changes nothing; a second stop is none."""
    isolation = Isolation()
    isolation.stop()
    with isolation:
        with pytest.raises(RuntimeError, match="has started already"):
            isolation.start()
        assert len(base.on_creation) == 1
    isolation.stop()
    assert not base.on_creation


def test_limiters_that_other_threads_make_meanwhile_are_isolated() -> None:
    """However the beginning of an isolation and the making of a limiter fall together."""
    made: list[Limiter] = []
    done = threading.Event()

    def make() -> None:
        while not done.is_set() and len(made) < 300:
            made.append(Limiter(HOUR))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with isolated() as limits:
                assert {id(limiter.store.clock) for limiter in list(made)} <= {id(limits.clock)}  # type: ignore[attr-defined]
            assert id(limits.clock) not in {id(limiter.store.clock) for limiter in list(made)}  # type: ignore[attr-defined]
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    ("seconds", "ns"),
    [
        (1, 10**9),
        (0.5, 5 * 10**8),
        (Fraction(1, 3), 333333333),
        (timedelta(days=-1), -86_400 * 10**9),
        (Decimal("1.5"), 15 * 10**8),
    ],
)
def test_time_passes_by_whatever_says_how_long(seconds: Any, ns: int) -> None:
    """Seconds of any kind of number, or a ``timedelta``."""
    clock = ManualClock(0)
    clock.advance(seconds)
    assert clock.now == ns
    assert ManualClock(timedelta(0)).advance(seconds) == ns


def test_a_clock_goes_to_a_moment_with_a_time_zone() -> None:
    """A ``datetime`` is taken at its word, exactly; one that says no zone means nothing."""
    moment = datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=1)))
    clock = ManualClock(moment)
    assert clock.now == 1_774_747_800_000_001_000
    clock.set(moment.astimezone(UTC) + timedelta(seconds=1))
    assert clock.now == 1_774_747_801_000_001_000
    with pytest.raises(ValueError, match="says no time zone"):
        clock.set(datetime(2026, 3, 29))  # noqa: DTZ001  # that is the point


@pytest.mark.parametrize("seconds", ["5", None, True, [1], float("nan"), float("inf"), Decimal("nan")])
def test_what_is_no_time_is_named(seconds: Any) -> None:
    """And the clock stays where it is."""
    with isolated() as limits:
        before = limits.clock.now
        for go in (limits.travel, limits.clock.advance, limits.clock.set, ManualClock):
            with pytest.raises((TypeError, ValueError), match=r"is no time; expected"):
                go(seconds)
        with pytest.raises(TypeError, match=r"ns is 1.5, a float; expected whole nanoseconds"):
            limits.clock.advance(ns=1.5)  # type: ignore[arg-type]
        assert limits.clock.now == before
