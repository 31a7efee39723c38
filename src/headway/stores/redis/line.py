"""``Line``: decisions of one event loop that come while a trip is under way gather, and travel together in the next.

A call that finds nothing under way goes at once: no timer is set. All that have gathered are decided by one script call,
one after the other, each all or nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from headway.core.change import Change
from headway.core.lease import Receipt
from headway.core.outcome import Admitted
from headway.errors import StoreError, StoreUnavailable
from headway.stores.clock import Clock
from headway.stores.redis.aio_servers import AsyncServers
from headway.stores.redis.bills import MOST_BILLS, Bill, Decided
from headway.stores.redis.calls import together
from headway.stores.redis.changing import change
from headway.stores.redis.deciding import decide
from headway.stores.redis.handshake import reason_of
from headway.stores.redis.topology import Flow, Topology
from headway.stores.redis.undo import Undo

__all__ = ["Line"]

T = TypeVar("T")

_MOST_AT_ONCE = 4 * MOST_BILLS

_Waiting = tuple[Bill | Sequence[Change], asyncio.Future[Any], float]
"""What is asked for, its answer, and by when that has to be here, on the loop's clock."""


class Line:
    """The decisions and changes of one event loop on their way to one store.

    A caller that is cancelled before its bill was sent is not charged. Once it was sent the trip goes on for the others,
    and what it was charged is given back. So it is where a caller's time is up, which counts from the call: who has waited
    for the trip before has less of it left.

    Args:
        topology: where the keys are; this loop's.
        servers: this loop's.
        now: about the store's clock.
        clock: see ``deciding.decide``.
    """

    def __init__(self, topology: Topology, servers: AsyncServers, now: Clock, clock: bool) -> None:
        self.servers = servers
        self.topology = topology
        self._now = now
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._overdue: asyncio.TimerHandle | None = None

    def decide(self, bill: Bill) -> asyncio.Future[Decided]:
        """The bill's answer; cancel it to withdraw the bill."""
        return self._join(bill)

    def take_back(self, bill: Bill, answer: asyncio.Future[Decided]) -> None:
        """Give back what was decided, where its caller was cancelled between its answer and its turn to run."""
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            self._give_back(bill, answer.result())

    def change(self, changes: Sequence[Change]) -> asyncio.Future[tuple[bool, ...]]:
        """Whether each change was in time."""
        return self._join(changes)

    async def drive(self, flow: Flow[T], *, whole: bool = True) -> T:
        """Perform a flow by itself; ``whole``: all of it within one deadline, else each of its trips."""
        return await self._drive(flow, self._loop.time() + self.servers.deadline if whole else None)

    async def _drive(self, flow: Flow[T], until: float | None) -> T:
        try:
            sends = next(flow)
            while True:
                sends = flow.send(await self.servers.exchange(sends, until))
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def close(self) -> None:
        """Let what is under way end, then close the connections."""
        if self._task is not None:
            await asyncio.wait([self._task])
        self.servers.close()
        await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    def drop(self) -> None:
        """Close the connections of a loop that does not run any more."""
        self.servers.close()

    def _join(self, what: Bill | Sequence[Change]) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((what, future, self._loop.time() + self.servers.deadline))
        if self._task is None:
            self._task = self._loop.create_task(self._run())
        return future

    async def _run(self) -> None:
        try:
            while self._waiting:
                going = self._waiting[:_MOST_AT_ONCE]
                del self._waiting[:_MOST_AT_ONCE]
                self._give_up(going)
                going = [one for one in going if not one[1].done()]
                if going:
                    await self._trip(going)
        finally:
            self._task = None

    def _give_up(self, going: Sequence[_Waiting]) -> None:
        """Tell those whose time is up; look again when it is for the next one."""
        now = self._loop.time()
        soonest = latest = going[-1][2]
        for _, future, until in going:
            if future.done():
                continue
            if until <= now:
                reason = reason_of(TimeoutError(), self.servers.deadline)
                future.set_exception(StoreUnavailable(f"Redis store {self.servers.settings}: {reason}"))
            else:
                soonest = min(soonest, until)
        if self._overdue is not None:
            self._overdue.cancel()
        self._overdue = self._loop.call_at(soonest, self._give_up, going) if now < soonest < latest else None

    async def _trip(self, going: Sequence[_Waiting]) -> None:
        until = going[-1][2]
        bills = [one for one in going if isinstance(one[0], Bill)]
        groups = [one for one in going if not isinstance(one[0], Bill)]
        flows: list[Flow[list[Any]]] = []
        if bills:
            flows.append(decide(self.topology, [bill for bill, _, _ in bills], self._now, self._clock))  # type: ignore[misc]  # Bills
        if groups:
            flows.append(change(self.topology, [group for group, _, _ in groups], self._now, self._clock))  # type: ignore[misc]  # no Bills
        try:
            if len(flows) == 1:
                ends: list[Any] = [await self._drive(flows[0], until)]
            else:
                ends = await self._drive(together(flows), until)
        except BaseException as error:
            for _, future, _ in going:
                if not future.done():
                    future.set_exception(_copy(error) if isinstance(error, StoreError) else error)
            if not isinstance(error, Exception):
                raise
            return
        finally:
            if self._overdue is not None:
                self._overdue.cancel()
                self._overdue = None
        for sent, answers in zip([some for some in (bills, groups) if some], ends, strict=True):
            for index, (what, future, _) in enumerate(sent):
                self._tell(what, future, answers if isinstance(answers, StoreError) else answers[index])

    def _tell(self, what: Bill | Sequence[Change], future: asyncio.Future[Any], answer: Any) -> None:
        if future.done():  # its caller was cancelled meanwhile
            if isinstance(what, Bill) and isinstance(answer, Decided):
                self._give_back(what, answer)
        elif isinstance(answer, StoreError):
            future.set_exception(_copy(answer))
        else:
            future.set_result(answer)

    def _give_back(self, bill: Bill, decided: Decided) -> None:
        back = _given_back(bill, decided) if bill.commit and decided.allowed else []
        if back:
            self._join(back).add_done_callback(partial(_noticed, bill, decided))


def _given_back(bill: Bill, decided: Decided) -> list[Change]:
    answer = decided.answer
    lines = zip(bill.charges, answer.costs, answer.outcomes, decided.states, strict=True)
    return [
        Undo(
            charge,
            Receipt(answer.now, cost, charge.lease.token if charge.lease else 0, outcome),
            give_back=cost,
            before=state,
        )
        for charge, cost, outcome, state in lines
        if cost and isinstance(outcome, Admitted)
    ]


def _noticed(bill: Bill, decided: Decided, future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()  # a store that went away keeps the charge: nobody is there to be told
    if bill.refusals is not None:
        bill.refusals.given_back(decided.keys)


def _copy(error: StoreError) -> StoreError:
    """An exception of one's own for each caller: a traceback belongs to one raise."""
    copied = type(error)(*error.args)
    copied.__cause__ = error.__cause__
    return copied
