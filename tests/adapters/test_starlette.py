"""Starlette: what its decorator and the ASGI middleware do beyond what all adapters do."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from adapters.http_clients import Answer, call_asgi, scope_of
from headway import AsyncLimiter, ConfigError, Limit, Limiter, MemoryStore, StoreUnavailable
from headway.adapters.asgi import RateLimitMiddleware, exempt
from headway.adapters.ledger import failed
from headway.adapters.starlette import limit
from headway.testing.clock import ManualClock


def ask(name: str, quota: str, clock: ManualClock, by: Any = "address", **more: Any) -> AsyncLimiter:
    return AsyncLimiter(Limit(name, quota, by=by, **more), store=MemoryStore(clock=clock))


async def hello(request: Any) -> Any:
    return PlainTextResponse("hello")


def get(app: Any, path: str = "/", headers: Any = None, method: str = "GET", root_path: str = "") -> Answer:
    return call_asgi(app, scope_of(method, path, headers or {}, "203.0.113.7", root_path))


def test_middleware_and_decorator_make_one_set_of_fields(clock: ManualClock) -> None:
    """An application's limit and a page's own are told in one field each, in the order in which they were asked."""
    app = Starlette(
        routes=[Route("/", limit(ask("page", "2 per minute", clock))(hello))],
        middleware=[Middleware(RateLimitMiddleware, ask("all", "9 per minute", clock))],
    )
    answer = get(app)
    assert answer.headers["ratelimit-policy"] == '"all";q=9;w=60, "page";q=2;w=60'
    assert answer.remaining == [8, 1]


def test_what_an_inner_limit_refuses_is_given_back_to_the_outer(clock: ManualClock) -> None:
    """A refused request charges nothing: neither the limit that refuses nor those that admitted it before."""
    app = Starlette(
        routes=[Route("/", limit(ask("page", "1 per minute", clock))(hello)), Route("/other", hello)],
        middleware=[Middleware(RateLimitMiddleware, ask("all", "9 per minute", clock, algorithm="fixed-window"))],
    )
    assert get(app).status == 200
    for _ in range(5):
        assert get(app).status == 429
    assert get(app, "/other").remaining == [7]


def test_several_decorators_are_all_asked(clock: ManualClock) -> None:
    """Limits stacked on one page all count, and the one that refuses is named."""
    page = limit(ask("wide", "9 per minute", clock))(limit(ask("narrow", "1 per minute", clock))(hello))
    app = Starlette(routes=[Route("/", page)])
    assert get(app).remaining == [8, 0]
    refused = get(app)
    assert (refused.status, refused.problem["limit"]) == (429, "narrow")


def test_one_limiter_is_asked_once_a_request(clock: ManualClock) -> None:
    """The same limiter in the middleware and on the page charges a request once."""
    same = ask("same", "9 per minute", clock)
    app = Starlette(routes=[Route("/", limit(same)(hello))], middleware=[Middleware(RateLimitMiddleware, same)])
    assert get(app).remaining == [8]


def test_methods_of_an_endpoint_class(clock: ManualClock) -> None:
    """A method is limited, async or not; a class as a whole is a mistake that is named."""

    class Page(HTTPEndpoint):
        @limit(ask("page", "1 per minute", clock))
        async def get(self, request: Any) -> Any:
            return PlainTextResponse("got")

        @limit(ask("post", "1 per minute", clock))
        def post(self, request: Any) -> Any:
            return PlainTextResponse("posted")

    app = Starlette(routes=[Route("/", Page)])
    assert [get(app).status, get(app).status] == [200, 429]
    assert [get(app, method="POST").status, get(app, method="POST").status] == [200, 429]
    with pytest.raises(TypeError, match="Page is no function; limit the methods"):
        limit(ask("page", "1 per minute", clock))(Page)


def test_the_decorator_keeps_what_it_decorates(clock: ManualClock) -> None:
    """Name, docstring and signature stay the function's."""

    async def page(request: Any) -> Any:
        """Say hello."""

    limited = limit(ask("page", "1 per minute", clock))(page)
    assert (limited.__name__, limited.__doc__, limited.__wrapped__) == ("page", "Say hello.", page)  # type: ignore[attr-defined]


@pytest.mark.parametrize("start", ["lifespan", "request"])
def test_fs18_a_limit_above_the_route_decorator_is_an_error_at_the_start(clock: ManualClock, start: str) -> None:
    """laurentS/slowapi#39: a function that was registered before it is limited is named; it never goes unlimited."""
    from fastapi import FastAPI

    app = FastAPI()

    @limit(ask("page", "2 per minute", clock))
    @app.get("/")
    async def page(request: Any) -> Any:
        return PlainTextResponse("page")

    within = RateLimitMiddleware(app, ask("all", "9 per minute", clock))
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}} if start == "lifespan" else scope_of("GET", "/", {}, None)
    with pytest.raises(ConfigError, match=r"page\(\) was registered .* below the route decorator"):
        asyncio.run(within(scope, None, None))  # type: ignore[arg-type]  # nobody is called


def test_a_function_may_be_registered_limited_and_unlimited(clock: ManualClock) -> None:
    """Registering both on purpose is no mistake: each page is as it was registered."""
    limited = limit(ask("page", "1 per minute", clock))(hello)
    app = Starlette(
        routes=[Route("/limited", limited), Route("/free", hello)],
        middleware=[Middleware(RateLimitMiddleware, ask("all", "9 per minute", clock))],
    )
    assert [get(app, "/limited").status, get(app, "/limited").status, get(app, "/free").status] == [200, 429, 200]


def test_exempt_is_seen_through_other_decorators(clock: ManualClock) -> None:
    """``exempt`` above or below a decorator that uses ``functools.wraps`` frees the page from the application's limit."""
    import functools

    def authenticated(endpoint: Any) -> Any:
        @functools.wraps(endpoint)
        async def checked(request: Any) -> Any:
            return await endpoint(request)

        return checked

    async def below(request: Any) -> Any:
        return PlainTextResponse("below")

    async def above(request: Any) -> Any:
        return PlainTextResponse("above")

    app = Starlette(
        routes=[Route("/below", authenticated(exempt(below))), Route("/above", exempt(authenticated(above)))],
        middleware=[Middleware(RateLimitMiddleware, ask("all", "1 per minute", clock))],
    )
    assert {get(app, path).status for path in ("/below", "/above") for _ in range(3)} == {200}


def test_mounted_routes_have_templates_of_their_own(clock: ManualClock) -> None:
    """Routes of mounted applications are told apart by their whole template, not by ids, and mounts nest."""
    inner = Starlette(routes=[Route("/items/{id}", hello)])
    app = Starlette(
        routes=[
            Mount("/a", app=inner),
            Mount("/b", routes=[Mount("/c", app=inner)]),
            Mount("/tenants/{tenant}", app=inner),
        ],
        middleware=[Middleware(RateLimitMiddleware, ask("route", "2 per minute", clock, by="route"))],
    )
    for prefix in ("/a", "/b/c", "/tenants/x"):
        assert [get(app, f"{prefix}/items/{n}").status for n in range(3)] == [200, 200, 429]
    assert get(app, "/tenants/y/items/1").status == 429


def test_a_mounted_application_has_its_own_limit(clock: ManualClock) -> None:
    """A middleware in a mounted application limits that one alone, and its probes are found below the mount."""
    inner = Starlette(
        routes=[Route("/items", hello), Route("/health", hello)],
        middleware=[Middleware(RateLimitMiddleware, ask("inner", "1 per minute", clock))],
    )
    app = Starlette(routes=[Mount("/inner", app=inner), Route("/", hello)])
    assert [get(app, "/inner/items").status, get(app, "/inner/items").status] == [200, 429]
    assert {get(app, "/inner/health").status for _ in range(3)} == {200}
    assert "ratelimit" not in get(app).headers


def test_a_root_path_changes_neither_routes_nor_probes(clock: ManualClock) -> None:
    """Behind a proxy that strips a prefix the same routes and probes are found."""
    app = Starlette(
        routes=[Route("/items/{id}", hello), Route("/health", hello)],
        middleware=[Middleware(RateLimitMiddleware, ask("route", "2 per minute", clock, by="route"))],
    )
    assert [get(app, f"/items/{n}", root_path="/api").status for n in range(3)] == [200, 200, 429]
    assert {get(app, "/health", root_path="/api").status for _ in range(3)} == {200}


def test_cors_outside_reaches_refusals(clock: ManualClock) -> None:
    """With CORSMiddleware outside, a refusal carries the application's CORS fields, and ours are exposed."""
    app = Starlette(
        routes=[Route("/", hello)],
        middleware=[
            Middleware(CORSMiddleware, allow_origins=["https://app.example"]),
            Middleware(RateLimitMiddleware, ask("all", "1 per minute", clock)),
        ],
    )
    asking = {"Origin": "https://app.example"}
    preflight = {**asking, "Access-Control-Request-Method": "GET"}
    for _ in range(3):
        assert get(app, "/", preflight, method="OPTIONS").status == 200
    found = [get(app, "/", asking) for _ in range(2)]
    assert [answer.status for answer in found] == [200, 429]
    for answer in found:
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert {"RateLimit", "RateLimit-Policy"} <= set(answer.headers["access-control-expose-headers"].split(", "))


def test_a_refusal_that_a_page_raises_is_answered(clock: ManualClock) -> None:
    """``RateLimited`` out of a page (a decorated function, ``admitted``) becomes the whole answer."""
    codes = AsyncLimiter(Limit("codes", "1 per minute", by="phone"), store=MemoryStore(clock=clock))

    async def page(request: Any) -> Any:
        async with codes.admitted(phone="+447700900123"):
            return PlainTextResponse("sent")

    all_of_it = ask("all", "9 per minute", clock, algorithm="fixed-window")
    app = Starlette(routes=[Route("/", page)], middleware=[Middleware(RateLimitMiddleware, all_of_it)])
    assert get(app).remaining == [8]
    refused = get(app)
    assert (refused.status, refused.error) == (429, None)
    assert refused.problem["limit"] == "codes"
    assert refused.headers["retry-after"] == "60"
    clock.advance(60)
    assert get(app).remaining == [8]


def test_a_limiter_that_would_block_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    """A Limiter on a store that waits would block the loop: the error names AsyncLimiter; on memory it is fine."""
    waits = Limiter(Limit("all", "1 per minute", by="address"), store=f"sqlite:////{tmp_path}/limits.db")
    with pytest.raises(TypeError, match="use AsyncLimiter"):
        RateLimitMiddleware(hello, waits)  # type: ignore[arg-type]  # never called
    with pytest.raises(TypeError, match="use AsyncLimiter"):
        limit(waits)(hello)
    waits.close()
    quick = Limiter(Limit("all", "1 per minute", by="address"), store=MemoryStore(clock=clock))
    app = Starlette(routes=[Route("/", hello)], middleware=[Middleware(RateLimitMiddleware, quick)])
    assert [get(app).status, get(app).status] == [200, 429]
    with pytest.raises(TypeError, match="3 is no limiter; expected AsyncLimiter"):
        RateLimitMiddleware(hello, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no limiter to apply them to: cost"):
        RateLimitMiddleware(hello, cost=3)  # type: ignore[arg-type]


class Leaves(MemoryStore):
    """A store that is there to decide and away when it is to settle."""

    def change(self, changes: Any) -> Any:
        raise StoreUnavailable("pulled the plug")


def test_an_outage_at_the_settling_is_logged_once_and_counted(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The response is served, the estimate stays charged, one line is logged for the outage, and each case is counted."""
    limiter = AsyncLimiter(Limit("all", "9 per minute", by="address"), store=Leaves(clock=clock))
    within = RateLimitMiddleware(Starlette(routes=[Route("/", hello)]), limiter, charge_if=failed)
    with caplog.at_level(logging.WARNING, "headway"):
        answers = [get(within) for _ in range(3)]
    assert [(answer.status, answer.error) for answer in answers] == [(200, None)] * 3
    assert answers[2].remaining == [6]
    assert [record.message for record in caplog.records] == [
        "RateLimitMiddleware: the store is away, so estimates stay charged: pulled the plug"
    ]
    assert within.guard is not None
    assert within.guard.unsettled == 3


def test_a_response_longer_than_its_reservation_is_told(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    """A response that outlasts ``reserve_for`` keeps its estimate, and the log says which option to raise."""

    async def slow(request: Any) -> Any:
        clock.advance(61)
        return PlainTextResponse("at last")

    within = RateLimitMiddleware(
        Starlette(routes=[Route("/", slow)]), ask("all", "9 per hour", clock), charge_if=failed, reserve_for=60
    )
    with caplog.at_level(logging.WARNING, "headway"):
        assert get(within).status == 200
    assert "longer than reserve_for=60 s" in caplog.text


def test_an_outage_is_said_as_one(clock: ManualClock) -> None:
    """``deny`` is a 503 with a wait, ``allow`` passes without a field: nothing is known."""

    class Away(MemoryStore):
        def advance(self, charges: Any, *, commit: bool = True) -> Any:
            raise StoreUnavailable("pulled the plug")

        def lane(self, *args: Any) -> Any:
            return None

    for mode, status in (("deny", 503), ("allow", 200)):
        limiter = AsyncLimiter(
            Limit("all", "9 per minute", by="address", on_store_failure=mode), store=Away(clock=clock)
        )
        answer = get(RateLimitMiddleware(Starlette(routes=[Route("/", hello)]), limiter))
        assert answer.status == status
        assert ("retry-after" in answer.headers, "ratelimit" in answer.headers) == (status == 503, False)


def test_a_queue_delays_what_it_admits(clock: ManualClock) -> None:
    """A leaky bucket as a queue: the second request waits for its turn, on the limiter's own clock."""
    limiter = AsyncLimiter(
        Limit.leaky_bucket("queue", capacity=2, leak="1 per second", by="address", algorithm="leaky-bucket-queue"),
        store=MemoryStore(clock=clock),
    )
    app = RateLimitMiddleware(Starlette(routes=[Route("/", hello)]), limiter)
    begun = clock()
    assert [get(app).status, clock() - begun] == [200, 0]
    assert [get(app).status, clock() - begun] == [200, 1_000_000_000]


def test_other_kinds_of_connection_pass(clock: ManualClock) -> None:
    """Lifespan and whatever a server invents reach the application untouched."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])
        assert "headway" not in scope

    within = RateLimitMiddleware(app, ask("all", "1 per minute", clock))
    for kind in ("lifespan", "webtransport"):
        asyncio.run(within({"type": kind}, None, None))  # type: ignore[arg-type]  # nobody is called
    assert seen == ["lifespan", "webtransport"]


def test_a_route_is_not_asked_of_an_application_that_tells_none(clock: ManualClock) -> None:
    """A limit by route around an application without a table is an error, not one counter for everything."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    within = RateLimitMiddleware(app, ask("all", "1 per minute", clock, by="route"))
    answer = get(within)
    assert isinstance(answer.error, ConfigError)
    assert "tells no routes" in str(answer.error)


def test_a_handshake_is_closed_where_a_server_cannot_answer_it(clock: ManualClock) -> None:
    """Without the denial extension a refused handshake is closed before it is accepted (the server says 403)."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})

    async def send(message: Any) -> None:
        sent.append(message)

    within = RateLimitMiddleware(app, ask("all", "1 per minute", clock))
    scope = {**scope_of("GET", "/", {}, "203.0.113.7"), "type": "websocket"}
    del scope["method"]
    for _ in range(2):
        asyncio.run(within(dict(scope), None, send))  # type: ignore[arg-type]  # nothing is received
    assert sent[0]["headers"][1] == (b"ratelimit", b'"all";r=0;t=60')
    assert sent[1] == {
        "type": "websocket.close",
        "code": 1008,
        "reason": "Too many requests for this address. Try again in 60 seconds.",
    }


def test_our_fields_take_the_place_of_the_applications(clock: ManualClock) -> None:
    """An application that forwards somebody else's RateLimit gets ours instead: one field says one thing."""

    async def proxy(request: Any) -> Any:
        return PlainTextResponse("forwarded", headers={"RateLimit": '"theirs";r=1', "X-Other": "kept"})

    app = Starlette(
        routes=[Route("/", proxy)], middleware=[Middleware(RateLimitMiddleware, ask("ours", "9 per minute", clock))]
    )
    answer = get(app)
    assert (answer.headers["ratelimit"], answer.headers["x-other"]) == ('"ours";r=8;t=7', "kept")


def test_a_refusal_keeps_the_dialect_of_who_refuses(clock: ManualClock) -> None:
    """A middleware with older fields around a page with newer ones does not add to the page's refusal."""
    page = limit(ask("page", "1 per minute", clock))(hello)
    outer = Middleware(RateLimitMiddleware, ask("all", "9 per minute", clock), dialects="draft6")
    app = Starlette(routes=[Route("/", page)], middleware=[outer])
    assert "ratelimit-remaining" in get(app).headers
    refused = get(app)
    assert (refused.status, "ratelimit-remaining" in refused.headers) == (429, False)
    assert len(refused.remaining) == 2
