"""What other people's limiters did to their users, and ours must not: the reports of ``tests/data/field_reports.jsonl``.

Reports of HTTP, clients and networked stores are tested where those live. Times are seconds from the start of a case;
the start is a multiple of every period used here.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from headway.core import fixed_window
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import DAY, SECOND, Quota
from headway.errors import LimitError, QuotaError
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.testing.clock import ManualClock
from ways import STORES, WAYS, Ask, opened

REPORTS = {
    report["id"]: report
    for report in map(json.loads, (Path(__file__).parents[1] / "data" / "field_reports.jsonl").read_text().splitlines())
}
START = 1_800_576_000
"""2027-01-22 00:00:00 UTC, a midnight: a multiple of a day, and of a minute."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=STORES)
def limiter_of(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> Iterator[object]:
    """``limiter_of(*limits)``: a limiter on one fresh store; further ones share it."""
    store = STORES[request.param](clock, tmp_path)
    yield lambda *limits: Limiter(*limits, store=store)
    store.close()


def play(ask: Ask, clock: ManualClock, arrivals: Sequence[tuple[float | Fraction | str, int]]) -> list[Outcome]:
    """The outcomes of hits at those times with those costs, on one limit."""
    outcomes = []
    for at, cost in arrivals:
        clock.now = START * SECOND + int(Fraction(at) * SECOND)
        outcomes.extend(ask(cost)[1].values())
    return outcomes


def allowed(outcomes: Sequence[Outcome]) -> list[bool]:
    return [isinstance(outcome, Admitted) for outcome in outcomes]


def waits(outcomes: Sequence[Outcome]) -> list[Fraction | None]:
    """Exact seconds, None for admitted and never."""
    return [Fraction(o.retry_after, SECOND) if isinstance(o, Refused) else None for o in outcomes]


def left(outcomes: Sequence[Outcome]) -> list[int]:
    return [outcome.remaining for outcome in outcomes]


def limit(quota: str, algorithm: str = "gcra") -> Limit:
    return Limit("l", quota, by="id", algorithm=algorithm)


def test_every_report_is_there() -> None:
    """The file holds the reports these tests are named after."""
    assert {f"FS-{number:02}" for number in range(1, 41)} <= set(REPORTS)


@pytest.mark.parametrize(
    ("algorithm", "second_half", "wait"),
    [
        ("fixed-window", 60, Fraction(599, 10)),
        ("anchored-window", 0, Fraction(598, 10)),
        ("sliding-log", 0, Fraction(598, 10)),
        ("sliding-window", 0, Fraction(9, 10)),
        ("gcra", 0, Fraction(8, 10)),
        ("token-bucket", 0, Fraction(8, 10)),
    ],
)
def test_a_window_s_edge_does_not_let_a_double_burst_through_unsaid(
    algorithm: str, second_half: int, wait: Fraction, way: str, clock: ManualClock, tmp_path: Path
) -> None:
    """FS-01 (plausible/analytics#6497): 60 at 59.9 s and 60 at 60.1 s of 60/minute; only an aligned window admits both."""
    with opened(way, clock, tmp_path, limit("60/minute", algorithm)) as ask:
        outcomes = play(ask, clock, [("59.9", 1)] * 60 + [("60.1", 1)] * 61)
    assert sum(allowed(outcomes[:60])) == 60
    assert sum(allowed(outcomes[60:120])) == second_half
    assert waits(outcomes)[-1] == wait
    assert "Up to twice the count" in (fixed_window.__doc__ or "")


def test_a_large_cost_is_not_forgotten_by_later_small_ones(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-02 (alisaifee/limits#112): costs 8, 2, 1, 8 of a log of 10 per 60 s."""
    with opened(way, clock, tmp_path, limit("10 per 60 s", "sliding-log")) as ask:
        outcomes = play(ask, clock, [(0, 8), (1, 2), (2, 1), (60, 8)])
    assert allowed(outcomes) == [True, True, False, True]
    assert left(outcomes) == [2, 0, 0, 0]
    assert waits(outcomes) == [None, None, 58, None]


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-log", "sliding-window"])
def test_a_cost_above_the_limit_is_neither_admitted_nor_told_a_wait(
    algorithm: str, way: str, clock: ManualClock, tmp_path: Path
) -> None:
    """FS-03 (alisaifee/limits#151, bucket4j/bucket4j#220): 6 of 5 is never, and 5 of 5 then passes."""
    with opened(way, clock, tmp_path, limit("5 per 60 s", algorithm)) as ask:
        never, outcome = play(ask, clock, [(0, 6), (0, 5)])
    assert isinstance(never, Never)
    assert never.burst == never.remaining == 5
    assert outcome == Admitted(0, outcome.replenish_after, outcome.reset_after)


def test_never_is_not_an_endless_or_finite_wait_on_the_decision() -> None:
    """FS-03: ``retry_after`` is infinite, ``retry_at`` None, and the sentence names no time."""
    decision = Limiter(limit("5 per 60 s")).hit(id="k", cost=6)
    assert decision.never
    assert decision.retry_after == float("inf")
    assert decision.retry_after_ns is None
    assert decision.retry_at is None
    assert "retry-after" not in {name.lower() for name in decision.headers()}


def test_the_wait_is_not_counted_from_the_newest_hit(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-04 (alisaifee/limits#200): after hits at 0, 20 and 40 s of 3 per 60 s, one at 41 s waits 19 s, not 59."""
    with opened(way, clock, tmp_path, limit("3 per 60 s", "sliding-log")) as ask:
        outcomes = play(ask, clock, [(0, 1), (20, 1), (40, 1), (41, 1), (60, 1)])
    assert allowed(outcomes) == [True, True, True, False, True]
    assert waits(outcomes)[3] == 19
    assert outcomes[3].reset_after == 59 * SECOND
    assert outcomes[3].remaining == 0


@pytest.mark.parametrize("algorithm", ["fixed-window", "gcra", "sliding-log"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_refused_user_does_not_eat_the_shared_quota(
    order: int, algorithm: str, limiter_of: object, clock: ManualClock
) -> None:
    """FS-05 (symfony/symfony#65796): A is refused 19 times by a limit of its own; B still finds 9 of the shared 10."""
    limits = [
        Limit("per-user", "1 per 60 s", by="user", algorithm=algorithm),
        Limit("global", "10 per 60 s", algorithm=algorithm),
    ][::order]
    limiter: Limiter = limiter_of(*limits)  # type: ignore[operator]
    decisions = []
    for second in range(20):
        clock.set(START + second)
        decisions.append(limiter.hit(user="A"))
    assert [decision.allowed for decision in decisions] == [True] + [False] * 19
    assert {decision.limit for decision in decisions[1:]} == {"per-user"}
    clock.set(START + 20)
    honest = limiter.hit(user="B")
    assert honest.allowed
    assert honest.outcomes["global"].remaining == (8 if algorithm != "gcra" else 9)  # a bucket has refilled since


@pytest.mark.parametrize("algorithm", ["fixed-window", "sliding-log"])
def test_two_limits_of_one_caller_do_not_share_a_counter(
    algorithm: str, limiter_of: object, clock: ManualClock
) -> None:
    """FS-06 (laravel/framework#51967): 5/60 s and 50/day by the same address: the sixth is refused, the day counts five."""
    limiter: Limiter = limiter_of(  # type: ignore[operator]
        Limit("minute", "5 per 60 s", by="ip", algorithm=algorithm),
        Limit("day", "50/day", by="ip", algorithm=algorithm),
    )
    decisions = []
    for second in range(6):
        clock.set(START + second)
        decisions.append(limiter.hit(ip="192.0.2.1"))
    assert [decision.allowed for decision in decisions] == [True] * 5 + [False]
    assert decisions[-1].limit == "minute"
    assert decisions[-1].retry_after == 55
    assert decisions[-1].outcomes["day"].remaining == 45


@pytest.mark.parametrize(("count", "wait"), [(5, 86350), (8, 86320), (9, None)])
def test_a_lowered_limit_gives_no_negative_wait(
    count: int, wait: int | None, limiter_of: object, clock: ManualClock
) -> None:
    """FS-07 (encode/django-rest-framework#1438): 8 hits under 10/day, then 5, 8 or 9 per day on the same state."""
    before: Limiter = limiter_of(limit("10/day", "sliding-log"))  # type: ignore[operator]
    for second in range(0, 80, 10):
        clock.set(START + second)
        assert before.hit(id="k").allowed
    clock.set(START + 80)
    decision = limiter_of(limit(f"{count}/day", "sliding-log")).hit(id="k")  # type: ignore[operator]
    assert decision.allowed is (wait is None)
    assert decision.retry_after == (wait or 0)
    assert decision.remaining == 0


@pytest.mark.parametrize("quota", ["100/hour", "100 per 365 days"])
def test_concurrent_callers_lose_no_update(quota: str, limiter_of: object) -> None:
    """FS-08 (encode/django-rest-framework#5181): 20 threads of 25 hits, and 20 tasks, get 100 in all, each balance once."""
    limiter: Limiter = limiter_of(limit(quota))  # type: ignore[operator]
    decisions: list[Decision] = []
    threads = [
        threading.Thread(target=lambda: decisions.extend([limiter.hit(id="threads") for _ in range(25)]))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.outcomes["l"].remaining for one in decisions if one.allowed) == list(range(100))
    assert len(decisions) == 500

    async def main() -> list[Decision]:
        twin = AsyncLimiter(limit(quota), store=limiter.store)

        async def task() -> list[Decision]:
            return [await twin.hit(id="tasks") for _ in range(25)]

        return [one for answers in await asyncio.gather(*(task() for _ in range(20))) for one in answers]

    decisions = asyncio.run(main())
    assert sorted(one.outcomes["l"].remaining for one in decisions if one.allowed) == list(range(100))


def test_a_key_is_never_part_of_a_statement(limiter_of: object) -> None:
    """FS-10 (vutran1710/PyrateLimiter#287): quotes, SQL, braces, separators, NUL, the empty key: each its own budget."""
    keys = REPORTS["FS-10"]["reproduction"]["keys"]
    limiter: Limiter = limiter_of(limit("1 per 60 s"))  # type: ignore[operator]
    assert [limiter.hit(id=key).allowed for key in keys] == [True] * len(keys)
    assert [limiter.hit(id=key).allowed for key in keys] == [False] * len(keys)
    assert "" in keys


@pytest.mark.parametrize("algorithm", ["sliding-log", "fixed-window"])
def test_a_long_period_does_not_overflow(algorithm: str, way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-21 (animir/node-rate-limiter-flexible#71): a 30-day window holds for 30 days."""
    clock.set(2_592_000 * 700)
    begin = clock.now
    with opened(way, clock, tmp_path, limit("6 per 30 days", algorithm)) as ask:
        outcomes = []
        for at in [0] * 6 + [SECOND, 2_592_000 * SECOND - 1_000_000, 2_592_000 * SECOND]:
            clock.now = begin + at
            outcomes.extend(ask(1)[1].values())
    assert allowed(outcomes) == [True] * 6 + [False, False, True]
    assert waits(outcomes)[6:8] == [2_591_999, Fraction(1, 1000)]


def test_a_century_of_idleness_makes_no_negative_and_no_extra_units(
    way: str, clock: ManualClock, tmp_path: Path
) -> None:
    """FS-21 (bucket4j/bucket4j#51): 50,000,000 per 10 years, spent, then idle for 100 years."""
    with opened(way, clock, tmp_path, limit("50000000 per 3650 days")) as ask:
        assert play(ask, clock, [(0, 50_000_000)])[0].remaining == 0
        assert play(ask, clock, [(100 * 365 * 86_400, 1)])[0].remaining == 49_999_999


def test_a_wait_is_not_rounded_down_to_another_refusal(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-22 (alisaifee/flask-limiter#62, brandur/redis-cell#56): exact waits 1.3 s and 0.1 ms of 1 per 2 s."""
    with opened(way, clock, tmp_path, limit("1 per 2 s")) as ask:
        outcomes = play(ask, clock, [("0", 1), ("0.7", 1), ("1.9999", 1), ("2.7", 1)])
    assert allowed(outcomes) == [True, False, False, True]
    assert waits(outcomes) == [None, Fraction(13, 10), Fraction(1, 10_000), None]


def test_the_header_is_whole_seconds_rounded_up_and_at_least_one(clock: ManualClock, limiter_of: object) -> None:
    """FS-22: Retry-After is 2 for 1.3 s and 1 for 0.1 ms."""
    limiter: Limiter = limiter_of(limit("1 per 2 s"))  # type: ignore[operator]
    seen = []
    for at in ("0", "0.7", "1.9999", "2.7"):
        clock.set(START + Fraction(at))
        headers = {name.lower(): value for name, value in limiter.hit(id="k").headers().items()}
        seen.append(headers.get("retry-after"))
    assert seen == [None, "2", "1", None]


def test_remaining_is_never_outside_nought_and_the_limit(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-23 (laravel/framework#13756, mailgun/gubernator#87): 3 per 60 s at 0..4 s and at 1000 s."""
    with opened(way, clock, tmp_path, limit("3 per 60 s", "fixed-window")) as ask:
        outcomes = play(ask, clock, [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (1000, 1)])
    assert allowed(outcomes) == [True, True, True, False, False, True]
    assert left(outcomes) == [2, 1, 0, 0, 0, 2]
    assert [outcome.reset_after // SECOND for outcome in outcomes] == [60, 59, 58, 57, 56, 20]


def test_frequent_hits_do_not_lose_the_refill(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-24 (mailgun/gubernator#77, bucket4j/bucket4j#88): ten per 30 s hit every second keeps the part-units earned."""
    with opened(way, clock, tmp_path, limit("10 per 30 s", "token-bucket")) as ask:
        outcomes = play(ask, clock, [(second, 1) for second in range(11)])
    assert left(outcomes) == [9, 8, 7, 7, 6, 5, 5, 4, 3, 3, 2]
    assert all(allowed(outcomes))


def test_refused_hits_do_not_push_the_refill_back(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-24: one per second, hit at 0, 0.2, 0.999 and 1 s."""
    with opened(way, clock, tmp_path, limit("1/s")) as ask:
        outcomes = play(ask, clock, [("0", 1), ("0.2", 1), ("0.999", 1), ("1.0", 1)])
    assert allowed(outcomes) == [True, False, False, True]
    assert waits(outcomes) == [None, Fraction(8, 10), Fraction(1, 1000), None]


def test_an_older_timestamp_does_not_refill_again(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-25 (spring-cloud/spring-cloud-gateway#2412): hosts whose clocks disagree by a second admit 15 in all."""
    times = REPORTS["FS-25"]["reproduction"]["caller_times"]
    with opened(way, clock, tmp_path, limit("5/s")) as ask:
        outcomes = play(ask, clock, [(at, 1) for at in times])
    letters = "".join("A" if one else "D" for one in allowed(outcomes))
    assert letters in ("AAAAAAAAAADDDDAAAAA", "AAAAAAAAADADDDAAAAA")
    assert letters.count("A") == 15


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window", "anchored-window", "sliding-log", "sliding-window"])
@pytest.mark.parametrize("step", [-3600, -10, 10, 3600])
def test_a_clock_step_neither_refills_nor_locks_for_longer_than_a_period(
    step: int, algorithm: str, way: str, clock: ManualClock, tmp_path: Path
) -> None:
    """FS-25: hosts 10 s apart, and a clock set back or forward by an hour."""
    with opened(way, clock, tmp_path, limit("5 per 60 s", algorithm)) as ask:
        assert sum(allowed(play(ask, clock, [(7205, 1)] * 9))) == 5
        back = play(ask, clock, [(7205 + step, 1)] * 9)
        most = {
            "gcra": max(0, step) // 12,
            "sliding-log": 0,
            "anchored-window": 0,
            "fixed-window": 0,
            "sliding-window": 0,
        }
        assert sum(allowed(back)) <= (5 if step == 3600 else most[algorithm])
        longest = 60 + 10 if step < 0 else 60
        assert all(
            outcome.reset_after <= longest * SECOND * (2 if algorithm == "sliding-window" else 1) for outcome in back
        )
        if step < 0:
            last = back[-1]
            assert isinstance(last, Refused)
            clock.advance(ns=last.retry_after)
            assert ask(1)[0], "the cap was kept: waiting what is told is enough"


@pytest.mark.parametrize("store", STORES)
def test_bad_costs_neither_raise_the_balance_nor_pass(store: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-29 (alisaifee/limits#362, envoyproxy/envoy#45845): -1, NaN, inf, 1.5, "3" and True are errors; 0 looks."""
    opened_store = STORES[store](clock, tmp_path)
    limiter = Limiter(limit("10 per 60 s"), store=opened_store)
    for bad, error in [
        (-1, ValueError), (float("nan"), TypeError), (float("inf"), TypeError), (1.5, TypeError), ("3", TypeError),
        (True, TypeError), (False, TypeError), (None, TypeError), (2.0, TypeError), ({"l": -1}, ValueError),
        ({"l": True}, TypeError), ({"l": 0.5}, TypeError),
    ]:  # fmt: skip
        for call in (limiter.hit, limiter.peek):
            with pytest.raises(error):
                call(id="k", cost=bad)  # type: ignore[arg-type]
    assert limiter.hit(id="k", cost=0).remaining == 10
    never = limiter.hit(id="k", cost=10**30)
    assert never.never
    assert never.remaining == 10
    opened_store.close()


def test_a_limit_of_zero_blocks_and_other_impossible_ones_are_refused_when_made() -> None:
    """FS-29: 0 denies everything without an error or a wait; negative, NaN and infinite ones name the field."""
    decision = Limiter(limit("0 per 60 s")).hit(id="k")
    assert decision.blocked
    assert not decision.allowed
    assert "retry-after" not in {name.lower() for name in decision.headers()}
    for count, period in [(-1, SECOND), (5, 0), (5, -5), (5, float("nan")), (float("inf"), SECOND)]:
        with pytest.raises(QuotaError, match=r"count|period"):
            Quota(count, period)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "algorithm", ["fixed-window", "anchored-window", "sliding-log", "sliding-window", "gcra", "token-bucket"]
)
def test_a_refused_request_consumes_nothing(algorithm: str, way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-30 (upstash/ratelimit-js#161): 8, then 5 refused, then 1 admitted of 10 per 60 s."""
    with opened(way, clock, tmp_path, limit("10 per 60 s", algorithm)) as ask:
        outcomes = play(ask, clock, [(0, 8), (1, 5), (2, 1)])
    assert allowed(outcomes) == [True, False, True]
    assert left(outcomes) == [2, 2, 1]


def test_a_quota_s_text_is_never_half_applied() -> None:
    """FS-32 (traefik/traefik#8724): each text reads as what it says or is refused with an example; names do not repeat."""
    for text in ("100 burst 50", "10", "5/fortnight", "100/0s", "-3/minute", "10/minute, "):
        with pytest.raises(QuotaError, match=r"for example '100/s'"):
            Quota.parse(text)
    assert Quota.parse(" 10 / Minute ") == Quota(10, 60 * SECOND)
    assert Quota.parse("10/2minutes") == Quota(10, 120 * SECOND)
    assert Quota.parse_many("10 per 90 seconds; 100/hour") == (Quota(10, 90 * SECOND), Quota(100, 3600 * SECOND))
    with pytest.raises(LimitError, match="two limits are named 'l'"):
        Limiter(limit("1/s"), limit("2/s"))
    assert Limiter().hit(id="k").allowed


def test_six_a_minute_is_six_at_once_and_a_burst_of_one_is_said(way: str, clock: ManualClock, tmp_path: Path) -> None:
    """FS-38 (traefik/traefik#8330): "6/minute" admits six at once; with burst 1 it paces; nginx's 21 are burst 21."""
    with opened(way, clock, tmp_path, limit("6/minute")) as ask:
        outcomes = play(ask, clock, [(0, 1)] * 7 + [(10, 1)])
    assert allowed(outcomes) == [True] * 6 + [False, True]
    assert waits(outcomes)[6] == 10
    with opened(way, clock, tmp_path, Limit("paced", "6/minute burst 1", by="id")) as ask:
        outcomes = play(ask, clock, [(0, 1)] * 5 + [(10, 1)])
    assert allowed(outcomes) == [True] + [False] * 4 + [True]
    assert waits(outcomes)[1] == 10
    with opened(way, clock, tmp_path, Limit("nginx", "60/minute burst 21", by="id")) as ask:
        assert allowed(play(ask, clock, [(0, 1)] * 22)) == [True] * 21 + [False]
    assert Quota.parse("6/minute").most_in(60 * SECOND) == 12
    assert Quota.parse("1 per 365 days").most_in(DAY) == 1
