"""What is kept in Redis, for how long, at what price; scripts that are lost; forks, copies, sockets."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import time
from typing import Any

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio
import valkey

from headway import AsyncLimiter, Limit, Limiter
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Refused
from headway.errors import LimitError, StoreUnusable
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.stores.redis.keys import stored_key
from servers import Server, free_port, redis_server, sockets_to

ALL = (
    Limit("gcra", "5 per 2s", by="id"),
    Limit("gcra-third", "3 per 400ms", by="id"),
    Limit("queue", "5 per 2s", by="id", algorithm="leaky-bucket-queue"),
    Limit("fixed", "5 per 2s", by="id", algorithm="fixed-window"),
    Limit("anchored", "5 per 400ms", by="id", algorithm="anchored-window"),
    Limit("sliding", "5 per 2s", by="id", algorithm="sliding-window"),
    Limit("log", "5 per 400ms", by="id", algorithm="sliding-log"),
    Limit("held", "5 at once for 2s", by="id"),
    Limit("growing", "1 per 100ms", by="id", algorithm="growing-wait", longest="1s", forgiven_after="2s"),
    Limit("daily", "5/day in UTC", by="id"),
)


DAY_MS = 86_400_000


def client(server: Server, **options: Any) -> Any:
    return redis_py.Redis(port=server.port, **options)


LONG = (
    Limit("gcra", "5 per 200s", by="id"),
    Limit("gcra-third", "3 per 100s", by="id"),
    Limit("queue", "5 per 200s", by="id", algorithm="leaky-bucket-queue"),
    Limit("fixed", "5 per 36500 days", by="id", algorithm="fixed-window"),
    Limit("anchored", "5 per 200s", by="id", algorithm="anchored-window"),
    Limit("sliding", "5 per 200s", by="id", algorithm="sliding-window"),
    Limit("log", "5 per 200s", by="id", algorithm="sliding-log"),
    Limit("held", "5 at once for 200s", by="id"),
    Limit("growing", "1 per 100s", by="id", algorithm="growing-wait", longest="100s", forgiven_after="200s"),
    Limit("monthly", "5/month in UTC", by="id"),
)
"""The same for which a slow machine has time to look."""


def test_every_key_expires_by_itself(server: Server) -> None:
    """FS-13: admitted, refused, peeked and given back, in every algorithm: no key lives for ever or longer than it owes."""
    store = RedisStore(server.url, refusal_cache=0)
    owing = set()
    for limit in LONG:
        for number in range(20):
            charge = Charge("n", limit, f"k{number}", 1)
            answers = [store.advance([charge]) for _ in range(number % 8)]
            store.advance([charge], commit=False)
            store.advance([Charge("n", limit, f"looked-at{number}", 0)])
            if len(answers) > 1 or (answers and number > 8):
                owing.add(stored_key(charge))
            if len(answers) > 1 and isinstance(answers[0].outcomes[0], Admitted):
                store.change([Change(charge, Receipt(answers[0].now, 1, 0, answers[0].outcomes[0]), give_back=1)])
                if limit.name in ("held", "growing"):  # where one is all there is
                    owing.discard(stored_key(charge))
    watcher = client(server)
    longest = {"gcra-third": 100_000, "fixed": 36_500 * DAY_MS, "sliding": 400_000, "monthly": 31 * DAY_MS}
    parts = {stored_key(Charge("n", limit, "", 1))[:10]: limit.name for limit in LONG}
    alive = set(watcher.scan_iter())
    assert alive >= owing
    assert len(owing) > 100
    for key in alive:
        ttl = watcher.pttl(key)
        assert 0 < ttl <= longest.get(parts[key[:10]], 200_000) + 1, (key, ttl)
    assert not any(watcher.exists(stored_key(Charge("n", limit, "looked-at1", 0))) for limit in LONG)
    store.close()


def test_keys_of_short_limits_are_gone_soon(server: Server) -> None:
    """FS-13: a hundred keys of each algorithm that owe for milliseconds are made, and forgotten without anybody asking."""
    store = RedisStore(server.url, refusal_cache=0)
    watcher = client(server)
    before = watcher.info("stats")["expired_keys"]
    short = [limit for limit in ALL if limit.quota.period_ns <= 2 * 10**9]
    for number in range(100):
        store.advance([Charge("n", limit, f"k{number}", 1) for limit in short])
    assert -1 not in {watcher.pttl(key) for key in watcher.scan_iter()}
    until = time.monotonic() + 20
    while watcher.dbsize() and time.monotonic() < until:
        time.sleep(0.05)
    assert watcher.dbsize() == 0
    assert watcher.info("stats")["expired_keys"] - before == 100 * len(short)
    store.close()


def test_a_refusal_writes_nothing(redis: Server) -> None:
    """The value, and the instant of expiry, of every key are the same after a hundred refused calls."""
    store = RedisStore(redis.url, refusal_cache=0)
    limits = [
        Limit(limit.name, limit.quota, "id", algorithm=limit.algorithm) for limit in LONG if limit.name != "gcra-third"
    ]
    for limit in limits:
        store.advance([Charge("n", limit, "k", 5 if limit.name != "growing" else 1)])
    watcher = client(redis)
    before = {
        key: (watcher.get(key), watcher.pexpiretime(key) if redis_7(watcher) else None) for key in watcher.scan_iter()
    }
    for limit in limits:
        for _ in range(20):
            assert not store.advance([Charge("n", limit, "k", 4)]).allowed
    after = {
        key: (watcher.get(key), watcher.pexpiretime(key) if redis_7(watcher) else None) for key in watcher.scan_iter()
    }
    assert after == before
    store.close()


def redis_7(watcher: Any) -> bool:
    return int(watcher.info("server")["redis_version"].split(".")[0]) >= 7


@pytest.mark.parametrize(
    ("quota", "most"),
    [("100/s", 72), ("5 per minute", 72), ("1/day", 72), ("3/s", 104), ("11/day", 104), ("999983/s", 104)],
)
def test_a_key_costs_few_bytes_however_often_it_is_hit(server: Server, quota: str, most: int) -> None:
    """MEMORY USAGE of a GCRA key: at most 72 bytes where T is whole microseconds (Valkey at times 88), else 104, constant in hits and keys."""
    store = RedisStore(server.url)
    watcher = client(server)
    used = set()
    for key in ("k" * 24, "x" * 5000, "y", "z"):
        limit = Limit("a-limit-with-a-name-of-some-length", quota, by="id")
        charge = Charge("default", limit, key, max(1, limit.quota.burst // 5))
        for _ in range(5):
            store.advance([charge])
            held = watcher.memory_usage(stored_key(charge))
            if held is not None:
                used.add(held)
    assert used
    assert min(used) <= most
    assert max(used) <= (88 if most == 72 and "valkey" in server.command[0] else most)
    store.close()


def test_scripts_that_are_lost_are_loaded_again_and_nothing_counts_twice(server: Server) -> None:
    """FS-12 (long2ice/fastapi-limiter#19, #32, #68): after SCRIPT FLUSH each call is decided, once: AAAD."""
    limiter = Limiter(Limit("l", "3 per 365 days", by="id"), Limit("all", "100 per 365 days"), store=server.url)
    allowed = [limiter.hit(id="k").allowed]
    client(server).script_flush()
    allowed += [limiter.hit(id="k").allowed for _ in range(3)]
    assert allowed == [True, True, True, False]
    assert limiter.peek(id="other").outcomes["all"].remaining == 97 - 1
    client(server).script_flush()
    reservation = limiter.reserve(id="other")
    client(server).script_flush()
    assert reservation.cancel()
    assert limiter.peek(id="other", cost=0).outcomes["all"].remaining == 97
    limiter.close()


def test_ten_tasks_survive_a_script_flush(redis: Server) -> None:
    """FS-12: decisions that travel together are decided once each when their script is gone."""

    async def main() -> int:
        limiter = AsyncLimiter(Limit("l", "50 per 365 days"), store=redis.url)
        await limiter.hit()
        client(redis).script_flush()
        decisions = await asyncio.gather(*(limiter.hit() for _ in range(60)))
        await limiter.close()
        return sum(decision.allowed for decision in decisions)

    assert asyncio.run(main()) == 49


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decode", [False, True])
def test_a_clients_options_make_no_difference(server: Server, protocol: int, decode: bool) -> None:
    """RESP2 and RESP3, decoded or not, redis-py and valkey-py, sync and async clients: the same decisions."""
    clients = [
        redis_py.Redis(port=server.port, protocol=protocol, decode_responses=decode),
        redis_asyncio.Redis(port=server.port, protocol=protocol, decode_responses=decode),
        valkey.Valkey(port=server.port, protocol=protocol, decode_responses=decode),
        f"{server.url}&protocol={protocol}",
    ]
    limit = Limit("l", "3 per 365 days", by="id")
    for number, where in enumerate(clients):
        with RedisStoreOpened(where) as store:
            left = [store.advance([Charge("n", limit, f"k{number}", 1)]).outcomes[0].remaining for _ in range(4)]
        assert left == [2, 1, 0, 0]


class RedisStoreOpened:
    def __init__(self, where: object) -> None:
        self.store = RedisStore(where, deadline=5)

    def __enter__(self) -> RedisStore:
        return self.store

    def __exit__(self, *_: object) -> None:
        self.store.close()


def test_a_password_and_a_database_are_used() -> None:
    """AUTH and SELECT are said before anything else; a wrong password names the server and what it said."""
    limit = Limit("l", "3 per 365 days", by="id")
    with redis_server("redis-6.2", "--requirepass", "secret") as server:
        right = f"redis://:secret@127.0.0.1:{server.port}/3"
        with RedisStoreOpened(right) as store:
            assert store.advance([Charge("n", limit, "k", 1)]).allowed
        with RedisStoreOpened(right + "?protocol=3") as store:
            assert store.advance([Charge("n", limit, "k", 1)]).outcomes[0].remaining == 1
        assert client(server, password="secret", db=3).dbsize() == 1
        with (
            RedisStoreOpened(f"redis://:wrong@127.0.0.1:{server.port}") as store,
            pytest.raises(StoreUnusable, match=r"WRONGPASS|invalid password"),
        ):
            store.advance([Charge("n", limit, "k", 1)])
        with RedisStoreOpened(server.url) as store, pytest.raises(StoreUnusable, match="NOAUTH"):
            store.advance([Charge("n", limit, "k", 1)])


def test_a_quota_that_doubles_cannot_hold_is_refused_at_construction(redis: Server) -> None:
    """The limiter names the limit, the number and the bound before it decides anything."""
    from headway.core.quota import Quota

    odd = Quota(10, 10**16 + 1)
    with pytest.raises(
        LimitError, match=r"'l': a sliding window of 10000000000000001 ns .* at most 9007199254740992 ns"
    ):
        Limiter(Limit("l", odd, algorithm="sliding-window"), store=redis.url)
    with pytest.raises(LimitError, match=r"'l': a sliding window of 10000000000000001 ns"):
        Limiter(Limit("held", "3 at once"), Limit("l", odd, algorithm="sliding-window"), store=redis.url)


def test_times_are_the_servers_and_on_its_grid(redis: Server) -> None:
    """The decision's clock is Redis's, in whole microseconds; a wait told is enough and not too long."""
    limiter = Limiter(Limit("l", "50/s burst 1", by="id"), store=redis.url)
    while (refused := limiter.hit(id="k")).allowed:
        pass  # a busy machine is slower than the limit
    assert isinstance(refused.binding, Refused)
    assert 0 < refused.retry_after <= 0.02
    until = time.monotonic() + refused.retry_after
    while time.monotonic() < until:
        pass
    assert limiter.hit(id="k").allowed
    limiter.close()


def test_a_copy_connects_for_itself(redis: Server) -> None:
    """A pickled store, and a limiter's, decide on the same state through connections of their own."""
    limit = Limit("l", "3 per 365 days", by="id")
    store = RedisStore(redis.url, deadline=6, refusal_cache=0.5, share="1/2")
    store.advance([Charge("n", limit, "k", 1)])
    copied = pickle.loads(pickle.dumps(store))
    assert (copied.deadline, copied.refusal_cache, copied.share) == (store.deadline, store.refusal_cache, store.share)
    assert copied.advance([Charge("n", limit, "k", 1)]).outcomes[0].remaining == 1
    later = pickle.loads(pickle.dumps(AsyncRedisStore(redis.url)))
    assert asyncio.run(_closing(later, [Charge("n", limit, "k", 1)])).outcomes[0].remaining == 0
    copied.close()
    store.close()


def test_a_pickled_limiter_works_on(redis: Server) -> None:
    """A limiter of either kind, sent elsewhere, decides on the same state with the same options through its own sockets."""
    limit = Limit("l", "4 per 365 days", by="id")
    limiter = Limiter(limit, store=redis.url)
    assert limiter.hit(id="k").remaining == 3
    copied = pickle.loads(pickle.dumps(limiter))
    assert copied.hit(id="k").remaining == 2
    limiter.close()
    assert copied.hit(id="k").remaining == 1
    copied.close()

    async def main() -> int | None:
        later = pickle.loads(pickle.dumps(AsyncLimiter(limit, store=redis.url)))
        decision = await later.hit(id="k")
        await later.close()
        return decision.remaining  # type: ignore[no-any-return]  # pickle does not say

    assert asyncio.run(main()) == 0


async def _closing(store: AsyncRedisStore, charges: list[Charge]) -> Any:
    try:
        return await store.advance(charges)
    finally:
        await store.close()


def _spend(url: str, times: int) -> list[int]:
    limiter = Limiter(Limit("l", "100 per 365 days", by="id"), store=url)
    decisions = [limiter.hit(id="k") for _ in range(times)]
    limiter.close()
    return [decision.outcomes["l"].remaining for decision in decisions if decision.allowed]


def test_processes_share_the_budget(server: Server) -> None:
    """Four processes of fifty calls each: a hundred pass, each balance told once."""
    _spent_by_processes("fork", server.url)


def test_fresh_processes_share_the_budget(redis: Server) -> None:
    """So do processes that inherit nothing."""
    _spent_by_processes("spawn", redis.url)


def _spent_by_processes(method: str, url: str) -> None:
    with multiprocessing.get_context(method).Pool(4) as pool:
        told = pool.starmap(_spend, [(url, 50)] * 4, chunksize=1)
    assert sorted(left for one in told for left in one) == list(range(100))


def test_a_child_shares_no_socket_with_its_parent(redis: Server) -> None:
    """After a fork the child's store connects anew, and the parent's connection goes on undisturbed."""
    store = RedisStore(redis.url, deadline=5)
    limit = Limit("l", "100 per 365 days", by="id")
    others = sockets_to(redis.port)
    store.advance([Charge("n", limit, "k", 1)])
    inherited = sockets_to(redis.port) - others
    assert len(inherited) == 1
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            left = store.advance([Charge("n", limit, "k", 1)]).outcomes[0].remaining
            os.write(writing, f"{left} {len(sockets_to(redis.port) & inherited)}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() == "98 0"
    os.close(reading)
    os.close(writing)
    for expected in (97, 96, 95):
        assert store.advance([Charge("n", limit, "k", 1)]).outcomes[0].remaining == expected
    store.close()


def test_ten_thousand_limiters_take_one_socket(redis: Server) -> None:
    """Limiters with the same URL share their connections; the last one to close closes them; none is left behind."""
    before = len(sockets_to(redis.port))
    limit = Limit("l", "100000 per 60s", by="id")
    limiters = [Limiter(limit, store=redis.url) for _ in range(10_000)]
    for limiter in limiters[::100]:
        limiter.hit(id="k")
    assert len(sockets_to(redis.port)) - before == 1
    for limiter in limiters:
        limiter.close()
    assert len(sockets_to(redis.port)) == before
    for _ in range(200):
        Limiter(limit, store=redis.url).hit(id="k")
    del limiter, limiters
    assert len(sockets_to(redis.port)) - before <= 1


def test_a_closed_store_may_be_used_again(redis: Server) -> None:
    """A decision after ``close`` opens a connection anew."""
    store = RedisStore(redis.url)
    limit = Limit("l", "3 per 365 days", by="id")
    for expected in (2, 1, 0):
        assert store.advance([Charge("n", limit, "k", 1)]).outcomes[0].remaining == expected
        store.close()


def test_a_reservation_outlives_its_units(redis: Server) -> None:
    """Units that have recovered long before the lease ends can still be settled for more: the debt is charged."""
    store = RedisStore(redis.url)
    limit = Limit("l", "1000/s burst 10", by="id")
    charge = Charge("n", limit, "k", 1, Lease(7, 60 * 10**9))
    answer = store.advance([charge])
    assert isinstance(answer.outcomes[0], Admitted)
    until = time.monotonic() + 0.01
    while time.monotonic() < until:
        pass
    assert client(redis).pttl(stored_key(charge)) > 50_000
    assert store.change([Change(charge, Receipt(answer.now, 1, 7, answer.outcomes[0]), take=100_000)]) == (True,)
    assert not store.advance([Charge("n", limit, "k", 1)]).allowed
    store.close()


def test_a_changed_quota_visits_every_key(redis: Server) -> None:
    """``proportional`` keeps the share in use of each of a thousand keys, ``reset`` forgets them, others are untouched."""
    limiter = Limiter(Limit("l", "10 per 365 days", by="id"), Limit("m", "10 per 365 days", by="id"), store=redis.url)
    for number in range(700):
        limiter.hit(id=f"k{number}", cost=5)
    limiter.change_quota("l", "1000 per 365 days", keep="proportional")
    for number in range(0, 700, 50):
        outcomes = limiter.peek(id=f"k{number}", cost=0).outcomes
        assert outcomes["l"].remaining == 500
        assert outcomes["m"].remaining == 5
    limiter.change_quota("l", "20 per 365 days", keep="reset")
    assert limiter.peek(id="k5", cost=0).outcomes["l"].remaining == 20
    assert limiter.peek(id="k5", cost=0).outcomes["m"].remaining == 5
    limiter.close()


def test_an_unused_port_is_said_to_be_one() -> None:
    """Where nobody listens the error names the place."""
    port = free_port()
    from headway.errors import StoreUnavailable

    with (
        RedisStoreOpened(f"redis://127.0.0.1:{port}") as store,
        pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}: .*refused"),
    ):
        store.advance([Charge("n", ALL[0], "k", 1)])
