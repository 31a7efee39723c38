"""Patience for urllib3: a ``PoolManager`` (or a pool) wrapped.

It lies above redirects, which urllib3 follows itself: the last hop's answer is what counts. urllib3's own retries after
a status are switched off; they would wait for what they have not read, or come back too early.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

try:
    import urllib3
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.client.transport_urllib3 needs urllib3: pip install urllib3", name=error.name
    ) from error

from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.body import looks_into, rewinder
from headway.client.drive import Sender
from headway.client.retry import Retry

if TYPE_CHECKING:
    from headway.client.pace import Pace

__all__ = ["PatientManager", "patient"]

Attributes = Callable[[str, str, dict[str, Any]], dict[str, object]]
"""From method, URL and arguments to attributes of a pace besides host, method and path; ``cost`` is its cost."""

_UNSENT = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
_BROKEN = (urllib3.exceptions.ProtocolError, urllib3.exceptions.TimeoutError, *_UNSENT)


class PatientManager:
    """``PatientManager(urllib3.PoolManager()).request("GET", url)`` waits as told.

    Args:
        manager: a pool manager or a connection pool; default: a new ``urllib3.PoolManager``.
        retry: when to try again; default: ``Retry()``.
        pace: asked before every attempt, if there is one.
        attributes: what the pace is keyed by, besides ``host``, ``method`` and ``path``.
        options: ``timer``, ``clock``, ``chance``, ``abort``; see ``Sender``.
    """

    def __init__(
        self,
        manager: Any = None,
        *,
        retry: Retry | None = None,
        pace: Pace | None = None,
        attributes: Attributes | None = None,
        **options: Any,
    ) -> None:
        self.manager = manager or urllib3.PoolManager()
        self._sender = Sender(retry, pace, **options)
        self._attributes = attributes

    def request(self, method: str, url: str, **arguments: Any) -> urllib3.BaseHTTPResponse:
        """Send with patience; the arguments are those of the wrapped manager's ``request``.

        Raises:
            RateLimitedError: waiting does not help in time.
            DeadlineTooSoon: the pace can't let it go in time.
            urllib3.exceptions.HTTPError: urllib3's own errors.
        """
        rewind = rewinder(arguments.get("body"))
        if arguments.get("fields") and _one_way(arguments["fields"]):
            rewind = None
        arguments["retries"] = _only_redirects(arguments.get("retries"), arguments.get("redirect", True))

        def attempt() -> Reply[urllib3.BaseHTTPResponse] | Failure:
            if rewind is not None:
                rewind()
            try:
                response: urllib3.BaseHTTPResponse = self.manager.request(method, url, **arguments)
                if not looks_into(response.status, response.headers, self._sender.retry):
                    return Reply(response.status, response.headers, None, response)
                if arguments.get("preload_content", True):
                    return Reply(response.status, response.headers, response.data, response)
                return _kept(response)
            except urllib3.exceptions.HTTPError as error:
                return _failure(error)

        return self._sender.send(
            self._outgoing(method, url, arguments, rewindable=rewind is not None), attempt
        ).response

    def _outgoing(self, method: str, url: str, arguments: dict[str, Any], *, rewindable: bool) -> Outgoing:
        added = dict(self._attributes(method, url, arguments)) if self._attributes is not None else {}
        cost = added.pop("cost", None)
        parts = urlsplit(url)
        known = {"host": parts.hostname or getattr(self.manager, "host", ""), "path": parts.path or "/", **added}
        headers = arguments.get("headers") or getattr(self.manager, "headers", None)
        outgoing = Outgoing.http(method, headers, rewindable=rewindable, **known)
        return outgoing if cost is None else Outgoing(outgoing.repeatable, rewindable, outgoing.attributes, cost)


def patient(manager: Any = None, **options: Any) -> PatientManager:
    """A pool manager with patience; see ``PatientManager``."""
    return PatientManager(manager, **options)


def _only_redirects(retries: Any, redirect: bool) -> Any:
    """The caller's retries without those after a status; by default redirects alone, as many as urllib3 follows."""
    if isinstance(retries, urllib3.Retry):
        return retries.new(status=0, status_forcelist=(), respect_retry_after_header=False, raise_on_status=False)
    if retries is False:
        return False
    hops = retries if isinstance(retries, int) and not isinstance(retries, bool) else 10
    return urllib3.Retry(
        None, connect=0, read=0, redirect=hops if redirect else 0, status=0, other=0, respect_retry_after_header=False
    )


def _one_way(fields: Any) -> bool:
    values = fields.values() if isinstance(fields, dict) else [field[-1] for field in fields]
    return any(hasattr(value, "read") for value in values)


def _kept(response: Any) -> Reply[urllib3.BaseHTTPResponse]:
    """A streamed answer, read, as one that can still be streamed; its connection goes back to the pool."""
    raw = response.read(decode_content=False)
    response.release_conn()

    def again() -> urllib3.HTTPResponse:
        return urllib3.HTTPResponse(
            io.BytesIO(raw),
            headers=response.headers,
            status=response.status,
            version=response.version,
            reason=response.reason,
            preload_content=False,
            decode_content=response.decode_content,
            request_url=response.geturl(),
        )

    try:
        body = again().read(decode_content=True)
    except urllib3.exceptions.HTTPError:  # what cannot be decoded is still an answer
        body = raw
    return Reply(response.status, response.headers, body, again())


def _failure(error: urllib3.exceptions.HTTPError) -> Failure:
    reason = getattr(error, "reason", None) or error
    return Failure(error, unsent=isinstance(reason, _UNSENT), connection=isinstance(reason, _BROKEN))
