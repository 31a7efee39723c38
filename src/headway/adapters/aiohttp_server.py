"""Limits for aiohttp's server: a middleware for the whole application, a decorator for a handler, limits for messages.

``setup`` is the way in: only the application's ``on_response_prepare`` can put fields on an answer that a handler begins
by itself (a stream, a WebSocket's handshake), because a middleware sees it when it has been sent.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, Unpack

try:
    from aiohttp import web
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.aiohttp_server needs aiohttp: pip install 'headway[aiohttp]'", name=error.name
    ) from error

from headway.adapters.asgi import POLICY_VIOLATION, TRY_AGAIN_LATER
from headway.adapters.asked import FORWARDED, Asked
from headway.adapters.cors import ORIGIN
from headway.adapters.drive import drive_async
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger, ResponseFacts, exposed
from headway.adapters.order import check_order, decorates, remember
from headway.adapters.routes import exempt, is_exempt
from headway.errors import ConfigError, RateLimited
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.limiter.plan import Cost
from headway.policy.request import RequestFacts

__all__ = ["MessageLimits", "decisions", "exempt", "limit", "setup"]

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LEDGER: Final[Any] = web.RequestKey(LEDGER, Ledger) if hasattr(web, "RequestKey") else LEDGER  # aiohttp 3.14
_BEGUN: Final[Any] = web.RequestKey(f"{LEDGER}.begun", bool) if hasattr(web, "RequestKey") else f"{LEDGER}.begun"
_SIZE: Final[Any] = web.RequestKey(f"{LEDGER}.size", int) if hasattr(web, "RequestKey") else f"{LEDGER}.size"
_CODES: Final = (POLICY_VIOLATION, TRY_AGAIN_LATER)
_LONGEST_REASON: Final = 123
"""Bytes; RFC 6455 §5.5: a control frame holds 125, and the close code takes two."""


def setup(app: web.Application, limiter: AsyncLimiter | Limiter | None = None, **options: Unpack[Options]) -> None:
    """Ask a limiter about every request of an application, those of its sub-applications too: ``setup(app, limiter)``.

    Within it, everything that headway decides about a request becomes one set of fields, and a ``RateLimited`` that a
    handler lets out becomes the refusal's answer. May be called several times; each limiter is asked.

    Args:
        app: not started yet.
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store; None asks nobody and does only the rest, for
            applications whose handlers have limits of their own.
        options: see ``Options``; the framework's request is ``aiohttp.web.Request``.

    Raises:
        TypeError: a limiter that would block, or an unknown option.
        RuntimeError: aiohttp's, for an application that has started.
        ConfigError: an option that cannot be right; when the application starts, a limit that came too late.
    """
    where = "setup()"
    if limiter is None and options:
        raise TypeError(f"{where} has options and no limiter to apply them to: {', '.join(sorted(options))}")
    guard = None if limiter is None else Guard(limiter, options, where=where, asynchronous=True)
    app.middlewares.append(_middleware(guard))
    if _prepare not in app.on_response_prepare:
        app.on_response_prepare.append(_prepare)
        app.on_startup.append(_check)


def limit(limiter: AsyncLimiter | Limiter, **options: Unpack[Options]) -> Callable[[F], F]:
    """Ask a limiter before each call of a handler, or of a method of a ``web.View``: ``@limit(limiter)`` next to it.

    Without ``setup`` the fields are only on responses that the handler has not begun to send when it returns them.

    Args:
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store.
        options: see ``setup``; ``exempt_paths`` is empty unless it is given: a limit of its own is meant.

    Raises:
        TypeError: a limiter that would block, or what is decorated is no ``async`` function.
        ConfigError: an option that cannot be right.
    """

    def decorate(function: F) -> F:
        name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
        if not inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{name} is no async function; limit handlers, and the methods of a view class, such as get"
            )
        guard = Guard(limiter, {"exempt_paths": (), **options}, where=f"limit() of {name}()", asynchronous=True)

        @functools.wraps(function)
        async def limited(*args: Any, **kwargs: Any) -> web.StreamResponse:
            request = args[-1] if isinstance(args[-1], web.Request) else args[0].request  # a view has it

            async def call(_: web.Request) -> web.StreamResponse:
                response: web.StreamResponse = await function(*args, **kwargs)
                return response

            return await _serve(request, call, None if is_exempt(limited) else guard)

        if decorates(function):
            remember(function, limited)
        return limited  # type: ignore[return-value]  # the same to its caller

    return decorate


def decisions(request: web.Request) -> tuple[Decision, ...]:
    """What the limiters have answered about a request so far, for its handler."""
    ledger: Ledger | None = request.get(_LEDGER)
    return () if ledger is None else ledger.decisions


class MessageLimits:
    """Limits the messages of WebSockets, counted for whoever sends them, over all their sockets.

    Ask about each message that was received: ``decision = await messages.hit(request, websocket)``. Pings and pongs never
    reach a handler, so they are never counted, and what is sent to the client is not either.

    Args:
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store.
        close_code: 1008 (a rule is broken) or 1013 (try again later): a refused message closes the socket with the
            sentence as its reason. None leaves it open: the handler tells the client, and goes on receiving.
        options: see ``setup``.

    Raises:
        TypeError: a limiter that would block, or an unknown option.
        ConfigError: another code, or an option that cannot be right.
    """

    def __init__(
        self, limiter: AsyncLimiter | Limiter, *, close_code: int | None = None, **options: Unpack[Options]
    ) -> None:
        if close_code is not None and close_code not in _CODES:
            raise ConfigError(f"{close_code!r}; expected 1008, 1013 or None", key="close_code")
        for name in ("charge_if", "actual_cost", "probe_limiter"):
            if name in options:
                raise ConfigError("a message has no response to settle by, and is no probe", key=name)
        self.close_code = close_code
        self._guard = Guard(limiter, {"exempt_paths": (), **options}, where="MessageLimits", asynchronous=True)

    async def hit(
        self, request: web.Request, websocket: web.WebSocketResponse | None = None, *, cost: Cost | None = None
    ) -> Decision:
        """Charge one message that was received.

        Args:
            request: the handshake's.
            websocket: what is closed where the message is refused and there is a ``close_code``.
            cost: units of this message, instead of the option's: its size, say.

        Raises:
            What ``Limiter.hit`` raises.
        """
        ledger = Ledger()
        refusal = await drive_async(self._guard.ask(request, _asked(request), ledger, cost=cost))
        if refusal is None:
            return ledger.decisions[0] if ledger.entries else self._guard.skipped()
        decision = Decision.of(refusal)
        if self.close_code is not None and websocket is not None:
            reason = decision.sentence(self._guard.locale).encode()[:_LONGEST_REASON]
            await websocket.close(code=self.close_code, message=reason.decode("utf-8", "ignore").encode())
        return decision


def _middleware(guard: Guard | None) -> Any:
    @web.middleware
    async def headway(request: web.Request, handler: Handler) -> web.StreamResponse:
        asks = guard is not None and not _exempt(request, guard)
        return await _serve(request, handler, guard if asks else None)

    return headway


async def _serve(request: web.Request, handler: Handler, guard: Guard | None) -> web.StreamResponse:
    """Ask, call the handler, and settle. Whoever comes first opens the ledger and does what is left at the end."""
    ledger: Ledger | None = request.get(_LEDGER)
    outermost = ledger is None
    if ledger is None:
        ledger = request[_LEDGER] = Ledger()
    if guard is not None and await drive_async(guard.ask(request, _asked(request), ledger)) is not None:
        return _refusal(request, ledger)
    if not outermost:
        return await handler(request)
    response: web.StreamResponse | None = None
    error: BaseException | None = None
    try:
        response = await handler(request)
    except RateLimited as refused:
        error = refused
        await drive_async(ledger.raised(refused))
        if _BEGUN in request:  # an answer is on its way already
            raise
        response = _refusal(request, ledger)
    except web.HTTPException as raised:  # aiohttp's way to answer
        response = raised
        _write_early(request, raised, ledger)
        raise
    except BaseException as raised:
        error = raised
        raise
    finally:
        if ledger.unsettled:
            await drive_async(ledger.end(_facts_of(request, response, error)))
    _write_early(request, response, ledger)
    return response


def _refusal(request: web.Request, ledger: Ledger) -> web.Response:
    answer = ledger.answer(_facts(request))
    return web.Response(status=answer.status, headers=list(answer.headers), body=answer.body)


async def _prepare(request: web.Request, response: web.StreamResponse) -> None:
    """Put the fields on an answer that is about to be sent, whoever made it: a handler, an error page of aiohttp's."""
    ledger: Ledger | None = request.get(_LEDGER)
    if ledger is None:
        return
    request[_BEGUN] = True
    _write(request, response, ledger)
    if ledger.unsettled and not isinstance(response, web.Response | web.WebSocketResponse):
        _count(request, response)


def _count(request: web.Request, response: web.StreamResponse) -> None:
    """Count the bytes of a body that its handler writes itself: aiohttp knows them only with what frames them."""
    request[_SIZE] = 0
    write = response.write

    async def counting(data: bytes | bytearray | memoryview) -> None:
        request[_SIZE] += len(data) if isinstance(data, bytes | bytearray) else data.nbytes
        await write(data)

    response.write = counting  # type: ignore[method-assign]  # for this response only


def _write_early(request: web.Request, response: web.StreamResponse, ledger: Ledger) -> None:
    """Where nobody called ``setup``: the response may go through other hands, and nobody will ask again."""
    if not response.prepared and not any(_prepare in app.on_response_prepare for app in request.match_info.apps):
        _write(request, response, ledger)


def _write(request: web.Request, response: web.StreamResponse, ledger: Ledger) -> None:
    headers = [(name.lower(), value) for name, value in response.headers.items()]
    for name, value in exposed(ledger.fields(), headers, asked=ORIGIN in request.headers):
        response.headers[name] = value


def _exempt(request: web.Request, guard: Guard) -> bool:
    """The handler is exempt, or serves files that are the same for everybody."""
    handler = request.match_info.handler
    method = getattr(handler, request.method.lower(), None) if inspect.isclass(handler) else None
    resource = request.match_info.route.resource
    static = guard.exempt_static and isinstance(resource, web.StaticResource)
    return static or is_exempt(handler) or (method is not None and is_exempt(method))


def _asked(request: web.Request) -> Asked:
    forwarded = any(name in request.headers for name in FORWARDED)
    return Asked(request.method, request.path, request.remote or None, forwarded, lambda: _facts(request))


def _facts(request: web.Request) -> RequestFacts:
    resource = request.match_info.route.resource
    return RequestFacts(
        method=request.method,
        route=None if resource is None else resource.canonical,
        path=request.path,
        headers=tuple(request.headers.items()),
        path_params=dict(request.match_info),
        query=dict(reversed(list(request.query.items()))),
        peer=request.remote or None,
    )


def _facts_of(request: web.Request, response: web.StreamResponse | None, error: BaseException | None) -> ResponseFacts:
    """What is known of an answer; of one that its handler has not sent itself, the body it will have."""
    if response is None:
        return ResponseFacts(500, size=request.get(_SIZE, 0), error=error)
    size = response.body_length if response.prepared else response.content_length
    return ResponseFacts(response.status, tuple(response.headers.items()), request.get(_SIZE, size) or 0, error)


async def _check(app: web.Application) -> None:
    """When the application starts: no handler was registered before it was limited."""
    check_order(route.handler for route in app.router.routes())
