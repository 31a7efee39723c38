"""Random decisions as the limiter makes them: random limits, random histories, settled by core."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from headway.core.bill import settle
from headway.core.limit import Limit
from headway.core.outcome import Outcome, Refused
from headway.core.quota import DAY, HOUR, MINUTE, SECOND, Quota
from headway.core.verdict import Verdict

NOW = 1_796_083_200 * SECOND
"""2026-12-01 00:00:00 UTC."""

_ZONES = ("UTC", "Asia/Shanghai", "America/Los_Angeles", "Australia/Lord_Howe", "Asia/Kathmandu", "Europe/Berlin")
_PERIODS = (1, 7, 250_000_000, SECOND, 1_500_000_000, 90 * SECOND, MINUTE, HOUR, DAY, 7 * DAY, 365 * DAY)
_BY = ((), ("phone",), ("ip",), ("phone", "ip"), ("order_id",), ("account", "route", "x9"))


def one_refusal(wait: int, limit: Limit | None = None, now: int = NOW) -> Verdict:
    """A verdict of one limit that refuses for ``wait`` ns."""
    limit = limit or Limit("per-phone", "5 per day", by="phone")
    return Verdict((limit,), (Refused(0, wait, wait, wait),), False, now, None, (1,))


def random_limit(random: Random, name: str) -> Limit:
    """Any kind of limit, from one a nanosecond to one a year."""
    by = random.choice(_BY)
    count = random.choice((0, 1, 2, 3, 5, 11, 60, 1000, 10_000, random.randint(1, 10**12)))
    if random.random() < 0.2:
        unit, period = random.choice((("day", DAY), ("week", 7 * DAY), ("month", 30 * DAY)))
        return Limit(name, Quota(count, period, None, random.choice(_ZONES), unit), by)
    period = random.choice(_PERIODS)
    if random.random() < 0.1 and count:
        return Limit(name, Quota(count, random.choice((SECOND, MINUTE, DAY)), concurrent=True), by)
    burst = random.randint(1, 2000) if count and random.random() < 0.4 else None
    if count and burst and burst * period // count > 99 * 365 * DAY:
        burst = None
    algorithm = "gcra"
    if burst is None:
        algorithm = random.choice(("gcra", "fixed-window", "anchored-window", "sliding-window", "sliding-log"))
    return Limit(name, Quota(count, period, burst), by, algorithm=algorithm)


def random_verdicts(seed: int, count: int) -> Iterator[Verdict]:
    """``count`` decisions: admitted, refused, never, blocked, and without a store."""
    random = Random(seed)
    limits = [random_limit(random, f"limit-{number}") for number in range(200)]
    limits += [random_limit(random, name) for name in ("*", "a:b/c*", "per_ip.v4", "x" * 64)]
    for _ in range(count):
        yield _random_verdict(random, random.sample(limits, random.randint(1, 4)))


def _random_verdict(random: Random, limits: list[Limit]) -> Verdict:
    now = NOW + random.randint(0, 400 * DAY)
    rules = [limit.rule for limit in limits]
    costs = tuple(random.choice((0, 1, 1, 1, 2, 5, 100)) for _ in limits)
    states: list[object] = [None] * len(limits)
    for _ in range(random.randint(0, 6)):
        for index, new in settle(rules, states, costs, now).writes:
            states[index] = new
        now += random.choice((0, 1, random.randint(0, SECOND), random.randint(0, DAY)))
    settled = settle(rules, states, costs, now)
    outcomes: list[Outcome | None] = list(settled.outcomes)
    degraded = None
    if random.random() < 0.05:
        outcomes = [None if random.random() < 0.7 else outcome for outcome in outcomes]
        degraded = "the store did not answer within 100 ms"
    return Verdict(tuple(limits), tuple(outcomes), settled.allowed, now, degraded, costs)
