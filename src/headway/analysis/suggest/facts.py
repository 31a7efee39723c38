"""``Facts``: what a log says of one client, counted."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["FACTS", "Facts"]


class Facts(NamedTuple):
    """One client. Times are ns since 1970.

    Attributes:
        id: its number, 1 for the client with the most requests.
        client: its key, as logged.
        requests: all of them.
        wanted: those that are to be limited.
        first: time of the first.
        last: time of the last.
        errors: answered with 400 or above.
        refused: answered with 429.
        probes: for paths that only scanners ask for, answered with an error, or no requests at all.
        probe_routes: different routes among these.
        probe_route: the number of the most frequent of these, 0 for none.
        route: the number of the most frequent route.
        routes: different routes.
        agents: different agents.
        agent: the number of the most frequent one.
        agents_at_once: the most different agents in any ten minutes; 0 where there are fewer than three.
        browser: requests by agents of each kind …
        crawler: …
        library: …
        scanner: …
        automation: …
        none: …
        busiest_minute: the most requests in a clock-aligned minute.
        minutes: minutes with requests.
        unevenness: standard deviation of its minutes' requests over their mean.
        users: different users.
        keys: different API keys.
        same_gaps: how many times between two requests are the most frequent one, to a tenth of a second.
        gaps: how many times between requests there are; 0 for fewer than 20 requests.
        gap: the most frequent one, in tenths of a second.
    """

    id: int
    client: str
    requests: int
    wanted: int
    first: int
    last: int
    errors: int
    refused: int
    probes: int
    probe_routes: int
    probe_route: int
    route: int
    routes: int
    agents: int
    agent: int
    agents_at_once: int
    browser: int
    crawler: int
    library: int
    scanner: int
    automation: int
    none: int
    busiest_minute: int
    minutes: int
    unevenness: float
    users: int
    keys: int
    same_gaps: int
    gaps: int
    gap: int


FACTS: Final = Facts._fields
