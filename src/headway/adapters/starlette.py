"""A decorator for Starlette's endpoints: functions, async or not, methods of ``HTTPEndpoint``, and WebSockets.

Starlette itself is not imported: an endpoint is anything that is given a connection with a ``scope`` and returns an ASGI
response.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

from headway.adapters import routes
from headway.adapters.asgi import RateLimitMiddleware, refuse, serve
from headway.adapters.asgi_messages import Receive, Scope, Send, asked_of
from headway.adapters.drive import drive_async
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger, ResponseFacts
from headway.adapters.order import decorates, remember
from headway.adapters.routes import exempt, is_exempt
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter

__all__ = ["RateLimitMiddleware", "exempt", "limit"]

F = TypeVar("F", bound=Callable[..., Any])


def limit(limiter: AsyncLimiter | Limiter, **options: Unpack[Options]) -> Callable[[F], F]:
    """Ask a limiter before each call of an endpoint: ``@limit(limiter)`` next to the function.

    The fields go on the response that the endpoint returns. Within a ``RateLimitMiddleware`` both become one set, and
    answers that are made of exceptions have them too.

    Args:
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store.
        options: see ``Options``; the framework's request is Starlette's ``Request`` or ``WebSocket``. ``exempt_paths``
            is empty unless it is given: a limit of its own is meant.

    Raises:
        TypeError: a limiter that would block; what is decorated is no endpoint function; by the call, in FastAPI, which
            takes ``headway.adapters.fastapi.limit``.
        ConfigError: an option that cannot be right.
    """

    def decorate(function: F) -> F:
        name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
        if inspect.isclass(function) or not callable(function):
            raise TypeError(f"{name} is no function; limit the methods of an endpoint class, such as get")
        where = f"limit() of {name}()"
        guard = Guard(limiter, {"exempt_paths": (), **options}, where=where, asynchronous=True)

        @functools.wraps(function)
        async def limited(*args: Any, **kwargs: Any) -> Any:
            connection = _connection(args, kwargs, where)
            scope: Scope = connection.scope
            if is_exempt(limited):
                return await _call(function, args, kwargs)
            outer: Ledger | None = scope.get(LEDGER)
            if outer is None:
                ledger = scope[LEDGER] = Ledger()
            else:
                ledger = outer
            place = routes.place_of(scope.get("app"), scope) if guard.needs_route else routes.NOWHERE
            asked = asked_of(scope, place)
            if await drive_async(guard.ask(connection, asked, ledger)) is not None:
                if scope["type"] == "websocket":
                    return await refuse(scope, connection.send, ledger, asked.facts)
                return _Refusal(ledger, asked.facts)
            if outer is not None:
                return await _call(function, args, kwargs)
            try:
                response = await _call(function, args, kwargs)
            except BaseException as error:
                await _failed(error, ledger)
                raise
            if response is None or scope["type"] == "websocket":
                await drive_async(ledger.end(ResponseFacts(101)))
                return response
            return _Served(response, ledger)

        if decorates(function):
            remember(function, limited)
        return limited  # type: ignore[return-value]  # the same to its caller

    return decorate


class _Refusal:
    """The answer to a refused request, as an ASGI application."""

    def __init__(self, ledger: Ledger, facts: Any) -> None:
        self._ledger = ledger
        self._facts = facts
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await refuse(scope, send, self._ledger, self._facts)


class _Served:
    """A response that has the fields and settles when it has been sent; else it is the endpoint's own."""

    def __init__(self, response: Any, ledger: Ledger) -> None:
        self._response = response
        self._ledger = ledger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await serve(self._response, scope, receive, send, self._ledger)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)


async def _failed(error: BaseException, ledger: Ledger) -> None:
    """An endpoint raised: an HTTP error takes the fields with it, and what is left is settled."""
    status = getattr(error, "status_code", 500)
    headers = getattr(error, "headers", None)
    if hasattr(error, "headers") and hasattr(error, "status_code"):
        error.headers = {**(headers or {}), **dict(ledger.fields())}
    await drive_async(ledger.end(ResponseFacts(status, tuple((headers or {}).items()), error=error)))


async def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call an endpoint; one that is not async in a worker thread, as Starlette does."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    import asyncio  # whoever awaits has imported it

    return await asyncio.to_thread(function, *args, **kwargs)


def _connection(args: Any, kwargs: Any, where: str) -> Any:
    for one in (*args, *kwargs.values()):
        scope = getattr(one, "scope", None)
        if scope is not None:
            if hasattr(scope.get("app"), "openapi"):
                raise TypeError(
                    f"{where}: FastAPI needs a dependency: dependencies=[Depends(limit(limiter))] with the "
                    "limit of headway.adapters.fastapi"
                )
            return one
    raise TypeError(f"{where}: the call has no request; an endpoint is called with a Request or a WebSocket")
