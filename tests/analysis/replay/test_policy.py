"""A replay of policies decides what the live limiter decides, and says by limit, by key and over time what came of it."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.logs.made_logs import MIDNIGHT, denials, line, stream, website_log
from headway import (
    AllowList,
    AttributeMissing,
    BanList,
    Decision,
    Limit,
    Limiter,
    LimitError,
    MemoryStore,
    Overridden,
    TieredLimit,
    When,
)  # fmt: skip
from headway.analysis.logs.block import Block
from headway.analysis.logs.read import read_logs
from headway.analysis.replay import replay_log
from headway.analysis.replay.fields import mapped
from headway.analysis.replay.policy import Asked, fields_of, replay_policy
from headway.analysis.replay.report import PolicyReplay
from headway.analysis.replay.side import Side
from headway.core.limit import Algorithm
from headway.core.quota import SECOND
from headway.policy.policy import Policy
from headway.testing import ManualClock

QUOTAS = (
    "1 per 5s",
    "2 per 10s",
    "3 per 7s",
    "5/min",
    "0/s",
    "3 per 7s burst 1",
    "5/min burst 2",
    "2/day in Europe/Berlin",
    "4 per 60s",
)


@st.composite
def limits_(draw: st.DrawFn, name: str) -> Limit:
    """A limit of any algorithm, quota, key and cost that fit."""
    while True:
        try:
            return Limit(
                name,
                draw(st.sampled_from(QUOTAS)),
                by=draw(st.sampled_from([(), ("ip",), ("account",), ("ip", "path")])),
                algorithm=draw(
                    st.sampled_from([None, *(name for name in Algorithm if name is not Algorithm.CONCURRENCY)])
                ),
                cost=draw(st.sampled_from([None, None, None, 2])),
                shadow=draw(st.booleans()) and draw(st.booleans()),
                count_refused=draw(st.booleans()) and draw(st.booleans()),
            )
        except LimitError:
            continue


@st.composite
def parts(draw: st.DrawFn, name: str) -> Any:
    """A limit, or one that depends on the request."""
    limit = draw(limits_(name))
    kind = draw(st.sampled_from(["plain", "plain", "when", "tiers", "override", "ban"]))
    if kind == "when":
        return When({"path": ["/a", "/b*"]}, limit)
    if kind == "tiers":
        shadow = draw(st.booleans())
        return TieredLimit(
            name, {"/a": "1 per 5s", "/b": "3 per 10s", "/c": "unlimited"}, by="ip", tier="path",
            unknown=draw(st.sampled_from(["refuse", "unlimited", "/a"])), shadow=shadow,
        )  # fmt: skip
    if kind == "override" and limit.by == ("ip",) and limit.algorithm is Algorithm.GCRA and not limit.cost:
        return Overridden(limit, {"192.0.2.1": "9 per 10s", "192.0.2.2": "block"})
    if kind == "ban":
        return BanList(name, {"ip": "192.0.2.3", "path": "/d"})
    return limit


policies = st.integers(1, 3).flatmap(lambda count: st.tuples(*(parts(f"limit-{number}") for number in range(count))))
exempts = st.sampled_from([None, None, AllowList({"account": "boss"})])
requests_ = st.lists(
    st.tuples(
        st.sampled_from([-3, 0, 0, 0, 1, 1, 2, 5, 30, 4000]),
        st.sampled_from(["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
        st.sampled_from(["ann", "boss", "-"]),
        st.sampled_from(["/a", "/b", "/c", "/d"]),
        st.sampled_from([200, 200, 429]),
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip
Requests = list[tuple[int, str, str, str, int]]


def arrivals(requests: Requests) -> list[tuple[int, dict[str, object], int]]:
    """(the log's clock in ns, attributes, status) of each request."""
    found, second, latest = [], 0, 0
    for gap, address, user, path, status in requests:
        second = max(0, second + gap)
        latest = max(latest, second)
        facts: dict[str, object] = {"ip": address, "path": path} | ({} if user == "-" else {"account": user})
        found.append(((MIDNIGHT + latest) * SECOND, facts, status))
    return found


def log_of(requests: Requests) -> io.BytesIO:
    """The same as an access log."""
    second, lines = 0, []
    for gap, address, user, path, status in requests:
        second = max(0, second + gap)
        lines.append(line(second, address, f"GET {path}?x=1 HTTP/1.1", user=user, status=status))
    return stream(lines)


def live(policy: Policy, requests: Requests) -> list[Decision | None]:
    """What the live limiter decides; None where it lacks an attribute."""
    clock = ManualClock()
    limiter = Limiter(*policy.limits, store=MemoryStore(clock=clock), exempt=policy.exempt)
    decisions: list[Decision | None] = []
    for now, facts, _ in arrivals(requests):
        clock.now = now
        try:
            decisions.append(limiter.hit(facts))
        except AttributeMissing:
            decisions.append(None)
    return decisions


def replayed(log: io.BytesIO, policy: Policy, **options: Any) -> PolicyReplay:
    """The replay of a log."""
    against = [options["against"]] if "against" in options else []
    asked = Asked(policy, "today.toml", mapped([policy, *against], {}, {}), **options)
    return replay_policy(read_logs(["-"], fields_of(asked), standard_input=log), asked)


@settings(max_examples=60, deadline=None)
@given(policies, exempts, requests_)
def test_every_decision_is_the_live_limiter_s(limits: Any, exempt: AllowList | None, requests: Requests) -> None:
    """Request by request: who passes, which limit binds, and what is told."""
    policy = Policy("p", limits, "default", exempt)
    side = Side(policy)
    for (now, facts, _), decision in zip(arrivals(requests), live(policy, requests), strict=True):
        ruling = side.decide(facts, now)
        if decision is None:
            assert ruling is None
            continue
        assert ruling is not None
        assert ruling.allowed == decision.allowed
        assert ruling.wait == decision.retry_after_ns
        assert ruling.limit == (None if decision.allowed else decision.limit)


@settings(max_examples=60, deadline=None)
@given(policies, exempts, requests_)
def test_what_is_counted_is_what_the_live_limiter_decides(
    limits: Any, exempt: AllowList | None, requests: Requests
) -> None:
    """From the log's text to the counts by limit: asked, refused, bound, first, last, the longest wait; and by status."""
    policy = Policy("p", limits, "default", exempt)
    decisions = live(policy, requests)
    found = replayed(log_of(requests), policy)
    known = [decision for decision in decisions if decision is not None]
    assert found.today.requests == len(known)
    assert found.today.refused == sum(not decision.allowed for decision in known)
    assert sum(found.today.undecided.values()) == decisions.count(None)
    times = [now for now, _, _ in arrivals(requests)]
    for limit in found.today.limits:
        outcomes = [
            (now, decision, decision.outcomes[limit.name])
            for now, decision in zip(times, decisions, strict=True)
            if decision is not None and limit.name in decision.outcomes
        ]
        refusing = [(now, outcome) for now, _, outcome in outcomes if type(outcome).__name__ != "Admitted"]
        assert (limit.asked, limit.refused) == (len(outcomes), len(refusing))
        assert limit.bound == sum(not d.allowed and d.limit == limit.name for _, d, _ in outcomes)
        assert (limit.first, limit.last) == ((refusing[0][0], refusing[-1][0]) if refusing else (None, None))
        waits = [outcome.retry_after for _, outcome in refusing if hasattr(outcome, "retry_after")]
        assert limit.told_most == (max(waits) if waits else None)
        assert limit.never == len(refusing) - len(waits)
    pairs = Counter(
        (status == 429, decision.allowed)
        for (_, _, status), decision in zip(arrivals(requests), decisions, strict=True)
        if decision is not None
    )
    if known:
        assert found.statuses is not None
        assert (found.statuses.both, found.statuses.neither) == (pairs[True, False], pairs[False, True])
        assert (found.statuses.only_log, found.statuses.only_policy) == (pairs[True, True], pairs[False, False])


@settings(max_examples=60, deadline=None)
@given(limits_("replay"), requests_)
def test_the_short_way_of_one_limit_decides_the_same(limit: Limit, requests: Requests) -> None:
    """A bare --limit refuses the same requests of the same keys as the live limiter."""
    quota = limit.quota
    if limit.algorithm is Algorithm.MINIMUM_INTERVAL:  # which has made the burst 1
        quota = replace(quota, burst=quota.count)
    by_address, by_ip = (replace(limit, quota=quota, by=(by,), shadow=False) for by in ("address", "ip"))
    decisions = live(Policy("p", (by_ip,), "p"), requests)
    refused = Counter(
        str(facts["ip"])
        for (_, facts, _), decision in zip(arrivals(requests), decisions, strict=True)
        if decision is not None and not decision.allowed
    )
    found = replay_log(log_of(requests), by_address, top=10)
    assert {key.key[0]: key.denied for key in found.most_denied} == refused
    assert (found.denied, found.keys_denied) == (refused.total(), len(refused))


@settings(max_examples=50, deadline=None)
@given(policies, policies, requests_)
def test_two_policies_side_by_side_are_two_replays(one: Any, other: Any, requests: Requests) -> None:
    """Each side decides as it does alone, and the four ways they agree or differ are counted."""
    today, proposed = Policy("p", one, "default"), Policy("p", other, "default")
    found = replayed(log_of(requests), today, against=proposed)
    assert found.compared is not None
    assert found.against is not None
    pairs = list(zip(live(today, requests), live(proposed, requests), strict=True))
    ways = Counter((a.allowed, b.allowed) for a, b in pairs if a is not None and b is not None)
    assert (found.compared.both_admitted, found.compared.both_refused) == (ways[True, True], ways[False, False])
    assert (found.compared.newly_refused, found.compared.newly_admitted) == (ways[True, False], ways[False, True])
    assert found.compared.incomparable == sum((a is None) != (b is None) for a, b in pairs)
    by_limit = Counter(
        ("newly_refused", b.limit) if a.allowed else ("newly_admitted", a.limit)
        for a, b in pairs
        if a is not None and b is not None and a.allowed != b.allowed
    )
    assert {(kind, limit): requests for kind, limit, requests in found.compared.by_limit} == by_limit
    assert found.against.refused == sum(b is not None and not b.allowed for _, b in pairs)


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "sliding-log"])
def test_a_websites_log(algorithm: str) -> None:
    """A policy of one limit gives the figures that exact fractions give."""
    found = replayed(
        io.BytesIO(website_log()), Policy("p", (Limit("a", "5 per 60s", by="address", algorithm=algorithm),), "p")
    )
    limit = found.today.limits[0]
    assert (found.lines, found.unparsed, found.today.requests, limit.keys) == (3456, 0, 3456, 520)
    assert (limit.refused, limit.keys_refused) == denials(5, 60, algorithm)


def test_when_and_for_how_long_a_key_was_refused() -> None:
    """First and last refusal, the waits that were told, and the stretches for which the limit was closed."""
    seconds = [0, 0, 10, 59, 60, 61, 200, 210]
    log = stream(line(at, user="ann" if at < 100 else "bob") for at in seconds)
    found = replayed(log, Policy("p", (Limit("a", "1 per 60s", by="address"),), "p"), behind="user")
    (limit,) = found.today.limits
    (key,) = limit.most_refused
    assert (key.key, key.requests, key.refused) == (("192.0.2.1",), 8, 5)
    assert [(at - MIDNIGHT * SECOND) // SECOND for at in (key.first, key.last)] == [0, 210]
    assert [length // SECOND for length in (key.closed, key.longest_told, key.longest_closed)] == [60 + 59 + 50, 60, 60]
    assert (key.stretches, key.behind) == (3, 2)
    assert (limit.told_most, limit.told_mean) == (60 * SECOND, (60 + 50 + 1 + 59 + 50) * SECOND // 5)


def test_the_binding_limit_is_the_one_with_the_longest_wait() -> None:
    """Where several refuse, each is counted as refusing, and one as binding; none is charged."""
    policy = Policy("p", (Limit("short", "1 per 10s", by="ip"), Limit("long", "1 per 60s", by="path")), "p")
    found = replayed(stream([line(0), line(1), line(11)]), policy)
    assert [(limit.name, limit.refused, limit.bound) for limit in found.today.limits] == [
        ("short", 1, 0),
        ("long", 2, 2),
    ]


def test_limits_on_requests_at_once_are_left_out_and_said() -> None:
    """A log does not say when a request ended; the other limits are replayed."""
    policy = Policy("p", (Limit("once", "1 at once", by="ip"), Limit("rate", "1 per 10s", by="ip")), "p")
    found = replayed(stream([line(0), line(1)]), policy)
    assert (found.today.left_out, [limit.name for limit in found.today.limits]) == (("once",), ["rate"])
    assert found.today.refused == 1


def test_whom_a_limit_without_a_key_refused() -> None:
    """A counter for everyone and a ban name the callers that they refused; API keys among them are masked."""
    policy = Policy("p", (BanList("ban", {"ip": "192.0.2.9"}), Limit("all", "1 per 60s")), "p")
    found = replayed(stream([line(0), line(1), line(2, "192.0.2.9"), line(3, "192.0.2.2"), line(4)]), policy)
    assert [(limit.name, limit.keys, limit.callers) for limit in found.today.limits] == [
        ("ban", 1, (("192.0.2.9", 1),)),
        ("all", 1, (("192.0.2.1", 2), ("192.0.2.9", 1), ("192.0.2.2", 1))),
    ]
    block = Block({"time": [1, 2], "api_key": ["sk_live_0123456789abcdef"] * 2, "status": [200, 200]}, 2)
    everyone = Policy("p", (Limit("all", "1 per 60s"), Limit("by-key", "1 per 60s", by="key")), "p")
    asked = Asked(everyone, "", mapped([everyone], {}, {}), caller=("api_key",))
    said = str(replay_policy([block], asked).to_dict(series=True))
    assert said.count("sk_l…(") == 2
    assert "0123456789" not in said


def test_the_timeline_counts_requests_and_refusals() -> None:
    """By clock-aligned steps: requests, refusals, the log's own refusals, and the proposed policy's."""
    log = stream([line(59), line(60, status=429), line(61), line(130)])
    strict, lax = (Policy("p", (Limit("a", quota, by="ip"),), "p") for quota in ("1 per 60s", "9/s"))
    found = replayed(log, lax, against=strict)
    rows = [((start // SECOND) - MIDNIGHT, counts) for start, counts in found.timeline.rows()]
    assert found.timeline.kinds == ("requests", "refused", "refused_in_log", "refused_against")
    assert rows == [(0, [1, 0, 0, 0]), (60, [2, 0, 1, 2]), (120, [1, 0, 0, 0])]


def test_a_replay_that_is_stopped_says_so() -> None:
    """What was read until then is whole, and marked as partial."""
    blocks = [Block({"time": [at], "address": ["a"], "status": [200]}, 1) for at in range(10)]
    policy = Policy("p", (Limit("a", "1 per 60s", by="address"),), "p")
    asked = Asked(policy, "", mapped([policy], {}, {}))
    seen: list[int] = []
    found = replay_policy(blocks, asked, progress=seen.append, stopped=lambda: len(seen) == 4)
    assert (found.partial, found.lines, found.today.requests, found.today.refused) == (True, 4, 4, 3)
    assert seen == [1, 2, 3, 4]
    assert not replay_policy(blocks, asked).partial


def blocks_of(lines: int) -> Iterable[Block]:
    """A log of 50 addresses, 40 requests a second."""
    chance = random.Random(1)
    for start in range(0, lines, 1000):
        times = [(MIDNIGHT + at // 40) * SECOND for at in range(start, start + 1000)]
        addresses = [f"192.0.2.{chance.randrange(50)}" for _ in times]
        yield Block({"time": times, "address": addresses, "status": [200] * 1000, "user": [None] * 1000}, 1000)


def peak(lines: int) -> int:
    """The most bytes that a replay of so many lines holds at once."""
    policy = Policy(
        "p", (Limit("a", "2 per 10s", by="ip"), Limit("b", "3 per 20s", by="ip", algorithm="sliding-log")), "p"
    )
    asked = Asked(policy, "", mapped([policy], {}, {}), against=policy, obedient="drop", step=3600 * SECOND)
    tracemalloc.start()
    try:
        replay_policy(blocks_of(lines), asked)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_keys_and_not_with_the_lines() -> None:
    """Twice the lines of as many keys take no more memory, with two policies and obedient callers too."""
    peak(1_000)  # what is made once and kept
    assert peak(4_000) < peak(2_000) * 1.4
