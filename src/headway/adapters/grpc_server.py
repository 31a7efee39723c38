"""gRPC server interceptors: the limiter is asked before a call's handler runs, and a refused call is aborted.

Only ``abort`` makes an answer of trailers alone, and only then do clients honour the pushback (gRFC A6). A handler that
sets a code and returns has sent its headers, and the client never looks at it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, Unpack

try:
    import grpc  # type: ignore[import-untyped]  # grpcio ships no types
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.grpc_server needs grpcio: pip install 'headway[grpc]'", name=error.name
    ) from error

from headway.adapters.drive import Asking, drive, drive_async
from headway.adapters.grpc_calls import CallGuard, CallOptions, GrpcCall, Running
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter

__all__ = ["AsyncRateLimitInterceptor", "RateLimitInterceptor"]

T = TypeVar("T")
Handler = Callable[[Any, Any], Any]
Run = Callable[[Asking[Any]], Any]

_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_KINDS: Final = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class RateLimitInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]  # grpcio ships no types
    """Limits a ``grpc.server``: ``grpc.server(pool, interceptors=[RateLimitInterceptor(limiter)])``.

    Args:
        limiter: all its limits are asked at once, all or none.
        options: see ``CallOptions``.

    Raises:
        TypeError: no limiter, an ``AsyncLimiter``, or an unknown option.
        ConfigError: an option that cannot be right.
    """

    def __init__(self, limiter: Limiter, **options: Unpack[CallOptions]) -> None:
        self._guard = CallGuard(limiter, options, where=type(self).__name__, asynchronous=False)

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Put the question before the handler of one call."""
        handler = continuation(details)
        if not self._guard.covers(details.method):
            return handler
        return _guarded(handler, lambda inner, kind: _blocking(self._guard, drive, details.method, inner, *kind))


class AsyncRateLimitInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpcio ships no types
    """Limits a ``grpc.aio.server``, whose handlers may be ``async`` or not.

    Args:
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store.
        options: see ``CallOptions``.

    Raises:
        TypeError: no limiter, one that would block, or an unknown option.
        ConfigError: an option that cannot be right.
    """

    def __init__(self, limiter: AsyncLimiter | Limiter, **options: Unpack[CallOptions]) -> None:
        self._guard = CallGuard(limiter, options, where=type(self).__name__, asynchronous=True)

    async def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Put the question before the handler of one call."""
        handler = await continuation(details)
        if not self._guard.covers(details.method):
            return handler
        loop = asyncio.get_running_loop()

        def run(flow: Asking[T]) -> T:
            """For a handler in a thread: the event loop does what has to be awaited."""
            return asyncio.run_coroutine_threadsafe(drive_async(flow), loop).result()

        def guard(inner: Handler, kind: tuple[bool, bool]) -> Handler:
            if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
                return _awaiting(self._guard, details.method, inner, *kind)
            return _blocking(self._guard, run, details.method, inner, *kind)

        return _guarded(handler, guard)


def _guarded(handler: Any, guard: Callable[[Handler, tuple[bool, bool]], Handler]) -> Any:
    """The same handler behind the question. A method that nobody has is asked for too, then it is UNIMPLEMENTED."""
    if handler is None:
        handler = grpc.stream_stream_rpc_method_handler(_unknown)
    kind = (handler.request_streaming, handler.response_streaming)
    name, make = _KINDS[kind]
    return make(guard(getattr(handler, name), kind), handler.request_deserializer, handler.response_serializer)


def _unknown(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    yield from ()


def _blocking(guard: CallGuard, run: Run, method: str, inner: Handler, many: bool, streams: bool) -> Handler:
    """A handler for threads, in front of one."""

    def begin(request: Any, context: Any) -> Running:
        running = Running(guard)
        refusal = run(guard.ask(GrpcCall(method, None if many else request, context), running))
        if refusal is not None:
            context.set_trailing_metadata(refusal.trailers)
            context.abort(_CODES[refusal.code], refusal.message)
        running.say(context)
        return running

    def end(running: Running, context: Any, error: BaseException | None = None) -> None:
        if error is None:
            running.say(context)
        if running.ledger.unsettled:
            run(running.end(_code(context, error), error))

    def unary(request: Any, context: Any) -> Any:
        running = begin(request, context)
        try:
            response = running.saw(inner(request, context))
        except BaseException as error:
            end(running, context, error)
            raise
        end(running, context)
        return response

    def stream(request: Any, context: Any) -> Iterator[Any]:
        # Nothing happens before the first response is asked for: grpc.aio makes a thread's generator on its event loop.
        running = begin(request, context)
        try:
            for response in inner(request, context):
                yield running.saw(response)
        except BaseException as error:  # also GeneratorExit: the client is gone
            end(running, context, error)
            raise
        end(running, context)

    return stream if streams else unary


def _awaiting(guard: CallGuard, method: str, inner: Handler, many: bool, streams: bool) -> Handler:
    """The same for an ``async`` handler."""

    async def begin(request: Any, context: Any) -> Running:
        running = Running(guard)
        refusal = await drive_async(guard.ask(GrpcCall(method, None if many else request, context), running))
        if refusal is not None:
            await context.abort(_CODES[refusal.code], refusal.message, refusal.trailers)
        running.say(context)
        return running

    async def end(running: Running, context: Any, error: BaseException | None = None) -> None:
        if error is None:
            running.say(context)
        if running.ledger.unsettled:
            await drive_async(running.end(_code(context, error), error))

    async def unary(request: Any, context: Any) -> Any:
        running = await begin(request, context)
        try:
            response = running.saw(await inner(request, context))
        except BaseException as error:  # also CancelledError: the client is gone
            await end(running, context, error)
            raise
        await end(running, context)
        return response

    async def stream(request: Any, context: Any) -> None:
        # It writes its responses itself: a generator that is cancelled between two would not be closed at once.
        running = await begin(request, context)
        try:
            answered = inner(request, _Counting(context, running) if guard.price else context)
            if hasattr(answered, "__aiter__"):
                try:
                    async for response in answered:
                        await context.write(running.saw(response))
                finally:
                    await answered.aclose()
            else:
                await answered
        except BaseException as error:
            await end(running, context, error)
            raise
        await end(running, context)

    return stream if streams else unary


def _code(context: Any, error: BaseException | None) -> str:
    """The name of the code that a call ends with, as far as its context tells it."""
    code = context.code() if hasattr(context, "code") else None
    code = _CODES.get(code, code)
    if code is None or code is grpc.StatusCode.OK:
        code = grpc.StatusCode.OK if error is None else grpc.StatusCode.UNKNOWN
    name: str = code.name
    return name


class _Counting:
    """A call's context that counts the responses which a handler writes itself."""

    def __init__(self, context: Any, running: Running) -> None:
        self._context = context
        self._running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def write(self, response: Any) -> None:
        await self._context.write(self._running.saw(response))
