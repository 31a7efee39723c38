"""FastAPI: a dependency for routes, routers and applications, one call that answers refusals, and the OpenAPI of both.

Annotations are real here, not text: FastAPI reads a dependency's from where it cannot see this module's names.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, Unpack

try:
    from fastapi import FastAPI, Response, WebSocket
    from fastapi.requests import HTTPConnection
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.fastapi needs FastAPI: pip install 'headway[fastapi]'", name=error.name
    ) from error

from headway.adapters import routes
from headway.adapters.asgi import RateLimitMiddleware, refuse
from headway.adapters.asgi_messages import asked_of, facts_of
from headway.adapters.drive import drive_async
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger
from headway.adapters.openapi import SCHEMA, SCHEMA_NAME, describe
from headway.adapters.routes import candidates, exempt, is_exempt
from headway.errors import ConfigError, RateLimited
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter

__all__ = ["RateLimitMiddleware", "exempt", "install", "limit"]


class _Limited:
    """The dependency that ``limit`` makes; routes that have it are documented as limited."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def __call__(self, *, connection: HTTPConnection) -> Decision | None:
        """Ask; the decision of an admitted request, None where it was not asked about.

        By keyword only, as FastAPI calls it: used as a decorator it fails at once, instead of limiting nothing.
        """
        scope, guard = connection.scope, self._guard
        if is_exempt(scope.get("endpoint")):
            return None
        ledger: Ledger | None = scope.get(LEDGER)
        if ledger is None or RateLimited not in connection.app.exception_handlers:
            raise ConfigError(
                f"{guard.where}: nothing would answer a refusal: call headway.adapters.fastapi.install(app) once, and for "
                "each FastAPI application that is mounted"
            )
        place = routes.place_of(connection.app, scope) if guard.needs_route else routes.NOWHERE
        refusal = await drive_async(guard.ask(connection, asked_of(scope, place), ledger))
        if refusal is not None:
            raise RateLimited(Decision.of(refusal))
        mine = [entry.decision for entry in ledger.entries if entry.limiter is guard.limiter]
        return mine[0] if mine else None


def limit(limiter: AsyncLimiter | Limiter, **options: Unpack[Options]) -> Callable[..., Any]:
    """A dependency that asks a limiter: ``Depends(limit(limiter))`` in a route, a router or an application.

    It gives the ``Decision``, or None where it was not asked about. ``install`` has to be called once.

    Args:
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store.
        options: see ``Options``; the framework's request is the ``Request`` or ``WebSocket``. ``exempt_paths`` is empty
            unless it is given.

    Raises:
        TypeError: a limiter that would block, or an unknown option.
        ConfigError: an option that cannot be right; by the request, where ``install`` was not called.
    """
    names = ", ".join(one.name for one in limiter.limits) if hasattr(limiter, "limits") else ""
    return _Limited(Guard(limiter, {"exempt_paths": (), **options}, where=f"limit({names})", asynchronous=True))


def install(app: FastAPI, limiter: AsyncLimiter | Limiter | None = None, **options: Unpack[Options]) -> None:
    """Make an application answer refusals, send the fields and document both; once, before it serves.

    Args:
        app: the application. Call ``app.add_middleware(CORSMiddleware, …)`` afterwards, so that CORS is further out.
        limiter: for every request of the application, besides its routes' own; None for none.
        options: for ``limiter``; see ``RateLimitMiddleware``.

    Raises:
        TypeError: as ``RateLimitMiddleware``.
        ConfigError: as ``RateLimitMiddleware``.
    """
    if limiter is not None or options:
        RateLimitMiddleware(app, limiter, **options)  # what is wrong is said now, not when the application starts
    app.add_middleware(RateLimitMiddleware, limiter, **options)
    if RateLimited not in app.exception_handlers:  # the application may have an answer of its own
        app.add_exception_handler(RateLimited, _answer)
    original = app.openapi

    @functools.wraps(original)
    def openapi() -> dict[str, Any]:
        schema = original()
        _document(schema, app.routes, everywhere=limiter is not None)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way of extending it


async def _answer(connection: Any, refused: Any) -> Any:
    """The exception handler."""
    scope = connection.scope
    ledger: Ledger = scope[LEDGER]
    await drive_async(ledger.raised(refused))
    if isinstance(connection, WebSocket):
        await refuse(scope, connection.send, ledger, facts_of(scope))
        return None
    answer = ledger.answer(facts_of(scope))
    return Response(answer.body, answer.status, dict(answer.headers))


def _document(schema: dict[str, Any], table: Iterable[Any], *, everywhere: bool) -> None:
    """Add the refusals to every operation that is limited."""
    found = False
    for route in candidates(table):
        if not hasattr(route, "dependant") or not (everywhere or _is_limited(route.dependant)):
            continue
        operations = schema.get("paths", {}).get(route.path_format, {})
        for method in getattr(route, "methods", None) or ():
            if method.lower() in operations:
                found = True
                describe(operations[method.lower()].setdefault("responses", {}))
    if found:
        schema.setdefault("components", {}).setdefault("schemas", {}).setdefault(SCHEMA_NAME, SCHEMA)


def _is_limited(dependant: Any) -> bool:
    return isinstance(dependant.call, _Limited) or any(_is_limited(one) for one in dependant.dependencies)
