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
from headway.client.body import LONGEST_READ, looks_into, rewinder
from headway.client.drive import Sender
from headway.client.retry import Retry

if TYPE_CHECKING:
    from headway.client.pace import Pace

__all__ = ["PatientManager", "kept", "leave", "patient"]

Attributes = Callable[[str, str, dict[str, Any]], dict[str, object]]
"""From method, URL and arguments to attributes of a pace besides host, method and path; ``cost`` is its cost."""

_DECODED = 131_072
"""Bytes of a body that are decoded to know what it means."""

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

        begun: list[urllib3.BaseHTTPResponse] = []
        preload = arguments.pop("preload_content", True)

        def loaded(response: urllib3.BaseHTTPResponse) -> urllib3.BaseHTTPResponse:
            if preload:
                response.data  # noqa: B018  # reads the body, remembers it, and gives the connection back
            return response

        def attempt() -> Reply[urllib3.BaseHTTPResponse] | Failure:
            leave(begun)
            if rewind is not None:
                rewind()
            try:
                response: urllib3.BaseHTTPResponse = self.manager.request(
                    method, url, preload_content=False, **arguments
                )
                if not looks_into(response.status, response.headers, self._sender.retry):
                    return Reply(response.status, response.headers, None, loaded(response))
                body, again = kept(response)
                begun.append(again)
                return Reply(response.status, response.headers, body, again)
            except urllib3.exceptions.HTTPError as error:
                return _failure(error)

        outgoing = self._outgoing(method, url, arguments, rewindable=rewind is not None)
        try:
            answer: urllib3.BaseHTTPResponse = self._sender.send(outgoing, attempt).response
            return loaded(answer)
        except BaseException:
            leave(begun)
            raise

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


class _Begun(io.RawIOBase):
    """A body whose beginning was read: that, and then the rest."""

    def __init__(self, raw: bytes, response: Any) -> None:
        super().__init__()
        self._beginning = io.BytesIO(raw)
        self._response = response

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._beginning.read(len(buffer)) or self._response.read(len(buffer), decode_content=False)
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._response.close()
        super().close()


def kept(response: Any) -> tuple[bytes, urllib3.HTTPResponse]:
    """What a streamed answer says, and the answer as one that can still be streamed.

    It was read, and its connection is back in the pool; of a long one the beginning was, and the rest is still to come.
    """
    raw = response.read(LONGEST_READ + 1, decode_content=False)
    whole = len(raw) <= LONGEST_READ
    if whole:
        response.release_conn()

    def again(body: Any) -> urllib3.HTTPResponse:
        return urllib3.HTTPResponse(
            body,
            headers=response.headers,
            status=response.status,
            version=response.version,
            reason=response.reason,
            preload_content=False,
            decode_content=response.decode_content,
            enforce_content_length=False,
            original_response=getattr(response, "_original_response", None),  # requests finds cookies there
            request_url=response.geturl(),
        )

    try:
        body = again(io.BytesIO(raw)).read(_DECODED, decode_content=True)
    except urllib3.exceptions.HTTPError:  # what cannot be decoded is still an answer
        body = raw
    return body, again(io.BytesIO(raw) if whole else io.BufferedReader(_Begun(raw, response)))


def leave(begun: list[Any]) -> None:
    """Close what nobody reads any more."""
    while begun:
        begun.pop().close()


def _failure(error: urllib3.exceptions.HTTPError) -> Failure:
    reason = getattr(error, "reason", None) or error
    return Failure(error, unsent=isinstance(reason, _UNSENT), connection=isinstance(reason, _BROKEN))
