"""aiohttp's server, limited, on a real socket with real clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
from aiohttp import web

from headway import AsyncLimiter, ConfigError, Limit, Limiter, MemoryStore, RateLimited
from headway.adapters.aiohttp_server import MessageLimits, decisions, exempt, limit, setup
from headway.adapters.ledger import failed
from headway.policy.identity import by_header, by_path_param
from headway.testing import ManualClock
from headway.testing.isolation import Isolation

THREE = Limit("three", "3 per minute", by="address")


def run_routes(limited: Callable[[Any], Any] = lambda handler: handler) -> web.RouteTableDef:
    """A small site's pages."""
    table = web.RouteTableDef()

    @table.get("/items/{id}")
    @limited
    async def item(request: web.Request) -> web.Response:
        return web.Response(text=f"item {request.match_info['id']}")

    @table.get("/failing")
    @limited
    async def failing(request: web.Request) -> web.Response:
        raise RuntimeError("this page fails")

    @table.get("/status/{code}")
    @limited
    async def status(request: web.Request) -> web.Response:
        if request.match_info["code"] == "403":
            raise web.HTTPForbidden
        return web.Response(status=int(request.match_info["code"]), text="x" * 10)

    @table.get("/stream")
    @limited
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in (b"data: 1\n\n", b"data: 2\n\n"):
            await response.write(part)
        await response.write_eof()
        return response

    @table.get("/cors")
    @limited
    async def cors(request: web.Request) -> web.Response:
        origin = {"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Expose-Headers": "X-Own"}
        return web.Response(text="cors", headers=origin)

    @table.get("/free")
    @exempt
    @limited
    async def free(request: web.Request) -> web.Response:
        return web.Response(text="free")

    @table.view("/view")
    class View(web.View):
        @limited
        async def get(self) -> web.Response:
            return web.Response(text="view")

    @table.get("/ws")
    @limited
    async def ws(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    async def plain(request: web.Request) -> web.Response:
        return web.Response(text="well")

    for path in ("/health", "/healthcare"):
        table.get(path)(plain)
    table.static("/static", Path(__file__).parent / "static")
    return table


class Running:
    """An application that is served on a free port, by an event loop in a thread."""

    def __init__(self, app: web.Application) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._runner = web.AppRunner(app, access_log=None)
        self._clients: dict[str, httpx.Client] = {}
        try:
            self.port = self._wait(self._start())
        except BaseException:
            self.close()
            raise

    async def _start(self) -> int:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port: int = self._runner.addresses[0][1]
        return port

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", peer: str = "127.0.0.1"
    ) -> httpx.Response:
        if peer not in self._clients:
            transport = httpx.HTTPTransport(local_address=peer)
            base = f"http://127.0.0.1:{self.port}"
            self._clients[peer] = httpx.Client(base_url=base, transport=transport, timeout=10)
        return self._clients[peer].request(method, path, headers=headers)

    def statuses(self, *paths: str, **more: Any) -> list[int]:
        return [self.get(path, **more).status_code for path in paths]

    def talk(self, conversation: Callable[[aiohttp.ClientSession, str], Any]) -> Any:
        """What an aiohttp client does with the site, given a session and its address."""

        async def talk() -> Any:
            async with aiohttp.ClientSession() as session:
                return await conversation(session, f"http://127.0.0.1:{self.port}")

        return asyncio.run(talk())

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._wait(self._runner.cleanup())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)


Make = Callable[..., Running]


class Maker:
    """Makes running sites: limited as a whole, by a decorator, or by a decorator within ``setup``."""

    def __init__(self, way: str, clock: ManualClock) -> None:
        self.way = way
        self.clock = clock
        self.made: list[Running] = []

    def __call__(self, *limits: Limit, store: Any = None, **options: Any) -> Running:
        limiter = AsyncLimiter(*(limits or (THREE,)), store=MemoryStore(clock=self.clock) if store is None else store)
        app = web.Application()
        if self.way == "whole":
            setup(app, limiter, **options)
            app.add_routes(run_routes())
        else:
            if self.way == "within":
                setup(app)
            app.add_routes(run_routes(limit(limiter, **options)))
        return self.run(app)

    def run(self, app: web.Application) -> Running:
        self.made.append(Running(app))
        return self.made[-1]

    def close(self) -> None:
        for running in self.made:
            running.close()


@pytest.fixture(params=["whole", "decorator", "within"])
def make(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Maker]:
    """Makes sites, in every way of limiting them."""
    maker = Maker(request.param, clock)
    yield maker
    maker.close()


@pytest.fixture
def whole(clock: ManualClock) -> Iterator[Maker]:
    """Makes sites that are limited as a whole."""
    maker = Maker("whole", clock)
    yield maker
    maker.close()


def test_requests_above_the_limit_are_refused(make: Maker) -> None:
    """Three pass with falling ``r``, the fourth is a whole 429, and it passes exactly when it was told."""
    site = make()
    for left in (2, 1, 0):
        answer = site.get("/items/1")
        assert (answer.status_code, answer.headers["ratelimit"].split(";")[1]) == (200, f"r={left}")
        assert answer.headers["ratelimit-policy"] == '"three";q=3;w=60'
        assert "retry-after" not in answer.headers
    refused = site.get("/items/1")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "20"
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["cache-control"] == "no-store"
    assert refused.json()["violated-policies"] == ["three"]
    assert len(refused.headers.get_list("ratelimit")) == 1
    make.clock.advance(ns=20_000_000_000 - 1)
    assert site.get("/items/1").headers["retry-after"] == "1"
    make.clock.advance(ns=1)
    assert site.get("/items/1").status_code == 200


def test_a_refused_request_does_not_reach_the_page(make: Maker) -> None:
    """The page of a refused request does not run; one that raises stays charged."""
    site = make()
    assert site.statuses(*["/failing"] * 4) == [500, 500, 500, 429]


def test_addresses_have_their_own_quota_and_cannot_be_made_up(make: Maker) -> None:
    """One client's requests are not another's, whatever it says in its fields, unless a named proxy says so."""
    site = make()
    found = [site.get("/items/1", {"X-Forwarded-For": f"203.0.113.{n}"}).status_code for n in range(4)]
    assert found == [200, 200, 200, 429]
    assert site.get("/items/1", peer="127.0.0.8").status_code == 200
    proxied = make(trusted_proxies=["127.0.0.1"])
    found = [proxied.get("/items/1", {"X-Forwarded-For": f"203.0.113.{n}"}).status_code for n in range(4)]
    assert found == [200] * 4


def test_every_answer_has_the_fields(make: Maker) -> None:
    """A stream, an error that is raised, another status and a view's answer have the fields, each once."""
    site = make(Limit("many", "100 per minute", by="address"))
    for path in ("/stream", "/status/403", "/status/418", "/view", "/items/1"):
        answer = site.get(path)
        if make.way == "decorator" and path == "/stream":
            continue  # begun by its handler, and nobody called setup
        assert len(answer.headers.get_list("ratelimit")) == 1, path
    if make.way != "decorator":
        assert "ratelimit" in site.get("/failing").headers
    assert site.get("/stream").text == "data: 1\n\ndata: 2\n\n"


def test_a_head_request_has_no_body(make: Maker) -> None:
    """HEAD counts like GET, and its refusal has the fields of GET's and no body."""
    site = make()
    assert site.statuses(*["/items/1"] * 3, method="HEAD") == [200] * 3
    refused = site.get("/items/1", method="HEAD")
    whole = site.get("/items/1")
    assert (refused.status_code, refused.content) == (429, b"")
    assert refused.headers["content-length"] == whole.headers["content-length"] == str(len(whole.content))


def test_a_preflight_is_neither_counted_nor_refused(whole: Maker) -> None:
    """Ten preflights cost nothing and are never refused; a plain OPTIONS counts."""
    site = whole()
    asks = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    found = [site.get("/items/1", asks, method="OPTIONS").status_code for _ in range(10)]
    assert set(found) == {405}  # the application's own answer
    assert site.statuses(*["/items/1"] * 3, method="GET") == [200] * 3
    assert site.get("/items/1", asks, method="OPTIONS").status_code == 405
    assert site.get("/items/1", method="OPTIONS").status_code == 429


def test_scripts_of_other_sites_may_read_the_fields(make: Maker) -> None:
    """An answer to another site exposes the fields beside the application's own, and so does a refusal."""
    site = make()
    answer = site.get("/cors", {"Origin": "https://app.example"})
    assert answer.headers["access-control-expose-headers"] == "X-Own, RateLimit-Policy, RateLimit"
    inner = site.get("/items/1", {"Origin": "https://app.example"})  # whoever answers CORS may do so further out
    assert inner.headers["access-control-expose-headers"] == "RateLimit-Policy, RateLimit"
    site.get("/cors")
    refused = site.get("/cors", {"Origin": "https://app.example"})
    assert "Retry-After" in refused.headers["access-control-expose-headers"]


def test_pages_that_are_not_there_are_one_counter(whole: Maker) -> None:
    """By route, all URLs that no route matches are one, and items of one route are one."""
    site = whole(Limit("three", "3 per minute", by=("address", "route")))
    assert site.statuses(*[f"/nowhere/{n}" for n in range(4)]) == [404, 404, 404, 429]
    assert site.statuses(*[f"/items/{n}" for n in range(4)]) == [200, 200, 200, 429]
    assert site.get("/status/200").status_code == 200


def test_probes_are_exempt_by_default(whole: Maker) -> None:
    """/health is neither counted nor refused, /healthcare is a page like others; another list is taken instead."""
    site = whole()
    assert site.statuses(*["/health"] * 10) == [200] * 10
    assert "ratelimit" not in site.get("/health").headers
    assert site.statuses(*["/healthcare"] * 4) == [200, 200, 200, 429]
    assert site.get("/health").status_code == 200
    counted = whole(exempt_paths=["/healthcare"])
    assert counted.statuses(*["/health"] * 4, *["/healthcare"] * 2) == [200, 200, 200, 429, 200, 200]


def test_exempt_pages_and_static_files(make: Maker) -> None:
    """A handler marked ``exempt`` is never limited, above or below other decorators; nor are static files."""
    site = make()
    assert site.statuses(*["/free"] * 5) == [200] * 5
    assert site.statuses(*["/static/app.js"] * 5) == [200] * 5
    assert site.get("/items/1").headers["ratelimit"].startswith('"three";r=2')


def test_an_exempt_view_and_an_exempt_method(clock: ManualClock) -> None:
    """``exempt`` is for a class of handlers as well, or for one of its methods."""

    @exempt
    class Free(web.View):
        async def get(self) -> web.Response:
            return web.Response()

    class Half(web.View):
        @exempt
        async def get(self) -> web.Response:
            return web.Response()

        async def post(self) -> web.Response:
            return web.Response()

    maker = Maker("whole", clock)
    app = web.Application()
    setup(app, AsyncLimiter(Limit("one", "1 per minute", by="address"), store=MemoryStore(clock=clock)))
    app.router.add_view("/free", Free)
    app.router.add_view("/half", Half)
    site = maker.run(app)
    try:
        assert site.statuses("/free", "/free", "/half", "/half") == [200] * 4
        assert site.statuses("/half", "/half", method="POST") == [200, 429]
    finally:
        maker.close()


def test_what_is_skipped_is_not_counted(make: Maker) -> None:
    """``skip_if`` gets aiohttp's request and leaves a request unlimited and uncounted; it may be async."""

    async def inside(request: web.Request) -> bool:
        return request.headers.get("x-inside") == "yes"

    site = make(skip_if=inside)
    assert [site.get("/items/1", {"x-inside": "yes"}).status_code for _ in range(5)] == [200] * 5
    assert site.statuses(*["/items/1"] * 4) == [200, 200, 200, 429]


def test_the_request_decides_the_cost(make: Maker) -> None:
    """``cost`` may be a function of the request; what can never fit is 422."""
    site = make(cost=lambda request: int(request.query.get("units", "1")))
    assert site.get("/items/1?units=2").headers["ratelimit"].startswith('"three";r=1')
    assert site.get("/items/1?units=2").status_code == 429
    assert site.get("/items/1?units=4").status_code == 422


def test_the_response_decides_the_cost(make: Maker) -> None:
    """``charge_if`` charges failures only; ``actual_cost`` settles for the bytes that were sent."""
    site = make(charge_if=failed)
    assert site.statuses(*["/items/1"] * 5) == [200] * 5
    assert site.statuses(*["/status/403"] * 2, "/failing", "/items/1") == [403, 403, 500, 429]
    bytes_sent = make(Limit("bytes", "100 per minute", by="address"), cost=50, actual_cost=lambda answer: answer.size)
    assert bytes_sent.statuses("/status/200", "/status/200") == [200] * 2
    assert bytes_sent.get("/status/200").headers["ratelimit"].startswith(f'"bytes";r={100 - 10 - 10 - 50}')
    if make.way != "decorator":  # without setup() aiohttp tells a stream's bytes only with what frames them
        assert bytes_sent.get("/stream").status_code == 200
        assert bytes_sent.get("/status/200").headers["ratelimit"].startswith('"bytes";r=2')


def test_attributes_come_from_anywhere(whole: Maker) -> None:
    """A field, a parameter of the route, and a function of the request can form the key."""
    one = Limit("one", "1 per minute", by=("team", "id", "color"))
    attributes = {"team": by_header("x-team"), "id": by_path_param("id"), "color": lambda request: request.query["c"]}
    site = whole(one, attributes=attributes)
    for team, path in (
        ("a", "/items/1?c=red"),
        ("b", "/items/1?c=red"),
        ("a", "/items/2?c=red"),
        ("a", "/items/1?c=blue"),
    ):
        assert [site.get(path, {"x-team": team}).status_code for _ in range(2)] == [200, 429]


def test_several_limits_on_one_route_are_all_or_nothing(clock: ManualClock) -> None:
    """A page's own limit and the site's are one set of fields; what one refuses is charged to neither."""
    store = MemoryStore(clock=clock)
    site_limit = AsyncLimiter(Limit("site", "5 per minute", by="address"), store=store)
    page_limit = AsyncLimiter(Limit("page", "1 per minute", by="address"), store=store)
    maker, app = Maker("whole", clock), web.Application()
    setup(app, site_limit)

    @limit(page_limit)
    async def page(request: web.Request) -> web.Response:
        return web.Response(text=",".join(decision.limit or "" for decision in decisions(request)))

    async def other(request: web.Request) -> web.Response:
        return web.Response()

    app.router.add_get("/page", page)
    app.router.add_get("/other", other)
    running = maker.run(app)
    try:
        first = running.get("/page")
        assert first.text == "site,page"
        assert first.headers["ratelimit"] == '"site";r=4;t=12, "page";r=0;t=60'
        refused = running.get("/page")
        assert (refused.status_code, refused.json()["violated-policies"]) == (429, ["page"])
        assert running.get("/other").headers["ratelimit"].startswith('"site";r=3')
    finally:
        maker.close()


def test_sub_applications_are_limited_too(whole: Maker) -> None:
    """``setup`` on an application limits what it mounts."""
    app, inner = web.Application(), web.Application()
    setup(app, AsyncLimiter(THREE, store=MemoryStore(clock=whole.clock)))
    inner.add_routes(run_routes())
    app.add_subapp("/inner", inner)
    site = whole.run(app)
    assert site.statuses(*["/inner/items/1"] * 4) == [200, 200, 200, 429]


def test_a_refusal_that_the_handler_lets_out_becomes_an_answer(whole: Maker) -> None:
    """``RateLimited`` from a limiter that the handler asks itself is answered as a refusal."""
    inner = AsyncLimiter(Limit("inner", "1 per minute"), store=MemoryStore(clock=whole.clock))
    app = web.Application()
    setup(app)

    async def page(request: web.Request) -> web.Response:
        async with inner.admitted():
            return web.Response()

    app.router.add_get("/", page)
    site = whole.run(app)
    assert site.get("/").status_code == 200
    refused = site.get("/")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert refused.json()["limit"] == "inner"


def test_an_answer_that_has_begun_is_not_begun_again(whole: Maker) -> None:
    """A refusal in the middle of a stream ends it: what was sent stays, and no second answer follows on the wire."""
    inner = AsyncLimiter(Limit("none", "0 per minute"), store=MemoryStore(clock=whole.clock))
    app = web.Application()
    setup(app)

    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begun")
        async with inner.admitted():
            return response

    app.router.add_get("/", page)
    site = whole.run(app)

    async def talk(session: aiohttp.ClientSession, address: str) -> Any:
        async with session.get(address) as answer:
            begun = await answer.content.readexactly(5)
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()
            return answer.status, begun

    assert site.talk(talk) == (200, b"begun")


def test_a_store_that_is_away_is_503(make: Maker) -> None:
    """Where the store can't decide, a limit that denies answers 503 with a time to come back."""
    limits = Limit("per-key", "5 per hour", by="key")
    site = make(limits, store=MemoryStore(max_keys=1), attributes={"key": by_header("x-key")})
    assert site.get("/items/1", {"x-key": "a"}).status_code == 200
    refused = site.get("/items/1", {"x-key": "b"})
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["type"].endswith("temporary-reduced-capacity")


def test_a_lease_lasts_as_long_as_the_handler(clock: ManualClock) -> None:
    """A limit of one at once refuses a second request while the first is served, and admits it afterwards."""
    maker, app = Maker("whole", clock), web.Application()
    setup(app, AsyncLimiter(Limit("at-once", "1 at once for 60 s"), store=MemoryStore(clock=clock)))
    entered, go_on = threading.Event(), threading.Event()

    async def hold(request: web.Request) -> web.Response:
        entered.set()
        await asyncio.to_thread(go_on.wait, 5)
        return web.Response()

    async def quick(request: web.Request) -> web.Response:
        return web.Response()

    app.router.add_get("/hold", hold)
    app.router.add_get("/quick", quick)
    site = maker.run(app)
    try:
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(site.get, "/hold", peer="127.0.0.9")
            assert entered.wait(5)
            assert site.get("/quick").status_code == 429
            go_on.set()
            assert held.result(10).status_code == 200
        assert site.statuses("/quick", "/quick") == [200, 200]
    finally:
        maker.close()


def test_a_websockets_handshake_is_refused_before_the_upgrade(make: Maker) -> None:
    """Handshakes count; one too many is answered with 429 and the fields, not upgraded. Its messages are free."""
    site = make(Limit("one", "1 per minute", by="address"))

    async def talk(session: aiohttp.ClientSession, address: str) -> Any:
        async with session.ws_connect(f"{address}/ws") as socket:
            for n in range(5):
                await socket.send_str(str(n))
                assert (await socket.receive_str()) == str(n)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{address}/ws")
        return refused.value

    refused = site.talk(talk)
    assert refused.status == 429
    assert refused.headers["Retry-After"] == "60"


def test_messages_are_counted_for_whoever_sends_them(clock: ManualClock) -> None:
    """Five messages pass over any number of sockets; a refused one leaves the socket open, and its time is exact."""
    store = MemoryStore(clock=clock)
    rule = Limit("messages", "5 per 10 s", by="address", algorithm="sliding-log")
    messages = MessageLimits(AsyncLimiter(rule, store=store))
    maker, app = Maker("whole", clock), web.Application()

    async def ws(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for _ in socket:
            decision = await messages.hit(request, socket)
            await socket.send_json([decision.allowed, decision.retry_after])
        return socket

    app.router.add_get("/ws", ws)
    site = maker.run(app)

    async def talk(session: aiohttp.ClientSession, address: str) -> Any:
        async with session.ws_connect(f"{address}/ws") as one, session.ws_connect(f"{address}/ws") as other:

            async def say(socket: Any) -> Any:
                await socket.ping()
                await socket.send_str("x")
                return await socket.receive_json()

            found = [await say(one) for _ in range(5)]
            clock.advance(1)
            found.append(await say(other))
            clock.advance(9)
            found.append(await say(other))
            return found

    try:
        assert site.talk(talk) == [[True, 0.0]] * 5 + [[False, 9.0], [True, 0.0]]
    finally:
        maker.close()


def test_a_refused_message_can_close_the_socket(clock: ManualClock) -> None:
    """With a close code the socket is closed with the sentence as its reason."""
    messages = MessageLimits(
        AsyncLimiter(Limit("one", "1 per minute"), store=MemoryStore(clock=clock)), close_code=1013
    )
    maker, app = Maker("whole", clock), web.Application()

    async def ws(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if await messages.hit(request, socket, cost=len(message.data)):
                await socket.send_str("got it")
        return socket

    app.router.add_get("/ws", ws)
    site = maker.run(app)

    async def talk(session: aiohttp.ClientSession, address: str) -> Any:
        async with session.ws_connect(f"{address}/ws") as socket:
            await socket.send_str("x")
            assert await socket.receive_str() == "got it"
            await socket.send_str("x")
            closed = await socket.receive()
            return closed.data, closed.extra

    try:
        assert site.talk(talk) == (1013, "Too many requests. Try again in 60 seconds.")
    finally:
        maker.close()


def test_limits_are_switched_off_and_reset_after_the_site_was_made(headway_limits: Isolation) -> None:
    """The pytest plugin reaches a site that runs already: off, on, reset, and time that is told to pass."""
    app = web.Application()
    setup(app, AsyncLimiter(THREE))
    app.add_routes(run_routes())
    site = Running(app)
    try:
        assert site.statuses(*["/items/1"] * 4)[-1] == 429
        headway_limits.off()
        assert site.statuses(*["/items/1"] * 4) == [200] * 4
        headway_limits.on()
        headway_limits.reset()
        assert site.statuses(*["/items/1"] * 4) == [200, 200, 200, 429]
        headway_limits.travel(20)
        assert site.statuses(*["/items/1"] * 2) == [200, 429]
    finally:
        site.close()


def test_a_limit_that_came_too_late_is_found_at_the_start(clock: ManualClock) -> None:
    """A limit above the route's decorator would never be asked: the application does not start, and says why."""
    table, app = web.RouteTableDef(), web.Application()

    @limit(AsyncLimiter(THREE))
    @table.get("/")
    async def page(request: web.Request) -> web.Response:
        return web.Response()

    setup(app)
    app.add_routes(table)
    with pytest.raises(ConfigError, match=r"page\(\) was registered as a route before it was limited"):
        Running(app)


def test_what_cannot_be_right_is_said_at_once(tmp_path: Path) -> None:
    """A limiter that would block, an unknown option, a handler that is not async, and a wrong code are named at once."""
    app = web.Application()
    with pytest.raises(TypeError, match="this Limiter's store waits: use AsyncLimiter"):
        setup(app, Limiter(THREE, store=f"sqlite:///{tmp_path}/limits.db"))
    with pytest.raises(TypeError, match="takes no 'cots'"):
        setup(app, AsyncLimiter(THREE), cots=2)  # type: ignore[call-arg]  # that is the point
    with pytest.raises(TypeError, match="has options and no limiter"):
        setup(app, cost=2)
    with pytest.raises(TypeError, match="is no async function"):
        limit(AsyncLimiter(THREE))(lambda request: None)
    with pytest.raises(ConfigError, match="1000; expected 1008, 1013 or None"):
        MessageLimits(AsyncLimiter(THREE), close_code=1000)
    assert issubclass(RateLimited, Exception)
