"""Who a client is: probe, crawler, bot, a shared address, or a client like any other; each with the evidence for it.

Judged from its ``Facts`` alone, by rules that are written below in the order in which they are asked. An agent's word is
believed (whoever says to be a crawler is one), which is evidence, not proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from headway.analysis.explain import say_duration
from headway.analysis.figures import counted
from headway.analysis.suggest.agents import Agent
from headway.analysis.suggest.facts import Facts

__all__ = ["HONEST", "KINDS", "Judge", "Kind", "Verdict"]


class Kind(StrEnum):
    """Who a client is."""

    CLIENT = "client"
    """A client like any other: a person or a program."""
    SHARED = "shared"
    """Many behind one address: an office, a school, a carrier."""
    CRAWLER = "crawler"
    """A search engine, a preview, a monitor: one that says so."""
    BOT = "bot"
    """A program that does not say so, or one that sends far more than all others."""
    PROBE = "probe"
    """It looks for holes."""


KINDS: Final = tuple(Kind)
HONEST: Final = (Kind.CLIENT, Kind.SHARED)
"""Whom nobody wants to refuse, unless somebody says otherwise."""

_PROBE_SHARE: Final = 2
"""A probe's requests for holes are at least one in so many, or for three different ones."""
_AT_ONCE: Final = 5
_PEOPLE: Final = 3
_SAME_GAPS: Final = 0.9
_FAST_GAP: Final = 50
_POLLED: Final = 5
_EVEN: Final = 0.1
_EVEN_MINUTES: Final = 10
_EVEN_REQUESTS: Final = 20
_FAR: Final = 10
_FAR_LEAST: Final = 60
_ROTATED: Final = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who a client is, and why."""

    kind: Kind
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Tells clients apart.

    Args:
        agents: a log's agents by number.
        route: the name of a route by number.
        usual: the busiest minute of the client at the 95th percentile.
        tools_are_bots: whether programs' libraries are unusual here: most requests come from browsers.
        is_address: whether a client's key is an address, which many can share; a user or an API key is not.
    """

    agents: tuple[Agent, ...]
    route: Callable[[int], str]
    usual: int
    tools_are_bots: bool
    is_address: Callable[[str], bool]

    def verdict(self, facts: Facts) -> Verdict:
        """Who a client is: the first of the rules that finds evidence."""
        for kind, rule in (
            (Kind.PROBE, self._probe),
            (Kind.CRAWLER, self._crawler),
            (Kind.BOT, self._machine),
            (Kind.SHARED, self._shared),
            (Kind.BOT, self._tool),
        ):
            evidence = rule(facts)
            if evidence:
                return Verdict(kind, tuple(evidence))
        return Verdict(Kind.CLIENT, ())

    def _probe(self, facts: Facts) -> list[str]:
        evidence = []
        if facts.scanner * 2 > facts.requests:
            evidence.append(f"says to be a scanner: {self.agents[facts.agent].name}")
        if facts.probes and (facts.probe_routes >= 3 or facts.probes * _PROBE_SHARE >= facts.requests):
            example = f", such as {self.route(facts.probe_route)}" if facts.probe_route else ""
            evidence.append(
                f"{_of(facts.probes, facts.requests)} for {counted(facts.probe_routes, 'path')} that scanners ask for{example}"
            )
        return evidence

    def _crawler(self, facts: Facts) -> list[str]:
        if facts.crawler * 2 <= facts.requests:
            return []
        return [f"{_of(facts.crawler, facts.requests)} by an agent that says to be a crawler: {self._agent(facts)}"]

    def _machine(self, facts: Facts) -> list[str]:
        known = facts.users + facts.keys > 0
        heads = max(1, facts.agents_at_once, facts.users, facts.keys)
        evidence = []
        fast = (
            facts.gap <= _FAST_GAP or facts.routes >= _POLLED
        )  # an open page that asks the same every minute is honest
        if facts.gap and facts.gaps and facts.same_gaps >= _SAME_GAPS * facts.gaps and fast:
            evidence.append(
                f"paced by a machine: {_of(facts.same_gaps, facts.gaps, 'pauses')} are {say_duration(Fraction(facts.gap, 10))}"
            )
        even = facts.minutes >= _EVEN_MINUTES and facts.unevenness <= _EVEN
        if even and facts.requests >= _EVEN_REQUESTS * facts.minutes:
            evidence.append(
                f"as even as a machine: {facts.requests // facts.minutes} a minute for {counted(facts.minutes, 'minute')}, "
                f"± {facts.unevenness:.0%}"
            )
        if not known and facts.busiest_minute > max(_FAR_LEAST, _FAR * self.usual) * heads:
            evidence.append(
                f"far beyond others: {counted(facts.busiest_minute, 'request')} in its busiest minute"
                + (f" by {heads} agents" if heads > 1 else "")
                + f", where 95 % of clients have at most {self.usual}"
            )
        if (
            facts.agents >= _ROTATED
            and facts.requests < 1.5 * facts.agents
            and facts.busiest_minute >= _ROTATED
            and not known
        ):
            evidence.append(
                f"changes its agent with every request: {facts.agents:,} in {counted(facts.requests, 'request')}"
            )
        if facts.automation * 2 > facts.requests:
            evidence.append(f"a browser that a program drives: {self._agent(facts)}")
        if evidence and known and heads >= _PEOPLE:
            return []  # people who signed in, however evenly they come together
        return evidence

    def _shared(self, facts: Facts) -> list[str]:
        if not self.is_address(facts.client):
            return []
        evidence = []
        if facts.users >= _PEOPLE:
            evidence.append(f"{facts.users} users behind one address")
        if facts.keys >= _PEOPLE:
            evidence.append(f"{facts.keys} API keys behind one address")
        if facts.agents_at_once >= _AT_ONCE and facts.browser * 2 > facts.requests:
            evidence.append(
                f"{facts.agents} agents behind one address, {facts.agents_at_once} of them within ten minutes"
            )
        return evidence

    def _tool(self, facts: Facts) -> list[str]:
        if not self.tools_are_bots or facts.users or facts.keys:
            return []
        if facts.library * 2 > facts.requests:
            return [f"{_of(facts.library, facts.requests)} by a program's library: {self._agent(facts)}"]
        if facts.none * 2 > facts.requests and facts.requests > 1:
            return [f"{_of(facts.none, facts.requests)} without an agent"]
        return []

    def _agent(self, facts: Facts) -> str:
        agent = self.agents[facts.agent]
        return agent.name or agent.text[:60]


def _of(part: int, whole: int, things: str = "requests") -> str:
    return f"all {whole:,} {things}" if part == whole > 1 else f"{part:,} of {whole:,} {things}"
