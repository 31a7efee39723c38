"""Patience for httpx2: a transport for ``httpx2.Client`` and one for ``httpx2.AsyncClient``.

It lies below redirects, authentication and event hooks: each hop is sent with patience, with the client's own timeouts
per attempt. A refusal's body is read, so its connection is free while the caller waits; any other body stays a stream,
and so does the rest of a refusal's after 1 MiB or 10 seconds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

try:
    import httpx2
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.client.transport_httpx2 needs httpx2: pip install 'headway[httpx2]'", name=error.name
    ) from error

from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.body import Beginning, looks_into, rewinder
from headway.client.drive import AsyncSender, Sender
from headway.client.retry import Retry

if TYPE_CHECKING:
    from headway.client.pace import AsyncPace, Pace

__all__ = ["AsyncPatientTransport", "PatientTransport", "patient"]

_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_BROKEN = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError)

_PIECE = 1024
_DECODED = 131_072
"""Bytes of a body that are decoded to know what it means."""

Attributes = Callable[[httpx2.Request], dict[str, object]]
"""From a request to attributes of a pace besides host, method and path; ``cost`` among them is its cost."""


class PatientTransport(httpx2.BaseTransport):
    """``httpx2.Client(transport=PatientTransport())`` waits as told.

    Args:
        transport: what sends; default: ``httpx2.HTTPTransport()``.
        retry: when to try again; default: ``Retry()``.
        pace: asked before every attempt, if there is one.
        attributes: what the pace is keyed by, besides ``host``, ``method`` and ``path``.
        options: ``timer``, ``clock``, ``chance``, ``abort``; see ``Sender``.

    Its requests raise ``RateLimitedError`` when waiting does not help in time, ``DeadlineTooSoon`` when the pace can't
    let them go in time, and httpx2's own errors.
    """

    def __init__(
        self,
        transport: httpx2.BaseTransport | None = None,
        *,
        retry: Retry | None = None,
        pace: Pace | None = None,
        attributes: Attributes | None = None,
        **options: Any,
    ) -> None:
        self.transport = transport or httpx2.HTTPTransport()
        self._sender = Sender(retry, pace, **options)
        self._attributes = attributes

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send with patience."""
        rewind = rewinder(request.stream)
        outgoing = _outgoing(request, self._attributes, rewindable=rewind is not None)

        begun: list[_Begun] = []

        def attempt() -> Reply[httpx2.Response] | Failure:
            while begun:
                begun.pop().close()
            if rewind is not None:
                rewind()
            try:
                response = self.transport.handle_request(request)
                if not looks_into(response.status_code, response.headers, self._sender.retry):
                    return Reply(response.status_code, response.headers.raw, None, response)
                beginning, rest = Beginning(), iter(response.stream)  # type: ignore[arg-type]  # a sync transport's
                try:
                    if any(beginning.take(part) for part in rest):
                        begun.append(_Begun(beginning, rest, response))
                finally:
                    if not begun:
                        response.close()
            except httpx2.TransportError as error:
                return _failure(error)
            return _read(response, beginning, *begun)

        try:
            return self._sender.send(outgoing, attempt).response
        except BaseException:
            while begun:
                begun.pop().close()
            raise

    def close(self) -> None:
        """Close the transport that sends."""
        self.transport.close()

    def __enter__(self) -> Self:
        self.transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.transport.__exit__(exc_type, exc_value, traceback)


class AsyncPatientTransport(httpx2.AsyncBaseTransport):
    """The twin of ``PatientTransport`` for ``httpx2.AsyncClient``; the same arguments, with an ``AsyncPace``."""

    def __init__(
        self,
        transport: httpx2.AsyncBaseTransport | None = None,
        *,
        retry: Retry | None = None,
        pace: AsyncPace | None = None,
        attributes: Attributes | None = None,
        **options: Any,
    ) -> None:
        self.transport = transport or httpx2.AsyncHTTPTransport()
        self._sender = AsyncSender(retry, pace, **options)
        self._attributes = attributes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send with patience."""
        rewind = rewinder(request.stream)
        outgoing = _outgoing(request, self._attributes, rewindable=rewind is not None)

        begun: list[_AsyncBegun] = []

        async def attempt() -> Reply[httpx2.Response] | Failure:
            while begun:
                await begun.pop().aclose()
            if rewind is not None:
                rewind()
            try:
                response = await self.transport.handle_async_request(request)
                if not looks_into(response.status_code, response.headers, self._sender.retry):
                    return Reply(response.status_code, response.headers.raw, None, response)
                beginning, rest = Beginning(), aiter(response.stream)  # type: ignore[arg-type]  # an async transport's
                try:
                    async for part in rest:
                        if beginning.take(part):
                            begun.append(_AsyncBegun(beginning, rest, response))
                            break
                finally:
                    if not begun:
                        await response.aclose()
            except httpx2.TransportError as error:
                return _failure(error)
            return _read(response, beginning, *begun)

        try:
            return (await self._sender.send(outgoing, attempt)).response
        except BaseException:
            while begun:
                await begun.pop().aclose()
            raise

    async def aclose(self) -> None:
        """Close the transport that sends."""
        await self.transport.aclose()

    async def __aenter__(self) -> Self:
        await self.transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.transport.__aexit__(exc_type, exc_value, traceback)


def patient(client: Any, **options: Any) -> Any:
    """Give a client that exists already (an SDK's, say) patience; the same client, its mounts and proxies kept.

    Args:
        client: an ``httpx2.Client`` or ``httpx2.AsyncClient``; no request may be under way.
        options: those of ``PatientTransport``, but ``transport``.
    """
    wrap: Any = AsyncPatientTransport if isinstance(client, httpx2.AsyncClient) else PatientTransport
    client._transport = wrap(client._transport, **options)
    client._mounts = {
        pattern: None if mounted is None else wrap(mounted, **options) for pattern, mounted in client._mounts.items()
    }
    return client


def _outgoing(request: httpx2.Request, attributes: Attributes | None, *, rewindable: bool) -> Outgoing:
    added = dict(attributes(request)) if attributes is not None else {}
    cost = added.pop("cost", None)
    url = request.url
    known = {"host": url.host, "path": url.path, **added}
    outgoing = Outgoing.http(request.method, request.headers.raw, rewindable=rewindable, **known)
    return outgoing if cost is None else Outgoing(outgoing.repeatable, rewindable, outgoing.attributes, cost)


def _failure(error: httpx2.TransportError) -> Failure:
    return Failure(error, unsent=isinstance(error, _UNSENT), connection=isinstance(error, _BROKEN))


class _Begun(httpx2.SyncByteStream):
    """A body whose beginning was read: that, and then the rest."""

    def __init__(self, beginning: Beginning, rest: Iterator[bytes], response: httpx2.Response) -> None:
        self._beginning = beginning
        self._rest = rest
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._beginning.parts
        yield from self._rest

    def close(self) -> None:
        self._response.close()


class _AsyncBegun(httpx2.AsyncByteStream):
    """The twin of ``_Begun``."""

    def __init__(self, beginning: Beginning, rest: AsyncIterator[bytes], response: httpx2.Response) -> None:
        self._beginning = beginning
        self._rest = rest
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._beginning.parts:
            yield part
        async for part in self._rest:
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class _Pieces(httpx2.SyncByteStream):
    """Bytes in small pieces: what a decoder makes of one of them cannot fill the memory."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[bytes]:
        return (self._raw[start : start + _PIECE] for start in range(0, len(self._raw), _PIECE))


def _read(
    response: httpx2.Response, beginning: Beginning, begun: _Begun | _AsyncBegun | None = None
) -> Reply[httpx2.Response]:
    """The answer whose body was read, as a response that nobody has read: httpx2 decodes, times and closes it."""
    status, headers, extensions = response.status_code, response.headers, response.extensions
    raw = b"".join(beginning.parts)
    body = b""
    try:
        for part in httpx2.Response(status, headers=headers, stream=_Pieces(raw)).iter_bytes():
            body += part
            if len(body) > _DECODED:
                break
    except httpx2.DecodingError:  # what cannot be decoded is still an answer; the caller will see the same error
        body = body or raw
    again = httpx2.Response(status, headers=headers, stream=begun or httpx2.ByteStream(raw), extensions=extensions)
    return Reply(status, headers.raw, body, again)
