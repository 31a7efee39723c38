"""``Requests``: a log's requests in a DuckDB file of their own.

DuckDB sorts and groups what does not fit its memory on the disk, so memory depends neither on the lines nor on the clients
of a log. Everything that is asked reads no clock and has one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy

from headway.analysis.logs.block import Block
from headway.analysis.suggest.agents import Agents
from headway.analysis.suggest.probes import is_probe
from headway.analysis.suggest.routes import Routes
from headway.core.quota import SECOND
from headway.policy.address import group, read_address

__all__ = ["BATCH", "FETCH", "KEYS", "NEEDED", "Requests", "key_in_sql"]

NEEDED: Final = ("address", "user", "api_key", "agent", "method", "path", "status")
"""The fields that are read of a log."""

KEYS: Final = ("address", "network", "user", "api_key")
"""What a client can be: ``network`` is the address, or for IPv6 its /64."""

BATCH: Final = 50_000
FETCH: Final = 20_000
_TEXTS: Final = ("address", "network", "user_name", "api_key")
_COLUMN: Final = {"user": "user_name", "network": "coalesce(network, address)"}


class Requests:
    """The requests of a log; ``add`` them, then ``settle``, then ask ``Traffic``.

    Raises ``OSError`` where the folder is full.

    Args:
        folder: where the file goes; it holds a few dozen bytes for each request.
        wanted: whether a request, by method and path, is to be limited; the others only say who their client is.
        memory: the most that DuckDB takes, in MB.
    """

    def __init__(
        self,
        folder: Path,
        wanted: Callable[[str | None, str | None], bool] | None = None,
        *,
        memory: int = 256,
    ) -> None:
        self.by: tuple[str, ...] = ()
        self.routes = Routes()
        self.agents = Agents()
        self.rows = 0
        self._folder = folder
        self._wanted = wanted
        self._waiting: list[Block] = []
        self._held = 0
        self._database = duckdb.connect(
            str(folder / "traffic.duckdb"),
            config={"memory_limit": f"{memory}MB", "threads": 2, "temp_directory": str(folder)},
        )
        self._worker = ThreadPoolExecutor(1, "duckdb")
        texts = ", ".join(f"{name} VARCHAR" for name in _TEXTS)
        self._ask(
            f"CREATE TABLE requests (moment BIGINT, {texts}, agent INTEGER, route INTEGER, status SMALLINT, "
            "probe TINYINT, wanted TINYINT)"
        )

    def close(self) -> None:
        """Close the file."""
        self._worker.shutdown()
        self._database.close()

    def _ask(self, query: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
        """Execute a query; see ``_asked``."""
        return self._asked(self._database, query, parameters)

    def _asked(
        self, database: duckdb.DuckDBPyConnection, query: str, parameters: object = None
    ) -> duckdb.DuckDBPyConnection:
        """Execute a query in a thread of its own, because DuckDB hears of no Ctrl-C: whoever waits for it does, and stops it."""
        answer = self._worker.submit(database.execute, query, parameters)
        try:
            return answer.result()
        except KeyboardInterrupt:
            database.interrupt()
            wait([answer])
            raise
        except duckdb.Error as error:  # a full disk
            raise OSError(f"the requests cannot be kept in {self._folder}: {error}") from error

    def add(self, block: Block) -> None:
        """Take the requests of a block that has the fields ``NEEDED``."""
        self._waiting.append(block)
        self._held += len(block)
        if self._held >= BATCH:
            self._write()

    def _write(self) -> None:
        columns: dict[str, list[Any]] = {name: [] for name in ("time", *NEEDED)}
        for block in self._waiting:
            for name, values in columns.items():
                values.extend(block.columns[name])
        self._waiting, self._held = [], 0
        if not columns["time"]:
            return
        agent, route, wanted = self.agents.number, self.routes.number, self._wanted
        asked = list(zip(columns["method"], columns["path"], strict=True))
        status = [value if value is not None and value < 1000 else 0 for value in columns["status"]]
        table = {
            "moment": numpy.array(columns["time"], dtype=numpy.int64),
            "address": _texts(columns["address"]),
            "network": _texts(list(map(_network, columns["address"]))),
            "user_name": _texts(columns["user"]),
            "api_key": _texts(columns["api_key"]),
            "agent": numpy.array(list(map(agent, columns["agent"])), dtype=numpy.int32),
            "route": numpy.array([route(*request) for request in asked], dtype=numpy.int32),
            "status": numpy.array(status, dtype=numpy.int16),
            "probe": numpy.array(
                [_probes(path, answer) for (_, path), answer in zip(asked, status, strict=True)], dtype=numpy.int8
            ),
            "wanted": numpy.array(
                [True] * len(asked) if wanted is None else [wanted(*request) for request in asked], dtype=numpy.int8
            ),
        }
        self._database.register("batch", table)
        nullable = ", ".join(f"nullif({name}, '')" for name in _TEXTS)
        self._ask(f"INSERT INTO requests SELECT moment, {nullable}, agent, route, status, probe, wanted FROM batch")
        self._database.unregister("batch")
        self.rows += len(asked)

    def settle(self, by: Sequence[str]) -> None:
        """Number the clients and put each one's requests together.

        The client with the most wanted requests comes first, of equal ones that with the busiest minute.

        Args:
            by: the key of a client, of ``KEYS``: the first that a request has.
        """
        self.by = tuple(by)
        self._fold_routes()
        client = self._client()
        self._ask(
            "CREATE TABLE clients AS SELECT row_number() OVER (ORDER BY wanted DESC, busiest DESC, requests DESC, name) AS id, "
            "name, requests, wanted FROM (SELECT name, sum(n)::BIGINT AS requests, sum(w)::BIGINT AS wanted, max(w) AS busiest "
            f"FROM (SELECT {client} AS name, moment // {60 * SECOND} AS part, count(*) AS n, sum(wanted) AS w FROM requests "
            "GROUP BY ALL) GROUP BY name)"
        )
        self._ask(
            "CREATE TABLE hits AS SELECT c.id AS client, r.moment, r.agent, r.route, r.status, r.probe, r.wanted, "
            f"r.user_name, r.api_key, r.address, r.network, r.rowid AS place FROM requests r "
            f"JOIN clients c ON c.name = {self._client('r.')} ORDER BY c.id, r.moment, r.rowid"
        )
        self._ask("DROP TABLE requests")

    def _fold_routes(self) -> None:
        found = self._ask(
            "SELECT route, count(*) FROM requests WHERE route > 1 GROUP BY route ORDER BY route"
        ).fetchall()
        instead = self.routes.folded(found)
        if instead:
            pairs = {
                "old": numpy.array(list(instead), dtype=numpy.int32),
                "new": numpy.array(list(instead.values()), dtype=numpy.int32),
            }
            self._database.register("pairs", pairs)
            self._ask("UPDATE requests SET route = pairs.new FROM pairs WHERE route = pairs.old")
            self._database.unregister("pairs")

    def _client(self, table: str = "") -> str:
        """The key of a client in SQL; where it is the first of several, it says which."""
        if len(self.by) == 1:
            return f"coalesce({key_in_sql(self.by[0], table)}, '-')"
        parts = ", ".join(f"'{name}=' || {key_in_sql(name, table)}" for name in self.by)
        return f"coalesce({parts}, '-')"

    def given(self) -> dict[str, int]:
        """How many requests have each of ``KEYS``; ``network`` only counts those of IPv6. Ask before ``settle``."""
        self._write()
        shown = ", ".join(f"count({_COLUMN.get(key, key) if key != 'network' else 'network'})" for key in KEYS)
        row = self._row(f"SELECT {shown} FROM requests") or (0,) * len(KEYS)
        return dict(zip(KEYS, row, strict=True))

    def one(self, query: str, *arguments: object) -> Any:
        """The one value of a query."""
        row = self._row(query, list(arguments))
        return row[0] if row else None

    def _row(self, query: str, parameters: object = None) -> tuple[Any, ...] | None:
        """The only row of a query. All are fetched: an answer that is still open forbids ``register``."""
        rows = self._ask(query, parameters).fetchall()
        return rows[0] if rows else None


def key_in_sql(key: str, table: str = "") -> str:
    """The column of one of ``KEYS``, or what takes its place."""
    if key == "network":
        return f"coalesce({table}network, {table}address)"
    return table + {"user": "user_name"}.get(key, key)


def _texts(values: list[str | None]) -> Any:
    return numpy.array([value or "" for value in values], dtype=object)


def _probes(path: str | None, status: int) -> int:
    if path is None:
        return int(status == 400)  # no request at all, such as a TLS greeting on a plain port
    return int((status >= 400 or status == 0) and is_probe(path))


@lru_cache(maxsize=65_536)
def _network(address: str | None) -> str | None:
    """The /64 of an IPv6 address; None of any other, which is its own."""
    if not address or ":" not in address:
        return None
    read = read_address(address)
    return None if read is None else group(read, 64)
