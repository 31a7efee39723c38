"""``AsyncRedisStore``: state in Redis or Valkey, for asyncio. Its twin is ``RedisStore``."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Awaitable, Callable, Sequence
from fractions import Fraction

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.stores.base import Answer
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.redis import sweeping
from headway.stores.redis.aio_lane import trips
from headway.stores.redis.aio_shared import lines_of
from headway.stores.redis.base import BaseRedisStore
from headway.stores.redis.bills import MOST_TOGETHER, Bill, Decided
from headway.stores.redis.keys import stored_key
from headway.stores.redis.lane import Made
from headway.stores.redis.line import Line

__all__ = ["AsyncRedisStore"]


class AsyncRedisStore(BaseRedisStore):
    """The twin of ``RedisStore``; the same arguments and errors.

    One connection a server and event loop, for all stores with the same settings: decisions made at the same time travel
    together. Usable from several loops.
    """

    def __init__(
        self,
        where: object,
        *,
        deadline: float | None = None,
        refusal_cache: float | None = None,
        share: Fraction | float | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(where, deadline=deadline, refusal_cache=refusal_cache, share=share, clock=clock)
        self._shared = lines_of(self, shared=clock is None)
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}
        self._owner = os.getpid()
        weakref.finalize(self, self._shared.leave_all, self._lines)

    @property
    def breakers(self) -> list[Breaker]:
        """See ``RedisStore.breakers``."""
        return self._shared.breakers()

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        known = self._remembered(charges, commit)
        if known is not None:
            return known
        sent = self.refusals.ticks()
        decided = await self._decided(Bill(charges, commit, self.refusals))
        if commit:
            self.learn(sent, charges, decided)
        return decided.answer

    async def advance_states(self, charges: Sequence[Charge], *, commit: bool = True) -> Made:
        """``advance`` for a bill without leases and flexible costs, the outcomes left to whoever needs them."""
        known = self._remembered(charges, commit)
        if known is not None:
            return known.allowed, known.now, known
        sent = self.refusals.ticks()
        decided = await self._decided(Bill(charges, commit, self.refusals))
        if commit:
            self.learn(sent, charges, decided)
        return decided.allowed, decided.now, decided.joined or decided.states

    def trip(
        self, namespace: str, limits: Sequence[Limit]
    ) -> Callable[[Sequence[Key], Sequence[int]], Awaitable[Made]] | None:
        """A limiter's way to the server, for what ``short`` does not know; see ``aio_lane.trips``. None: ``advance`` says why."""
        return trips(self, namespace, limits) if len(limits) <= MOST_TOGETHER else None

    async def _decided(self, bill: Bill) -> Decided:
        line = self.line()
        coming = line.decide(bill)
        try:
            return await coming
        except asyncio.CancelledError:
            line.take_back(bill, coming)
            raise

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        try:
            return await self.line().change(changes)
        finally:  # an answer may be lost of what was done
            self.refusals.given_back([stored_key(change.charge) for change in changes])

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``RedisStore.requota``."""
        line, given = self.line(), self._clock is not None
        try:
            return await line.drive(sweeping.requota(line.topology, namespace, old, new, self.now, given), whole=False)
        finally:
            self.refusals.clear()

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``RedisStore.clear``."""
        line = self.line()
        try:
            return await line.drive(sweeping.clear(line.topology, namespace, limit), whole=False)
        finally:
            self.refusals.clear()

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        line, given = self.line(), self._clock is not None
        return await line.drive(sweeping.clears_after(line.topology, charge, self.now, given))

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        keys = [stored_key(charge) for charge in charges]
        line = self.line()
        try:
            await line.drive(sweeping.reset(line.topology, keys))
        finally:
            self.refusals.given_back(keys)

    async def close(self) -> None:
        """Let this loop's calls under way end and close its connections, if no other store works with them."""
        if self._owner == os.getpid() and self._lines.pop(asyncio.get_running_loop(), None) is not None:
            line = self._shared.leave(asyncio.get_running_loop())
            if line is not None:
                await line.close()
        for loop in [loop for loop in self._lines if loop.is_closed()]:
            self._shared.leave_all({loop: self._lines.pop(loop)})

    def line(self) -> Line:
        """The running loop's."""
        loop = asyncio.get_running_loop()
        if self._owner != os.getpid():  # forked: the parent's loop and its connections are not ours
            self._owner = os.getpid()
            self._lines.clear()
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = self._shared.join(loop, self, self.now, self._clock is not None)
        return line
