"""Pacing: calls wait until they fit, learn from what they are told, and share one budget. Time is a manual clock's."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from headway import Limit, MemoryStore, Quota
from headway.client.attempt import Reply
from headway.client.pace import AsyncPace, Pace
from headway.client.pacing import Calls, Nap
from headway.client.rejection import Rejection, RejectionKind
from headway.errors import AttributeMissing, ConfigError, DeadlineTooSoon, LimitError, QuotaError, RateLimited
from headway.stores.sqlite import SqliteStore
from headway.testing import ManualClock

START = 1_800_000_000
Given = dict[str, str]


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    """A store on the manual clock."""
    return MemoryStore(clock=clock)


@pytest.fixture(params=["memory", "sqlite"])
def any_store(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: object
) -> Iterator[MemoryStore | SqliteStore]:
    """Each kind of store."""
    made = MemoryStore(clock=clock) if request.param == "memory" else SqliteStore(f"{tmp_path}/pace.db", clock=clock)
    yield made
    made.close()


def at(clock: ManualClock) -> float:
    """Seconds since the start."""
    return float(Fraction(clock.now, 10**9) - START)


def sends(pace: Pace, clock: ManualClock, calls: int, **attributes: object) -> list[float]:
    """When each of so many calls may go, one after the other."""
    times = []
    for _ in range(calls):
        with pace.slot(attributes):
            times.append(round(at(clock), 6))
    return times


def finish(flow: Calls[None], answer: object) -> None:
    """Drive a flow to its end; its naps take no time."""
    with contextlib.suppress(StopIteration):
        while True:
            call = flow.send(answer)
            answer = None if isinstance(call, Nap) else call()


def answered(status: int = 200, **fields: str) -> Reply[None]:
    """An answer with these fields."""
    return Reply(status, {name.replace("_", "-"): value for name, value in fields.items()}, b"", None)


def test_calls_go_as_the_quota_allows(clock: ManualClock, any_store: MemoryStore) -> None:
    """Five a second: twenty calls take three seconds, in groups of five, never more in any window."""
    times = sends(Pace("5/s", store=any_store), clock, 20)
    assert times == [second for second in (0, 1, 2, 3) for _ in range(5)]


def test_several_quotas_hold_together(clock: ManualClock, store: MemoryStore) -> None:
    """Per second and per minute at once; the slower one decides."""
    times = sends(Pace("2/s; 5/min", store=store), clock, 7)
    assert times == [0, 0, 1, 1, 2, 60, 60]


def test_a_calendar_day_is_spent_and_then_waited_for(clock: ManualClock, store: MemoryStore) -> None:
    """Eleven a day in Los Angeles: eleven go at once, the twelfth at the next local midnight."""
    pace = Pace("11/day in America/Los_Angeles", store=store)
    times = sends(pace, clock, 12)
    assert times[:11] == [0] * 11
    assert datetime.fromtimestamp(START + times[11], UTC).isoformat() == "2027-01-16T08:00:00+00:00"


def test_keys_have_budgets_of_their_own(clock: ManualClock, store: MemoryStore) -> None:
    """Per host and account; other attributes do not matter, and a missing one is an error."""
    pace = Pace("1/s", store=store, by=("host", "account"))
    assert sends(pace, clock, 1, host="a", account=1, path="/x") == [0]
    assert sends(pace, clock, 1, host="b", account=1) == [0]
    assert sends(pace, clock, 1, host="a", account=2) == [0]
    assert sends(pace, clock, 1, host="a", account=1, path="/y") == [1]
    with pytest.raises(AttributeMissing, match="account"):
        pace.wait(host="a")


def test_costs_by_quota(clock: ManualClock, store: MemoryStore) -> None:
    """Requests and tokens: a call costs one request and its tokens, and waits for whichever is short."""
    pace = Pace({"requests": "10/min", "tokens": "100/min"}, store=store)
    pace.wait(cost={"tokens": 60})
    pace.wait(cost={"tokens": 40})
    assert at(clock) == 0
    pace.wait(cost={"tokens": 50})
    assert at(clock) == 60
    with pytest.raises(RateLimited) as caught:
        pace.wait(cost={"tokens": 101})
    assert not isinstance(caught.value, DeadlineTooSoon)


def test_what_it_cost_in_the_end_is_settled(clock: ManualClock, store: MemoryStore) -> None:
    """An estimate that was too high is given back, one that was too low is owed."""
    pace = Pace({"tokens": "100/min"}, store=store)
    with pace.slot(cost={"tokens": 90}) as slot:
        slot.complete(cost={"tokens": 20})
    pace.wait(cost={"tokens": 80})
    assert at(clock) == 0
    clock.advance(60)
    with pace.slot(cost={"tokens": 10}) as slot:
        slot.complete(cost={"tokens": 100})
    with pytest.raises(DeadlineTooSoon):
        pace.wait(cost={"tokens": 1}, deadline=59)


def test_a_wait_that_cannot_end_in_time_raises_at_once(clock: ManualClock, store: MemoryStore) -> None:
    """With the time it would take, charging nothing; one that ends exactly in time is waited for."""
    pace = Pace("1/min", store=store)
    pace.wait()
    with pytest.raises(DeadlineTooSoon, match="Try again in 60 seconds") as caught:
        pace.wait(deadline=59.9)
    assert at(clock) == 0
    assert caught.value.retry_after == 60
    assert caught.value.retry_at == datetime.fromtimestamp(START + 60, UTC)
    pace.wait(deadline=60)
    assert at(clock) == 60


def test_a_late_answer_counts_from_when_it_came(clock: ManualClock, store: MemoryStore) -> None:
    """The other side may have counted a call as late as it answered, so its place is free a period after that."""
    pace = Pace("1/s", store=store)
    with pace.slot():
        clock.advance(Fraction(3, 10))
    with pace.slot():
        assert at(clock) == pytest.approx(1.3)


def test_a_call_that_was_not_sent_is_given_back(clock: ManualClock, store: MemoryStore) -> None:
    """A cancelled slot leaves the budget as if it had not been asked for."""
    pace = Pace("1/min", store=store)
    pace.acquire().cancel()
    pace.wait()
    assert at(clock) == 0


def test_a_day_s_budget_is_settled_too(clock: ManualClock, store: MemoryStore) -> None:
    """In a calendar window a cancelled call is given back, another cost is settled, and an answer after midnight counts for both days."""
    pace = Pace("9/day in UTC", store=store)
    name = "pace:9/day-in-utc"
    pace.acquire(cost=4).cancel()
    assert pace.left() == {name: 9}
    pace.acquire(cost=4).complete(cost=1)
    assert pace.left() == {name: 8}
    pace.acquire().complete()
    assert pace.left() == {name: 7}
    late = pace.acquire(cost=2)
    clock.advance(16 * 3600 + 1)
    assert pace.left() == {name: 9}
    late.complete()
    assert pace.left() == {name: 7}


def test_a_pause_is_for_everybody_and_ends_one_by_one(clock: ManualClock, any_store: MemoryStore) -> None:
    """What one is refused all wait for; then they go at the quota's pace, not in a herd."""
    one, other = Pace("5/s", store=any_store), Pace("5/s", store=any_store)
    one.pause(10)
    assert sends(other, clock, 7) == [10.0, 10.2, 10.4, 10.6, 10.8, 11.0, 11.2]


def test_a_pause_ends_for_those_who_are_quiet(clock: ManualClock, store: MemoryStore) -> None:
    """After a quiet second nothing is left of a pause: the quota alone decides."""
    pace = Pace("5/s", store=store)
    pace.pause(10)
    clock.advance(20)
    assert sends(pace, clock, 5) == [20] * 5


def test_the_longest_pause_counts(clock: ManualClock, any_store: MemoryStore) -> None:
    """Pauses do not add up, and a shorter one takes nothing away."""
    paces = [Pace("5/s", store=any_store) for _ in range(4)]
    for pace, seconds in zip(paces, (10, 10, 30, 5), strict=True):
        pace.pause(seconds)
    assert sends(paces[0], clock, 1) == [30]


def test_a_pause_has_a_key(clock: ManualClock, store: MemoryStore) -> None:
    """A refusal by one host pauses that host only."""
    pace = Pace("5/s", store=store, by="host")
    pace.pause(10, host="a")
    assert sends(pace, clock, 1, host="b") == [0]
    assert sends(pace, clock, 1, host="a") == [10]


def test_absurd_pauses_are_not_believed(clock: ManualClock, store: MemoryStore) -> None:
    """A reset in 300 years is not kept longer than a month and a few days."""
    pace = Pace("5/s", store=store)
    pace.pause(1e10)
    with pytest.raises(DeadlineTooSoon) as caught:
        pace.wait(deadline=1)
    assert 30 * 86_400 < caught.value.retry_after <= 36 * 86_400


def test_without_a_quota_only_pauses_and_a_small_spacing_hold(clock: ManualClock, store: MemoryStore) -> None:
    """A pace without quotas lets everything go until somebody is refused; then one by one."""
    pace = Pace(store=store)
    assert sends(pace, clock, 100) == [0] * 100
    pace.pause(5)
    assert sends(pace, clock, 3) == [5.0, 5.1, 5.2]


@pytest.mark.parametrize(
    "fields",
    [
        {"ratelimit": '"default";r=2;t=30', "ratelimit-policy": '"default";q=10;w=60'},
        {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "2", "x-ratelimit-reset": str(START + 30)},
        {"ratelimit-limit": "10", "ratelimit-remaining": "2", "ratelimit-reset": "30"},
        {"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "2"},
    ],
)
def test_what_is_left_there_lowers_what_is_left_here(fields: Given, clock: ManualClock, any_store: MemoryStore) -> None:
    """When others used the quota too, everybody who shares the budget gets only what is left of it."""
    one, other = ({"requests": "10/min"},) * 2
    first, second = (Pace(quotas, store=any_store) for quotas in (one, other))
    with first.slot() as slot:
        slot.complete(answered(**fields))
    assert sends(second, clock, 3)[:2] == [0, 0]
    assert at(clock) >= 29


def test_several_who_learn_the_same_lower_it_once(clock: ManualClock, any_store: MemoryStore) -> None:
    """Learning is looking and writing in one step, so two who saw the same do not charge it twice."""
    paces = [Pace("10/min", store=any_store) for _ in range(3)]
    slots = [pace.acquire() for pace in paces]
    for slot in slots:
        slot.complete(answered(x_ratelimit_limit="10", x_ratelimit_remaining="4"))
    assert sends(paces[0], clock, 4) == [0] * 4


def test_learning_never_raises(clock: ManualClock, store: MemoryStore) -> None:
    """A server that shows more than the quota changes nothing."""
    pace = Pace("2/min", store=store)
    for _ in range(2):
        with pace.slot() as slot:
            slot.complete(answered(ratelimit='"default";r=100;t=1'))
    with pytest.raises(DeadlineTooSoon):
        pace.wait(deadline=59)


def test_an_old_answer_does_not_raise(clock: ManualClock, store: MemoryStore) -> None:
    """An answer that shows more than is left by now, but less than was left when it was asked for, changes nothing."""
    pace = Pace("10/min", store=store)
    slot = pace.acquire()
    for _ in range(8):
        pace.wait()
    slot.complete(answered(x_ratelimit_limit="10", x_ratelimit_remaining="5"))
    assert pace.left() == {"pace:10/minute": 1}


def test_learning_waits_for_its_turn(clock: ManualClock, store: MemoryStore) -> None:
    """While one looks and writes, another process that wants to learn naps; it does not look in between."""
    one, other = (Pace("10/min", store=store)._pausing({}, 5.0) for _ in range(2))
    turn = next(one)
    assert not isinstance(turn, Nap)
    look = one.send(turn())
    assert not isinstance(look, Nap)
    asks = next(other)
    assert not isinstance(asks, Nap)
    assert isinstance(other.send(asks()), Nap)
    finish(one, look())
    finish(other, None)
    assert sends(Pace("10/min", store=store), clock, 1) == [5]


def test_what_is_left_can_be_asked(clock: ManualClock, store: MemoryStore) -> None:
    """Looking costs nothing: what is left by quota, and what a call would be answered, pause included."""
    pace = Pace({"requests": "3/s", "tokens": "100/min"}, store=store)
    pace.wait(cost={"tokens": 30})
    assert pace.left() == {"pace:requests": 2, "pace:tokens": 70}
    assert pace.peek().allowed
    pace.pause(5)
    assert not pace.peek().allowed
    assert 5 <= pace.peek().retry_after < 5.01
    assert pace.left() == {"pace:requests": 2, "pace:tokens": 70}
    twin = AsyncPace(*pace.limits, store=store)
    assert asyncio.run(twin.left()) == pace.left()
    assert asyncio.run(twin.peek()).retry_after == pace.peek().retry_after


def test_nothing_left_there_is_waited_for_until_its_reset(clock: ManualClock, store: MemoryStore) -> None:
    """Where the server says that nothing is left although we have some, everybody waits until the reset it states."""
    pace = Pace("10/min", store=store)
    with pace.slot() as slot:
        slot.complete(answered(x_ratelimit_limit="10", x_ratelimit_remaining="0", x_ratelimit_reset=str(START + 13)))
    assert sends(pace, clock, 1) == [13]


def test_numbers_of_other_limits_are_not_mine(clock: ManualClock, store: MemoryStore) -> None:
    """A shown limit that is none of the configured ones lowers nothing; nor does a cached response."""
    pace = Pace("10/min", store=store)
    for fields in (
        {"ratelimit": '"daily";r=1;t=9', "ratelimit-policy": '"daily";q=5000;w=86400'},
        {"ratelimit": '"other";r=1;t=9', "ratelimit-policy": '"other";q=5000;w=60'},
        {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "30", "age": "5"},
    ):
        with pace.slot() as slot:
            slot.complete(answered(**fields))
    assert sends(pace, clock, 7) == [0] * 7


def test_tokens_and_requests_are_told_apart(clock: ManualClock, store: MemoryStore) -> None:
    """OpenAI's fields lower each of the two quotas by its own numbers."""
    pace = Pace({"requests": "500/min", "tokens": "1000/min"}, store=store)
    shown = {"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": "499"}
    shown |= {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "300"}
    with pace.slot(cost={"tokens": 100}) as slot:
        slot.complete(answered(**shown))
    pace.wait(cost={"tokens": 300})
    assert at(clock) == 0
    with pytest.raises(DeadlineTooSoon):
        pace.wait(cost={"tokens": 1}, deadline=59)


def test_limits_are_discovered_where_none_is_configured(clock: ManualClock, any_store: MemoryStore) -> None:
    """A pace without quotas keeps to the ones that a service shows, with what is left of them."""
    pace = Pace(store=any_store, by="host")
    fields = {"ratelimit": '"burst";r=3;t=10', "ratelimit-policy": '"burst";q=4;w=10'}
    with pace.slot(host="a") as slot:
        slot.complete(answered(**fields))
    times = sends(pace, clock, 5, host="a")
    assert times[:3] == [0, 0, 0]
    assert times[3] > 0
    assert sends(pace, clock, 20, host="b") == [at(clock)] * 20


def test_a_refusal_can_be_learned_by_hand(clock: ManualClock, store: MemoryStore) -> None:
    """`learn` reads any response; a refusal pauses, what waiting does not lift does not."""
    pace = Pace("10/s", store=store)
    pace.wait()
    rejection = pace.learn(429, {"Retry-After": "9"}, b"")
    assert rejection is not None
    assert rejection.retry_after == 9
    assert pace.learn(200, {}) is None
    assert sends(pace, clock, 1) == [9]
    pace.learn(403, {}, b'{"error": "forbidden"}')
    assert sends(pace, clock, 1) == [9.1]


def test_a_refusal_gives_back_what_was_not_counted(clock: ManualClock, store: MemoryStore) -> None:
    """A refused call is not charged, but everybody pauses as long as it was told."""
    pace = Pace("1/min", store=store)
    slot = pace.acquire()
    slot.complete(answered(429), Rejection(RejectionKind.RATE_LIMITED, 2.0), 2.0, charged=False)
    assert sends(pace, clock, 1) == [2]


def test_one_at_a_time(clock: ManualClock, any_store: MemoryStore) -> None:
    """A lease holds the others up until it is given back, or expires because its holder is gone."""
    one, other = (Pace("1 at once for 60 s; 100/s", store=any_store) for _ in range(2))
    with one.slot(), pytest.raises(DeadlineTooSoon):
        other.acquire(deadline=1)
    with other.slot():
        assert at(clock) < 2
    one.acquire()  # and never comes back
    before = at(clock)
    other.acquire(deadline=61).complete()
    assert at(clock) == pytest.approx(before + 60, abs=0.5)


def test_what_is_given_back_in_time_is_waited_for(clock: ManualClock, store: MemoryStore) -> None:
    """A lease of an hour that ends after three seconds is in time for a deadline of five; one that lasts is not."""
    one, other = (AsyncPace("1 at once for 1 hour", store=store) for _ in range(2))

    async def main() -> None:
        held = await one.acquire()
        waiting = asyncio.create_task(other.acquire(deadline=5))
        while at(clock) < 3:  # noqa: ASYNC110  # the waiting task moves the clock
            await asyncio.sleep(0)
        await held.complete()
        await waiting
        assert 3 <= at(clock) < 4
        with pytest.raises(DeadlineTooSoon) as caught:
            await one.acquire(deadline=2)
        assert caught.value.at_most
        assert 5 <= at(clock) < 6

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["thread", "task"])
def test_a_held_lease_lasts_as_long_as_its_call(kind: str) -> None:
    """A call that takes longer than its lease keeps it, in real time, by a thread or a task that renews it."""
    quota, store = "1 at once for 3 s", MemoryStore()
    other = Pace(quota, store=store)

    async def main() -> None:
        async with AsyncPace(quota, store=store).slot():
            for _ in range(35):
                await asyncio.sleep(0.1)
                assert not other.peek().allowed

    if kind == "task":
        asyncio.run(main())
    else:
        with Pace(quota, store=store).slot(), pytest.raises(DeadlineTooSoon):
            other.wait(deadline=3.5)
    assert other.peek().allowed


def test_a_lease_can_be_renewed(clock: ManualClock, store: MemoryStore) -> None:
    """A renewed lease lasts its whole time from then on; an expired one says so."""
    pace = Pace("1 at once for 60 s", store=store)
    slot = pace.acquire()
    clock.advance(50)
    assert slot.renew()
    clock.advance(59)
    with pytest.raises(DeadlineTooSoon):
        pace.acquire(deadline=0)
    clock.advance(2)
    assert not slot.renew()


def test_memory_is_shared_by_name() -> None:
    """A pace made anew in each call limits all the same; another name is another budget."""
    name = "test-memory-shared"
    Pace("1/day", name=name).wait()
    with pytest.raises(DeadlineTooSoon):
        Pace("1/day", name=name).wait(deadline=0)
    Pace("1/day", name=f"{name}-2").wait()


def test_twenty_threads_keep_the_pace(clock: ManualClock, store: MemoryStore) -> None:
    """Five a second from twenty threads: never more than five in any second, and everybody finishes."""
    pace = Pace("5/s", store=store)
    times: list[float] = []

    def work() -> None:
        for _ in range(5):
            decision = pace.wait()
            times.append(decision.decided_at.timestamp() - START)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    times.sort()
    assert len(times) == 100
    assert all(later - earlier >= 1 for earlier, later in zip(times, times[5:], strict=False))


def test_tasks_go_first_come_first_served(clock: ManualClock, store: MemoryStore) -> None:
    """Waiting tasks are let go in the order in which they came, also after a pause."""
    pace = AsyncPace("1/s", store=store)
    order: list[int] = []

    async def call(number: int) -> None:
        async with pace.slot():
            order.append(number)

    async def main() -> None:
        await pace.pause(5)
        tasks = [asyncio.create_task(call(number)) for number in range(8)]
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert order == list(range(8))
    assert at(clock) == 12


def test_a_cancelled_task_gives_its_place_back(clock: ManualClock, store: MemoryStore) -> None:
    """Whoever is cancelled while waiting costs nothing; the next takes the place."""
    pace = AsyncPace("1/s", store=store)

    async def main() -> None:
        await pace.wait()
        waiting = [asyncio.create_task(pace.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await pace.wait()

    asyncio.run(main())
    assert at(clock) <= 1


def test_a_pace_outlives_its_event_loops(clock: ManualClock, store: MemoryStore) -> None:
    """Made at module level and used in one loop after the other: the budget carries over, nobody is stuck."""
    pace = AsyncPace("20/s", store=store)

    async def first() -> None:
        tasks = [asyncio.create_task(pace.wait()) for _ in range(40)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def second() -> None:
        for _ in range(5):
            await pace.wait()

    asyncio.run(first())
    asyncio.run(second())
    assert at(clock) <= 2


def test_loops_in_several_threads_share_one_budget(clock: ManualClock, store: MemoryStore) -> None:
    """Two threads, each with a loop of its own: twenty go in the first second in all, and nobody is stuck."""
    pace = AsyncPace("20/s", store=store)
    times: list[float] = []

    async def calls() -> None:
        decisions = await asyncio.gather(*[pace.wait() for _ in range(25)])
        times.extend(decision.decided_at.timestamp() - START for decision in decisions)

    threads = [threading.Thread(target=asyncio.run, args=(calls(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    times.sort()
    assert len(times) == 50
    assert all(later - earlier >= 1 for earlier, later in zip(times, times[20:], strict=False))


@pytest.mark.parametrize(
    ("quotas", "error", "says"),
    [
        (("1/x",), QuotaError, "character 3"),
        (("1/s", "1/s"), ConfigError, "two quotas"),
        (({"Ü": "1/s", "ü": "2/s"},), ConfigError, "two quotas"),
        ((Limit("a", "1/s"), Limit("a", "2/s")), ConfigError, "'a'"),
    ],
)
def test_impossible_paces_are_refused(quotas: tuple[str, ...], error: type[Exception], says: str) -> None:
    """What cannot be right is said when it is made."""
    with pytest.raises(error, match=says):
        Pace(*quotas)


def test_a_name_is_a_limit_s_name() -> None:
    """A pace's name goes where limits' names go, so it has to be one."""
    with pytest.raises(LimitError, match="name"):
        Pace("1/s", name="Not A Name")


def test_limits_are_named_after_their_quotas() -> None:
    """A refusal names the quota; a long one is shortened without two becoming one."""
    pace = Pace("11/day in America/Los_Angeles", {"tokens": Quota.parse("5/s")}, Limit("own", "3/s burst 1"))
    assert [limit.name for limit in pace.limits] == ["pace:11/day-in-america/los_angeles", "pace:tokens", "own"]
    long = [Pace(f"{count} per 1 day", name="n" * 50).limits[0].name for count in (10**11, 10**11 + 1)]
    assert len(set(long)) == 2
    assert max(map(len, long)) == 64
