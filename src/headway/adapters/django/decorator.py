"""A decorator for Django's views: functions, async or not, and methods of class-based views."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, cast

from headway.adapters.django import answers
from headway.adapters.django._asgiref import iscoroutinefunction
from headway.adapters.django.configuration import account, account_async
from headway.adapters.drive import Asking, drive, drive_async
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger, ResponseFacts
from headway.adapters.routes import is_exempt
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter

__all__ = ["limit"]

F = TypeVar("F", bound=Callable[..., Any])


def limit(limiter: Limiter | AsyncLimiter, **options: Unpack[Options]) -> Callable[[F], F]:
    """Ask a limiter before each call of a view: ``@limit(limiter)``; in any order with other decorators.

    Class-based views take ``@method_decorator(limit(limiter), name="dispatch")``.

    Args:
        limiter: for an ``async def`` an ``AsyncLimiter``, or a ``Limiter`` on a memory store; else a ``Limiter``.
        options: see ``Options``; the framework's request is the ``HttpRequest``. ``exempt_paths`` is empty unless it is
            given, and ``account`` is the primary key of the request's user.

    Raises:
        TypeError: a limiter of the wrong kind; what is decorated is no function.
        ConfigError: an option that cannot be right.
    """

    def decorate(view: F) -> F:
        name = f"{getattr(view, '__module__', '')}.{getattr(view, '__qualname__', repr(view))}"
        if inspect.isclass(view) or not callable(view):
            raise TypeError(
                f"{name} is no function; for a class-based view use method_decorator(limit(…), name='dispatch')"
            )
        asynchronous: bool = iscoroutinefunction(view)
        given: Options = {"exempt_paths": (), "account": account_async if asynchronous else account, **options}
        guard = Guard(limiter, given, where=f"limit() of {name}()", asynchronous=asynchronous)

        @functools.wraps(view)
        def limited(*args: Any, **kwargs: Any) -> Any:
            request = _request(args, kwargs, guard.where)
            outer = request.META.get(LEDGER)
            ledger = request.META.setdefault(LEDGER, Ledger())
            if not is_exempt(limited) and drive(_ask(guard, request, ledger)):
                return answers.answer(request, ledger)
            if outer is not None:
                return view(*args, **kwargs)
            try:
                response = view(*args, **kwargs)
            except BaseException as error:
                drive(ledger.end(ResponseFacts(500, error=error)))
                raise
            return drive(_finish(request, response, ledger, asynchronous=False))

        @functools.wraps(view)
        async def limited_async(*args: Any, **kwargs: Any) -> Any:
            request = _request(args, kwargs, guard.where)
            outer = request.META.get(LEDGER)
            ledger = request.META.setdefault(LEDGER, Ledger())
            if not is_exempt(limited_async) and await drive_async(_ask(guard, request, ledger)):
                return answers.answer(request, ledger)
            if outer is not None:
                return await view(*args, **kwargs)
            try:
                response = await view(*args, **kwargs)
            except BaseException as error:
                await drive_async(ledger.end(ResponseFacts(500, error=error)))
                raise
            return await drive_async(_finish(request, response, ledger, asynchronous=True))

        return cast(F, limited_async if asynchronous else limited)

    return decorate


def _request(args: Any, kwargs: Any, where: str) -> Any:
    for one in (*args, *kwargs.values()):
        if hasattr(one, "META"):
            return one
    raise TypeError(f"{where}: the call has no request; a view is called with an HttpRequest")


def _ask(guard: Guard, request: Any, ledger: Ledger) -> Asking[bool]:
    """Whether it is refused."""
    match = getattr(request, "resolver_match", None)
    place = answers.NOWHERE if match is None else answers.Place(f"/{match.route}", match.kwargs)
    refusal = yield from guard.ask(request, answers.asked_of(request, place), ledger)
    return refusal is not None


def _finish(request: Any, response: Any, ledger: Ledger, *, asynchronous: bool) -> Asking[Any]:
    """The answer of a view that no middleware is around."""
    answers.add_fields(request, response, ledger)
    if ledger.unsettled:
        if response.streaming:
            answers.settle_when_closed(response, ledger, asynchronous=asynchronous)
        else:
            yield from ledger.end(answers.response_facts(response))
    return response
