"""``AsyncRedisStore``: state in Redis or Valkey, for asyncio. Its twin is ``RedisStore``."""

from __future__ import annotations

import asyncio
import os
import warnings
import weakref
from collections.abc import Sequence
from fractions import Fraction

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.stores.base import Answer
from headway.stores.breaker import Breaker
from headway.stores.clock import Clock
from headway.stores.redis import sweeping
from headway.stores.redis.aio_servers import AsyncServers
from headway.stores.redis.base import BaseRedisStore
from headway.stores.redis.bills import Bill
from headway.stores.redis.keys import stored_key
from headway.stores.redis.lane import Made
from headway.stores.redis.line import Line
from headway.stores.redis.settings import Node

__all__ = ["AsyncRedisStore"]


class AsyncRedisStore(BaseRedisStore):
    """The twin of ``RedisStore``; the same arguments and errors.

    One connection a server and event loop: decisions made at the same time travel together. Usable from several loops.
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
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}
        self._breakers: dict[tuple[Node, bool], Breaker] = {}
        self._owner = os.getpid()
        weakref.finalize(self, _drop_all, self._lines)

    async def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        """See ``Store.advance``."""
        known = self._remembered(charges, commit)
        if known is not None:
            return known
        sent = self.refusals.ticks()
        decided = await self._line().decide(Bill(charges, commit))
        if commit:
            self._learn(sent, charges, decided)
        return decided.answer

    async def advance_states(self, charges: Sequence[Charge], *, commit: bool = True) -> Made:
        """``advance`` for a bill without leases and flexible costs, the outcomes left to whoever needs them."""
        known = self._remembered(charges, commit)
        if known is not None:
            return known.allowed, known.now, known
        sent = self.refusals.ticks()
        decided = await self._line().decide(Bill(charges, commit))
        if commit:
            self._learn(sent, charges, decided)
        return decided.allowed, decided.now, decided.joined or decided.states

    async def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """See ``Store.change``."""
        self.refusals.forget([stored_key(change.charge) for change in changes])
        return await self._line().change(changes)

    async def requota(self, namespace: str, old: Limit, new: Limit) -> int:
        """See ``RedisStore.requota``."""
        self.refusals.clear()
        topology, given = self.topology, self._clock is not None
        return await self._line().drive(sweeping.requota(topology, namespace, old, new, self.now, given))

    async def clear(self, namespace: str, limit: Limit) -> int:
        """See ``RedisStore.clear``."""
        self.refusals.clear()
        return await self._line().drive(sweeping.clear(self.topology, namespace, limit))

    async def clears_after(self, charge: Charge) -> tuple[int, int]:
        """See ``Store.clears_after``."""
        given = self._clock is not None
        return await self._line().drive(sweeping.clears_after(self.topology, charge, self.now, given))

    async def reset(self, charges: Sequence[Charge]) -> None:
        """See ``Store.reset``."""
        keys = [stored_key(charge) for charge in charges]
        self.refusals.forget(keys)
        await self._line().drive(sweeping.reset(self.topology, keys))

    async def close(self) -> None:
        """Let this loop's calls under way end and close its connections; those of loops that have ended too."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.close()
        _drop_ended(self._lines)

    def _line(self) -> Line:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None or self._owner != os.getpid():
            if self._owner != os.getpid():  # forked: the parent's loop and its connections are not ours
                self._owner = os.getpid()
                self._lines.clear()
                self._breakers.clear()
            _drop_ended(self._lines)
            servers = AsyncServers(self.settings, self.deadline, self._breakers)
            topology = self.new_topology() if self._lines else self.topology
            line = self._lines[loop] = Line(topology, servers, self.now, self._clock is not None)
        return line


def _drop_ended(lines: dict[asyncio.AbstractEventLoop, Line]) -> None:
    for loop in [loop for loop in lines if loop.is_closed()]:
        _drop(lines.pop(loop))


def _drop_all(lines: dict[asyncio.AbstractEventLoop, Line]) -> None:
    while lines:
        _drop(lines.popitem()[1])


def _drop(line: Line) -> None:
    """Close what an ended loop left open: it cannot be asked to, so the sockets go when nothing refers to them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        line.drop()
        del line
