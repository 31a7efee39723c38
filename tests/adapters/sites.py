"""One small site in every framework, with the same pages, so that the same tests run over all adapters.

``/items/{id}`` says its id, ``/failing`` raises, ``/status/{code}`` answers that status, ``/stream`` sends three parts,
``/cors`` answers another site, ``/free`` is exempt, ``/health`` and ``/healthcare`` are two pages, ``/static/app.js`` is a
file, and ``/twin/{id}`` is handled by a function of the same name as ``/items/{id}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from adapters.http_clients import Answer, call_asgi, call_wsgi, scope_of
from headway import AsyncLimiter, Limit, Limiter, MemoryStore
from headway.adapters import asgi, wsgi
from headway.adapters.routes import exempt
from headway.testing.clock import ManualClock

STATIC = Path(__file__).parent / "static"
PEER = "203.0.113.7"

EXPOSED = {"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Expose-Headers": "X-Own"}


class Site:
    """A running site and the limiter that it asks.

    Attributes:
        name: the adapter.
        clock: what its store decides by.
        header: reads a header field of what the framework calls a request.
    """

    asynchronous = True
    asks_routes = True
    """Whether ``route`` can be an attribute of its limits."""
    counts_unmatched = True
    """Whether requests that no route matches are counted."""
    knows_static = True

    def __init__(self, name: str, limits: tuple[Limit, ...], clock: ManualClock, options: dict[str, Any]) -> None:
        self.name = name
        self.clock = clock
        self.store: Any = options.pop("store", None) or MemoryStore(clock=clock)
        self.open = ExitStack()
        kind: Any = AsyncLimiter if self.asynchronous else Limiter
        self.kind = kind
        self.limiter = kind(*limits, store=self.store)
        self.options = options
        self.app = self.build()

    def build(self) -> Any:
        raise NotImplementedError

    @staticmethod
    def header(request: Any, name: str) -> str | None:
        raise NotImplementedError

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", peer: str | None = PEER
    ) -> Answer:
        return call_asgi(self.app, scope_of(method, path, headers or {}, peer))

    def close(self) -> None:
        self.open.close()


class Wsgi(Site):
    asynchronous = False

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", peer: str | None = PEER
    ) -> Answer:
        return call_wsgi(self.app, method, path, headers or {}, peer)


def scope_header(request: Any, name: str) -> str | None:
    wanted = name.lower().encode()
    return next((value.decode() for given, value in request["headers"] if given == wanted), None)


def request_header(request: Any, name: str) -> str | None:
    return request.headers.get(name)  # type: ignore[no-any-return]


# Starlette


def starlette_app(limit: Callable[[Any], Any] | None = None, middleware: Any = ()) -> Any:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    limited = limit or (lambda endpoint: endpoint)

    @limited
    async def item(request: Any) -> Any:
        return PlainTextResponse(f"item {request.path_params['id']}")

    def twin() -> Any:
        def item(request: Any) -> Any:  # not async, and of the same name
            return PlainTextResponse(f"twin {request.path_params['id']}")

        return limited(item)

    @limited
    async def failing(request: Any) -> Any:
        raise RuntimeError("this page fails")

    @limited
    async def status(request: Any) -> Any:
        code = request.path_params["code"]
        if code == 404:
            raise HTTPException(404)
        return PlainTextResponse("x" * 10, code)

    @limited
    async def stream(request: Any) -> Any:
        return StreamingResponse(_parts_async(), media_type="text/event-stream")

    @limited
    async def cors(request: Any) -> Any:
        return PlainTextResponse("cors", headers=EXPOSED)

    @exempt
    @limited
    async def free(request: Any) -> Any:
        return PlainTextResponse("free")

    async def health(request: Any) -> Any:
        return PlainTextResponse("well")

    async def ws(websocket: Any) -> None:
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    from starlette.routing import WebSocketRoute

    return Starlette(
        routes=[
            Route("/items/{id:int}", item, methods=["GET", "POST"]),
            Mount("/mounted", routes=[Route("/items/{id:int}", item)]),
            Route("/twin/{id}", twin()),
            Route("/failing", failing),
            Route("/status/{code:int}", status),
            Route("/stream", stream),
            Route("/cors", cors),
            Route("/free", free),
            Route("/health", health),
            Route("/healthcare", health),
            WebSocketRoute("/ws", limited(ws)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=middleware,
    )


async def _parts_async() -> Any:
    for part in (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"):
        yield part


def _parts() -> Iterator[bytes]:
    yield from (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n")


class StarletteMiddleware(Site):
    header = staticmethod(scope_header)

    def build(self) -> Any:
        from starlette.middleware import Middleware

        return starlette_app(middleware=[Middleware(asgi.RateLimitMiddleware, self.limiter, **self.options)])


class AroundStarlette(Site):
    """The middleware outside of the application instead of in its list."""

    header = staticmethod(scope_header)

    def build(self) -> Any:
        return asgi.RateLimitMiddleware(starlette_app(), self.limiter, **self.options)


class StarletteDecorator(Site):
    header = staticmethod(request_header)

    def build(self) -> Any:
        from headway.adapters.starlette import limit

        return starlette_app(limit(self.limiter, **self.options))


class StarletteDecoratorWithin(Site):
    """The decorator, and a middleware that only writes."""

    header = staticmethod(request_header)

    def build(self) -> Any:
        from starlette.middleware import Middleware

        from headway.adapters.starlette import limit

        return starlette_app(limit(self.limiter, **self.options), [Middleware(asgi.RateLimitMiddleware)])


# FastAPI


def fastapi_app(dependencies: Any = ()) -> Any:
    from fastapi import APIRouter, FastAPI, HTTPException, Response
    from fastapi.responses import PlainTextResponse, StreamingResponse
    from starlette.staticfiles import StaticFiles

    app = FastAPI()
    routed = APIRouter(dependencies=list(dependencies))

    @routed.api_route("/items/{id}", methods=["GET", "HEAD", "POST"])
    async def item(id: int) -> Any:
        return f"item {id}"

    def twin() -> None:
        @routed.get("/twin/{id}")
        def item(id: int) -> Any:
            return f"twin {id}"

    twin()

    @routed.get("/failing")
    async def failing() -> Any:
        raise RuntimeError("this page fails")

    @routed.get("/status/{code}")
    async def status(code: int) -> Any:
        if code == 404:
            raise HTTPException(404)
        return PlainTextResponse("x" * 10, code)

    @routed.get("/stream")
    async def stream() -> Any:
        return StreamingResponse(_parts_async(), media_type="text/event-stream")

    @routed.get("/cors")
    async def cors() -> Any:
        return Response("cors", headers=EXPOSED)

    @routed.get("/free")
    @exempt
    async def free() -> Any:
        return "free"

    @app.get("/health")
    async def health() -> Any:
        return "well"

    app.get("/healthcare")(health)
    app.include_router(routed)
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


class FastapiApp(Site):
    header = staticmethod(scope_header)

    def build(self) -> Any:
        from headway.adapters.fastapi import install

        app = fastapi_app()
        install(app, self.limiter, **self.options)
        return app


class FastapiDependency(Site):
    header = staticmethod(request_header)

    def build(self) -> Any:
        from fastapi import Depends

        from headway.adapters.fastapi import install, limit

        app = fastapi_app([Depends(limit(self.limiter, **self.options))])
        install(app)
        return app


# Litestar


class LitestarMiddleware(Site):
    header = staticmethod(scope_header)
    counts_unmatched = False  # its middleware runs after routing
    knows_static = False

    def build(self) -> Any:
        from adapters.litestar_site import litestar_app

        return litestar_app(self.limiter, self.options)


# Quart and Flask


def _pages(app: Any, responses: Any, parts: Any, abort: Any, limit: Callable[[Any], Any]) -> None:
    """The pages of an application in Flask's shape."""

    @app.route("/items/<int:id>", methods=["GET", "POST"])
    @limit
    def item(id: int) -> Any:
        return f"item {id}"

    def twin() -> None:
        @limit
        async def item(id: int) -> Any:
            return f"twin {id}"

        app.add_url_rule("/twin/<int:id>", "twin", item)

    twin()

    @app.get("/failing")
    @limit
    def failing() -> Any:
        raise RuntimeError("this page fails")

    @app.get("/status/<int:code>")
    @limit
    def status(code: int) -> Any:
        if code == 404:
            abort(404)
        return "x" * 10, code

    @app.get("/stream")
    @limit
    def stream() -> Any:
        return responses(parts(), mimetype="text/event-stream")

    @app.get("/cors")
    @limit
    def cors() -> Any:
        return "cors", 200, EXPOSED

    @app.get("/free")
    @exempt
    @limit
    def free() -> Any:
        return "free"

    @app.get("/health")
    def health() -> Any:
        return "well"

    app.add_url_rule("/healthcare", "healthcare", health)


class QuartMiddleware(Site):
    header = staticmethod(scope_header)

    def build(self) -> Any:
        from quart import Quart, Response, abort

        app = Quart("site", static_folder=str(STATIC), static_url_path="/static")
        _pages(app, Response, _parts_async, abort, lambda view: view)
        app.asgi_app = asgi.RateLimitMiddleware(app.asgi_app, self.limiter, **self.options)  # type: ignore[method-assign]
        return app


def flask_app(extension: Any = None, limit: Callable[[Any], Any] = lambda view: view) -> Any:
    from flask import Flask, Response, abort

    app = Flask("site", static_folder=str(STATIC), static_url_path="/static")
    if extension is not None:
        extension.init_app(app)
    app.logger.disabled = True
    _pages(app, Response, _parts, abort, limit)
    return app


class AroundFlask(Wsgi):
    @staticmethod
    def header(request: Any, name: str) -> str | None:
        return request.get(f"HTTP_{name.upper().replace('-', '_')}")  # type: ignore[no-any-return]

    def build(self) -> Any:
        app = flask_app()
        app.wsgi_app = wsgi.RateLimitMiddleware(app.wsgi_app, self.limiter, **self.options)
        return app


class FlaskExtension(Wsgi):
    header = staticmethod(request_header)

    def build(self) -> Any:
        from headway.adapters.flask import RateLimits

        return flask_app(RateLimits(None, self.limiter, **self.options))


class FlaskDecorator(Wsgi):
    header = staticmethod(request_header)

    def build(self) -> Any:
        from headway.adapters.flask import RateLimits

        extension = RateLimits()
        return flask_app(extension, extension.limit(self.limiter, **self.options))


# Django


def django_urls(limit: Callable[[Any], Any], *, asynchronous: bool) -> tuple[Any, ...]:
    from django.http import Http404, HttpResponse, StreamingHttpResponse
    from django.urls import path

    def both(view: Any) -> Any:
        """The view as it is, or the same as a coroutine function."""
        if not asynchronous:
            return view

        async def item(request: Any, *args: Any, **kwargs: Any) -> Any:
            return view(request, *args, **kwargs)

        item.__name__ = item.__qualname__ = view.__name__
        return item

    def item(request: Any, id: int) -> Any:
        return HttpResponse(f"item {id}")

    def twin() -> Any:
        def item(request: Any, id: int) -> Any:
            return HttpResponse(f"twin {id}")

        return limit(both(item))

    def failing(request: Any) -> Any:
        raise RuntimeError("this page fails")

    def status(request: Any, code: int) -> Any:
        if code == 404:
            raise Http404
        return HttpResponse("x" * 10, status=code)

    def stream(request: Any) -> Any:
        parts = _parts_async() if asynchronous else _parts()
        return StreamingHttpResponse(parts, content_type="text/event-stream")

    def cors(request: Any) -> Any:
        return HttpResponse("cors", headers=EXPOSED)

    def free(request: Any) -> Any:
        return HttpResponse("free")

    def health(request: Any) -> Any:
        return HttpResponse("well")

    return (
        path("items/<int:id>", limit(both(item))),
        path("twin/<int:id>", twin()),
        path("failing", limit(both(failing))),
        path("status/<int:code>", limit(both(status))),
        path("stream", limit(both(stream))),
        path("cors", limit(both(cors))),
        path("free", exempt(limit(both(free)))),
        path("health", health),
        path("healthcare", health),
        path("static/app.js", health),
    )


def django_settings(site: Site, urls: Any, middleware: list[str], setting: Any = None, **more: Any) -> None:
    from django.test.utils import override_settings

    from adapters.django_project import configured

    configured()
    changed = {"ROOT_URLCONF": urls, "MIDDLEWARE": middleware, "STATIC_URL": "/static/", "HEADWAY": setting, **more}
    site.open.enter_context(override_settings(**changed))


def django_setting(site: Site) -> dict[str, Any]:
    return {"LIMITER": site.limiter, **{name.upper(): value for name, value in site.options.items()}}


_MIDDLEWARE = ["headway.adapters.django.RateLimitMiddleware"]


class DjangoMiddleware(Wsgi):
    header = staticmethod(request_header)

    def build(self) -> Any:
        urls = django_urls(lambda view: view, asynchronous=False)
        django_settings(self, urls, _MIDDLEWARE, django_setting(self))
        from django.core.handlers.wsgi import WSGIHandler

        return WSGIHandler()


class DjangoMiddlewareAsync(Site):
    header = staticmethod(request_header)

    def build(self) -> Any:
        urls = django_urls(lambda view: view, asynchronous=True)
        django_settings(self, urls, _MIDDLEWARE, django_setting(self))
        from django.core.handlers.asgi import ASGIHandler

        return ASGIHandler()


class DjangoDecorator(Wsgi):
    header = staticmethod(request_header)

    def build(self) -> Any:
        from adapters.django_project import configured

        configured()
        from headway.adapters.django import limit

        django_settings(self, django_urls(limit(self.limiter, **self.options), asynchronous=False), [])
        from django.core.handlers.wsgi import WSGIHandler

        return WSGIHandler()


class DjangoDecoratorAsync(Site):
    header = staticmethod(request_header)

    def build(self) -> Any:
        from adapters.django_project import configured

        configured()
        from headway.adapters.django import limit

        django_settings(self, django_urls(limit(self.limiter, **self.options), asynchronous=True), [])
        from django.core.handlers.asgi import ASGIHandler

        return ASGIHandler()


WHOLE = {
    "starlette": StarletteMiddleware,
    "around starlette": AroundStarlette,
    "fastapi": FastapiApp,
    "litestar": LitestarMiddleware,
    "quart": QuartMiddleware,
    "around flask": AroundFlask,
    "flask": FlaskExtension,
    "django": DjangoMiddleware,
    "django async": DjangoMiddlewareAsync,
}
"""Sites that are limited as a whole."""

ROUTES = {
    "starlette decorator": StarletteDecorator,
    "starlette decorator within": StarletteDecoratorWithin,
    "fastapi dependency": FastapiDependency,
    "flask decorator": FlaskDecorator,
    "django decorator": DjangoDecorator,
    "django decorator async": DjangoDecoratorAsync,
}
"""Sites whose pages, all but ``/health`` and static files, are limited one by one."""
