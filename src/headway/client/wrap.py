"""Patience for anything that can be called: a decorator, and a loop of attempts for a block.

``@patient`` retries a function that raises (an SDK's call) or that returns a response; ``for attempt in attempts():``
retries the block ``with attempt:``. Which refusal it was is read from the exception; see ``exceptions``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast, overload

from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.drive import AsyncSender, Sender
from headway.client.exceptions import reply_in, reply_of
from headway.client.flows import Send
from headway.client.retry import Retry
from headway.errors import RateLimited, RateLimitedError

__all__ = ["Block", "attempts", "patient"]

F = TypeVar("F", bound=Callable[..., Any])
Attributes = Mapping[str, object] | Callable[[Mapping[str, Any]], Mapping[str, object]]
"""What a pace is keyed by, or a function of the call's arguments by name."""


class _Raised:
    """A call that ended with an exception, where a response would be."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


@overload
def patient(function: F, /) -> F: ...
@overload
def patient(
    *,
    retry: Retry | None = None,
    pace: Any = None,
    attributes: Attributes | None = None,
    cost: Any = None,
    repeatable: bool = False,
    connection_errors: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
    **options: Any,
) -> Callable[[F], F]: ...
def patient(
    function: F | None = None,
    /,
    *,
    retry: Retry | None = None,
    pace: Any = None,
    attributes: Attributes | None = None,
    cost: Any = None,
    repeatable: bool = False,
    connection_errors: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
    **options: Any,
) -> Any:
    """Call a function again as its refusals tell; for ``def`` and ``async def``.

    An exception that is no refusal, or one that waiting does not lift, comes out as it is.

    Args:
        function: raises, or returns a response, when it is refused.
        retry: when to try again; default: ``Retry()``.
        pace: a ``Pace`` (for ``async def`` an ``AsyncPace``) that is asked before every attempt.
        attributes: what the pace is keyed by, or a function of the call's arguments by name.
        cost: what a call costs the pace, or a function of the call's arguments by name.
        repeatable: calling it twice does what calling it once does; else only what was refused before it was done
            (429) is tried again.
        connection_errors: the exceptions that mean a broken connection; retried only where ``retry`` says so.
        options: ``timer``, ``clock``, ``chance``, ``abort``; see ``Sender``.

    Raises:
        RateLimitedError: by the call: waiting does not help in time; raised from the SDK's last exception.
        DeadlineTooSoon: by the call: the pace can't let it go in time.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function) if callable(attributes) or callable(cost) else None

        def outgoing(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outgoing:
            given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments if signature else {}
            facts = attributes(given) if callable(attributes) else attributes or {}
            return Outgoing(repeatable, True, facts, cost(given) if callable(cost) else cost)

        if inspect.iscoroutinefunction(function):
            async_sender = AsyncSender(retry, pace, **options)

            async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
                async def attempt() -> Reply[Any] | Failure:
                    try:
                        return _answer(await function(*args, **kwargs))
                    except Exception as error:  # whatever an SDK raises; what is no refusal is raised again
                        return _raised(error, connection_errors)

                try:
                    return _returned(await async_sender.send(outgoing(args, kwargs), attempt))
                except RateLimitedError as gave_up:
                    _name_cause(gave_up)
                    raise

            return cast(F, functools.wraps(function)(async_wrapper))
        sender = Sender(retry, pace, **options)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            def attempt() -> Reply[Any] | Failure:
                try:
                    return _answer(function(*args, **kwargs))
                except Exception as error:  # whatever an SDK raises; what is no refusal is raised again
                    return _raised(error, connection_errors)

            try:
                return _returned(sender.send(outgoing(args, kwargs), attempt))
            except RateLimitedError as gave_up:
                _name_cause(gave_up)
                raise

        return cast(F, functools.wraps(function)(wrapper))

    return decorate if function is None else decorate(function)


class Block:
    """One attempt of a block: ``with attempt:``. A refusal it raises is read, and ends it quietly to be tried again.

    Attributes:
        number: of the attempt, counted from 1.
        response: set it to a response that was returned, not raised, to have it read.
    """

    def __init__(self, number: int, connection_errors: tuple[type[Exception], ...]) -> None:
        self.number = number
        self.response: Any = None
        self._connection_errors = connection_errors
        self._answer: Reply[Any] | Failure | None = None

    def __enter__(self) -> Block:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._answer = _answer(self.response)
            return False
        if not isinstance(error, Exception):
            return False
        answer = _raised(error, self._connection_errors)
        if isinstance(answer, Failure) and not answer.connection:
            return False
        self._answer = answer
        return True

    async def __aenter__(self) -> Block:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.__exit__(kind, error, trace)

    def answer(self) -> Reply[Any] | Failure:
        """What came of it.

        Raises:
            RuntimeError: the block was not entered.
        """
        if self._answer is None:
            raise RuntimeError("an attempt was not made: write `with attempt:` inside the loop")
        return self._answer


class attempts:  # noqa: N801  # used like a function: for attempt in attempts(): …
    """``for attempt in attempts(): with attempt: …``, or with ``async for`` and ``async with``; ends at success.

    Args:
        retry: see ``patient``; so are ``pace``, ``cost``, ``repeatable``, ``connection_errors`` and ``options``.
        pace: a ``Pace`` for ``for``, an ``AsyncPace`` for ``async for``.
        attributes: what the pace is keyed by.
        cost: what each attempt costs the pace.
        repeatable: doing the block twice does what doing it once does.
        connection_errors: the exceptions that mean a broken connection.
        options: see ``Sender``.
    """

    def __init__(
        self,
        retry: Retry | None = None,
        pace: Any = None,
        *,
        attributes: Mapping[str, object] | None = None,
        cost: Any = None,
        repeatable: bool = False,
        connection_errors: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        **options: Any,
    ) -> None:
        self._arguments = (retry, pace)
        self._options = options
        self._outgoing = Outgoing(repeatable, True, attributes or {}, cost)
        self._connection_errors = connection_errors

    def __iter__(self) -> Iterator[Block]:
        sender = Sender(*self._arguments, **self._options)
        slot: list[Any] = []
        flow, number, left = sender._flow(self._outgoing, paced=sender.pace is not None), 0, InterruptedError()
        try:
            effect = next(flow)
            while True:
                try:
                    if isinstance(effect, Send):
                        number += 1
                        block = Block(number, self._connection_errors)
                        yield block
                        answer: Any = block.answer()
                    else:
                        answer = sender._perform(effect, self._outgoing, _never, slot)
                except GeneratorExit:  # the loop was left; what is held is given back
                    effect = flow.throw(left)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            _returned(stop.value)
        except RateLimitedError as gave_up:
            _name_cause(gave_up)
            raise
        except InterruptedError as error:
            if error is not left:
                raise

    async def __aiter__(self) -> AsyncIterator[Block]:
        sender = AsyncSender(*self._arguments, **self._options)
        slot: list[Any] = []
        flow, number, left = sender._flow(self._outgoing, paced=sender.pace is not None), 0, InterruptedError()
        try:
            effect = next(flow)
            while True:
                try:
                    if isinstance(effect, Send):
                        number += 1
                        block = Block(number, self._connection_errors)
                        yield block
                        answer: Any = block.answer()
                    else:
                        answer = await sender._perform(effect, self._outgoing, _never, slot)
                except GeneratorExit:  # the loop was left; what is held is given back
                    effect = flow.throw(left)
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    effect = flow.throw(error)
                else:
                    effect = flow.send(answer)
        except StopIteration as stop:
            _returned(stop.value)
        except RateLimitedError as gave_up:
            _name_cause(gave_up)
            raise
        except InterruptedError as error:
            if error is not left:
                raise


def _never() -> Any:
    raise AssertionError("the loop makes the attempts itself")


def _answer(answered: Any) -> Reply[Any]:
    found = reply_of(answered)
    return Reply(200, {}, None, answered) if found is None else found


def _raised(error: Exception, connection_errors: tuple[type[Exception], ...]) -> Reply[Any] | Failure:
    """What an exception means: an answer, a broken connection, or something that is none of our business."""
    if isinstance(error, RateLimitedError | RateLimited):
        return Failure(error, connection=False)
    found = reply_in(error)
    if found is not None:
        return Reply(found.status, found.headers, found.body, _Raised(error))
    return Failure(error, connection=isinstance(error, connection_errors))


def _returned(reply: Reply[Any]) -> Any:
    if isinstance(reply.response, _Raised):
        raise reply.response.error
    return reply.response


def _name_cause(gave_up: RateLimitedError) -> None:
    """The final failure comes from the SDK's exception, and carries the response that one is about."""
    if isinstance(gave_up.response, _Raised):
        error = gave_up.response.error
        found = reply_in(error)
        gave_up.response = None if found is None else found.response
        gave_up.__cause__ = error
