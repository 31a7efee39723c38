"""``Traffic``: what is asked of a log's requests."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy

from headway.analysis.suggest.agents import AgentKind
from headway.analysis.suggest.duckdb_numpy_requests import BATCH, FETCH, Requests, key_in_sql
from headway.analysis.suggest.facts import FACTS, Facts
from headway.analysis.suggest.numpy_most import Most
from headway.analysis.suggest.percentiles import Histogram
from headway.core.quota import SECOND

__all__ = ["Traffic"]

PIECE: Final = 500_000
"""So many rows of a table are held at a time."""
_TEN_MINUTES: Final = 600 * SECOND


class Traffic(Requests):
    """A log's requests and what is asked of them, once they are settled."""

    def span(self) -> tuple[int, int] | None:
        """The times of the first and the last request, in ns since 1970; None of no request."""
        first, last = self._row("SELECT min(moment), max(moment) FROM hits") or (None, None)
        return None if first is None else (first, last)

    def counts(self) -> tuple[int, int]:
        """How many requests are to be limited, and of how many clients."""
        return self.one("SELECT count(*) FROM hits WHERE wanted = 1"), self.one(
            "SELECT count(*) FROM clients WHERE wanted > 0"
        )

    def refused_by_server(self) -> int:
        """How many wanted requests the log says were answered with 429."""
        count: int = self.one("SELECT count(*) FROM hits WHERE wanted = 1 AND status = 429")
        return count

    def whole_seconds(self) -> bool:
        """Whether all times are whole seconds."""
        return bool(self.one(f"SELECT bool_and(moment % {SECOND} = 0) FROM hits"))

    def histogram(self, key: str | None, window: int) -> Histogram:
        """How many non-empty clock-aligned windows have how many requests.

        Args:
            key: of ``KEYS``, or "client"; None counts everybody together.
            window: in ns.
        """
        column = "client" if key == "client" else None if key is None else key_in_sql(key)
        keyed = f"{column} AS key, " if column else ""
        there = f" AND {column} IS NOT NULL" if column else ""
        return Histogram(
            self._ask(
                f"SELECT n, count(*) FROM (SELECT {keyed}moment // {window} AS part, count(*) AS n FROM hits "
                f"WHERE wanted = 1{there} GROUP BY ALL) GROUP BY n ORDER BY n"
            ).fetchall()
        )

    def different(self, key: str) -> int:
        """How many different values a key has."""
        count: int = self.one(
            f"SELECT count(*) FROM (SELECT DISTINCT {key_in_sql(key)} AS k FROM hits WHERE wanted = 1) WHERE k IS NOT NULL"
        )
        return count

    def top_routes(self, most: int) -> list[tuple[int, int, int]]:
        """(route, requests, clients) of the routes with the most requests."""
        return self._ask(
            "SELECT route, count(*) AS n, count(DISTINCT client) FROM hits WHERE wanted = 1 GROUP BY route "
            "ORDER BY n DESC, route LIMIT ?",
            [most],
        ).fetchall()

    def route_histograms(self, routes: Sequence[int], window: int) -> dict[int, Histogram]:
        """For each of some routes, how many windows of a client have how many requests."""
        found: dict[int, list[tuple[int, int]]] = {route: [] for route in routes}
        for route, n, count in self._ask(
            f"SELECT route, n, count(*) FROM (SELECT route, client, moment // {window} AS part, count(*) AS n FROM hits "
            "WHERE wanted = 1 AND route IN (SELECT unnest(?::INTEGER[])) GROUP BY ALL) GROUP BY ALL ORDER BY route, n",
            [list(routes)],
        ).fetchall():
            found[route].append((n, count))
        return {route: Histogram(pairs) for route, pairs in found.items()}

    def gather_facts(self) -> None:
        """Find out what is known of each client, for ``facts``."""
        kinds = [(number, agent.kind.value) for number, agent in enumerate(self.agents.known)]
        self._database.register(
            "agent_kinds",
            {
                "agent": numpy.array([number for number, _ in kinds], dtype=numpy.int32),
                "kind": numpy.array([kind for _, kind in kinds], dtype=object),
            },
        )
        by_kind = ", ".join(
            f"coalesce(sum(n) FILTER (kind = '{kind.value}'), 0)::BIGINT AS {kind.value}" for kind in AgentKind
        )
        self._ask(
            f"CREATE TABLE of_agents AS SELECT client, count(*) FILTER (agent > 0) AS agents, {by_kind}, "
            "arg_max(agent, n * 100000 - agent) AS agent FROM (SELECT client, agent, count(*) AS n FROM hits GROUP BY ALL) "
            "JOIN agent_kinds USING (agent) GROUP BY client"
        )
        self._database.unregister("agent_kinds")
        self._ask(
            f"CREATE TABLE of_minutes AS SELECT client, max(n) AS busiest_minute, count(*) AS minutes, "
            "coalesce(stddev_pop(n) / avg(n), 0) AS unevenness FROM (SELECT client, moment // "
            f"{60 * SECOND} AS part, count(*) AS n FROM hits GROUP BY ALL) GROUP BY client"
        )
        self._ask(
            "CREATE TABLE of_people AS SELECT client, count(DISTINCT user_name) AS users, count(DISTINCT api_key) AS keys, "
            "count(DISTINCT address) AS addresses FROM hits WHERE user_name IS NOT NULL OR api_key IS NOT NULL "
            "GROUP BY client"
        )
        self._ask(
            "CREATE TABLE at_once AS SELECT client, max(n) AS agents_at_once FROM (SELECT hits.client, moment // "
            f"{_TEN_MINUTES} AS part, count(DISTINCT hits.agent) AS n FROM hits JOIN of_agents a ON a.client = hits.client "
            "WHERE a.agents >= 3 AND hits.agent > 0 GROUP BY ALL) GROUP BY client"
        )
        self._ask(
            "CREATE TABLE gaps AS SELECT client, max(n) AS same_gaps, sum(n)::BIGINT AS gaps, arg_max(gap, n) AS gap FROM "
            "(SELECT client, gap, count(*) AS n FROM (SELECT hits.client, (moment - lag(moment) OVER (PARTITION BY hits.client "
            "ORDER BY moment, place) + 50000000) // 100000000 AS gap FROM hits JOIN clients c ON c.id = hits.client "
            "WHERE c.requests >= 20) WHERE gap IS NOT NULL GROUP BY ALL) GROUP BY client"
        )
        self._ask(
            "CREATE TABLE of_requests AS SELECT client, count(*) FILTER (probe > 0) AS probes, "
            "count(DISTINCT CASE WHEN probe > 0 THEN route END) AS probe_routes, count(*) FILTER (status >= 400) AS errors, "
            "count(*) FILTER (status = 429) AS refused, min(moment) AS first, max(moment) AS last, "
            "mode(CASE WHEN probe > 0 THEN route END) AS probe_route, mode(route) AS route, "
            "count(DISTINCT route) AS routes FROM hits GROUP BY client"
        )

    def facts(self, clients: Sequence[int] | None = None) -> Iterator[Facts]:
        """What is known of each client, or of some, in the order of their numbers."""
        only = "" if clients is None else "WHERE c.id IN (SELECT unnest(?::BIGINT[])) "
        shown = ", ".join({"id": "c.id", "client": "c.name"}.get(name, f"coalesce({name}, 0)") for name in FACTS)
        cursor = self._database.cursor()
        found = self._asked(
            cursor,
            f"SELECT {shown} FROM clients c JOIN of_requests r ON r.client = c.id JOIN of_agents a ON a.client = c.id "
            "JOIN of_minutes m ON m.client = c.id LEFT JOIN of_people p ON p.client = c.id LEFT JOIN at_once o "
            f"ON o.client = c.id LEFT JOIN gaps g ON g.client = c.id {only}ORDER BY c.id",
            [] if clients is None else [list(clients)],
        )
        while rows := found.fetchmany(FETCH):
            yield from map(Facts._make, rows)

    def shared_addresses(self, most: int) -> list[tuple[str, int, int, int]]:
        """(address or /64, requests, users, API keys) of addresses with three or more users or keys, the busiest first."""
        return self._ask(
            f"SELECT {key_in_sql('network')} AS k, count(*) AS n, count(DISTINCT user_name) AS users, count(DISTINCT api_key) "
            "AS keys FROM hits WHERE wanted = 1 AND address IS NOT NULL GROUP BY k HAVING greatest(users, keys) >= 3 "
            "ORDER BY n DESC, k LIMIT ?",
            [most],
        ).fetchall()

    def keyless(self) -> int:
        """How many wanted requests have no key of a client, and so count as one client's."""
        count: int = self.one("SELECT coalesce(sum(wanted), 0)::BIGINT FROM clients WHERE name = '-'")
        return count

    def busiest_minute(self, share: float) -> int:
        """The busiest minute of the client at this share of all, by nearest rank; 0 of no client."""
        found: int = self.one("SELECT coalesce(quantile_disc(busiest_minute, ?), 0) FROM of_minutes", share)
        return found

    def agent_shares(self) -> dict[str, int]:
        """How many requests come from each kind of agent."""
        shown = ", ".join(f"coalesce(sum({kind.value}), 0)::BIGINT" for kind in AgentKind)
        row = self._row(f"SELECT {shown} FROM of_agents") or ()
        return dict(zip([kind.value for kind in AgentKind], row, strict=True))

    def put_kinds(self, kinds: Iterator[tuple[int, int]]) -> None:
        """Remember a number for each client: (client, kind)."""
        self._ask("CREATE OR REPLACE TABLE kinds (client BIGINT, kind TINYINT)")
        batch: list[tuple[int, int]] = []

        def write() -> None:
            pairs = numpy.array(batch, dtype=numpy.int64).reshape(-1, 2)
            self._database.register("pairs", {"client": pairs[:, 0].copy(), "kind": pairs[:, 1].copy()})
            self._ask("INSERT INTO kinds SELECT client, kind FROM pairs")
            self._database.unregister("pairs")
            batch.clear()

        for pair in kinds:
            batch.append(pair)
            if len(batch) >= BATCH:
                write()
        if batch:
            write()

    def kinds(self) -> dict[int, tuple[int, int, int]]:
        """(clients, requests, wanted requests) of each kind."""
        rows = self._ask(
            "SELECT kind, count(*), sum(requests)::BIGINT, sum(wanted)::BIGINT FROM kinds JOIN clients ON id = kinds.client "
            "GROUP BY kind ORDER BY kind"
        ).fetchall()
        return {kind: (clients, requests, wanted) for kind, clients, requests, wanted in rows}

    def most_requests(self, kind: int, most: int) -> list[int]:
        """The clients of a kind with the most requests."""
        return [
            client
            for (client,) in self._ask(
                "SELECT client FROM kinds JOIN clients ON id = kinds.client WHERE kind = ? ORDER BY requests DESC, id LIMIT ?",
                [kind, most],
            ).fetchall()
        ]

    def arrivals(self, where: str = "", *, above: int = 0) -> Iterator[tuple[int, Sequence[int]]]:
        """Each client's wanted requests: its number, and their times in ns, rising; the client with the most first.

        Args:
            where: a condition in SQL on ``kind`` and ``client``.
            above: only clients with more requests than this.
        """
        condition = f" AND ({where})" if where else ""
        cursor = self._database.cursor()
        found = self._asked(
            cursor,
            "SELECT hits.client, moment FROM hits JOIN clients c ON c.id = hits.client JOIN kinds ON kinds.client = hits.client "
            f"WHERE hits.wanted = 1 AND c.wanted > {above}{condition} ORDER BY hits.client, moment",
        )
        current, times = 0, array("q")
        while rows := found.fetchmany(FETCH):
            for client, of_client in groupby(rows, itemgetter(0)):
                if client != current:
                    if current:
                        yield current, times
                    current, times = client, array("q")
                times.extend([moment for _, moment in of_client])
        if current:
            yield current, times

    def in_time(self) -> Iterator[tuple[int, int]]:
        """All wanted requests as (time, client), in the order of time; those of one instant in the log's order."""
        cursor = self._database.cursor()
        found = self._asked(cursor, "SELECT moment, client FROM hits WHERE wanted = 1 ORDER BY moment, place")
        while rows := found.fetchmany(FETCH):
            yield from rows

    def cap_for_total(self, count: int, window: int) -> int:
        """The largest cap on each client's requests a clock-aligned window that keeps the total at ``count``; 0 for none."""
        self._ask(
            f"CREATE OR REPLACE TEMP TABLE over AS SELECT part, client, count(*) AS n FROM (SELECT client, moment // {window} "
            f"AS part FROM hits WHERE wanted = 1) WHERE part IN (SELECT moment // {window} AS p FROM hits WHERE wanted = 1 "
            f"GROUP BY p HAVING count(*) > {count}) GROUP BY ALL"
        )
        most = self.one("SELECT max(n) FROM over")
        if most is None:  # more come only in windows that are not aligned
            return count
        low, high = 0, int(most)
        while high - low > 1:
            middle = (low + high) // 2
            total = self.one("SELECT max(s) FROM (SELECT sum(least(n, ?)) AS s FROM over GROUP BY part)", middle)
            if total <= count:
                low = middle
            else:
                high = middle
        return low

    def peak(self, where: str, window: int) -> int:
        """The most wanted requests of one client in a clock-aligned window of this many ns; 0 of none.

        Args:
            where: see ``arrivals``.
            window: in ns.
        """
        found = self.one(
            f"SELECT max(n) FROM (SELECT hits.client, moment // {window} AS part, count(*) AS n FROM hits JOIN clients c ON "
            f"c.id = hits.client JOIN kinds ON kinds.client = hits.client WHERE hits.wanted = 1 AND ({where}) GROUP BY ALL)"
        )
        return int(found or 0)

    def busiest_client(self) -> tuple[str, int, int]:
        """The client with the most wanted requests, how many these are, and how many different agents it has."""
        name, wanted, agents = self._row(
            "SELECT c.name, c.wanted, a.agents FROM clients c JOIN of_agents a ON a.client = c.id WHERE c.id = 1"
        ) or ("-", 0, 0)
        return name, wanted, agents

    def most_within(self, window: int, *, together: bool = False) -> int:
        """The most requests of one client, or of all together, in any half-open window of this many ns."""
        # Not by OVER: DuckDB holds a window function's partition in memory, and a partition can be the whole log.
        most = Most(window)
        if together:
            self._ask(
                "CREATE TABLE times AS SELECT 0::BIGINT AS client, moment, wanted FROM hits WHERE wanted = 1 ORDER BY moment"
            )
        table = "times" if together else "hits"
        rows = int(self.one(f"SELECT coalesce(max(rowid) + 1, 0) FROM {table}"))
        for first in range(0, rows, PIECE):
            piece = self._ask(
                f"SELECT client, moment FROM {table} WHERE rowid BETWEEN {first} AND {first + PIECE - 1} AND wanted = 1 "
                "ORDER BY client, moment"
            ).fetchnumpy()
            most.add(piece["client"], piece["moment"])
        if together:
            self._ask("DROP TABLE times")
        return most.found

    def those(self, clients: Sequence[int], where: str) -> frozenset[int]:
        """Those of some clients for which a condition on ``kind`` and ``client`` holds; see ``arrivals``."""
        rows = self._ask(
            f"SELECT c.id FROM kinds JOIN clients c ON c.id = kinds.client WHERE c.id IN (SELECT unnest(?::BIGINT[])) AND ({where})",
            [list(clients)],
        ).fetchall()
        return frozenset(client for (client,) in rows)
