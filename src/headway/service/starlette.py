"""The service as a Starlette application: it routes and carries, and decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from headway.service.answer import Answer, failed
from headway.service.api import Api
from headway.service.fault import Fault

__all__ = ["BODY_WITHIN_S", "MAX_BODY", "application"]

MAX_BODY: Final = 1024 * 1024
"""Bytes; the largest body that is read."""

BODY_WITHIN_S: Final = 10.0
"""A body that is not complete after this long is given up: a client that dawdles holds a connection, and a stop, no longer."""

_Endpoint = Callable[[Request], Awaitable[Response]]


def application(api: Api, beside: Callable[[], Coroutine[None, None, None]] | None = None) -> Starlette:
    """The ASGI application; its lifespan closes the store.

    Args:
        api: what answers.
        beside: runs as long as the application does, and is cancelled at its end.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = None if beside is None else asyncio.create_task(beside())
        yield
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await api.close()

    def decide(*, commit: bool) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            body = await _body(request)
            if isinstance(body, Fault):
                return _sent(failed(body))
            language = request.headers.get("accept-language")
            return _sent(await api.decide(body, commit=commit, accept_language=language))

        return endpoint

    def give_back(*, renew: bool) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            body = await _body(request)
            return _sent(failed(body) if isinstance(body, Fault) else await api.give_back(body, renew=renew))

        return endpoint

    def told(answer: Callable[[], Answer]) -> _Endpoint:
        async def endpoint(_: Request) -> Response:
            return _sent(answer())

        return endpoint

    async def ready(_: Request) -> Response:
        return _sent(await api.ready())

    app = Starlette(
        routes=[
            Route("/v1/check", decide(commit=True), methods=["POST"]),
            Route("/v1/peek", decide(commit=False), methods=["POST"]),
            Route("/v1/release", give_back(renew=False), methods=["POST"]),
            Route("/v1/renew", give_back(renew=True), methods=["POST"]),
            Route("/v1/policies", told(api.policies), methods=["GET"]),
            Route("/v1/shadow", told(api.shadow), methods=["GET"]),
            Route("/healthz", told(api.health), methods=["GET"]),
            Route("/readyz", ready, methods=["GET"]),
            Route("/openapi.json", told(api.openapi), methods=["GET"]),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _server_error},
    )
    app.router.redirect_slashes = False
    return app


async def _body(request: Request) -> bytes | Fault:
    """The body, or the fault of one that is compressed or too long: nothing is kept of what comes after the bound."""
    coding = ", ".join(request.headers.getlist("content-encoding")).strip(" ,").lower()
    if coding not in ("", "identity"):
        return Fault(
            415,
            f"the body is encoded as {coding[:60]!r}, which is not read here",
            "urn:headway:encoded",
            "a body without Content-Encoding",
            headers=(("Accept-Encoding", "identity"),),  # RFC 9110 §12.5.3: what this resource takes
        )
    too_long = Fault(413, "the body is too long", "urn:headway:too-large", f"at most {MAX_BODY} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 12 or int(length) > MAX_BODY):
        return too_long
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for chunk in request.stream():
                received += chunk
                if len(received) > MAX_BODY:
                    return too_long
    except TimeoutError:
        return Fault(
            408,
            f"the body was not complete after {BODY_WITHIN_S:g} s",
            expected="the whole body at once",
            headers=(("Connection", "close"),),
        )
    except ClientDisconnect:
        return Fault(400, "the connection was closed before the body was complete")
    return bytes(received)


def _sent(answer: Answer) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers))


async def _http_error(request: Request, error: Exception) -> Response:
    """What the router refuses: an unknown path, a method that the path does not take."""
    if not isinstance(error, HTTPException) or error.status_code not in (404, 405):
        return await _server_error(request, error)
    path, method = request.url.path, request.method
    if error.status_code == 404:
        return _sent(failed(Fault(404, f"there is nothing at {path}", expected="a path that /openapi.json lists")))
    allow = ", ".join(sorted(name.strip() for name in (error.headers or {}).get("Allow", "").split(",")))
    fault = Fault(405, f"{path} does not take {method}", expected=f"one of {allow}", headers=(("Allow", allow),))
    return _sent(failed(fault))


async def _server_error(_: Request, error: Exception) -> Response:
    """A fault of ours; Starlette raises it again for the server's log."""
    return _sent(failed(Fault(500, f"the service failed ({type(error).__name__}); its log says more")))
