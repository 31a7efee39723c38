"""The gRPC interceptors on real servers with real clients; the hand-written details against Google's own readers."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from headway import AsyncLimiter, ConfigError, Limit, Limiter, MemoryStore
from headway.adapters.grpc_calls import CallEnd, GrpcCall
from headway.adapters.grpc_server import AsyncRateLimitInterceptor, RateLimitInterceptor
from headway.adapters.grpc_status import answer
from headway.client.reading import read
from headway.policy.identity import by_api_key
from headway.testing import ManualClock
from headway.testing.isolation import Isolation

KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
SERVERS = ("sync", "aio", "threads-of-aio")
IP = Limit("per-ip", "2 per 10s", by="ip")


class Service:
    """A service that answers what it is sent, on each of the ways a Python server can be written."""

    def __init__(self) -> None:
        self.served = 0
        self.held = threading.Event()
        self.go_on = threading.Event()

    def _serve(self, request: bytes) -> bytes:
        self.served += 1
        if request == b"fail":
            raise RuntimeError("the service fails")
        return request

    def unary_unary(self, request: bytes, context: Any) -> bytes:
        if request == b"hold":
            self.held.set()
            self.go_on.wait(5)
        context.set_trailing_metadata((("mine", "kept"),))
        return self._serve(request)

    def unary_stream(self, request: bytes, context: Any) -> Iterator[bytes]:
        yield self._serve(request)
        while request == b"endless":
            yield request
        yield request

    def stream_unary(self, requests: Iterator[bytes], context: Any) -> bytes:
        return self._serve(b"".join(requests))

    def stream_stream(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for request in requests:
            yield self._serve(request)

    def handlers(self, *, asynchronous: bool) -> dict[str, Any]:
        served = self._asynchronous() if asynchronous else {kind: getattr(self, kind) for kind in KINDS}
        return {kind: getattr(grpc, f"{kind}_rpc_method_handler")(serve) for kind, serve in served.items()}

    def _asynchronous(self) -> dict[str, Any]:
        async def unary_unary(request: bytes, context: Any) -> bytes:
            if request == b"hold":
                self.held.set()
                await asyncio.to_thread(self.go_on.wait, 5)
            context.set_trailing_metadata((("mine", "kept"),))
            return self._serve(request)

        async def unary_stream(request: bytes, context: Any) -> Any:
            yield self._serve(request)
            while request == b"endless":
                yield request
            yield request

        async def stream_unary(requests: Any, context: Any) -> bytes:
            return self._serve(b"".join([request async for request in requests]))

        async def stream_stream(requests: Any, context: Any) -> None:
            async for request in requests:
                await context.write(self._serve(request))

        return {f.__name__: f for f in (unary_unary, unary_stream, stream_unary, stream_stream)}


@contextmanager
def running(service: Service, server: str, *limits: Limit, store: Any = None, **options: Any) -> Iterator[str]:
    """The service behind an interceptor, on a free port; gives its address. Time stands still in a store that is not given."""
    store = MemoryStore(clock=ManualClock()) if store is None else store
    if server == "sync":
        interceptor: Any = RateLimitInterceptor(Limiter(*limits, store=store), **options)
        served = grpc.server(ThreadPoolExecutor(4), interceptors=[interceptor])
        port = _added(served, service, asynchronous=False)
        served.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            served.stop(0).wait(10)
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[Any, int]:
        interceptor = AsyncRateLimitInterceptor(AsyncLimiter(*limits, store=store), **options)
        served = grpc.aio.server(ThreadPoolExecutor(4), interceptors=[interceptor])
        port = _added(served, service, asynchronous=server == "aio")
        await served.start()
        return served, port

    async def stop() -> None:
        await served.stop(0)
        ending = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait([asyncio.ensure_future(asyncio.gather(*ending, return_exceptions=True))], timeout=5)

    served, port = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _added(served: Any, service: Service, *, asynchronous: bool) -> int:
    own = service.handlers(asynchronous=asynchronous)
    health = {"Check": own["unary_unary"]}
    served.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler("codes.Codes", own),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
        )
    )
    port: int = served.add_insecure_port("127.0.0.1:0")
    return port


def call(channel: Any, kind: str = "unary_unary", request: bytes = b"x", method: str = "", **options: Any) -> Any:
    """Make one call and read it to its end: the call, for its code, trailers and details."""
    made = getattr(channel, kind)(method or f"/codes.Codes/{kind}")
    sent = iter([request]) if kind.startswith("stream") else request
    options = {"timeout": 10, **options}
    try:
        if kind.endswith("stream"):
            responses = made(sent, **options)
            list(responses)
            return responses
        return (made.with_call(sent, **options))[1]
    except grpc.RpcError as error:
        return error


def codes(channel: Any, count: int, *args: Any, **options: Any) -> list[str]:
    """The names of the status codes of that many calls."""
    return [call(channel, *args, **options).code().name for _ in range(count)]


def trailers(made: Any) -> dict[str, Any]:
    return dict(made.trailing_metadata())


def details(made: Any) -> dict[str, Any]:
    """``google.rpc`` details by name, as grpcio-status and googleapis-common-protos read them."""
    status = rpc_status.from_call(made)
    assert status is not None and status.code == made.code().value[0] and status.message == made.details()
    found = {}
    for packed in status.details:
        name = packed.type_url.rpartition(".")[2]
        found[name] = getattr(error_details_pb2, name)()
        assert packed.Unpack(found[name])
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", SERVERS)
def test_every_kind_of_call_is_refused_by_abort(server: str, kind: str) -> None:
    """All four kinds of call, on all three kinds of server, are refused with RESOURCE_EXHAUSTED and trailers only."""
    service = Service()
    store = MemoryStore(clock=ManualClock())
    with running(service, server, IP, store=store) as address, grpc.insecure_channel(address) as channel:
        assert codes(channel, 2, kind) == ["OK", "OK"]
        refused = call(channel, kind)
    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.details() == "Too many requests for this address. Try again in 5 seconds."
    assert service.served == 2
    assert not tuple(refused.initial_metadata() or ())
    said = trailers(refused)
    assert said["grpc-retry-pushback-ms"] == "5000"
    assert said["ratelimit"] == '"per-ip";r=0;t=5'
    assert said["ratelimit-policy"] == '"per-ip";q=2;w=10'


@pytest.mark.parametrize("server", SERVERS)
def test_the_details_are_what_googles_readers_expect(server: str) -> None:
    """RetryInfo has the exact wait, QuotaFailure every violated limit, ErrorInfo the reason, domain and limit."""
    limits = (IP, Limit("everyone", "2 per day"), Limit("calls", "1000 per second"))
    store = MemoryStore(clock=ManualClock())
    with (
        running(Service(), server, *limits, store=store, domain="codes.example") as address,
        grpc.insecure_channel(address) as channel,
    ):
        codes(channel, 2)
        found = details(call(channel))
    assert found["RetryInfo"].retry_delay == Duration(seconds=43_200)
    violations = {one.quota_id: one for one in found["QuotaFailure"].violations}
    assert list(violations) == ["per-ip", "everyone"]
    assert (violations["per-ip"].subject, violations["per-ip"].quota_value) == ("ip", 2)
    assert (violations["everyone"].subject, violations["everyone"].api_service) == ("everyone", "codes.example")
    said = found["ErrorInfo"]
    assert (said.reason, said.domain) == ("RATE_LIMIT_EXCEEDED", "codes.example")
    assert said.metadata["quota_limit"] == "everyone"
    assert said.metadata["retry_after_ms"] == "43200000"


@pytest.mark.parametrize(
    ("wait_ns", "pushback", "delay"),
    [
        (1, "1", Duration(nanos=1)),
        (1_000_000, "1", Duration(nanos=1_000_000)),
        (1_000_001, "2", Duration(nanos=1_000_001)),
        (2_147_483_647 * 10**6, "2147483647", Duration(seconds=2_147_483, nanos=647_000_000)),
        (2_147_483_647 * 10**6 + 1, "-1", Duration(seconds=2_147_483, nanos=647_000_001)),
    ],
)
def test_the_pushback_is_never_early_and_always_fits(wait_ns: int, pushback: str, delay: Duration) -> None:
    """Pushback rounds up to the ms and is -1 where 31 bits can't hold it; RetryInfo is exact to the ns."""
    clock = ManualClock()
    limiter = Limiter(Limit("one", "1 per 30 days"), store=MemoryStore(clock=clock))
    limiter.hit()
    clock.advance(ns=30 * 86_400 * 10**9 - wait_ns)
    said = dict(answer(limiter.hit().verdict).trailers)
    assert said["grpc-retry-pushback-ms"] == pushback
    status = error_details_pb2.RetryInfo(retry_delay=delay).SerializeToString()
    assert status in said["grpc-status-details-bin"]


def _retrying(address: str, *, backoff: str = "30s") -> Any:
    """A channel whose own back-off is far longer than its calls' deadline: only a pushback makes it retry in time."""
    policy = {
        "maxAttempts": 4,
        "initialBackoff": backoff,
        "maxBackoff": backoff,
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "PERMISSION_DENIED"],
    }
    config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
    return grpc.insecure_channel(address, options=[("grpc.service_config", json.dumps(config))])


@pytest.mark.parametrize("server", SERVERS)
def test_a_client_with_a_retry_policy_waits_as_long_as_it_is_told(server: str) -> None:
    """A refused call is retried once, after the pushback and not after the client's own back-off, and passes."""
    asked: list[str] = []
    limit = Limit("pace", "1 per 1500 ms")
    with (
        running(
            Service(), server, limit, store=MemoryStore(), skip_if=lambda call: asked.append(call.method)
        ) as address,
        _retrying(address) as channel,
    ):
        assert codes(channel, 2) == ["OK", "OK"]
    assert len(asked) == 3  # the second call was refused once and came back when it could pass, not earlier


@pytest.mark.parametrize(
    ("quota", "code", "reason"),
    [("5 per second", "RESOURCE_EXHAUSTED", "NEVER_ADMISSIBLE"), ("0 per day", "PERMISSION_DENIED", "BLOCKED")],
)
@pytest.mark.parametrize("server", SERVERS)
def test_what_no_wait_helps_is_not_retried(server: str, quota: str, code: str, reason: str) -> None:
    """A cost above the burst, or a block, pushes back with -1, and the client makes one attempt only."""
    asked: list[str] = []

    def cost(call: GrpcCall) -> int:
        asked.append(call.method)
        return len(call.message)

    with (
        running(Service(), server, Limit("size", quota), cost=cost) as address,
        _retrying(address, backoff="0.01s") as channel,
    ):
        refused = call(channel, request=b"123456")
    assert refused.code().name == code
    assert trailers(refused)["grpc-retry-pushback-ms"] == "-1"
    assert details(refused)["ErrorInfo"].reason == reason
    assert "RetryInfo" not in details(refused)
    assert len(asked) == 1


@pytest.mark.parametrize("server", SERVERS)
def test_a_denial_without_the_store_is_unavailable(server: str) -> None:
    """Where the store can't decide and the limit denies, the code is UNAVAILABLE with a pushback, not a spent quota."""
    store = MemoryStore(max_keys=1)
    limit = Limit("per-key", "5 per hour", by="key")
    options = {"attributes": {"key": by_api_key()}}
    with (
        running(Service(), server, limit, store=store, **options) as address,
        grpc.insecure_channel(address) as channel,
    ):
        assert call(channel, metadata=(("x-api-key", "a"),)).code().name == "OK"
        refused = call(channel, metadata=(("x-api-key", "b"),))
    assert refused.code() is grpc.StatusCode.UNAVAILABLE
    assert int(trailers(refused)["grpc-retry-pushback-ms"]) > 0
    assert details(refused)["ErrorInfo"].reason == "TEMPORARY_REDUCED_CAPACITY"
    assert "QuotaFailure" not in details(refused)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", SERVERS)
def test_an_admitted_call_says_what_is_left(server: str, kind: str) -> None:
    """The RateLimit fields are among an admitted call's trailers, beside those that the handler sets itself."""
    with running(Service(), server, IP) as address, grpc.insecure_channel(address) as channel:
        said = trailers(call(channel, kind))
    if (server, kind) != ("threads-of-aio", "unary_unary"):  # grpc.aio doesn't let a thread's handler read its trailers
        assert said["ratelimit"] == '"per-ip";r=1;t=5'
    if kind == "unary_unary":
        assert said["mine"] == "kept"


@pytest.mark.parametrize("server", SERVERS)
def test_health_probes_are_exempt_by_default(server: str) -> None:
    """The health service is neither limited nor counted, unless it is asked for."""
    probe = "/grpc.health.v1.Health/Check"
    with running(Service(), server, IP) as address, grpc.insecure_channel(address) as channel:
        assert codes(channel, 5, method=probe) == ["OK"] * 5
        assert codes(channel, 3) == ["OK", "OK", "RESOURCE_EXHAUSTED"]
    with running(Service(), server, IP, exempt_paths=()) as address, grpc.insecure_channel(address) as channel:
        assert codes(channel, 3, method=probe)[-1] == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize("server", SERVERS)
def test_methods_and_calls_can_be_left_out(server: str) -> None:
    """``only``, ``exempt_paths`` and ``skip_if`` leave calls unlimited and uncounted."""
    for options in (
        {"only": ["/codes.Codes/unary_stream"]},
        {"exempt_paths": ["/codes.Codes/unary_unary"]},
        {"skip_if": lambda call: call.method == "/codes.Codes/unary_unary"},
    ):
        with running(Service(), server, IP, **options) as address, grpc.insecure_channel(address) as channel:
            assert codes(channel, 4) == ["OK"] * 4, options


@pytest.mark.parametrize("server", SERVERS)
def test_a_method_that_nobody_has_is_counted(server: str) -> None:
    """Calls of unknown methods are UNIMPLEMENTED, and count: nobody probes for methods without a limit."""
    with running(Service(), server, IP) as address, grpc.insecure_channel(address) as channel:
        found = [call(channel, method=f"/codes.Codes/Guess{n}").code().name for n in range(3)]
    assert found == ["UNIMPLEMENTED", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_handler_that_fails_has_been_counted(server: str, kind: str) -> None:
    """A handler's exception reaches the client as ever, and the call stays charged."""
    with running(Service(), server, IP) as address, grpc.insecure_channel(address) as channel:
        found = codes(channel, 3, kind, request=b"fail")
    assert found == ["UNKNOWN", "UNKNOWN", "RESOURCE_EXHAUSTED"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", SERVERS)
def test_the_response_can_decide_the_cost(server: str, kind: str) -> None:
    """With ``response_cost`` the estimate is charged first and settled for what the responses cost, of streams in sum."""
    limit = Limit("bytes", "100 per hour")
    options = {"cost": 50, "response_cost": len}
    store = MemoryStore(clock=ManualClock())
    spent = 10 if kind == "unary_stream" else 5
    with (
        running(Service(), server, limit, store=store, **options) as address,
        grpc.insecure_channel(address) as channel,
    ):
        assert codes(channel, 1, kind, request=b"12345") == ["OK"]
        assert Limiter(limit, store=store).peek(cost=100 - spent).allowed
        assert not Limiter(limit, store=store).peek(cost=100 - spent + 1).allowed
        codes(channel, 1, kind, request=b"fail")
    assert Limiter(limit, store=store).peek(cost=100 - spent - 50).allowed
    assert not Limiter(limit, store=store).peek(cost=100 - spent - 49).allowed


@pytest.mark.parametrize("server", SERVERS)
def test_a_lease_is_held_while_the_call_lasts(server: str) -> None:
    """A limit "1 at once" refuses a second call while the first is served, and admits it when that has ended."""
    service = Service()
    limit = Limit("at-once", "1 at once for 60 s")
    with running(service, server, limit) as address, grpc.insecure_channel(address) as channel:
        first = channel.unary_unary("/codes.Codes/unary_unary").future(b"hold", timeout=10)
        assert service.held.wait(5)
        assert codes(channel, 2, "unary_stream") == ["RESOURCE_EXHAUSTED"] * 2
        service.go_on.set()
        first.result(10)
        for kind in KINDS:
            assert codes(channel, 2, kind) == ["OK", "OK"]
        assert codes(channel, 2, request=b"fail") == ["UNKNOWN", "UNKNOWN"]


@pytest.mark.parametrize("server", SERVERS)
def test_a_cancelled_stream_gives_its_lease_back(server: str) -> None:
    """A client that goes away in the middle of a stream doesn't keep its place until the lease expires."""
    limit = Limit("at-once", "1 at once for 60 s")
    with running(Service(), server, limit) as address, grpc.insecure_channel(address) as channel:
        wait = threading.Event()
        sent: Any = iter(lambda: b"x" if not wait.wait(0.01) else None, None)
        stream = channel.stream_stream("/codes.Codes/stream_stream")(sent, timeout=10)
        next(stream)
        assert call(channel).code().name == "RESOURCE_EXHAUSTED"
        stream.cancel()
        wait.set()
        until(lambda: call(channel).code().name == "OK")
        if server == "threads-of-aio":  # which runs a thread's generator to its end, whether anybody listens or not
            return
        endless = channel.unary_stream("/codes.Codes/unary_stream")(b"endless", timeout=10)
        next(endless)
        endless.cancel()
        until(lambda: call(channel).code().name == "OK")


@pytest.mark.parametrize("server", SERVERS)
def test_only_failures_can_be_charged(server: str) -> None:
    """With ``charge_if`` a call that ends well gives its units back, and one that fails keeps them."""
    ends: list[CallEnd] = []
    options = {"charge_if": lambda end: ends.append(end) or end.code != "OK"}
    with running(Service(), server, IP, **options) as address, grpc.insecure_channel(address) as channel:
        assert codes(channel, 4) == ["OK"] * 4
        assert codes(channel, 3, request=b"fail") == ["UNKNOWN", "UNKNOWN", "RESOURCE_EXHAUSTED"]
    assert [end.code for end in ends] == ["OK"] * 4 + ["UNKNOWN"] * 2
    assert [type(end.error) for end in ends] == [type(None)] * 4 + [RuntimeError] * 2


@pytest.mark.parametrize("server", SERVERS)
def test_a_missing_identity_is_blocked(server: str) -> None:
    """A call that lacks an identity which is required is refused for good, and not to be retried."""
    options = {"attributes": {"key": by_api_key(missing="refuse")}}
    limit = Limit("per-key", "1 per hour", by="key")
    with running(Service(), server, limit, **options) as address, grpc.insecure_channel(address) as channel:
        refused = call(channel)
        assert call(channel, metadata=(("x-api-key", "a"),)).code().name == "OK"
    assert refused.code().name == "PERMISSION_DENIED"
    assert refused.details() == "This request does not say its key."
    assert trailers(refused)["grpc-retry-pushback-ms"] == "-1"


@pytest.mark.parametrize("server", ["aio", "threads-of-aio"])
def test_an_asynchronous_server_awaits_what_it_is_given(server: str) -> None:
    """Functions among the options may be async where the server is."""

    async def cost(call: GrpcCall) -> int:
        await asyncio.sleep(0)
        return 2

    with running(Service(), server, IP, cost=cost) as address, grpc.insecure_channel(address) as channel:
        assert codes(channel, 2) == ["OK", "RESOURCE_EXHAUSTED"]


def test_the_address_is_the_peers_whatever_metadata_say() -> None:
    """A forwarded address in metadata is not believed, and the peer's port is no part of the key."""
    with running(Service(), "sync", IP) as address:
        found = []
        for n in range(3):
            with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                found += codes(channel, 1, metadata=(("x-forwarded-for", f"203.0.113.{n}"),))
    assert found == ["OK", "OK", "RESOURCE_EXHAUSTED"]


def test_our_own_client_reads_what_the_server_says() -> None:
    """The trailers of a refusal, read by headway's client, give the exact wait, the limit and its name."""
    clock = ManualClock()
    limiter = Limiter(Limit("per-key", "1 per 90s"), store=MemoryStore(clock=clock))
    limiter.hit()
    clock.advance(30.25)
    said = answer(limiter.hit().verdict)
    headers = {
        name: value if isinstance(value, str) else b64encode(value).decode().rstrip("=")
        for name, value in said.trailers
    }
    rejection = read(200, {**headers, "grpc-status": str(said.code), "grpc-message": said.message}, b"")
    assert rejection is not None
    assert 59.75 <= (rejection.retry_after or 0) <= 60
    assert rejection.limit_name == "per-key"


def test_limits_are_switched_off_and_reset_after_the_server_was_made(headway_limits: Isolation) -> None:
    """The pytest plugin reaches a server that runs already: off, on, reset, and time that is told to pass."""
    limit = Limit("daily", "2 per day")
    with (
        running(Service(), "sync", limit, store=MemoryStore()) as address,
        grpc.insecure_channel(address) as channel,
    ):
        assert codes(channel, 3)[-1] == "RESOURCE_EXHAUSTED"
        headway_limits.off()
        assert codes(channel, 3) == ["OK"] * 3
        headway_limits.on()
        headway_limits.reset()
        assert codes(channel, 3) == ["OK", "OK", "RESOURCE_EXHAUSTED"]
        headway_limits.travel(43_200)
        assert codes(channel, 2) == ["OK", "RESOURCE_EXHAUSTED"]


def test_what_cannot_be_right_is_said_at_once(tmp_path: Path) -> None:
    """The wrong kind of limiter, an unknown option and a misspelled method are named when the interceptor is made."""
    with pytest.raises(TypeError, match="AsyncRateLimitInterceptor: this Limiter's store waits: use AsyncLimiter"):
        AsyncRateLimitInterceptor(Limiter(IP, store=f"sqlite:///{tmp_path}/limits.db"))
    with pytest.raises(TypeError, match="RateLimitInterceptor cannot await an AsyncLimiter: use Limiter"):
        RateLimitInterceptor(AsyncLimiter(IP))  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match="takes no 'exempt'; expected one of account, attributes"):
        RateLimitInterceptor(Limiter(IP), exempt=["/a.B/C"])  # type: ignore[call-arg]  # that is the point
    with pytest.raises(ConfigError, match=r"only has 'Codes/Send'; expected '/package.Service/Method'"):
        RateLimitInterceptor(Limiter(IP), only=["Codes/Send"])


def until(true: Callable[[], bool]) -> None:
    """Ask until it is true, for at most ten seconds."""
    pause = threading.Event()
    for _ in range(1000):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("not true within ten seconds")
