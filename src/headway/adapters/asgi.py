"""ASGI middleware: for Starlette, FastAPI, Litestar, Quart, and any other application of ASGI 3.

Nothing is buffered: the fields go out with the application's own first ``http.response.start``.
"""

from __future__ import annotations

from typing import Any, Final, Unpack

from headway.adapters import routes
from headway.adapters.asgi_messages import (
    ASGIApp,
    Message,
    Receive,
    Scope,
    Send,
    asked_of,
    close,
    deny,
    facts_of,
    size_of,
    text_fields,
    with_fields,
)
from headway.adapters.drive import drive_async
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger, ResponseFacts
from headway.adapters.order import check_order
from headway.adapters.routes import NOWHERE, Place, exempt
from headway.errors import ConfigError, RateLimited
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.policy.request import RequestFacts

__all__ = ["POLICY_VIOLATION", "TRY_AGAIN_LATER", "RateLimitMiddleware", "exempt", "refuse", "serve"]

POLICY_VIOLATION: Final = 1008
"""RFC 6455 §7.4.1: the close code for a socket that breaks a rule."""

_SWITCHING: Final = 101
"""What a WebSocket's handshake was answered."""

_BEGINNINGS: Final = ("http.response.start", "websocket.accept", "websocket.http.response.start")

TRY_AGAIN_LATER: Final = 1013
"""IANA's WebSocket close code registry: the server is overloaded for now."""


class RateLimitMiddleware:
    """Asks a limiter about every HTTP request and WebSocket handshake: ``RateLimitMiddleware(app, limiter)``.

    Within it, everything that headway decides about a request becomes one set of fields, and a ``RateLimited`` that the
    application lets out becomes the refusal's answer.

    Args:
        app: the application.
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store; None asks nobody and does only the rest, for
            applications whose routes have limits of their own.
        options: see ``Options``; the framework's request is the ASGI scope.

    Raises:
        TypeError: a limiter that would block, or an unknown option.
        ConfigError: an option that cannot be right.
    """

    def __init__(self, app: ASGIApp, limiter: AsyncLimiter | Limiter | None = None, **options: Unpack[Options]) -> None:
        where = "RateLimitMiddleware"
        if limiter is None and options:
            raise TypeError(f"{where} has options and no limiter to apply them to: {', '.join(sorted(options))}")
        self.app = app
        self.guard = None if limiter is None else Guard(limiter, options, where=where, asynchronous=True)
        self._table = routes.table_of(app)
        self._seen: Any = self  # which no scope says it is in
        self._asks_routes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        kind = scope["type"]
        if kind != "http" and kind != "websocket":
            if kind == "lifespan":
                self._look(scope)
            await self.app(scope, receive, send)
            return
        ledger: Ledger | None = scope.get(LEDGER)
        writes = ledger is None
        if ledger is None:
            ledger = scope[LEDGER] = Ledger()
        guard = self.guard
        if guard is not None:
            place = self._place(scope, guard)
            if not (place.exempt or (place.static and guard.exempt_static)):
                asked = asked_of(scope, place)
                if await drive_async(guard.ask(scope, asked, ledger)) is not None:
                    await refuse(scope, send, ledger, asked.facts)
                    return
        if writes:
            await serve(self.app, scope, receive, send, ledger)
        else:
            await self.app(scope, receive, send)

    def _place(self, scope: Scope, guard: Guard) -> Place:
        """Where the request goes, if anybody asks."""
        if scope.get("app") is not self._seen:
            self._look(scope)
        if not (guard.needs_route or self._asks_routes or routes.any_exempt or routes.says_place(scope)):
            return NOWHERE
        if self._table is None and guard.attributes.by_route and not routes.says_place(scope):
            raise ConfigError(
                f"{guard.where}: a limit is keyed by the route, and this application tells no routes before it routes: "
                "put the middleware where the framework has routed already, or give the route's attribute a function"
            )
        return routes.place_of(self._table, scope)

    def _look(self, scope: Scope) -> None:
        """Look once at the application that the middleware is in."""
        self._seen = scope.get("app")
        self._table = routes.table_in(scope) or self._table
        self._asks_routes = routes.may_be_exempt(self._table)
        if self._table is not None and not hasattr(self._table, "url_map"):
            check_order(routes.endpoints(self._table.routes))


async def serve(app: ASGIApp, scope: Scope, receive: Receive, send: Send, ledger: Ledger) -> None:
    """An application, with the ledger's fields on its answer, and what is left to do after it."""
    status, size = 0, 0
    sent: Any = ()
    error: BaseException | None = None

    async def sending(message: Message) -> None:
        nonlocal status, size, sent
        kind = message["type"]
        if not status:
            if kind in _BEGINNINGS:
                status = message.get("status", _SWITCHING)
                message = with_fields(message, ledger, scope)
                sent = message.get("headers") or ()
            elif kind == "websocket.close":
                status = 403
        elif ledger.unsettled:
            size += size_of(message)
        await send(message)

    try:
        await app(scope, receive, sending)
    except RateLimited as refused:
        error = refused
        await drive_async(ledger.raised(refused))
        if status == _SWITCHING:
            await close(send, refused.decision.sentence(), POLICY_VIOLATION)
        elif status:
            raise
        else:
            status = 429
            await refuse(scope, send, ledger, facts_of(scope))
    except BaseException as raised:
        error = raised
        raise
    finally:
        if ledger.unsettled:
            await drive_async(ledger.end(ResponseFacts(status or 500, text_fields(sent), size, error)))


async def refuse(scope: Scope, send: Send, ledger: Ledger, facts: RequestFacts) -> None:
    """Answer a refused request, or a handshake that was not accepted."""
    assert ledger.refusal is not None  # noqa: S101  # the callers' branch
    reason = Decision.of(ledger.refusal).sentence()
    await deny(scope, send, ledger.answer(facts), reason, POLICY_VIOLATION)
