"""A real cluster of three: any mix of keys, all or nothing, resharding, a node that dies."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
import redis.cluster

from headway import AsyncLimiter, Limit, Limiter
from headway.core.charge import Charge
from headway.core.outcome import Admitted, Refused
from headway.errors import StoreError, StoreUnavailable
from headway.stores.base import Store
from headway.stores.redis import AsyncRedisStore, RedisStore
from headway.stores.redis.keys import slot_of, stored_key
from headway.testing import StoreConformance, blocking
from servers import ALSO, Cluster, proxy, redis_cluster, redis_cluster_replica

YEAR = "365 days"


@pytest.fixture(scope="module", params=["redis-6.2", "valkey-9", *ALSO])
def running(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with redis_cluster(request.param) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    running.flush()
    return running


class TestRedisClusterStore(StoreConformance):
    """A cluster keeps the whole contract, between processes too."""

    shared = True
    grid_ns = 1000

    @pytest.fixture(autouse=True)
    def place(self, cluster: Cluster) -> None:
        self.url = cluster.url

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return RedisStore(self.url, clock=clock)


class TestAsyncRedisClusterStore(TestRedisClusterStore):
    """So does its twin."""

    def open_store(self, clock: Callable[[], int] | None) -> Store:
        return blocking(AsyncRedisStore(self.url, clock=clock))


def key_on(cluster: Cluster, number: int, limit: Limit, beginning: str = "k") -> str:
    """A key of that limit that lives on the node of that number."""
    for suffix in range(1000):
        key = f"{beginning}{suffix}"
        if cluster.owner[slot_of(stored_key(Charge("default", limit, key, 1)))] == number:
            return key
    raise AssertionError("no key found")


def spread(cluster: Cluster) -> tuple[list[Limit], dict[str, str]]:
    """Three limits, and attributes whose keys live on three nodes."""
    limits = [Limit(name, f"{count} per {YEAR}", by=name) for name, count in (("a", 100), ("b", 10), ("c", 1000))]
    return limits, {limit.name: key_on(cluster, number, limit) for number, limit in enumerate(limits)}


def test_limits_on_three_nodes_are_charged_all_or_none(cluster: Cluster) -> None:
    """B admits 10: after 10 requests 30 more are refused by b, and a and c stand at 10 charges each, in any order."""
    limits, attributes = spread(cluster)
    for order in (limits, limits[::-1]):
        cluster.flush()
        limiter = Limiter(*order, store=cluster.url + "&refusal_cache=0")
        decisions = [limiter.hit(attributes) for _ in range(40)]
        assert [decision.allowed for decision in decisions] == [True] * 10 + [False] * 30
        assert decisions[-1].limit == "b"
        told = {name: outcome.remaining for name, outcome in decisions[-1].outcomes.items()}
        assert told == {"a": 90, "b": 0, "c": 990}
        looked = limiter.peek(attributes, cost=0).outcomes
        assert {name: outcome.remaining for name, outcome in looked.items()} == told
        limiter.close()


@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
def test_who_was_refused_for_units_that_came_back_is_not_refused_after_it(cluster: Cluster, kind: Any) -> None:
    """What a bill was charged on one node and refused on another stands in nobody's way once it is undone."""
    few, none = Limit("a", f"1 per {YEAR}", by="a"), Limit("b", f"1 per {YEAR}", by="b")
    who = {"a": key_on(cluster, 0, few), "b": key_on(cluster, 1, none)}

    async def main() -> None:
        store = AsyncRedisStore(cluster.url)
        both, one = AsyncLimiter(few, none, store=store), AsyncLimiter(few, store=store)
        await AsyncLimiter(none, store=store).hit(who)
        for _ in range(20):
            asked = [both.hit(who) for _ in range(3)] + [one.hit(who) for _ in range(3)]
            admitted = [decision for decision in await asyncio.gather(*asked) if decision.allowed]
            admitted = admitted or [await one.hit(who)]
            assert [decision.allowed for decision in admitted] == [True]
            await one.refund(admitted[0])
        await store.close()

    def threads() -> None:
        store = RedisStore(cluster.url)
        both, one = Limiter(few, none, store=store), Limiter(few, store=store)
        Limiter(none, store=store).hit(who)
        for _ in range(20):
            with ThreadPoolExecutor(3) as pool:
                told = list(pool.map(lambda limiter: limiter.hit(who), (both, one, both)))
            admitted = [decision for decision in told if decision.allowed] or [one.hit(who)]
            assert [decision.allowed for decision in admitted] == [True]
            one.refund(admitted[0])
        store.close()

    threads() if kind is Limiter else asyncio.run(main())


def test_limits_with_the_same_key_travel_together(cluster: Cluster) -> None:
    """FS-11: limits keyed by the same attribute live in one slot and are one script call, however braces stand in the value."""
    limits = [Limit(name, f"5 per {YEAR}", by="user") for name in ("a", "b", "c")]
    for value in ("user-1", "a}b{c", "{", "{}x", "user:{42}"):
        keys = {stored_key(Charge("default", limit, value, 1)) for limit in limits}
        assert len({slot_of(key) for key in keys}) == 1
        said = cluster.servers[0].ask(b"CLUSTER", b"KEYSLOT", min(keys))
        assert said == b":%d\r\n" % slot_of(min(keys))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_racing_requests_never_pass_more_than_the_tightest(cluster: Cluster, kind: str) -> None:
    """Forty callers over limits on three nodes: never more than b's 10 pass, and what was given back is there again."""
    limits, attributes = spread(cluster)
    allowed = _race_async(cluster, limits, attributes) if kind == "async" else _race(cluster, limits, attributes)
    limiter = Limiter(*limits, store=cluster.url)
    for limit, outcome in zip(limits, limiter.peek(attributes, cost=0).outcomes.values(), strict=True):
        interval = limit.quota.period_ns / limit.quota.count
        assert abs(outcome.reset_after - allowed * interval) < 60e9, limit.name  # no unit is less than eight hours
    assert 1 <= allowed <= 10
    limiter.close()


def _race(cluster: Cluster, limits: list[Limit], attributes: dict[str, str]) -> int:
    limiter = Limiter(*limits, store=cluster.url + "&refusal_cache=0")
    passed: list[bool] = []
    workers = [
        threading.Thread(target=lambda: passed.extend(limiter.hit(attributes).allowed for _ in range(10)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    limiter.close()
    return sum(passed)


def _race_async(cluster: Cluster, limits: list[Limit], attributes: dict[str, str]) -> int:
    async def main() -> int:
        limiter = AsyncLimiter(*limits, store=cluster.url + "&refusal_cache=0")
        decisions = await asyncio.gather(*(limiter.hit(attributes) for _ in range(40)))
        await limiter.close()
        return sum(decision.allowed for decision in decisions)

    return asyncio.run(main())


def test_refunds_reservations_and_partial_grants_work_over_nodes(cluster: Cluster) -> None:
    """What a decision charged on three nodes is given back on three nodes; ``up_to`` grants what fits all."""
    limits, attributes = spread(cluster)
    limiter = Limiter(*limits, store=cluster.url)

    def standing() -> dict[str, int]:
        return {name: outcome.remaining for name, outcome in limiter.peek(attributes, cost=0).outcomes.items()}

    decision = limiter.hit(attributes, cost=4)
    assert standing() == {"a": 96, "b": 6, "c": 996}
    assert limiter.refund(decision)
    assert standing() == {"a": 100, "b": 10, "c": 1000}
    reservation = limiter.reserve(attributes, cost=5)
    assert reservation.commit(2)
    assert standing() == {"a": 98, "b": 8, "c": 998}
    assert limiter.hit(attributes, up_to=50).granted == 8
    assert standing() == {"a": 90, "b": 0, "c": 990}
    assert limiter.reset(**attributes) == ("a", "b", "c")
    assert standing() == {"a": 100, "b": 10, "c": 1000}
    limiter.close()


def test_a_slot_that_moves_while_it_is_used_loses_no_charge(cluster: Cluster) -> None:
    """Before, during (ASK) and after (MOVED) a resharding each decision is made once, by two stores that learn it by replies."""
    limit = Limit("l", f"1000 per {YEAR}", by="id")
    store, later = RedisStore(cluster.url), blocking(AsyncRedisStore(cluster.url))
    charge = Charge("default", limit, key_on(cluster, 0, limit), 1)
    slot = slot_of(stored_key(charge))
    left = 1000

    def hits() -> None:
        nonlocal left
        for one in (store, later):
            left -= 1
            outcome = one.advance([charge]).outcomes[0]
            assert isinstance(outcome, Admitted)
            assert outcome.remaining == left

    hits()
    cluster.begin_move(slot, 1)
    hits()
    assert cluster.move_keys(slot, 1) == 1
    hits()
    cluster.end_move(slot, 1)
    hits()
    hits()
    store.close()
    later.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_resharding_during_load_counts_each_decision_once(cluster: Cluster, kind: str) -> None:
    """While a slot goes to and fro, callers of one limit in it and two more elsewhere are each told a balance of their own."""
    limits, attributes = spread(cluster)
    limits = [Limit(limit.name, f"100000 per {YEAR}", by=limit.name) for limit in limits]
    slot = slot_of(stored_key(Charge("default", limits[0], attributes["a"], 1)))
    load = _Load(kind, cluster, limits, attributes)
    for to in (1, 2, 0):
        load.wait_for_more()
        cluster.begin_move(slot, to)
        load.wait_for_more()
        while cluster.move_keys(slot, to):
            pass
        load.wait_for_more()
        cluster.end_move(slot, to)
    told = load.end()
    assert not load.problems
    for name in "abc":
        assert len({one[name] for one in told}) == len(told), name
    limiter = Limiter(*limits, store=cluster.url)
    looked = {name: outcome.remaining for name, outcome in limiter.peek(attributes, cost=0).outcomes.items()}
    assert looked == dict.fromkeys("abc", 100_000 - len(told))
    limiter.close()


class _Load:
    """Four threads, or sixteen tasks, that hit again and again."""

    def __init__(self, kind: str, cluster: Cluster, limits: list[Limit], attributes: dict[str, str]) -> None:
        self.told: list[dict[str, int]] = []
        self.problems: list[str] = []
        self._stop = threading.Event()
        url = cluster.url + "&refusal_cache=0"

        def note(decision: Any) -> None:
            if decision.degraded:
                self.problems.append(decision.degraded)
            else:
                self.told.append({name: outcome.remaining for name, outcome in decision.outcomes.items()})

        def work() -> None:
            limiter = Limiter(*limits, store=url)
            while not self._stop.is_set():
                note(limiter.hit(attributes))
            limiter.close()

        async def main() -> None:
            limiter = AsyncLimiter(*limits, store=url)

            async def work() -> None:
                while not self._stop.is_set():
                    note(await limiter.hit(attributes))

            await asyncio.gather(*(work() for _ in range(16)))
            await limiter.close()

        targets = [work] * 4 if kind == "sync" else [lambda: asyncio.run(main())]
        self._workers = [threading.Thread(target=target) for target in targets]
        for worker in self._workers:
            worker.start()

    def wait_for_more(self) -> None:
        before = len(self.told)
        _wait_until(lambda: len(self.told) > before + 20 or bool(self.problems))

    def end(self) -> list[dict[str, int]]:
        self._stop.set()
        for worker in self._workers:
            worker.join(30)
        return self.told


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_bill_half_of_whose_keys_have_moved_waits_for_the_rest(cluster: Cluster, kind: str) -> None:
    """TRYAGAIN: two keys of one slot on two nodes cannot be decided together; the call tries again until they are together."""
    limits = [Limit(name, f"1000 per {YEAR}", by="id") for name in ("m", "n")]
    key = key_on(cluster, 0, limits[0])
    charges = [Charge("default", limit, key, 1) for limit in limits]
    slot = slot_of(stored_key(charges[0]))
    store = RedisStore(cluster.url) if kind == "sync" else blocking(AsyncRedisStore(cluster.url))
    assert store.advance(charges).outcomes[0].remaining == 999
    cluster.begin_move(slot, 1)
    assert cluster.move_keys(slot, 1, at_most=1) == 1
    done: list[int] = []
    worker = threading.Thread(target=lambda: done.append(store.advance(charges).outcomes[0].remaining))
    worker.start()
    worker.join(0.02)
    while cluster.move_keys(slot, 1):
        pass
    cluster.end_move(slot, 1)
    worker.join(20)
    assert done == [998]
    assert store.advance(charges).outcomes[1].remaining == 997
    store.close()
    cluster.begin_move(slot, 0)
    while cluster.move_keys(slot, 0):
        pass
    cluster.end_move(slot, 0)


def test_a_dead_node_fails_its_own_keys_alone(cluster: Cluster) -> None:
    """Keys of the others are decided as before; what was charged elsewhere for a bill of the dead node is given back."""
    limits, attributes = spread(cluster)
    limiter = Limiter(*limits, store=cluster.url + "&refusal_cache=0")
    store = RedisStore(cluster.url)
    alone = [Charge("default", limits[2], attributes["c"], 1)]
    while limiter.hit(attributes).degraded:
        pass
    before = store.advance(alone).outcomes[0].remaining
    dead = cluster.servers[1]
    dead.kill()
    try:
        for _ in range(6):
            decision = limiter.hit(attributes)
            assert not decision.allowed
            assert str(dead.port) in str(decision.degraded) or "CLUSTERDOWN" in str(decision.degraded)
        answer = store.advance(alone)
        assert answer.allowed
        assert answer.outcomes[0].remaining == before - 1
    finally:
        dead.start()
    _wait_until(lambda: limiter.hit(attributes).degraded is None)
    limiter.close()
    store.close()


def _wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(500):
        try:
            if true():
                return
        except StoreError:
            pass
        pause.wait(0.05)
    raise AssertionError("it did not come back")


def test_after_a_failover_in_the_cluster_the_new_master_decides() -> None:
    """A master dies and its replica is promoted: the same stores find it, and it knows what was charged."""
    with redis_cluster("redis-6.2") as own, redis_cluster_replica("redis-6.2", own, 1) as replica:
        limits, attributes = spread(own)
        charges = [Charge("default", limit, attributes[limit.name], 1) for limit in limits]
        url = own.url.replace("5s", "1s") + "&refusal_cache=0"
        stores: list[Any] = [RedisStore(url), blocking(AsyncRedisStore(url))]
        for store in stores:
            assert store.advance(charges).allowed
        master = own.servers[1]
        master.replicated()
        master.kill()
        unknown = 0  # calls whose answer was lost: each may have been charged

        def admitted(store: Any) -> bool:
            nonlocal unknown
            try:
                return bool(store.advance(charges).allowed)
            except StoreUnavailable as error:
                unknown += f":{replica.port}" in str(error) and "no answer" in str(error)
                raise

        for store in stores:
            _wait_until(partial(admitted, store))
        assert b"role:master" in replica.ask(b"INFO", b"replication")
        told = [store.advance([charges[1]]).outcomes[0].remaining for store in stores]
        expected = limits[1].quota.count - 5
        assert expected - unknown <= told[0] <= expected
        assert told[1] == told[0] - 1
        for store in stores:
            store.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_node_that_hangs_costs_a_call_one_deadline(cluster: Cluster, kind: str) -> None:
    """However many nodes a bill needs, its time is up once; what the others charged for it is given back all the same."""
    limits, attributes = spread(cluster)
    charges = [Charge("default", limit, attributes[limit.name], 1) for limit in limits]
    store = RedisStore(cluster.url) if kind == "sync" else blocking(AsyncRedisStore(cluster.url))
    assert store.advance(charges).allowed
    short = cluster.url.replace("5s", "2s")
    hasty = RedisStore(short) if kind == "sync" else blocking(AsyncRedisStore(short))
    assert hasty.advance(charges).allowed
    hanging = cluster.servers[1]
    hanging.pause()
    try:
        for _ in range(2):
            begin = time.monotonic()
            with pytest.raises(StoreUnavailable, match=str(hanging.port)):
                hasty.advance(charges)
            assert time.monotonic() - begin < 2 + 0.25 + 1.7  # the last for a busy machine; two deadlines are 4 s
        for number in (0, 2):
            outcome = store.advance([charges[number]], commit=False).outcomes[0]
            assert outcome.remaining == limits[number].quota.count - 2 - 1  # a peek tells what a hit would leave
    finally:
        hanging.resume()
    _wait_until(lambda: hasty.advance(charges).allowed)
    store.close()
    hasty.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_all_nodes_that_hang_cost_a_call_one_deadline(cluster: Cluster, kind: str) -> None:
    """Three silent nodes are waited for at the same time, not one after the other."""
    limits, attributes = spread(cluster)
    charges = [Charge("default", limit, attributes[limit.name], 1) for limit in limits]
    url = cluster.url.replace("5s", "2s")
    store = RedisStore(url) if kind == "sync" else blocking(AsyncRedisStore(url))
    assert store.advance(charges).allowed
    for server in cluster.servers:
        server.pause()
    try:
        begin = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no answer within"):
            store.advance(charges)
        assert time.monotonic() - begin < 2 + 1.9  # the last for a busy machine; two deadlines are 4 s
    finally:
        for server in cluster.servers:
            server.resume()
    _wait_until(lambda: store.advance(charges).allowed)
    store.close()


def test_changed_quotas_and_clearing_walk_through_all_nodes(cluster: Cluster) -> None:
    """``change_quota`` finds the keys of every node."""
    limiter = Limiter(Limit("l", f"10 per {YEAR}", by="id"), store=cluster.url)
    for number in range(60):
        limiter.hit(id=f"k{number}", cost=5)
    limiter.change_quota("l", f"100 per {YEAR}", keep="proportional")
    assert {limiter.peek(id=f"k{number}", cost=0).outcomes["l"].remaining for number in range(60)} == {50}
    limiter.change_quota("l", f"100 per {YEAR}", keep="reset")
    assert {limiter.peek(id=f"k{number}", cost=0).outcomes["l"].remaining for number in range(60)} == {100}
    limiter.close()


def test_a_cluster_client_tells_where_its_nodes_are(cluster: Cluster) -> None:
    """A redis-py cluster client can be brought."""
    client: Any = redis.cluster.RedisCluster(host="127.0.0.1", port=cluster.servers[0].port)
    store = RedisStore(client, deadline=5)
    limit = Limit("l", f"5 per {YEAR}", by="id")
    answers = [store.advance([Charge("n", limit, "k", 1)]) for _ in range(6)]
    assert [type(answer.outcomes[0]) for answer in answers] == [Admitted] * 5 + [Refused]
    store.close()
    client.close()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_cluster_behind_other_addresses_is_reached_by_the_clients_map(cluster: Cluster, kind: str) -> None:
    """Where a client says how to reach the addresses that nodes name, no node is reached otherwise, also when sent on."""
    limits, attributes = spread(cluster)
    charges = [Charge("default", limit, attributes[limit.name], 1) for limit in limits]
    with ExitStack() as stack:
        fronts = {server.port: stack.enter_context(proxy(server.port)) for server in cluster.servers}
        front = fronts[cluster.servers[0].port]
        client: Any = redis.cluster.RedisCluster(
            host="127.0.0.1",
            port=front.port,
            address_remap=lambda place: (place[0], fronts[place[1]].port if place[1] in fronts else place[1]),
        )
        store = RedisStore(client, deadline=5) if kind == "sync" else blocking(AsyncRedisStore(client, deadline=5))
        before = [one.accepted for one in fronts.values()]
        assert store.advance(charges).allowed
        assert all(now > then for now, then in zip([one.accepted for one in fronts.values()], before, strict=True))
        store.close()
        client.close()


def test_a_server_that_is_no_cluster_is_said_to_be_none() -> None:
    """Where no node tells the slots the error says what each answered."""
    from servers import redis_server

    with redis_server("redis-6.2") as server:
        store = RedisStore(f"redis+cluster://127.0.0.1:{server.port}", deadline=5)
        with pytest.raises(StoreUnavailable, match=r"no node tells the cluster's slots .*cluster support disabled"):
            store.advance([Charge("n", Limit("l", "1/s"), (), 1)])
        store.close()
