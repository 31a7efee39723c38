"""``suggest``: out of logs, how clients send, who they are, and what limits would fit; whole, or as far as it came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from headway.analysis.access_log import request_matcher
from headway.analysis.figures import counted
from headway.analysis.logs.block import Block, Fault, printable
from headway.analysis.suggest.agents import AgentKind
from headway.analysis.suggest.duckdb_numpy_requests import KEYS
from headway.analysis.suggest.duckdb_numpy_traffic import Traffic
from headway.analysis.suggest.facts import Facts
from headway.analysis.suggest.goals import DEFAULT_GOALS, Goal
from headway.analysis.suggest.kinds import HONEST, KINDS, Judge, Kind
from headway.analysis.suggest.masks import shown_client
from headway.analysis.suggest.numpy_levels import smallest_limit
from headway.analysis.suggest.percentiles import WINDOWS, Histogram
from headway.analysis.suggest.proposals import Proposal, propose
from headway.analysis.suggest.warnings import warnings_about

__all__ = ["BY", "ClientKind", "Distribution", "Named", "SharedAddress", "Suggestion", "check_by", "suggest"]

BY: Final = ("address", "network", "user", "api_key")
"""What a client can be, or the first that a request has of several joined by ``_or_``: ``user_or_network``."""

_SHOWN_FAULTS: Final = 3
_ROUTES: Final = 10
_EXAMPLES: Final = 10
_ALL: Final = 10_000
"""More of a kind than this are not listed, even where all are asked for."""
_NAMED_BY: Final = Fraction(1, 2)
"""Where so many of the requests have an API key or a user's name, that is what a client is."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many requests come in a window, for one key.

    Attributes:
        key: what was counted for itself: "client", one of ``BY``, "everyone", or a route.
        requests: how many were counted.
        keys: how many different ones there are.
        windows: for each of ``WINDOWS`` by name, the non-empty ones.
    """

    key: str
    requests: int
    keys: int
    windows: dict[str, Histogram]


@dataclass(frozen=True, slots=True)
class Named:
    """A client as a report shows it.

    Attributes:
        client: its key; of an API key only its beginning and a fingerprint.
        kind: who it is.
        evidence: why, in words.
        facts: what was counted.
    """

    client: str
    kind: Kind
    evidence: tuple[str, ...]
    facts: Facts


@dataclass(frozen=True, slots=True)
class ClientKind:
    """All clients of a kind: how many, their requests, and those with the most."""

    kind: Kind
    clients: int
    requests: int
    examples: tuple[Named, ...]


class SharedAddress(NamedTuple):
    """An address (or IPv6 /64), its requests, and how many users and API keys are behind it."""

    address: str
    requests: int
    users: int
    api_keys: int


@dataclass(slots=True)
class Suggestion:
    """What came of some logs.

    Attributes:
        lines: all lines that were read.
        unparsed: those that could not be read.
        first_unparsed: the first three of them.
        requests: those that are to be limited.
        clients: how many sent these.
        by: what a client is.
        span: the times of the first and the last request of all, in ns since 1970; None of no request.
        distributions: clients first, then other keys, then everyone.
        routes: the routes with the most requests, counted for each client.
        kinds: who the clients are.
        smallest: for each window by name and each algorithm, the smallest limit that refuses nobody at all.
        proposals: one for each goal.
        shared_addresses: where clients are users or API keys, the addresses that many of them share, the busiest first.
        warnings: why not to trust all this too far.
        partial: why it is not the whole; empty for a whole one.
        named: the clients that some proposal refuses, by number.
    """

    lines: int = 0
    unparsed: int = 0
    first_unparsed: list[Fault] = field(default_factory=list)
    requests: int = 0
    clients: int = 0
    by: str = "address"
    span: tuple[int, int] | None = None
    distributions: list[Distribution] = field(default_factory=list)
    routes: list[Distribution] = field(default_factory=list)
    kinds: list[ClientKind] = field(default_factory=list)
    smallest: dict[str, dict[str, int]] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)
    shared_addresses: list[SharedAddress] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    partial: str = ""
    named: dict[int, Named] = field(default_factory=dict)


def check_by(text: str) -> tuple[str, ...]:
    """The keys that ``user_or_network`` names.

    Raises:
        ValueError: another; names it and what is accepted.
    """
    keys = tuple(text.split("_or_"))
    for key in keys:
        if key not in BY:
            raise ValueError(
                f"--by names {key!r}; expected any of {', '.join(BY)}, or the first that a request has of several, such as "
                "user_or_network"
            )
    return keys


def suggest(
    blocks: Iterable[Block],
    folder: Path,
    *,
    goals: Sequence[Goal] = DEFAULT_GOALS,
    by: Sequence[str] | None = None,
    match: str | None = None,
    honest: Sequence[Kind] = HONEST,
    named: int | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Suggestion:
    """Suggest limits for the requests of some logs.

    ``KeyboardInterrupt`` while reading ends the reading, and what was read is worked out; a later one ends the work there.

    Args:
        blocks: the requests, with the fields ``duckdb_numpy_traffic.NEEDED``; in any order.
        folder: an empty one, for some tens of bytes for each request while it works.
        goals: what limits are to be proposed for.
        by: what a client is; None takes API keys or users where most requests have them, and networks for the others.
        match: which requests are to be limited, such as "POST /login"; the others only say who their clients are.
        honest: who is never to be refused by the goal ``no-honest-client-refused``.
        named: how many refused clients of each proposal, and of each kind, are looked up by name, the most refused or busiest
            first; None for all (of a kind at most 10,000, of ordinary clients ten).
        progress: called with what is being done, and how many lines or requests of it are.

    Raises:
        ValueError: ``match`` cannot be, or a goal cannot be reached; says why.
        OSError: the folder is full, or whatever ``blocks`` raises.
    """
    traffic = Traffic(folder, _matcher(match))
    found = Suggestion()
    say = progress or (lambda stage, count: None)
    try:
        _read(blocks, traffic, found, say)
        _work(traffic, found, goals, by, honest, named, say)
    except KeyboardInterrupt:
        found.partial = (
            found.partial or f"stopped by Ctrl-C after reading {counted(found.lines, 'line')}; what follows is missing"
        )
    finally:
        traffic.close()
    return found


def _matcher(match: str | None) -> Callable[[str | None, str | None], bool] | None:
    if match is None:
        return None
    matches = request_matcher(match)
    return lambda method, path: matches(f"{method or '-'} {path or '-'}".encode())


def _read(blocks: Iterable[Block], traffic: Traffic, found: Suggestion, say: Callable[[str, int], None]) -> None:
    try:
        for block in blocks:
            found.lines += block.lines
            found.unparsed += len(block.faults)
            if len(found.first_unparsed) < _SHOWN_FAULTS:
                found.first_unparsed += block.faults[: _SHOWN_FAULTS - len(found.first_unparsed)]
            traffic.add(block)
            say("reading", found.lines)
    except KeyboardInterrupt:
        found.partial = f"stopped by Ctrl-C after {counted(found.lines, 'line')}"


def _work(
    traffic: Traffic,
    found: Suggestion,
    goals: Sequence[Goal],
    by: Sequence[str] | None,
    honest: Sequence[Kind],
    named: int | None,
    say: Callable[[str, int], None],
) -> None:
    say("sorting", found.lines)
    given = traffic.given()
    keys = tuple(by) if by else _natural(given, traffic.rows)
    found.by = "_or_".join(keys)
    traffic.settle(keys)
    found.span = traffic.span()
    found.requests, found.clients = traffic.counts()
    if not found.requests:
        return
    say("counting", found.lines)
    _count(traffic, found, given)
    say("telling clients apart", found.lines)
    judge = _judge(traffic, keys)
    _tell_apart(traffic, found, judge, _ALL if named is None else max(named, _EXAMPLES))
    found.warnings = warnings_about(
        traffic,
        found.span,
        found.requests,
        found.clients,
        found.distributions[0].windows,
        lambda client: shown_client(client, keys),
    )
    behind = [key for key in ("api_key", "user") if given[key] and key not in keys]
    if behind and any(kind.kind is Kind.SHARED for kind in found.kinds):
        found.warnings.append(
            f"some addresses are shared by many, and the log knows them apart: see --by {behind[0]}_or_{found.by}"
        )
    if {"user", "api_key"} & set(keys):
        found.shared_addresses = [
            SharedAddress(printable(address, 80), *counts) for address, *counts in traffic.shared_addresses(_EXAMPLES)
        ]
    _find_smallest(traffic, found)
    numbers = ", ".join(str(KINDS.index(kind)) for kind in honest)
    seconds = next(distribution for distribution in found.distributions if distribution.key == "everyone").windows["1s"]
    for goal in goals:
        say(f"trying {goal}", 0)
        try:
            proposal = propose(
                goal,
                traffic,
                clients=found.clients,
                honest=f"kind IN ({numbers})",
                usual_total=max(1, seconds.rank(Fraction(99, 100))),
                span=found.span[1] - found.span[0] if found.span else 0,
                progress=partial(say, f"trying {goal}"),
            )
        except ValueError as error:
            found.warnings.append(str(error))
            continue
        refused = [client.client for client in proposal.trial.clients[:named]]
        found.named |= _named(traffic, judge, [client for client in refused if client not in found.named])
        found.proposals.append(proposal)


def _natural(given: dict[str, int], rows: int) -> tuple[str, ...]:
    """What a client is if nobody says: the API key or the user where most requests have one, else the network."""
    fallback = "network" if given["network"] else "address"
    for key in ("api_key", "user"):
        if rows and Fraction(given[key], rows) >= _NAMED_BY:
            return (key, fallback) if given["address"] else (key,)
    return (fallback,)


def _count(traffic: Traffic, found: Suggestion, given: dict[str, int]) -> None:
    found.distributions.append(
        Distribution(
            "client", found.requests, found.clients, {name: traffic.histogram("client", ns) for name, ns in WINDOWS}
        )
    )
    for key in KEYS:
        if given[key] and key != found.by:
            windows = {name: traffic.histogram(key, ns) for name, ns in WINDOWS}
            requests = sum(value * count for value, count in windows["1s"].pairs)
            found.distributions.append(Distribution(key, requests, traffic.different(key), windows))
    found.distributions.append(
        Distribution("everyone", found.requests, 1, {name: traffic.histogram(None, ns) for name, ns in WINDOWS})
    )
    routes = traffic.top_routes(_ROUTES)
    by_window = {name: traffic.route_histograms([route for route, _, _ in routes], ns) for name, ns in WINDOWS}
    found.routes = [
        Distribution(
            traffic.routes.names[route], requests, clients, {name: by_window[name][route] for name, _ in WINDOWS}
        )
        for route, requests, clients in routes
    ]


def _judge(traffic: Traffic, keys: Sequence[str]) -> Judge:
    traffic.gather_facts()
    shares = traffic.agent_shares()
    people = shares[AgentKind.BROWSER.value] + shares[AgentKind.CRAWLER.value]
    return Judge(
        tuple(traffic.agents.known),
        traffic.routes.names.__getitem__,
        traffic.busiest_minute(0.95),
        people > shares[AgentKind.LIBRARY.value] + shares[AgentKind.NONE.value],
        lambda client: (keys[0] if len(keys) == 1 else client.partition("=")[0]) in ("address", "network"),
    )


def _tell_apart(traffic: Traffic, found: Suggestion, judge: Judge, most: int) -> None:
    traffic.put_kinds((facts.id, KINDS.index(judge.verdict(facts).kind)) for facts in traffic.facts())
    for number, (clients, requests, _) in traffic.kinds().items():
        examples = _named(
            traffic, judge, traffic.most_requests(number, most if KINDS[number] is not Kind.CLIENT else _EXAMPLES)
        )
        ordered = sorted(examples.values(), key=lambda named: (-named.facts.requests, named.facts.id))
        found.kinds.append(ClientKind(KINDS[number], clients, requests, tuple(ordered)))


def _named(traffic: Traffic, judge: Judge, clients: Sequence[int]) -> dict[int, Named]:
    if not clients:
        return {}
    return {
        facts.id: Named(
            shown_client(facts.client, traffic.by), (verdict := judge.verdict(facts)).kind, verdict.evidence, facts
        )
        for facts in traffic.facts(clients)
    }


def _find_smallest(traffic: Traffic, found: Suggestion) -> None:
    """The smallest limits for each window with which nobody would ever have been refused."""
    smallest = {name: 1 for name, _ in WINDOWS}
    for _, times in traffic.arrivals():
        if len(times) <= min(smallest.values()):
            break
        for name, ns in WINDOWS:
            smallest[name] = smallest_limit(times, ns, smallest[name])
    counted = found.distributions[0].windows
    for name, ns in WINDOWS:
        found.smallest[name] = {
            "gcra": smallest[name],
            "fixed-window": counted[name].most,
            "sliding-log": traffic.most_within(ns),
        }
