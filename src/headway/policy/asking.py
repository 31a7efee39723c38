"""``Question``: one question that many may be waiting for, in threads and event loops alike; it is asked once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, NamedTuple

from headway.core.limit import Limit

__all__ = ["Awaited", "Failed", "Following", "Question", "Told"]


class Told(NamedTuple):
    """What came of a question.

    Attributes:
        limit: the limit it leads to; None where it is unlimited.
        error: what to raise instead.
    """

    limit: Limit | None
    error: Exception | None = None


class Failed(NamedTuple):
    """The one who was asked raised instead of answering."""

    error: Exception


class Question:
    """A question from when it is asked until it is settled.

    Attributes:
        known: set once it is settled, or once it is known to be one that is awaited.
        awaited: the answer has to be awaited.
        told: what came of it; None while it is open, and where whoever asked was stopped before there was an answer.
        outdated: an answer is told to those who asked and not remembered.
        late: somebody has waited for it in vain, so nobody else does.
    """

    def __init__(self) -> None:
        self.known = threading.Event()
        self.awaited = False
        self.told: Told | None = None
        self.outdated = False
        self.late = False
        self._since = time.monotonic()
        self._asker = (os.getpid(), threading.get_ident())
        self._loop: Any = None
        self._settled = False
        self._waking: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def helps(self, for_seconds: float) -> bool:
        """Whether to wait for it: not in a child of the asker, not within the question itself, not after its loop's end.

        Args:
            for_seconds: the age at which it is given up.
        """
        if time.monotonic() - self._since > for_seconds:
            return False
        if self.awaited:
            return self._asker[0] == os.getpid() and not (self._loop and self._loop.is_closed())
        return self._asker[0] == os.getpid() and self._asker[1] != threading.get_ident()

    def is_awaited(self) -> None:
        """Note that the answer has to be awaited."""
        with suppress(RuntimeError):  # nobody can await it here: a Limiter was given an async provider
            import asyncio  # whoever has something to await has imported it

            self._loop = asyncio.get_running_loop()
        self.awaited = True
        self.known.set()

    def settle(self, told: Told | None) -> None:
        """Tell all who wait; None: they have to ask again."""
        with self._lock:
            self.told, self._settled = told, True
            waking, self._waking = self._waking, []
        self.known.set()
        for wake in waking:
            wake()

    def when_settled(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` then, from whatever thread; at once where it is settled already."""
        with self._lock:
            if not self._settled:
                self._waking.append(wake)
                return
        wake()


class Awaited:
    """An awaitable answer.

    Args:
        awaitable: what an ``async`` function gave.
        settle: called with the answer in a tuple, or None where nobody awaits it to its end; what it gives is the result.
        at_most: seconds that it may take; None for as long as it takes.
    """

    def __init__(
        self, awaitable: Any, settle: Callable[[tuple[object] | None], Any], at_most: float | None = None
    ) -> None:
        self._awaitable = awaitable
        self._settle = settle
        self._at_most = at_most

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            answer: object = yield from _in_time(self._awaitable, self._at_most).__await__()
        except Exception as error:
            answer = Failed(error)
        except BaseException:  # cancelled
            self._settle(None)
            raise
        return self._settle((answer,))

    def close(self) -> None:
        """Nobody will await it."""
        getattr(self._awaitable, "close", lambda: None)()
        self._settle(None)


class Following:
    """What awaits somebody else's question, and asks itself where nothing came of it."""

    def __init__(self, question: Question, ask: Callable[[], Any]) -> None:
        self._question = question
        self._ask = ask

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from _settled(self._question).__await__()
        if self._question.told is not None:
            return self._question.told
        mine = self._ask()
        return (yield from mine.__await__()) if hasattr(mine, "__await__") else mine


async def _in_time(awaitable: Any, at_most: float | None) -> object:
    """Its answer.

    Raises:
        TimeoutError: it takes too long, and was cancelled.
    """
    import asyncio

    async with asyncio.timeout(at_most) as scope:
        try:
            return await awaitable
        except asyncio.CancelledError:
            if scope.expired():
                raise TimeoutError(f"no answer within {at_most:g} s") from None
            raise


async def _settled(question: Question) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    settled = asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop was closed, and who waited in it is gone
            loop.call_soon_threadsafe(settled.set)

    question.when_settled(wake)
    await settled.wait()
