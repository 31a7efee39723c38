"""The site of ``sites.py`` in Litestar, which reads annotations, so they are real here."""

from collections.abc import AsyncIterator
from typing import Any

from litestar import HttpMethod, Litestar, Request, Response, get, route
from litestar.exceptions import HTTPException
from litestar.middleware import DefineMiddleware
from litestar.response import Stream

from headway.adapters.asgi import RateLimitMiddleware, exempt

__all__ = ["litestar_app"]


async def _parts() -> AsyncIterator[bytes]:
    for part in (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"):
        yield part


@route("/items/{id:int}", http_method=[HttpMethod.GET, HttpMethod.HEAD, HttpMethod.POST], status_code=200)
async def item(request: Request[Any, Any, Any]) -> str:
    return f"item {request.path_params['id']}"


def _twin() -> Any:
    @get("/twin/{id:int}", sync_to_thread=True)
    def item(request: Request[Any, Any, Any]) -> str:
        return f"twin {request.path_params['id']}"

    return item


@get("/failing")
async def failing() -> str:
    raise RuntimeError("this page fails")


@get("/status/{code:int}")
async def status(request: Request[Any, Any, Any]) -> Response[str]:
    code = request.path_params["code"]
    if code == 404:
        raise HTTPException(status_code=404)
    return Response("x" * 10, status_code=code, media_type="text/plain")


@get("/stream")
async def stream() -> Stream:
    return Stream(_parts(), media_type="text/event-stream")


@get("/cors")
async def cors() -> Response[str]:
    fields = {"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Expose-Headers": "X-Own"}
    return Response("cors", headers=fields)


@get("/free")
@exempt
async def free() -> str:
    return "free"


@get(["/health", "/healthcare"])
async def health() -> str:
    return "well"


def litestar_app(limiter: Any, options: Any) -> Litestar:
    """The application within the middleware."""
    return Litestar(
        [item, _twin(), failing, status, stream, cors, free, health],
        middleware=[DefineMiddleware(RateLimitMiddleware, limiter=limiter, **options)],
        openapi_config=None,
        logging_config=None,
    )
