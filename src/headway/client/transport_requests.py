"""Patience for requests: a transport adapter, to be mounted on a session.

It lies below redirects and authentication: each hop is sent with patience, with the session's timeouts per attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

try:
    import requests
    from requests.adapters import HTTPAdapter
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.client.transport_requests needs requests: pip install 'headway[requests]'", name=error.name
    ) from error

from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.body import looks_into, rewinder
from headway.client.drive import Sender
from headway.client.retry import Retry
from headway.client.transport_urllib3 import kept, leave

if TYPE_CHECKING:
    from headway.client.pace import Pace

__all__ = ["PatientAdapter", "patient"]

Attributes = Callable[[requests.PreparedRequest], dict[str, object]]
"""From a request to attributes of a pace besides host, method and path; ``cost`` among them is its cost."""

_NEVER_SENT = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")
_NO_CONNECTION_ERRORS = (requests.exceptions.SSLError, requests.exceptions.ProxyError)


class PatientAdapter(HTTPAdapter):
    """``session.mount("https://", PatientAdapter())`` waits as told.

    Args:
        retry: when to try again; default: ``Retry()``.
        pace: asked before every attempt, if there is one.
        attributes: what the pace is keyed by, besides ``host``, ``method`` and ``path``.
        timer: see ``Sender``; so are ``clock``, ``chance`` and ``abort``.
        options: those of ``HTTPAdapter``; its own ``max_retries`` should stay 0.

    ``send`` raises ``RateLimitedError`` when waiting does not help in time, ``DeadlineTooSoon`` when the pace can't let
    the request go in time, and requests' own errors.
    """

    def __init__(
        self,
        retry: Retry | None = None,
        pace: Pace | None = None,
        *,
        attributes: Attributes | None = None,
        timer: Any = None,
        clock: Any = None,
        chance: Callable[[], float] | None = None,
        abort: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._sender = Sender(retry, pace, timer=timer, clock=clock, chance=chance, abort=abort)
        self._attributes = attributes

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send with patience."""
        rewind = rewinder(request.body)
        outgoing = self._outgoing(request, rewindable=rewind is not None)

        begun: list[requests.Response] = []

        def attempt() -> Reply[requests.Response] | Failure:
            leave(begun)
            if rewind is not None:
                rewind()
            try:
                response = super(PatientAdapter, self).send(request, *args, **kwargs)
                headers = response.raw.headers  # urllib3's: several lines of one name are kept apart
                if not looks_into(response.status_code, response.headers, self._sender.retry):
                    return Reply(response.status_code, headers, None, response)
                body, response.raw = kept(response.raw)
                begun.append(response)
                return Reply(response.status_code, headers, body, response)
            except (requests.exceptions.ConnectionError, requests.exceptions.Timeout) as error:
                return _failure(error)
            except requests.exceptions.ChunkedEncodingError as error:  # the connection broke inside the body
                return Failure(error)

        try:
            return self._sender.send(outgoing, attempt).response
        except BaseException:
            leave(begun)
            raise

    def _outgoing(self, request: requests.PreparedRequest, *, rewindable: bool) -> Outgoing:
        added = dict(self._attributes(request)) if self._attributes is not None else {}
        cost = added.pop("cost", None)
        url = urlsplit(request.url or "")
        known = {"host": url.hostname or "", "path": url.path or "/", **added}
        outgoing = Outgoing.http(request.method or "GET", request.headers, rewindable=rewindable, **known)
        return outgoing if cost is None else Outgoing(outgoing.repeatable, rewindable, outgoing.attributes, cost)


def patient(session: requests.Session | None = None, **options: Any) -> requests.Session:
    """A session with patience for http and https; its other adapters stay.

    Args:
        session: default: a new one.
        options: those of ``PatientAdapter``.
    """
    session = session or requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, PatientAdapter(**options))
    return session


def _failure(error: requests.exceptions.RequestException) -> Failure:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    unsent = isinstance(error, requests.exceptions.ConnectTimeout) or type(reason).__name__ in _NEVER_SENT
    return Failure(error, unsent=unsent, connection=not isinstance(error, _NO_CONNECTION_ERRORS))
