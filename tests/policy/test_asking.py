"""A provider that is slow: many requests that need the same answer ask it once, and whoever is stopped holds nobody up."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.policy.provided import ProvidedLimit
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock

Attributes = Mapping[str, object]


def provided(provider: Callable[[Attributes], object], clock: ManualClock, **options: object) -> ProvidedLimit:
    return ProvidedLimit("api", provider, by="account", default="1/min", clock=clock, **options)  # type: ignore[arg-type]  # as given


class Gate:
    """A provider that answers once the gate is open, and says when somebody stands before it."""

    def __init__(self, answer: object = "5/min") -> None:
        self.answer = answer
        self.asked = threading.Event()
        self.open = threading.Event()

    def __call__(self, _: Attributes) -> object:
        answer = self.answer
        self.asked.set()
        assert self.open.wait(20)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.mark.parametrize(("answer", "passed", "failures"), [("5/min", 5, 0), ("block", 0, 0), (OSError("down"), 1, 1)])
def test_threads_that_need_one_answer_ask_once(clock: ManualClock, answer: object, passed: int, failures: int) -> None:
    """All get what came of it, a failure too, which is counted once."""
    gate = Gate(answer)
    limit = provided(gate, clock)
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    with ThreadPoolExecutor(8) as pool:
        hits = [pool.submit(limiter.hit, account="a") for _ in range(8)]
        assert gate.asked.wait(20)
        gate.open.set()
        assert sum(hit.result(20).allowed for hit in hits) == passed
    assert (limit.calls, limit.failures) == (1, failures)


def test_tasks_that_need_one_answer_ask_once_and_other_keys_ask_for_themselves(clock: ManualClock) -> None:
    """Two hundred requests of two accounts: two questions."""

    async def slow(attributes: Attributes) -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "7/min" if attributes["account"] == "a" else "unlimited"

    limit = provided(slow, clock)

    async def run() -> list[int]:
        limiter = AsyncLimiter(limit, store=MemoryStore(clock=clock))
        decisions = await asyncio.gather(*(limiter.hit(account=account) for account in "ab" * 100))
        return [sum(decision.allowed for decision in decisions[begin::2]) for begin in (0, 1)]

    assert asyncio.run(run()) == [7, 100]
    assert limit.calls == 2


def test_who_asks_and_is_cancelled_leaves_the_question_to_the_next(clock: ManualClock) -> None:
    """Nobody is cancelled with it; whoever only followed and is cancelled takes nothing from the others."""
    gates: list[asyncio.Event] = []

    async def slow(_: Attributes) -> str:
        gates.append(asyncio.Event())
        await gates[-1].wait()
        return "5/min"

    limit = provided(slow, clock)

    async def run() -> None:
        limiter = AsyncLimiter(limit, store=MemoryStore(clock=clock))
        asking, cancelled, *others = [asyncio.ensure_future(limiter.hit(account="a")) for _ in range(4)]
        await asyncio.sleep(0)
        cancelled.cancel()
        asking.cancel()
        while len(gates) < 2:  # noqa: ASYNC110  # no event says how far the tasks are
            await asyncio.sleep(0)
        gates[1].set()
        assert all([(await other).allowed for other in others])
        assert asking.cancelled()
        assert cancelled.cancelled()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert (limit.calls, limit.failures, len(limit)) == (2, 0, 1)


def test_two_event_loops_share_an_answer_and_survive_each_other(clock: ManualClock) -> None:
    """One loop asks, the other follows; a loop that ends in the middle leaves the question to the other."""
    asked, answer = threading.Event(), threading.Event()

    async def slow(_: Attributes) -> str:
        asked.set()
        while not answer.is_set():  # noqa: ASYNC110  # of another thread
            await asyncio.sleep(0.0005)
        return "5/min"

    limit = provided(slow, clock)
    store = MemoryStore(clock=clock)

    async def one(patience: float) -> bool:
        async with asyncio.timeout(patience):
            return (await AsyncLimiter(limit, store=store).hit(account="a")).allowed

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: asyncio.run(one(0.05)))
        assert asked.wait(20)
        second = pool.submit(lambda: asyncio.run(one(20)))
        with pytest.raises(TimeoutError):
            first.result(20)
        answer.set()
        assert second.result(20)
    assert limit.calls <= 2


def test_an_answer_from_before_it_was_forgotten_is_not_remembered(clock: ManualClock) -> None:
    """The database was changed while the provider looked: who asked is told the old quota, the next one the new."""
    gate = Gate("5/min")
    limit = provided(gate, clock)
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    with ThreadPoolExecutor(1) as pool:
        old = pool.submit(limiter.hit, account="a")
        assert gate.asked.wait(20)
        gate.answer = "9/min"
        limit.forget(account="a")
        gate.open.set()
        assert str(old.result(20).verdict.limits[0].quota) == "5/minute"
    assert str(limiter.hit(account="a").verdict.limits[0].quota) == "9/minute"


def test_a_provider_that_is_stopped_asks_again(clock: ManualClock) -> None:
    """An interrupt is no answer: it comes out, and the next request asks."""
    gate = Gate(KeyboardInterrupt())
    gate.open.set()
    limit = provided(gate, clock)
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    with pytest.raises(KeyboardInterrupt):
        limiter.hit(account="a")
    gate.answer = "5/min"
    assert limiter.hit(account="a").remaining == 4


def test_a_provider_that_asks_for_itself_does_not_wait_for_itself(clock: ManualClock) -> None:
    """One that comes back to the same key in its own call, once, is asked a second time."""
    asked = []

    def looks_again(_: Attributes) -> str:
        asked.append(1)
        if len(asked) == 1:
            limiter.hit(account="a")
        return "5/min"

    limiter = Limiter(provided(looks_again, clock), store=MemoryStore(clock=clock))
    assert limiter.hit(account="a").remaining == 3


def plans(_: Attributes) -> str:
    return "5/min"


def test_a_pickled_copy_asks_for_itself() -> None:
    """As for a worker process: the provider goes by its name, and no answer goes with it."""
    limit = ProvidedLimit("api", plans, by="account", default="1/min")
    limiter = Limiter(limit)
    limiter.hit(account="a")
    copy = pickle.loads(pickle.dumps(limit))
    assert (len(copy), copy.calls) == (0, 0)
    assert pickle.loads(pickle.dumps(limiter)).hit(account="a").remaining == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is what is tested
def test_a_forked_child_does_not_wait_for_a_question_of_its_parent(clock: ManualClock) -> None:
    """The thread that asks is not there in the child, so the child asks by itself."""
    gate = Gate()
    limiter = Limiter(provided(gate, clock), store=MemoryStore(clock=clock))
    asking = threading.Thread(target=limiter.hit, kwargs={"account": "a"})
    asking.start()
    assert gate.asked.wait(20)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        gate.open.set()
        os._exit(int(limiter.hit(account="a").allowed))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    gate.open.set()
    asking.join(20)


def test_a_slow_answer_holds_nobody_but_the_asker(clock: ManualClock) -> None:
    """Who waits in vain gets the default, those who come later at once; the answer counts when it comes after all."""
    gate = Gate("5/min")
    limit = provided(gate, clock, answer_seconds=0.5)  # it is given up after five seconds
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    with ThreadPoolExecutor(1) as pool:
        asker = pool.submit(limiter.hit, account="a")
        assert gate.asked.wait(20)
        for _ in range(3):
            assert str(limiter.peek(account="a").verdict.limits[0].quota) == "1/minute"
            clock.advance(1)
        assert (limit.calls, limit.failures) == (1, 3)
        gate.open.set()
        assert asker.result(20).allowed
    assert str(limiter.peek(account="a").verdict.limits[0].quota) == "5/minute"
    assert limit.calls == 1


def test_an_answer_that_never_comes_is_asked_for_again(clock: ManualClock) -> None:
    """After ten times as long as a request waits, by one other request: nobody is stuck with the default for ever."""
    gates = [Gate(), Gate("7/min")]
    gates[1].open.set()
    limit = provided(lambda request: gates[min(limit.calls, 2) - 1](request), clock, answer_seconds=0.15)
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    with ThreadPoolExecutor(1) as pool:
        asker = pool.submit(limiter.hit, account="a")
        assert gates[0].asked.wait(20)
        found = set()
        give_up = time.monotonic() + 20
        while "7/minute" not in found and time.monotonic() < give_up:
            found.add(str(limiter.peek(account="a").verdict.limits[0].quota))
            clock.advance(1)
        assert found == {"1/minute", "7/minute"}
        gates[0].open.set()
        asker.result(20)


@pytest.mark.parametrize(("on_error", "outcome"), [("last", 1), ("default", 1), ("raise", TimeoutError)])
def test_an_awaited_answer_that_is_late_is_cancelled(clock: ManualClock, on_error: str, outcome: object) -> None:
    """All who wait for it get what ``on_error`` says, and its resources are free."""
    ended: list[str] = []

    async def never(_: Attributes) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return "5/min"

    async def ask() -> list[object]:
        limiter = AsyncLimiter(
            provided(never, clock, answer_seconds=0.05, on_error=on_error), store=MemoryStore(clock=clock)
        )
        hits = [limiter.hit(account="a") for _ in range(20)]
        return await asyncio.gather(*hits, return_exceptions=True)

    found = asyncio.run(ask())
    assert ended == ["cancelled"]
    if outcome is TimeoutError:
        assert {str(one) for one in found} == {"no answer within 0.05 s"}
    else:
        assert sum(one.allowed for one in found) == outcome  # type: ignore[attr-defined]  # decisions


def test_who_stops_waiting_for_a_late_answer_is_stopped(clock: ManualClock) -> None:
    """A deadline of the caller's own is no failure of the provider's."""

    async def never(_: Attributes) -> str:
        await asyncio.Event().wait()
        return "5/min"

    limit = provided(never, clock, answer_seconds=20)

    async def ask() -> None:
        limiter = AsyncLimiter(limit, store=MemoryStore(clock=clock))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await limiter.hit(account="a")

    asyncio.run(ask())
    assert limit.failures == 0
