"""Sending with patience, once for all transports: a generator that yields effects and is driven with or without ``await``.

The driver sends each effect's answer back, or throws what went wrong into the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from headway.client.attempt import Attempt, Failure, Outgoing, Reply
from headway.client.reading import read
from headway.client.rejection import Rejection, RejectionKind
from headway.client.retry import GiveUp, Leave, Retry, Wait
from headway.errors import DeadlineTooSoon, RateLimitedError
from headway.limiter.arguments import nanoseconds

__all__ = ["Acquire", "Complete", "Effect", "Send", "Sleep", "sending"]

R = TypeVar("R")
_SECOND = 1_000_000_000
_UNCOUNTED = (RejectionKind.RATE_LIMITED, RejectionKind.QUOTA_EXHAUSTED)
"""What a limiter refused it did not count; any other refusal may have cost a place."""


@dataclass(frozen=True, slots=True)
class Acquire:
    """Wait for the pace, at most so many seconds; raises ``DeadlineTooSoon`` at once where that cannot be."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Send:
    """Make one attempt; the answer is a ``Reply`` or a ``Failure``."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Tell the pace what came of what it admitted.

    Attributes:
        reply: the answer, or None where none arrived.
        rejection: how it was read, where it is a refusal.
        pause: seconds for which nobody is to send, or None.
        charged: whether the other side may have counted it.
    """

    reply: Reply[Any] | None = None
    rejection: Rejection | None = None
    pause: float | None = None
    charged: bool = True


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait so many ns; the answer says whether somebody asked to stop."""

    ns: int


Effect = Acquire | Send | Complete | Sleep


def sending(
    retry: Retry,
    request: Outgoing,
    *,
    ticks: Callable[[], int],
    now: Callable[[], int],
    chance: Callable[[], float],
    paced: bool,
) -> Generator[Effect, Any, Reply[R]]:
    """Send until answered, or until waiting does not help any more.

    Args:
        retry: when to try again.
        request: what is known of the request.
        ticks: ns that never go back; what the deadline is on.
        now: the caller's wall clock, ns since 1970.
        chance: random numbers from 0 up to, not including, 1.
        paced: whether a pace is asked before each attempt.

    Returns:
        The answer: a success, or a failure that is no matter of waiting.

    Raises:
        RateLimitedError: waiting would help, but not in time or not often enough.
        DeadlineTooSoon: the pace cannot let the first attempt go before the deadline.
        Exception: what the client library raised where no answer arrived.
    """
    until = ticks() + nanoseconds("deadline", retry.deadline)
    history: list[Attempt] = []
    last: Reply[R] | None = None

    def left() -> float:
        return max(0, until - ticks()) / _SECOND

    while True:
        if paced:
            yield from _admitted(history, last, left())
        answer: Reply[R] | Failure = yield from _sent(paced=paced)
        if not answer.rewindable:
            request = replace(request, rewindable=False)
        number, at = len(history) + 1, datetime.fromtimestamp(now() / _SECOND, UTC)
        if isinstance(answer, Failure):
            step = retry.after_failure(request, answer, history, left(), chance())
            if paced:
                yield Complete(charged=not answer.unsent)
            wait = step.seconds if isinstance(step, Wait) else None
            history.append(Attempt(number, at, error=repr(answer.error), wait=wait))
            if not isinstance(step, Wait):
                raise _noted(answer.error, history, step)
            if (yield Sleep(nanoseconds("wait", step.seconds))):
                raise _noted(answer.error, history, GiveUp("It was stopped while it waited."))
            continue
        last = answer
        rejection = read(answer.status, answer.headers, answer.body, received_at=at)
        if rejection is None:
            if paced:
                yield Complete(answer)
            return answer
        step = retry.after_refusal(request, answer.status, rejection, history, left(), chance())
        if paced:
            yield Complete(answer, rejection, _pause(rejection, step), charged=rejection.kind not in _UNCOUNTED)
        history.append(
            Attempt(number, at, answer.status, rejection, wait=step.seconds if isinstance(step, Wait) else None)
        )
        if isinstance(step, Leave):
            return answer
        if isinstance(step, GiveUp):
            raise RateLimitedError(rejection, step.why, history, answer.response)
        # A pace lets its callers go one by one after the pause, so nothing has to be left to chance.
        if (yield Sleep(0 if paced else nanoseconds("wait", step.seconds))):
            raise RateLimitedError(rejection, "It was stopped while it waited.", history, answer.response)


def _admitted(history: list[Attempt], last: Reply[R] | None, left: float) -> Generator[Effect, Any, None]:
    """Wait for the pace; after a refusal, running out of time is about that refusal."""
    try:
        yield Acquire(left)
    except DeadlineTooSoon as error:
        refused = next((attempt.rejection for attempt in reversed(history) if attempt.rejection), None)
        if refused is None:
            raise
        why = "It was not tried again: the wait for the shared pace would end after the deadline."
        raise RateLimitedError(refused, why, history, last.response if last else None) from error


def _sent(*, paced: bool) -> Generator[Effect, Any, Reply[R] | Failure]:
    """One attempt; whatever ends it without an answer (a cancellation too) ends what the pace holds for it."""
    try:
        answer: Reply[R] | Failure = yield Send()
    except BaseException:
        if paced:
            yield Complete()
        raise
    return answer


def _pause(rejection: Rejection, step: Wait | GiveUp | Leave) -> float | None:
    """How long a refusal of one is a refusal of all: as long as told, else as long as it waits itself."""
    if not rejection.waiting_helps or rejection.kind == "ambiguous":
        return None
    if rejection.retry_after:
        return rejection.retry_after
    return step.base if isinstance(step, Wait) else None


def _noted(error: Exception, history: list[Attempt], step: GiveUp | Leave) -> Exception:
    """The library's own error, with what was tried before it as notes."""
    if isinstance(step, GiveUp):
        error.add_note(step.why)
    for attempt in history[:-1]:
        what = attempt.rejection.sentence() if attempt.rejection else attempt.error
        error.add_note(f"Attempt {attempt.number} at {attempt.at:%H:%M:%S} UTC: {what}")
    return error
