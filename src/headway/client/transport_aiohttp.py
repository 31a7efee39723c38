"""Patience for aiohttp: a client middleware.

It lies below redirects: each hop is sent with patience. The session's ``total`` timeout counts the waits too (it is
aiohttp's for the whole call), so give it more than the deadline, or None; the others count per attempt.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

try:
    import aiohttp
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.client.transport_aiohttp needs aiohttp: pip install 'headway[aiohttp]'", name=error.name
    ) from error

from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.body import Beginning, looks_into
from headway.client.drive import AsyncSender
from headway.client.retry import Retry

if TYPE_CHECKING:
    from headway.client.pace import AsyncPace

__all__ = ["PatientMiddleware", "patient"]

Attributes = Callable[[aiohttp.ClientRequest], dict[str, object]]
"""From a request to attributes of a pace besides host, method and path; ``cost`` among them is its cost."""

_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_NO_CONNECTION_ERRORS = (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch)


class PatientMiddleware:
    """``aiohttp.ClientSession(middlewares=(patient(),))`` waits as told.

    Args:
        retry: when to try again; default: ``Retry()``.
        pace: asked before every attempt, if there is one.
        attributes: what the pace is keyed by, besides ``host``, ``method`` and ``path``.
        options: ``timer``, ``clock``, ``chance``, ``abort``; see ``AsyncSender``.

    Its requests raise ``RateLimitedError`` when waiting does not help in time, ``DeadlineTooSoon`` when the pace can't
    let them go in time, and aiohttp's own errors.
    """

    def __init__(
        self,
        retry: Retry | None = None,
        pace: AsyncPace | None = None,
        *,
        attributes: Attributes | None = None,
        **options: Any,
    ) -> None:
        self._sender = AsyncSender(retry, pace, **options)
        self._attributes = attributes

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send with patience."""
        begun: list[aiohttp.ClientResponse] = []

        async def attempt() -> Reply[aiohttp.ClientResponse] | Failure:
            _leave(begun)
            try:
                response = await handler(request)
                again, body = _can_go_again(request), None
                if looks_into(response.status, response.raw_headers, self._sender.retry):
                    begun.append(response)
                    body = await _read(response)
                return Reply(response.status, response.raw_headers, body, response, again)
            except (TimeoutError, aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
                connection = not isinstance(error, _NO_CONNECTION_ERRORS)
                return Failure(error, isinstance(error, _UNSENT), connection, _can_go_again(request))

        try:
            return (await self._sender.send(self._outgoing(request), attempt)).response
        except BaseException:
            _leave(begun)
            raise

    def _outgoing(self, request: aiohttp.ClientRequest) -> Outgoing:
        added = dict(self._attributes(request)) if self._attributes is not None else {}
        cost = added.pop("cost", None)
        known = {"host": request.url.host or "", "path": request.url.path, **added}
        outgoing = Outgoing.http(request.method, request.headers, rewindable=_can_go_again(request), **known)
        return outgoing if cost is None else Outgoing(outgoing.repeatable, True, outgoing.attributes, cost)


def patient(retry: Retry | None = None, pace: AsyncPace | None = None, **options: Any) -> PatientMiddleware:
    """A middleware for ``aiohttp.ClientSession``; see ``PatientMiddleware``."""
    return PatientMiddleware(retry, pace, **options)


def _can_go_again(request: aiohttp.ClientRequest) -> bool:
    """Whether the body can be sent; aiohttp knows of a one-way body that it has been sent only afterwards."""
    return not getattr(request.body, "consumed", False)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body, after which the connection is free; or as much of a long one as says what it means.

    It is put back, so that the caller reads the whole of it, part by part if need be.
    """
    beginning, whole = Beginning(), True
    async for part in response.content.iter_any():
        if beginning.take(part):
            whole = False
            break
    body = b"".join(beginning.parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is no other way, and none is said to come
        response.content.unread_data(body)
    return await response.read() if whole else body


def _leave(begun: list[aiohttp.ClientResponse]) -> None:
    """Close what nobody reads any more; a response that was read whole has given its connection back already."""
    while begun:
        begun.pop().close()
