"""Decisions of one event loop that travel together: gathered, cancelled, out of time, on several loops, closed."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Iterator

import pytest
import redis as redis_py

from headway import AsyncLimiter, Decision, Limit, Limiter, LimitError, Quota
from headway.core.charge import Charge
from headway.errors import StoreUnavailable
from headway.stores.base import Answer
from headway.stores.redis import AsyncRedisStore
from headway.stores.redis.bills import Bill, Decided
from servers import Proxy, Server, proxy, sockets_to

LIMIT = Limit("l", "1000 per 365 days", by="id")
OTHER = Limit("o", "1000 per 365 days", by="id", algorithm="fixed-window")


def script_calls(server: Server) -> int:
    return int(redis_py.Redis(port=server.port).info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def left(server: Server, limit: Limit = LIMIT) -> int:
    from headway.stores.redis import RedisStore

    store = RedisStore(server.url)
    try:
        return store.advance([Charge("n", limit, "k", 0)]).outcomes[0].remaining
    finally:
        store.close()


def bill(*limits: Limit) -> list[Charge]:
    return [Charge("n", limit, "k", 1) for limit in limits or (LIMIT,)]


async def until(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never was")


@pytest.fixture
def between(redis: Server) -> Iterator[Proxy]:
    with proxy(redis.port) as made:
        yield made


def test_what_comes_at_the_same_time_is_one_script_call(redis: Server) -> None:
    """A hundred tasks that decide at once are two calls, of one and of ninety-nine; each is told its own balance."""

    async def main() -> None:
        store = AsyncRedisStore(redis.url)
        await store.advance(bill())
        before = script_calls(redis)
        answers = await asyncio.gather(*(store.advance(bill(LIMIT, OTHER)) for _ in range(100)))
        assert script_calls(redis) - before <= 2
        assert sorted(answer.outcomes[0].remaining for answer in answers) == list(range(899, 999))
        assert sorted(answer.outcomes[1].remaining for answer in answers) == list(range(900, 1000))
        await store.close()

    asyncio.run(main())


def test_a_bill_that_no_script_can_decide_fails_alone(redis: Server) -> None:
    """Too many limits at once, or numbers that Redis cannot hold: who travels with it is decided as ever."""
    odd = Limit("odd", Quota(5, 10**16 + 1), by="id", algorithm="sliding-window")
    many = [Charge("n", LIMIT, str(number), 1) for number in range(2**14)]

    async def main() -> None:
        store = AsyncRedisStore(redis.url)
        await store.advance(bill())
        asked = [store.advance(charges) for charges in (bill(), many, bill(odd), bill())]
        first, too_many, too_odd, last = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(too_many, LimitError)
        assert "16384 limits at once; Redis decides at most 16383 together" in str(too_many)
        assert isinstance(too_odd, LimitError)
        assert isinstance(first, Answer)
        assert isinstance(last, Answer)
        assert (await store.advance(many[:-1])).allowed
        await store.close()

    asyncio.run(main())


def test_a_limiter_of_too_many_limits_fails_alone(redis: Server) -> None:
    """Its hits say what is too many, also without asyncio, and another limiter's on the same connection are decided."""
    many = [Limit(f"l{number}", "5/s", by="id") for number in range(2**14)]
    few = (LIMIT, OTHER)

    async def main() -> None:
        async with AsyncLimiter(*few, store=redis.url) as fine, AsyncLimiter(*many, store=redis.url) as too_many:
            await fine.hit(id="k")
            asked = [limiter.hit(id="k") for limiter in (fine, fine, too_many, fine)]
            *before, failed, after = await asyncio.gather(*asked, return_exceptions=True)
            assert isinstance(failed, LimitError)
            assert "16384 limits at once; Redis decides at most 16383 together" in str(failed)
            assert [one.degraded for one in (*before, after) if isinstance(one, Decision)] == [None] * 3
        async with AsyncLimiter(*many[1:], store=redis.url) as most:
            assert len((await most.hit(id="k")).outcomes) == 2**14 - 1

    asyncio.run(main())
    with pytest.raises(LimitError, match="at most 16383 together"):
        Limiter(*many, store=redis.url).hit(id="k")
    assert Limiter(*many[1:], store=redis.url).hit(id="k").degraded is None


def test_a_call_that_is_alone_goes_at_once(redis: Server) -> None:
    """Calls one after the other are a trip each: nothing waits for company."""

    async def main() -> None:
        store = AsyncRedisStore(redis.url)
        await store.advance(bill())
        before = script_calls(redis)
        for _ in range(20):
            await store.advance(bill())
        assert script_calls(redis) - before == 20
        await store.close()

    asyncio.run(main())


def test_bills_that_travel_together_are_all_or_nothing_each(redis: Server) -> None:
    """Fifty bills of two limits, one of which admits ten: ten pass both, and forty are charged to neither."""
    tight = Limit("tight", "10 per 365 days", by="id")

    async def main() -> None:
        store = AsyncRedisStore(redis.url, refusal_cache=0)
        answers = await asyncio.gather(*(store.advance(bill(LIMIT, tight)) for _ in range(50)))
        assert sum(answer.allowed for answer in answers) == 10
        await store.close()

    asyncio.run(main())
    assert left(redis) == 990


def test_a_caller_that_is_cancelled_before_its_bill_went_out_is_not_charged(redis: Server) -> None:
    """It leaves the queue, and the others in it are decided."""

    async def main() -> None:
        store = AsyncRedisStore(redis.url)
        await store.advance(bill())
        tasks = [asyncio.create_task(store.advance(bill())) for _ in range(10)]
        await asyncio.sleep(0)
        for task in tasks[1::2]:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(end, asyncio.CancelledError) for end in ends] == [False, True] * 5
        await store.close()

    asyncio.run(main())
    assert left(redis) == 1000 - 1 - 5


@pytest.mark.parametrize("limit", [LIMIT, OTHER], ids=["gcra", "fixed window"])
def test_a_caller_that_is_cancelled_while_its_bill_is_under_way_is_given_its_units_back(
    limit: Limit, redis: Server, between: Proxy
) -> None:
    """What the server charged for it is undone when the answer is here; nothing is counted twice or lost."""

    async def main() -> None:
        store = AsyncRedisStore(f"redis://127.0.0.1:{between.port}?deadline=10s")
        await store.advance(bill(limit))
        between.mode = "delay"
        tasks = [asyncio.create_task(store.advance(bill(limit))) for _ in range(4)]
        await until(lambda: left(redis, limit) < 999)
        for task in tasks[:3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        between.mode = "pass"
        await until(lambda: left(redis, limit) == 998)
        await store.close()
        assert left(redis, limit) == 998

    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("limit", [LIMIT, OTHER], ids=["gcra", "fixed window"])
def test_a_caller_that_is_cancelled_between_its_answer_and_its_turn_is_given_its_units_back(
    limit: Limit, redis: Server
) -> None:
    """The answer is here, but its caller never runs to hear it: nobody has those units."""

    async def main() -> None:
        store = AsyncRedisStore(redis.url)
        await store.advance(bill(limit))
        line = store.line()
        decide = line.decide

        def cut_off(asked: Bill) -> asyncio.Future[Decided]:
            coming = decide(asked)
            coming.add_done_callback(lambda _: task.cancel())  # runs before the task is woken
            return coming

        line.decide = cut_off  # type: ignore[method-assign]  # where the moment is
        task = asyncio.create_task(store.advance(bill(limit)))
        with pytest.raises(asyncio.CancelledError):
            await task
        line.decide = decide  # type: ignore[method-assign]  # as it was
        await store.close()
        assert left(redis, limit) == 999

    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("others", [(), (OTHER,)], ids=["alone", "with another limit"])
@pytest.mark.parametrize("how", ["reset", "refund", "cancelled"])
def test_who_was_refused_while_units_came_back_is_not_refused_after_it(
    how: str, others: tuple[Limit, ...], redis: Server, between: Proxy
) -> None:
    """A refusal that was on its way when this process gave units back, or reset the key, is not remembered."""
    pair = Limit("pair", "2 per 365 days", by="id")

    async def main() -> None:
        async with AsyncLimiter(pair, *others, store=f"redis://127.0.0.1:{between.port}?deadline=10s") as limiter:
            first = await limiter.hit(id="k", cost=1 if how == "cancelled" else 2)
            between.mode = "delay"
            gone = asyncio.create_task(limiter.hit(id="k")) if how == "cancelled" else None
            refused = [asyncio.create_task(limiter.hit(id="k", cost=2)) for _ in range(2)]
            for _ in range(5):
                await asyncio.sleep(0)  # they have been sent, in one trip
            if gone is not None:
                gone.cancel()
            elif how == "reset":
                await limiter.reset(id="k")
            else:
                assert await limiter.refund(first)
            assert not any([(await one).allowed for one in refused])
            between.mode = "pass"
            wanted = 1 if how == "cancelled" else 2
            for _ in range(100):
                if (await limiter.peek(id="k", cost=wanted)).allowed:
                    break
            assert (await limiter.hit(id="k", cost=wanted)).allowed

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_caller_who_waited_for_the_trip_before_has_only_its_own_time(between: Proxy) -> None:
    """Behind a server that answers nothing, calls that come one after the other are each told within their deadline."""

    async def main() -> None:
        store = AsyncRedisStore(f"redis://127.0.0.1:{between.port}?deadline=3s")
        await store.advance(bill())
        between.mode = "drop"
        loop = asyncio.get_running_loop()

        async def timed() -> float:
            begin = loop.time()
            with pytest.raises(StoreUnavailable):
                await store.advance(bill())
            return loop.time() - begin

        waiting = []
        for _ in range(6):
            begin = loop.time()
            waiting.append(asyncio.create_task(timed()))
            await until(lambda begin=begin: loop.time() - begin > 0.1)  # type: ignore[misc]  # a time
        took = await asyncio.gather(*waiting)
        assert max(took) < 3 + 2.3, took  # the second trip, with a deadline of its own, would end after 5.5 to 6 s
        between.mode = "pass"
        await store.close()

    asyncio.run(main())


def test_one_store_serves_several_event_loops(redis: Server) -> None:
    """Loops in threads at the same time, and loops one after the other: each has a connection of its own."""
    store = AsyncRedisStore(redis.url)
    told: list[int] = []

    async def main() -> None:
        for _ in range(20):
            answers = await asyncio.gather(*(store.advance(bill()) for _ in range(5)))
            told.extend(answer.outcomes[0].remaining for answer in answers)
        await store.close()

    workers = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(3):
        asyncio.run(main())
    assert sorted(told) == list(range(300, 1000))
    assert len(sockets_to(redis.port)) == 0


def test_ten_thousand_limiters_of_one_loop_take_one_socket(redis: Server) -> None:
    """They share their line; the last one to close closes it, and limiters that are forgotten leave none behind."""

    async def main() -> None:
        before = len(sockets_to(redis.port))
        limiters = [AsyncLimiter(LIMIT, store=redis.url) for _ in range(10_000)]
        await asyncio.gather(*(limiter.hit(id="k") for limiter in limiters[::100]))
        assert len(sockets_to(redis.port)) - before == 1
        for limiter in limiters[:-1]:
            await limiter.close()
        assert (await limiters[-1].hit(id="k")).degraded is None
        await limiters[-1].close()
        assert len(sockets_to(redis.port)) == before
        for _ in range(50):
            assert (await AsyncLimiter(LIMIT, store=redis.url).hit(id="k")).degraded is None
        gc.collect()
        await asyncio.sleep(0.05)
        assert len(sockets_to(redis.port)) - before <= 1

    asyncio.run(main())


def test_a_child_closes_its_copy_of_the_connection(redis: Server) -> None:
    """After a fork the child has none of the parent's sockets, decides through its own, and the parent's goes on."""
    store = AsyncRedisStore(redis.url)

    async def child() -> str:
        answer = await store.advance(bill())
        await store.close()
        return str(answer.outcomes[0].remaining)

    async def main() -> None:
        others = sockets_to(redis.port)
        await store.advance(bill())
        inherited = sockets_to(redis.port) - others
        assert len(inherited) == 1
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                shared = len(sockets_to(redis.port) & inherited)
                asyncio.events._set_running_loop(None)  # what a child that goes on in a loop of its own does
                said = asyncio.new_event_loop().run_until_complete(child())
                os.write(writing, f"{said} {shared}".encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)  # noqa: ASYNC222  # nothing else runs in this loop
        assert os.read(reading, 100).decode() == "998 0"
        os.close(reading)
        os.close(writing)
        for expected in (997, 996):
            assert (await store.advance(bill())).outcomes[0].remaining == expected
        await store.close()

    asyncio.run(main())


def test_closing_waits_for_what_is_under_way(redis: Server) -> None:
    """``close`` lets calls end that were made before it, then the store may be used again."""

    async def main() -> None:
        store = AsyncRedisStore(redis.url)
        tasks = [asyncio.create_task(store.advance(bill())) for _ in range(10)]
        await asyncio.sleep(0)
        await store.close()
        assert all([(await task).allowed for task in tasks])
        assert (await store.advance(bill())).allowed
        await store.close()
        await store.close()

    asyncio.run(main())
