"""Proposals: for each goal the limit that reaches it, found in the traffic and then tried on it.

A per-client limit is GCRA. For a set of clients that must never be refused there is, for each count per period, a smallest burst that
refuses none of them; of those that refuse (nearly) most of the others the fastest in the long run is taken, and room is added as long as
that lets hardly any of the others through. Where nobody else is refused, it is the one that admits least in a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final, Protocol

from headway.analysis.figures import counted
from headway.analysis.suggest.goals import Goal, HonestGoal, StopTopGoal, TotalGoal
from headway.analysis.suggest.numpy_levels import burst_needed, refused_of
from headway.analysis.suggest.percentiles import Histogram
from headway.analysis.suggest.sustained import Sustained, rounded_up, sustained_between
from headway.analysis.suggest.trial import Trial, try_limit, try_limits
from headway.core.limit import Algorithm, Limit
from headway.core.quota import DAY, HOUR, MINUTE, SECOND, Quota

__all__ = ["Asked", "Proposal", "propose"]

_MARGINS: Final = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10))
_ALONE: Final = Fraction(1, 4)
"""The margin where there is nobody to refuse."""
_KEPT: Final = Fraction(9, 10)
_EVER: Final = 2**62
"""A window that holds all times."""
_LOGGED: Final = 1000
"""A total of up to so many in its period is counted by a log of arrivals, a larger one by clock-aligned windows."""


class Asked(Protocol):
    """What is asked of the traffic; ``duckdb_numpy_traffic.Traffic`` answers."""

    def arrivals(self, where: str = "", *, above: int = 0) -> Iterable[tuple[int, Sequence[int]]]:
        """Each client's number and times, the client with the most requests first."""
        ...

    def in_time(self) -> Iterable[tuple[int, int]]:
        """(time, client) in the order of time."""
        ...

    def cap_for_total(self, count: int, window: int) -> int:
        """The largest cap on each client's requests a clock-aligned window that keeps the total; 0 where none does."""
        ...

    def most_within(self, window: int, *, together: bool = False) -> int:
        """The most requests of a client, or of all together, in any window."""
        ...

    def those(self, clients: Sequence[int], where: str) -> frozenset[int]:
        """Those of some clients for which a condition holds."""
        ...

    def peak(self, where: str, window: int) -> int:
        """The most requests of a client in a clock-aligned window."""
        ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A limit, or two, for a goal, and what came of trying them.

    Attributes:
        goal: what for; a total has its quota filled in.
        each: each client's quota; None for no such limit.
        tight: the quota without a margin, where one was added: the smallest that reaches the goal here.
        total: everybody's quota together; None for no such limit.
        algorithm: how the total is counted.
        trial: what they would have refused.
        notes: what somebody should know who takes them.
    """

    goal: Goal
    each: Quota | None
    tight: Quota | None
    total: Quota | None
    algorithm: Algorithm | None
    trial: Trial
    notes: tuple[str, ...] = ()

    def limits(self, by: str = "address") -> tuple[Limit, ...]:
        """The limits, the one for each client first.

        Args:
            by: what a client is.
        """
        made = []
        if self.each is not None:
            made.append(Limit(f"per-{by.replace('_', '-')}", self.each, by=by))
        if self.total is not None:
            made.append(Limit("everyone", self.total, algorithm=self.algorithm))
        return tuple(made)


def propose(
    goal: Goal,
    traffic: Asked,
    *,
    clients: int,
    honest: str,
    usual_total: int,
    span: int,
    progress: Callable[[int], None] | None = None,
) -> Proposal:
    """The proposal for a goal.

    Args:
        goal: see ``goals``.
        traffic: its clients are numbered, the one with the most requests first.
        clients: how many there are, at least 1.
        honest: the condition that says who is never to be refused by ``HonestGoal``; see ``Traffic.arrivals``.
        usual_total: the total for a goal that names none, in requests a second; at least 1.
        span: from the first request to the last, in ns.
        progress: called with the number of requests that the trial has seen.
    """
    match goal:
        case HonestGoal():
            return _each(goal, traffic, honest, f"NOT ({honest})", span, _by_requests, progress)
        case StopTopGoal(share=share):
            top = ceil(share * clients)
            return _each(goal, traffic, f"c.id > {top}", f"c.id <= {top}", span, _by_clients, progress)
        case TotalGoal(quota=quota):
            return _total(goal, traffic, quota or Quota(usual_total, SECOND), honest, progress)


_Refusals = tuple[int, int]
"""(requests, clients)."""


def _by_requests(refusals: _Refusals) -> tuple[int, ...]:
    return refusals


def _by_clients(refusals: _Refusals) -> tuple[int, ...]:
    return refusals[::-1]


def _each(
    goal: Goal,
    traffic: Asked,
    spared: str,
    others: str,
    span: int,
    worth: Callable[[_Refusals], tuple[int, ...]],
    progress: Callable[[int], None] | None,
) -> Proposal:
    """The per-client limit that refuses nobody of those who are spared, and of the others as much as that leaves."""
    notes: list[str] = []
    quotas = _smallest(traffic, spared, span)
    if not quotas:
        raise ValueError(f"goal {goal}: nobody is left who must not be refused")
    refusals = _refusals(quotas, traffic, others)
    tight = _chosen(refusals, worth)
    quota = _with_margin(tight, refusals[tight], traffic, others)
    if not refusals[tight][0]:
        notes.append("nobody else sends faster than those who must not be refused, so it refuses nobody here")
    trial = try_limit(Limit("trial", quota), traffic.arrivals(above=quota.burst), progress)
    return Proposal(goal, quota, tight if tight != quota else None, None, None, trial, tuple(notes))


def _chosen(refusals: dict[Quota, _Refusals], worth: Callable[[_Refusals], tuple[int, ...]]) -> Quota:
    """Of those that refuse nearly as much as any the fastest in the long run, which leaves the others most room to come again."""
    requests, clients = max(refusals.values(), key=worth)
    if not requests:
        return min(refusals, key=lambda quota: (quota.most_in(MINUTE), quota.burst))
    good = [quota for quota, found in refusals.items() if found[0] >= _KEPT * requests and found[1] >= clients]
    return max(good, key=lambda quota: Fraction(quota.count, quota.period_ns))


def _smallest(traffic: Asked, spared: str, span: int) -> list[Quota]:
    """From what the busiest of them sends in the long run to its busiest minute, each with its smallest burst."""
    minute, hour = traffic.peak(spared, MINUTE), traffic.peak(spared, HOUR)
    if not minute:
        return []
    slowest = Fraction(hour, HOUR)
    if span > DAY:
        slowest = Fraction(traffic.peak(spared, DAY), DAY)
    elif span > HOUR:
        slowest = Fraction(traffic.peak(spared, _EVER), span)
    fastest = max(Fraction(minute, MINUTE), Fraction(traffic.peak(spared, SECOND), 5 * SECOND))
    sustained = sustained_between(slowest, fastest)
    bursts = [1] * len(sustained)
    for _, times in traffic.arrivals(spared):
        if len(times) <= min(bursts):
            break
        for index, (count, period) in enumerate(sustained):
            if len(times) > bursts[index]:
                bursts[index] = max(bursts[index], burst_needed(times, count, period))
    return [_quota(long_run, burst) for long_run, burst in zip(sustained, bursts, strict=True)]


def _quota(long_run: Sustained, burst: int) -> Quota:
    count, period = long_run
    return Quota(count, period, max(1, burst))


def _refusals(quotas: Sequence[Quota], traffic: Asked, whom: str) -> dict[Quota, _Refusals]:
    """How many requests of how many clients each quota would refuse."""
    requests, clients = [0] * len(quotas), [0] * len(quotas)
    for _, times in traffic.arrivals(whom, above=min(quota.burst for quota in quotas)):
        for index, quota in enumerate(quotas):
            refused = refused_of(times, quota.count, quota.period_ns, quota.burst)
            requests[index] += refused
            clients[index] += refused > 0
    return dict(zip(quotas, zip(requests, clients, strict=True), strict=True))


def _with_margin(tight: Quota, refused: _Refusals, traffic: Asked, others: str) -> Quota:
    """Room for what this traffic did not show, as long as that lets through hardly any of what is to be refused."""
    if not refused[0]:
        return _grown(tight, _ALONE, _ALONE)
    grown = [_grown(tight, margin, margin) for margin in _MARGINS]
    grown += [_grown(tight, Fraction(0), margin) for margin in _MARGINS]
    found = _refusals(list(dict.fromkeys(grown)), traffic, others)
    for quota in grown:
        requests, clients = found[quota]
        if requests >= _KEPT * refused[0] and clients >= refused[1]:
            return quota
    return tight


def _grown(quota: Quota, faster: Fraction, more: Fraction) -> Quota:
    """A quota whose count and burst are larger by a share, and round."""
    count = rounded_up(quota.count * (1 + faster)) if faster else quota.count
    return Quota(count, quota.period_ns, rounded_up(quota.burst * (1 + more)))


def _total(
    goal: TotalGoal, traffic: Asked, quota: Quota, honest: str, progress: Callable[[int], None] | None
) -> Proposal:
    """A total that holds in any case, and a limit for each client where that spares honest ones more than the total alone."""
    notes: list[str] = []
    log = quota.count <= _LOGGED
    algorithm = Algorithm.SLIDING_LOG if log else Algorithm.FIXED_WINDOW
    if not log:
        notes.append(
            "so large a total is counted in clock-aligned windows: around the turn of one twice as many can come"
        )
    goal = TotalGoal(quota)
    if traffic.most_within(quota.period_ns, together=True) <= quota.count:
        notes.append("the total is never reached here, so no limit for each client is proposed")
        return Proposal(goal, None, None, quota, algorithm, Trial(0, (), Histogram(), (0,)), tuple(notes))
    total = Limit("total", quota, algorithm=algorithm)
    alone = try_limits(None, total, traffic.in_time(), progress)
    cap = traffic.cap_for_total(quota.count, quota.period_ns)
    if cap < 1:
        notes.append("even one request from each client is too many at times, so no limit for each client can help")
        return Proposal(goal, None, None, quota, algorithm, alone, tuple(notes))
    each = Quota(cap, quota.period_ns)
    both = try_limits(Limit("each", each), total, traffic.in_time(), progress)
    spared = [_honest_refusals(trial, traffic, honest) for trial in (both, alone)]
    if spared[0] <= spared[1]:
        notes.append(
            f"without the limit for each client the total alone would have refused {counted(alone.refused, 'request')}"
        )
        return Proposal(goal, each, None, quota, algorithm, both, tuple(notes))
    notes.append(
        f"a limit of {each} for each client beside it would keep the total from being used up by a few, but would have refused "
        f"{counted(both.refused, 'request')}"
    )
    return Proposal(goal, None, None, quota, algorithm, alone, tuple(notes))


def _honest_refusals(trial: Trial, traffic: Asked, honest: str) -> int:
    """How many requests of clients that nobody wants to refuse were refused."""
    known = traffic.those([client.client for client in trial.clients], honest)
    return sum(client.refused for client in trial.clients if client.client in known)
