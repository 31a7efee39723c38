"""Timers for tests of waiting: they count what is waited for, and let time pass only when told."""

from __future__ import annotations

import asyncio
import threading

from headway.testing.clock import ManualClock


class Stepped:
    """Time stands until the test moves the clock; a caller that waits really waits.

    Attributes:
        pauses: the ns of every wait for time.
        turns: how often a caller waited for its turn.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.pauses: list[int] = []
        self.turns = 0

    def ticks(self) -> int:
        return self.clock.now

    def pause(self, event: threading.Event, ns: int) -> None:
        self.pauses.append(ns)
        self._until(event, ns)

    def turn(self, event: threading.Event, ns: int) -> None:
        self.turns += 1
        self._until(event, ns)

    def _until(self, event: threading.Event, ns: int) -> None:
        end = self.clock.now + ns
        while self.clock.now < end and not event.wait(0.0005):
            pass

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        self.pauses.append(ns)
        await self._until_async(event, ns)

    async def turn_async(self, event: asyncio.Event, ns: int) -> None:
        self.turns += 1
        await self._until_async(event, ns)

    async def _until_async(self, event: asyncio.Event, ns: int) -> None:
        end = self.clock.now + ns
        while self.clock.now < end and not event.is_set():  # noqa: ASYNC110  # the test moves the clock
            await asyncio.sleep(0)


class Woken(Stepped):
    """Waiting for time moves the clock; waiting for one's turn ends only by being woken.

    Attributes:
        wakes: how often a caller that waited for its turn was woken.
    """

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.wakes = 0

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        self.pauses.append(ns)
        await asyncio.sleep(0)
        self.clock.advance(ns=ns)

    async def turn_async(self, event: asyncio.Event, ns: int) -> None:
        self.turns += 1
        await event.wait()
        self.wakes += 1


class Late(Woken):
    """As ``Woken``, but each wait for time ends so many ns too late, as on a busy machine.

    Args:
        clock: is moved by waiting.
        late: ns.
    """

    def __init__(self, clock: ManualClock, late: int) -> None:
        super().__init__(clock)
        self.late = late

    def pause(self, event: threading.Event, ns: int) -> None:
        self.pauses.append(ns)
        self.clock.advance(ns=ns + self.late)

    def turn(self, event: threading.Event, ns: int) -> None:
        self.turns += 1
        event.wait(10)

    async def pause_async(self, event: asyncio.Event, ns: int) -> None:
        await super().pause_async(event, ns + self.late)
