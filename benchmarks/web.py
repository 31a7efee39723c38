"""Web adapters: what a limit adds to one request, beside the peers' middlewares, on the same small applications.

Run: ``uv run --group bench python -m benchmarks web [REQUESTS]`` (default 2,000 a round, 15 rounds). Applications are called
directly, without a server, so nothing hides the difference. All of one framework run interleaved in one process; a round's
figure is its median request, and the table shows the median round. Everybody counts two limits by the client's address and
never refuses; header fields are on where a peer has any. Prints figures and never fails.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

from headway import AsyncLimiter, Limit, Limiter

ROUNDS = 15
LIMITS = ("1000000 per minute", "100000000 per hour")


def limits() -> tuple[Limit, ...]:
    return tuple(Limit(f"limit-{at}", quota, by="address") for at, quota in enumerate(LIMITS))


# Applications


def starlette_app(*middleware: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def hello(request: Any) -> Any:
        return PlainTextResponse("hello")

    return Starlette(routes=[Route("/", hello)], middleware=middleware)


def headway_starlette() -> Any:
    from starlette.middleware import Middleware

    from headway.adapters.asgi import RateLimitMiddleware

    return starlette_app(Middleware(RateLimitMiddleware, AsyncLimiter(*limits())))


def headway_starlette_decorator() -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from headway.adapters.starlette import limit

    @limit(AsyncLimiter(*limits()))
    async def hello(request: Any) -> Any:
        return PlainTextResponse("hello")

    return Starlette(routes=[Route("/", hello)])


def slowapi_starlette(middleware: str) -> Any:
    import slowapi.middleware
    from slowapi import Limiter as SlowLimiter
    from slowapi.util import get_remote_address
    from starlette.middleware import Middleware

    app = starlette_app(Middleware(getattr(slowapi.middleware, middleware)))
    app.state.limiter = SlowLimiter(key_func=get_remote_address, default_limits=list(LIMITS), headers_enabled=True)
    return app


def fastapi_app(*dependencies: Any) -> Any:
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    app = FastAPI()

    @app.get("/", dependencies=list(dependencies))
    async def hello() -> Any:
        return PlainTextResponse("hello")

    return app


def headway_fastapi() -> Any:
    from fastapi import Depends

    from headway.adapters.fastapi import install, limit

    app = fastapi_app(Depends(limit(AsyncLimiter(*limits()))))
    install(app)
    return app


def headway_fastapi_middleware() -> Any:
    from headway.adapters.fastapi import install

    app = fastapi_app()
    install(app, AsyncLimiter(*limits()))
    return app


def fastapi_limiter_app() -> Any:
    from fastapi import Depends
    from fastapi_limiter.depends import RateLimiter
    from pyrate_limiter import Duration, Rate
    from pyrate_limiter import Limiter as PyrateLimiter

    rates = [Rate(1_000_000, Duration.MINUTE), Rate(100_000_000, Duration.HOUR)]
    return fastapi_app(*(Depends(RateLimiter(limiter=PyrateLimiter(rate))) for rate in rates))


def flask_app() -> Any:
    from flask import Flask

    app = Flask("hello")

    @app.get("/")
    def hello() -> str:
        return "hello"

    return app


def headway_flask() -> Any:
    from headway.adapters.flask import RateLimits

    app = flask_app()
    RateLimits(app, Limiter(*limits()))
    return app


def headway_wsgi() -> Any:
    from headway.adapters.wsgi import RateLimitMiddleware

    app = flask_app()
    app.wsgi_app = RateLimitMiddleware(app.wsgi_app, Limiter(*limits()))
    return app


def flask_limiter_app() -> Any:
    from flask_limiter import Limiter as FlaskLimiter
    from flask_limiter.util import get_remote_address

    app = flask_app()
    FlaskLimiter(
        get_remote_address, app=app, default_limits=list(LIMITS), headers_enabled=True, storage_uri="memory://"
    )
    return app


# One request


def scope() -> dict[str, Any]:
    fields = {
        b"host": b"site.example",
        b"user-agent": b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        b"accept": b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        b"accept-language": b"en-GB,en;q=0.5",
        b"accept-encoding": b"gzip, deflate, br",
        b"connection": b"keep-alive",
    }
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": list(fields.items()),
        "client": ("203.0.113.7", 40000),
        "server": ("site.example", 80),
        "state": {},
    }


async def ask_asgi(app: Any, requests: int) -> list[int]:
    """Nanoseconds of each request."""
    statuses = set()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.add(message["status"])

    took = []
    for _ in range(requests):
        asked = scope()
        begun = time.perf_counter_ns()
        await app(asked, receive, send)
        took.append(time.perf_counter_ns() - begun)
    assert statuses == {200}, statuses
    return took


async def ask_wsgi(app: Any, requests: int) -> list[int]:
    """Nanoseconds of each request."""
    import io

    statuses = set()

    def start_response(status: str, headers: Any, exc_info: Any = None) -> Any:
        statuses.add(status)

    took = []
    for _ in range(requests):
        environ = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": "/",
            "QUERY_STRING": "",
            "SERVER_NAME": "site.example",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "203.0.113.7",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            **{f"HTTP_{n.decode().upper().replace('-', '_')}": value.decode() for n, value in scope()["headers"]},
        }
        begun = time.perf_counter_ns()
        body = app(environ, start_response)
        for _part in body:
            pass
        if hasattr(body, "close"):
            body.close()
        took.append(time.perf_counter_ns() - begun)
    assert statuses == {"200 OK"}, statuses
    return took


# Measuring


async def measure(title: str, ask: Any, bare: Any, subjects: dict[str, Any], requests: int) -> None:
    """Print one framework's table: microseconds a request, what the limit adds, and that as a ratio to ours."""
    apps = {"bare": bare, **subjects}
    medians: dict[str, list[float]] = {name: [] for name in apps}
    for app in apps.values():
        await ask(app, requests // 4)
    for _ in range(ROUNDS):
        for name, app in apps.items():
            medians[name].append(statistics.median(await ask(app, requests)) / 1000)
    found = {name: statistics.median(rounds) for name, rounds in medians.items()}
    base = found.pop("bare")
    ours = min(took - base for name, took in found.items() if name.startswith("headway"))
    print(f"\n{title}: bare {base:.1f} µs a request")
    print(f"{'':<34}{'a request':>10}{'added':>10}{'÷ ours':>8}")
    for name, took in found.items():
        print(f"{name:<34}{took:>7.1f} µs{took - base:>7.1f} µs{(took - base) / ours:>8.2f}")


async def frameworks(requests: int) -> None:
    """All three."""
    await measure(
        "Starlette",
        ask_asgi,
        starlette_app(),
        {
            "headway middleware": headway_starlette(),
            "headway decorator": headway_starlette_decorator(),
            "slowapi SlowAPIMiddleware": slowapi_starlette("SlowAPIMiddleware"),
            "slowapi SlowAPIASGIMiddleware": slowapi_starlette("SlowAPIASGIMiddleware"),
        },
        requests,
    )
    await measure(
        "FastAPI",
        ask_asgi,
        fastapi_app(),
        {
            "headway middleware": headway_fastapi_middleware(),
            "headway dependency": headway_fastapi(),
            "fastapi-limiter (sends no fields)": fastapi_limiter_app(),
        },
        requests,
    )
    await measure(
        "Flask",
        ask_wsgi,
        flask_app(),
        {
            "headway extension": headway_flask(),
            "headway WSGI middleware": headway_wsgi(),
            "Flask-Limiter": flask_limiter_app(),
        },
        requests,
    )


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    asyncio.run(frameworks(int(arguments[0]) if arguments else 2000))


if __name__ == "__main__":
    main(sys.argv[1:])
