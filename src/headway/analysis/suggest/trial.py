"""Trials: what a limit would have done to traffic, decided by the core, request by request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from headway.analysis.suggest.numpy_levels import burst_needed
from headway.analysis.suggest.percentiles import Histogram
from headway.core.bill import settle
from headway.core.limit import Limit
from headway.core.outcome import Refused
from headway.core.quota import MILLISECOND, SECOND

__all__ = ["RefusedClient", "Trial", "try_limit", "try_limits"]

_FINE: Final = 10 * SECOND
_EVERY: Final = 100_000
"""After so many requests it is told how far it is, and recovered states are forgotten."""


@dataclass(slots=True)
class RefusedClient:
    """A client that was refused.

    Attributes:
        client: its number.
        refused: how many of its requests.
        first: time of the first of these, in ns since 1970.
        last: time of the last.
        longest: the longest wait that it was told, in ns.
    """

    client: int
    refused: int
    first: int
    last: int
    longest: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it.

    Attributes:
        refused: how many requests.
        clients: whom, the most often refused first; ties by number.
        waits: the waits that refused requests were told, in ms; above 10 s in whole seconds, all rounded up.
        by_limit: how many requests each limit refused, in their order; one may be refused by several.
    """

    refused: int
    clients: tuple[RefusedClient, ...]
    waits: Histogram
    by_limit: tuple[int, ...]

    def wait(self, share: Fraction) -> int:
        """The wait in ms that so many of the refused requests were told at most, by nearest rank."""
        return self.waits.rank(share)

    @property
    def longest(self) -> int:
        """The longest wait that was told, in ns."""
        return max((client.longest for client in self.clients), default=0)


class _Tally:
    def __init__(self) -> None:
        self.clients: dict[int, RefusedClient] = {}
        self.waits: Counter[int] = Counter()

    def refuse(self, client: int, now: int, wait: int) -> None:
        self.waits[_rounded(wait)] += 1
        known = self.clients.get(client)
        if known is None:
            self.clients[client] = RefusedClient(client, 1, now, now, wait)
        else:
            known.refused += 1
            known.last = now
            known.longest = max(known.longest, wait)

    def trial(self, by_limit: Sequence[int]) -> Trial:
        clients = sorted(self.clients.values(), key=lambda client: (-client.refused, client.client))
        refused = sum(client.refused for client in clients)
        return Trial(refused, tuple(clients), Histogram(self.waits.items()), tuple(by_limit))


def try_limit(
    limit: Limit, arrivals: Iterable[tuple[int, Sequence[int]]], progress: Callable[[int], None] | None = None
) -> Trial:
    """Put each client's requests to a limit of its own.

    Args:
        limit: GCRA; begins unused for everybody.
        arrivals: each client's number, and its times in ns since 1970, rising.
        progress: called with the number of requests so far.
    """
    decide = limit.rule.decide
    quota = limit.quota
    tally = _Tally()
    done = 0
    for client, times in arrivals:
        done += len(times)
        if burst_needed(times, quota.count, quota.period_ns) <= quota.burst:
            continue  # none of them is refused, which takes a hundredth of the time to know
        state: Any = None
        for now in times:
            state, outcome = decide(state, now, 1)
            if type(outcome) is Refused:
                tally.refuse(client, now, outcome.retry_after)
        if progress is not None:
            progress(done)
    trial = tally.trial(())
    return Trial(trial.refused, trial.clients, trial.waits, (trial.refused,))


def try_limits(
    each: Limit | None,
    total: Limit,
    arrivals: Iterable[tuple[int, int]],
    progress: Callable[[int], None] | None = None,
) -> Trial:
    """Put all requests to a limit for each client and one for all together: all or none are charged.

    Args:
        each: the limit for each client; None for none.
        total: the limit for all.
        arrivals: (time in ns since 1970, client) in the order of time.
        progress: called with the number of requests so far.
    """
    rules = [total.rule] if each is None else [each.rule, total.rule]
    states: dict[int, Any] = {}
    whole: Any = None
    costs = [1] * len(rules)
    refusals = [0] * len(rules)
    tally = _Tally()
    for done, (now, client) in enumerate(arrivals):
        found = settle(rules, [whole] if each is None else [states.get(client), whole], costs, now)
        for index, state in found.writes:
            if index == len(rules) - 1:
                whole = state
            else:
                states[client] = state
        if not found.allowed:
            waits = [outcome.retry_after if type(outcome) is Refused else 0 for outcome in found.outcomes]
            for index, wait in enumerate(waits):
                refusals[index] += wait > 0
            tally.refuse(client, now, max(waits))
        if done % _EVERY == 0:
            if progress is not None:
                progress(done)
            if each is not None:
                states = {known: state for known, state in states.items() if each.rule.expires_at(state) > now}
    return tally.trial(refusals)


def _rounded(wait: int) -> int:
    """A wait in ms, rounded up: above 10 s to whole seconds, so that there are not too many different ones."""
    return -(-wait // MILLISECOND) if wait < _FINE else -(-wait // SECOND) * 1000
