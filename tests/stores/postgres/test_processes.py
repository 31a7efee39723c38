"""Fork, spawn, pickles and many limiters: every process has its own connections, and none is left behind."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from headway import AsyncLimiter, Limit, Limiter
from headway.stores.postgres.aio import AsyncPostgresStore
from headway.stores.postgres.connections import sockets as ours
from headway.stores.postgres.sync import PostgresStore
from stores.postgres.server import PostgresServer

pytestmark = [
    pytest.mark.xdist_group("postgres"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]

LIMIT = Limit("l", "100 per 365 days", by="id")


@pytest.fixture
def url(url: str, schema: str) -> str:
    """The server, told who asks."""
    return f"{url}&application_name={schema}"


@pytest.fixture
def connected(server: PostgresServer, schema: str) -> Iterator[Callable[[], int]]:
    """How many connections to this test's URL the server has: those of the test before may be ending still."""
    with psycopg.connect(server.url, autocommit=True) as looking:

        def count() -> int:
            found = looking.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (schema,)
            ).fetchone()
            assert found is not None
            return int(found[0])

        yield count


def eventually(wanted: Callable[[], bool]) -> None:
    """Backends end a moment after their connections."""
    limit = time.monotonic() + 20
    while not wanted():
        assert time.monotonic() < limit
        time.sleep(0.02)


def sockets() -> set[str]:
    """The sockets that this process has open."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = str(descriptor.readlink())
        except OSError:
            continue
        if name.startswith("socket:"):
            found.add(name)
    return found


def hits(limiter: Limiter, told: multiprocessing.Queue[object]) -> None:
    """What a child is told, and whether it has a socket of its parent's."""
    told.put([limiter.hit(id="x").remaining for _ in range(5)])


def test_a_forked_child_connects_for_itself(url: str) -> None:
    """Parent and child decide on at the same time; the child has none of the parent's sockets, and its end harms nobody."""
    limiter = Limiter(LIMIT, store=url)
    seen = [limiter.hit(id="x").remaining]
    before = {str(Path(f"/proc/self/fd/{one.pgconn.socket}").readlink()) for one in ours if not one.closed}
    assert before
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            mine = [limiter.hit(id="x").remaining for _ in range(5)]
            os.write(send, repr((len(before & sockets()), mine)).encode())
            code = 0
        finally:
            os._exit(code)
    seen += [limiter.hit(id="x").remaining for _ in range(5)]
    assert os.waitpid(child, 0)[1] == 0
    os.close(send)
    with os.fdopen(receive) as said:
        shared, mine = eval(said.read())
    seen += [limiter.hit(id="x").remaining for _ in range(5)]
    assert shared == 0
    assert sorted([*seen, *mine], key=int) == list(range(84, 100))
    limiter.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is what is tested
def test_no_child_has_a_socket_of_a_connection_that_is_being_made(url: str) -> None:
    """Thirty forks while another thread does nothing but connect: no child has any of its parent's sockets."""
    over = threading.Event()

    def connect() -> None:
        number = 0
        while not over.is_set():
            number += 1  # connections are shared by URL and deadline
            with Limiter(LIMIT, store=url.replace("deadline=10s", f"deadline={10_000 + number}ms")) as limiter:
                limiter.hit(id="x")

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        others = sockets()
        codes = []
        for _ in range(30):
            over.wait(0.01)
            child = os.fork()
            if child == 0:
                os._exit(len(sockets() - others))
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    finally:
        over.set()
        thread.join(20)
    assert codes == [0] * 30


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_limiter_is_handed_to_a_process(method: str, url: str) -> None:
    """A pickled or inherited limiter works on the same state."""
    context = multiprocessing.get_context(method)
    limiter = Limiter(LIMIT, store=url)
    limiter.hit(id="x")
    told = context.Queue()
    child = context.Process(target=hits, args=(limiter, told))
    child.start()
    mine = [limiter.hit(id="x").remaining for _ in range(5)]
    theirs = told.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert sorted([*mine, *theirs]) == list(range(89, 99))
    limiter.close()


@pytest.mark.parametrize("kind", [PostgresStore, AsyncPostgresStore])
def test_a_pickled_store_is_the_same_store_elsewhere(kind: type[PostgresStore | AsyncPostgresStore], url: str) -> None:
    """Everything that a URL may say comes through a pickle; a store on somebody's connection says that it cannot."""
    store = kind(f"{url}&share=1/3&unlogged=true&install=false")
    copy = pickle.loads(pickle.dumps(store))
    for name in ("where", "deadline", "schema", "unlogged", "install", "share"):
        assert getattr(copy, name) == getattr(store, name)
    with psycopg.connect(url.partition("?")[0]) as connection, pytest.raises(TypeError, match="give it a URL"):
        pickle.dumps(PostgresStore(connection))


def test_ten_thousand_limiters_leave_no_connection(url: str, connected: Callable[[], int]) -> None:
    """Alive all at once they share a connection; dropped, closed or not, they leave neither a socket nor a thread."""
    gc.collect()
    base, threads, mine = connected(), threading.active_count(), sockets()
    limiters = [Limiter(LIMIT, store=url) for _ in range(10_000)]
    for limiter in limiters[::200]:
        assert limiter.hit(id="x").allowed
    assert connected() == base + 1
    assert len(sockets() - mine) == 1
    assert threading.active_count() <= threads
    for limiter in limiters[:5000]:
        limiter.close()
    assert limiters[-1].hit(id="x").allowed
    limiters.clear()
    del limiter
    gc.collect()
    assert sockets() <= mine
    eventually(lambda: connected() == base)


def test_closing_the_last_one_closes_and_a_later_call_opens(url: str, connected: Callable[[], int]) -> None:
    """``close`` twice is once; what is used after it connects anew, and is closed again."""
    gc.collect()
    base = connected()
    limiter = Limiter(LIMIT, store=url)
    for _ in range(2):
        assert limiter.hit(id="x").allowed
        assert connected() == base + 1
        limiter.close()
        limiter.close()
        eventually(lambda: connected() == base)


def test_event_loops_come_and_go(url: str, connected: Callable[[], int]) -> None:
    """One asynchronous limiter on five loops, one after the other, and thousands on one loop: no connection stays."""
    gc.collect()
    base = connected()
    limiter = AsyncLimiter(LIMIT, store=url)

    async def some() -> None:
        assert all(decision.allowed for decision in await asyncio.gather(*[limiter.hit(id="x") for _ in range(5)]))

    for _ in range(5):
        asyncio.run(some())
        gc.collect()
    eventually(lambda: connected() <= base + 5)

    async def many() -> None:
        limiters = [AsyncLimiter(LIMIT, store=url) for _ in range(2_000)]
        for one in limiters[::100]:
            assert (await one.hit(id="x")).allowed
        assert connected() <= base + 6
        for one in limiters:
            await one.close()
        await limiter.close()

    asyncio.run(many())
    gc.collect()
    eventually(lambda: connected() == base)


def test_many_threads_use_a_bounded_number_of_connections(url: str, connected: Callable[[], int]) -> None:
    """Fifty threads at once wait for one of sixteen connections, within their deadline, and all are decided."""
    gc.collect()
    base = connected()
    PostgresStore(url).init()
    limiter = Limiter(LIMIT, store=url)
    most = [0]
    decisions: list[str | None] = []

    def work() -> None:
        decisions.extend(limiter.hit(id="x").degraded for _ in range(4))

    threads = [threading.Thread(target=work) for _ in range(50)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most[0] = max(most[0], connected() - base)
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert decisions == [None] * 200
    assert most[0] <= 16
    limiter.close()
    eventually(lambda: connected() == base)
