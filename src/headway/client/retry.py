"""``Retry``: whether and when to try again. Pure: no clock, no sleep; chance is an argument.

Never sooner than told and never for ever: a stated wait is only lengthened, and a wait that would cross the deadline
is not begun.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headway.client.advice import documented_wait
from headway.client.attempt import Attempt, Failure, Outgoing
from headway.client.rejection import Rejection, RejectionKind
from headway.errors import ConfigError

__all__ = ["GiveUp", "Leave", "Retry", "Step", "Wait"]

_FOR_GOOD = (RejectionKind.FORBIDDEN, RejectionKind.MISCONFIGURED)
_UNAVAILABLE = (RejectionKind.OVERLOADED, RejectionKind.TRANSIENT)
_LONGEST_ADVICE = 3_600.0
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class Wait:
    """Try again after ``seconds``; ``base`` of them are the wait itself, the rest spreads the callers."""

    seconds: float
    base: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stop, and say why in a sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Leave:
    """No matter of waiting: the caller gets the response as it is."""


Step = Wait | GiveUp | Leave


@dataclass(frozen=True, slots=True)
class Retry:
    """Whether and when to try again.

    Args:
        deadline: seconds from the first attempt, above 0; a wait that would end later is not begun.
        attempts: the most attempts, the first included; at least 1.
        floor: seconds, above 0; the least wait where none is stated (or 0 is), doubled with each further refusal.
        first: seconds; what the first back-off is drawn from goes from ``floor`` to this, then doubles.
        longest: seconds; where back-offs stop growing. Says nothing about stated waits.
        spread: seconds, from 0; a stated wait is lengthened by up to this, at random, so that callers do not come
            back all at once.
        ambiguous: further attempts after a refusal that does not say whether waiting helps (a fresh key's 403).
        may_pass: says of a refusal that time does not seem to lift (its status, and how it was read) whether it may
            pass after all: a 403 while a key is fresh. It then counts as ambiguous.
        unavailable: whether 503 and the like (overloaded, maintenance) are retried; only repeatable requests are.
        connection_errors: whether connection errors are retried; only repeatable requests, and those never sent.
        repeat_all: the caller vouches that every request may be sent twice.
        look_into_success: read the bodies of successful JSON responses too, since some services refuse with 200.

    Raises:
        ConfigError: a value out of range, named with what is accepted.
    """

    deadline: float = 300.0
    attempts: int = 8
    floor: float = 1.0
    first: float = 2.0
    longest: float = 60.0
    spread: float = 1.0
    ambiguous: int = 2
    may_pass: Callable[[int, Rejection], bool] | None = None
    unavailable: bool = True
    connection_errors: bool = False
    repeat_all: bool = False
    look_into_success: bool = False

    def __post_init__(self) -> None:
        for name, above in (("deadline", True), ("floor", True), ("first", True), ("longest", True), ("spread", False)):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 <= value <= 1e11
                or not (value or not above)
            ):
                least = "above 0" if above else "from 0"
                raise ConfigError(f"Retry {name} is {value!r}; expected seconds {least}, at most 1e11")
        if not self.floor <= self.first <= self.longest:
            raise ConfigError(
                f"Retry floor is {self.floor}, first {self.first}, longest {self.longest}; expected them in this order"
            )
        for name, fewest in (("attempts", 1), ("ambiguous", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < fewest:
                raise ConfigError(f"Retry {name} is {value!r}; expected a whole number from {fewest}")

    def after_refusal(
        self,
        request: Outgoing,
        status: int,
        rejection: Rejection,
        history: Sequence[Attempt],
        left: float,
        chance: float,
    ) -> Step:
        """What to do about a refusal.

        Args:
            request: what was sent.
            status: the response's.
            rejection: how it was read.
            history: the attempts before this one.
            left: seconds until the deadline, 0 or more.
            chance: a random number from 0 up to, not including, 1.
        """
        kind = self.kind(status, rejection)
        if kind in _FOR_GOOD or (kind in _UNAVAILABLE and not self.unavailable):
            return Leave()
        if rejection.no_retry:
            return GiveUp("The server asks not to be tried again.")
        stop = self._unrepeatable(request, nothing_done=400 <= status < 500 and kind not in _UNAVAILABLE)
        if stop is not None:
            return stop
        if kind is RejectionKind.QUOTA_EXHAUSTED and rejection.retry_after is None:
            return GiveUp("It was not tried again: a spent quota that does not say when it resets.")
        if kind is RejectionKind.AMBIGUOUS:
            before = sum(
                attempt.rejection is not None
                and self.kind(attempt.status or 0, attempt.rejection) is RejectionKind.AMBIGUOUS
                for attempt in history
            )
            if before >= self.ambiguous:
                return GiveUp(f"Gave up after {_times(len(history) + 1)}: it may never help.")
        if len(history) + 1 >= self.attempts:
            return GiveUp(f"Gave up after {_times(len(history) + 1)}.")
        refusals = sum(attempt.rejection is not None for attempt in history)
        return self._in_time(self._wait(rejection, refusals, left, chance), left)

    def kind(self, status: int, rejection: Rejection) -> RejectionKind:
        """What kind of refusal it is, with what the caller knows of the service."""
        if rejection.waiting_helps or self.may_pass is None or not self.may_pass(status, rejection):
            return rejection.kind
        return RejectionKind.AMBIGUOUS

    def after_failure(
        self, request: Outgoing, failure: Failure, history: Sequence[Attempt], left: float, chance: float
    ) -> Step:
        """What to do when no answer arrived; ``Leave`` lets the error itself go to the caller."""
        if not (failure.connection and self.connection_errors):
            return Leave()
        stop = self._unrepeatable(request, nothing_done=failure.unsent)
        if stop is not None:
            return stop
        if len(history) + 1 >= self.attempts:
            return GiveUp(f"Gave up after {_times(len(history) + 1)}.")
        return self._in_time(self._backoff(len(history), left, chance), left)

    def _unrepeatable(self, request: Outgoing, *, nothing_done: bool) -> GiveUp | None:
        if not request.rewindable:
            return GiveUp("It was not tried again: its body cannot be sent a second time.")
        if nothing_done or request.repeatable or self.repeat_all:
            return None
        return GiveUp("It was not tried again: it may have been carried out, and doing it twice may matter.")

    def _wait(self, rejection: Rejection, refusals: int, left: float, chance: float) -> Wait:
        told = rejection.retry_after
        if told is None:
            advised = documented_wait(rejection)
            if advised is None:
                return self._backoff(refusals, left, chance)
            told = min(_doubled(advised, refusals), max(advised, _LONGEST_ADVICE))
        elif told == 0:  # "now", and it refused all the same
            told = min(_doubled(self.floor, refusals), self.longest)
        spread = min(self.spread, max(0.0, left - told))
        return Wait(told + chance * spread, told)

    def _backoff(self, tries: int, left: float, chance: float) -> Wait:
        """Full jitter between the floor and a ceiling that doubles."""
        ceiling = min(_doubled(self.first, tries), self.longest, max(left, self.floor))
        seconds = self.floor + chance * (ceiling - self.floor)
        return Wait(seconds, seconds)

    def _in_time(self, wait: Wait, left: float) -> Step:
        if wait.seconds <= left:
            return wait
        return GiveUp(f"It was not tried again: the wait would end after the deadline of {self.deadline:g} seconds.")


def _doubled(seconds: float, times: int) -> float:
    return math.ldexp(seconds, min(times, _MOST_DOUBLINGS))


def _times(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"
