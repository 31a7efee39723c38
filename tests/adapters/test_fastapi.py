"""FastAPI: dependencies, one call that installs, refusals in OpenAPI. Annotations are real, as FastAPI reads them."""

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, WebSocket
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient

from adapters.http_clients import Answer, call_asgi, scope_of
from headway import AsyncLimiter, ConfigError, Decision, Limit, Limiter, MemoryStore, RateLimited
from headway.adapters.fastapi import exempt, install, limit
from headway.policy.identity import by_path_param
from headway.testing.clock import ManualClock


def ask(name: str, quota: str, clock: ManualClock, by: Any = "address", **more: Any) -> AsyncLimiter:
    return AsyncLimiter(Limit(name, quota, by=by, **more), store=MemoryStore(clock=clock))


def get(app: Any, path: str = "/", headers: Any = None, method: str = "GET") -> Answer:
    return call_asgi(app, scope_of(method, path, headers or {}, "203.0.113.7"))


def test_the_dependency_gives_the_decision(clock: ManualClock) -> None:
    """A page that wants to know gets the decision; it is None where nobody was asked."""
    app = FastAPI()
    install(app)
    mine = limit(ask("page", "5 per minute", clock), skip_if=lambda request: "x-skip" in request.headers)

    @app.get("/")
    async def page(decision: Annotated[Decision | None, Depends(mine)]) -> int | None:
        return decision.remaining if decision else None

    assert get(app).body == b"4"
    assert get(app, headers={"X-Skip": "1"}).body == b"null"


@pytest.mark.parametrize("returned", ["a value", "a response", "a model"])
def test_fields_are_on_whatever_is_returned(clock: ManualClock, returned: str) -> None:
    """Fields are on the answer whether the page returns a value or a response of its own."""
    app = FastAPI(dependencies=[Depends(limit(ask("all", "5 per minute", clock)))])
    install(app)

    @app.get("/")
    async def page(request: Request) -> Any:
        return {"a value": "x", "a response": JSONResponse({"x": 1}), "a model": {"x": [1, 2]}}[returned]

    assert get(app).remaining == [4]


def test_a_router_and_its_route_are_both_asked(clock: ManualClock) -> None:
    """Limits of application, router and route count together, and /items/1 and /items/2 are one route below a prefix."""
    app = FastAPI(dependencies=[Depends(limit(ask("app", "9 per minute", clock)))])
    install(app)
    router = APIRouter(
        prefix="/v1/{tenant}", dependencies=[Depends(limit(ask("router", "8 per minute", clock, by="route")))]
    )
    of_item = limit(ask("item", "2 per minute", clock, by="item"), attributes={"item": by_path_param("id")})

    @router.get("/items/{id}", dependencies=[Depends(of_item)])
    async def item(id: int) -> int:
        return id

    @router.get("/free")
    @exempt
    async def free() -> str:
        return "free"

    app.include_router(router)
    assert get(app, "/v1/a/items/1").remaining == [8, 7, 1]
    assert get(app, "/v1/b/items/2").remaining == [7, 6, 1]
    assert get(app, "/v1/b/items/2").remaining == [6, 5, 0]
    refused = get(app, "/v1/b/items/2")
    assert (refused.status, refused.problem["limit"]) == (429, "item")
    assert "ratelimit" not in get(app, "/v1/a/free").headers


def test_without_install_the_first_request_says_so(clock: ManualClock) -> None:
    """Nothing would answer a refusal: even an admitted request is an error that names the call."""
    app = FastAPI(dependencies=[Depends(limit(ask("all", "5 per minute", clock)))])

    @app.get("/")
    async def page() -> str:
        return "page"

    answer = get(app)
    assert isinstance(answer.error, ConfigError)
    assert "install(app)" in str(answer.error)
    outer = FastAPI()
    install(outer)
    outer.mount("/inner", app)
    assert "each FastAPI application that is mounted" in str(get(outer, "/inner/").error)


def test_a_mounted_application_refuses_for_itself(clock: ManualClock) -> None:
    """With both installed there is one set of fields, and the refusal is the inner application's."""
    inner = FastAPI(dependencies=[Depends(limit(ask("inner", "1 per minute", clock)))])
    install(inner)

    @inner.get("/")
    async def page() -> str:
        return "page"

    outer = FastAPI()
    install(outer, ask("outer", "9 per minute", clock, algorithm="fixed-window"))
    outer.mount("/inner", inner)
    assert get(outer, "/inner/").headers["ratelimit-policy"] == '"outer";q=9;w=60, "inner";q=1;w=60'
    refused = get(outer, "/inner/")
    assert (refused.status, refused.problem["limit"], refused.error) == (429, "inner", None)
    assert get(outer, "/nothing").remaining == [7]


def test_the_applications_own_answer_goes_first(clock: ManualClock) -> None:
    """A handler that the application registered for RateLimited is kept, and its answer has the fields."""
    app = FastAPI(dependencies=[Depends(limit(ask("all", "1 per minute", clock)))])

    @app.exception_handler(RateLimited)
    async def mine(request: Request, error: RateLimited) -> JSONResponse:
        return JSONResponse({"try_again_in": error.decision.retry_after}, 429)

    install(app)

    @app.get("/")
    async def page() -> str:
        return "page"

    get(app)
    refused = get(app)
    assert (refused.status, refused.body) == (429, b'{"try_again_in":60.0}')
    assert (refused.headers["retry-after"], refused.remaining) == ("60", [0])


def test_used_as_a_decorator_it_fails_at_once(clock: ManualClock) -> None:
    """The dependency above or below the route decorator would limit nothing: it is an error at import."""
    app = FastAPI()
    with pytest.raises(TypeError, match="positional argument"):

        @app.get("/")
        @limit(ask("all", "1 per minute", clock))
        async def page() -> str:
            return "page"


def test_starlettes_decorator_says_where_to_look(clock: ManualClock) -> None:
    """Starlette's decorator on a FastAPI page fails by its first request and names the dependency."""
    from headway.adapters.starlette import limit as starlette_limit

    app = FastAPI()

    @app.get("/")
    @starlette_limit(ask("all", "1 per minute", clock))
    async def page(request: Request) -> str:
        return "page"

    assert "headway.adapters.fastapi" in str(get(app).error)


def test_a_websocket_is_refused_before_it_is_accepted(clock: ManualClock) -> None:
    """A dependency on a WebSocket route refuses the handshake with the whole 429."""
    from starlette.testclient import WebSocketDenialResponse

    app = FastAPI()
    install(app)

    @app.websocket("/ws", dependencies=[Depends(limit(ask("ws", "1 per minute", clock)))])
    async def ws(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    client = TestClient(app)
    with client.websocket_connect("/ws") as socket:
        assert socket.receive_text() == "hello"
    with pytest.raises(WebSocketDenialResponse) as denied, client.websocket_connect("/ws"):
        pass
    assert denied.value.status_code == 429
    assert denied.value.headers["retry-after"] == "60"


def test_refusals_are_in_openapi(clock: ManualClock) -> None:
    """Limited operations, and no others, document 429, 403, 422 and 503 with the problem's schema and the fields."""
    app = FastAPI()
    install(app)
    router = APIRouter(prefix="/v1", dependencies=[Depends(limit(ask("v1", "5 per minute", clock)))])

    @router.post("/items/{id}", responses={429: {"description": "Our own words."}})
    async def item(id: int) -> int:
        return id

    @router.get("/items/{id}")
    async def read(id: int) -> int:
        return id

    @app.get("/open")
    async def page() -> str:
        return "page"

    app.include_router(router)
    for _ in range(2):  # it is cached
        schema = TestClient(app).get("/openapi.json").json()
        responses = schema["paths"]["/v1/items/{id}"]["get"]["responses"]
        assert {"200", "403", "422", "429", "503"} == set(responses)
        assert responses["429"]["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/RateLimitProblem"}}
        }
        assert set(responses["429"]["headers"]) == {"RateLimit", "RateLimit-Policy", "Retry-After"}
        assert set(responses["422"]["content"]) == {"application/json", "application/problem+json"}
        assert schema["paths"]["/v1/items/{id}"]["post"]["responses"]["429"]["description"] == "Our own words."
        assert "429" not in schema["paths"]["/open"]["get"]["responses"]


def test_the_documented_schema_is_what_is_sent(clock: ManualClock) -> None:
    """Every member of a refusal is in the schema, and what the schema requires is there."""
    app = FastAPI()
    install(app, ask("all", "1 per minute", clock))

    @app.get("/")
    async def page() -> str:
        return "page"

    get(app)
    problem = get(app).problem
    schema = TestClient(app).get("/openapi.json").json()["components"]["schemas"]["RateLimitProblem"]
    assert set(problem) <= set(schema["properties"])
    assert set(schema["required"]) <= set(problem)


def test_cors_added_after_install_is_further_out(clock: ManualClock) -> None:
    """The documented order: refusals carry the CORS fields of the application."""
    app = FastAPI(dependencies=[Depends(limit(ask("all", "1 per minute", clock)))])
    install(app)
    app.add_middleware(CORSMiddleware, allow_origins=["https://app.example"])

    @app.get("/")
    async def page() -> str:
        return "page"

    asking = {"Origin": "https://app.example"}
    for status in (200, 429):
        answer = get(app, headers=asking)
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "RateLimit" in answer.headers["access-control-expose-headers"]


def test_install_says_at_once_what_is_wrong(tmp_path: Any) -> None:
    """Wrong options and limiters that would block are errors of install and limit, not of the first request."""
    waits = Limiter(Limit("all", "1 per minute", by="address"), store=f"sqlite:////{tmp_path}/limits.db")
    with pytest.raises(TypeError, match="use AsyncLimiter"):
        install(FastAPI(), waits)
    with pytest.raises(TypeError, match="use AsyncLimiter"):
        limit(waits)
    waits.close()
    with pytest.raises(ConfigError, match="nothing gives"):
        install(FastAPI(), AsyncLimiter(Limit("all", "1 per minute", by="team")))


def test_exempt_above_the_route_decorator_frees_the_page(clock: ManualClock) -> None:
    """``exempt`` reaches the registered function through decorators that stand above the route's."""
    import functools

    def audited(function: Any) -> Any:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return wrapper

    app = FastAPI()
    install(app, ask("all", "1 per minute", clock))

    @exempt
    @audited
    @app.get("/")
    async def page() -> str:
        return "page"

    assert {get(app).status for _ in range(4)} == {200}
