"""WSGI middleware: for Flask, Django, Pyramid, Bottle, and any other application of PEP 3333.

Nothing is buffered, and the application's iterable is always closed; what is left to do then is done then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Unpack
from urllib.parse import parse_qsl

from headway.adapters import routes
from headway.adapters.asked import FORWARDED, Asked
from headway.adapters.cors import ORIGIN
from headway.adapters.drive import drive
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger, ResponseFacts, merged_fields
from headway.adapters.routes import NOWHERE, Place
from headway.errors import ConfigError, RateLimited
from headway.limiter.limiter import Limiter
from headway.policy.request import RequestFacts
from headway.presentation.response import Response

__all__ = ["Environ", "RateLimitMiddleware", "asked_of", "facts_of"]

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WSGIApp = Callable[[Environ, StartResponse], Iterable[bytes]]


def _variable(name: str) -> str:
    """Where an environ has a header field."""
    return f"HTTP_{name.upper().replace('-', '_')}"


_FORWARDED = tuple(_variable(name) for name in FORWARDED)


class RateLimitMiddleware:
    """Asks a limiter about every request: ``app.wsgi_app = RateLimitMiddleware(app.wsgi_app, limiter)``.

    Within it, everything that headway decides about a request becomes one set of fields, and a ``RateLimited`` that the
    application lets out becomes the refusal's answer.

    Args:
        app: the application.
        limiter: a ``Limiter``; None asks nobody and does only the rest.
        options: see ``Options``; the framework's request is the WSGI environ.

    Raises:
        TypeError: an ``AsyncLimiter``, or an unknown option.
        ConfigError: an option that cannot be right.
    """

    def __init__(self, app: WSGIApp, limiter: Limiter | None = None, **options: Unpack[Options]) -> None:
        where = "RateLimitMiddleware"
        if limiter is None and options:
            raise TypeError(f"{where} has options and no limiter to apply them to: {', '.join(sorted(options))}")
        self.app = app
        self.guard = None if limiter is None else Guard(limiter, options, where=where, asynchronous=False)
        self._table = routes.table_of(app)
        if self.guard is not None and self.guard.attributes.by_route and not hasattr(self._table, "url_map"):
            raise ConfigError(
                f"{where}: a limit is keyed by the route, and this application tells no routes before it routes: "
                "limit its views with its framework's own adapter, or give the route's attribute a function"
            )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        ledger: Ledger | None = environ.get(LEDGER)
        writes = ledger is None
        if ledger is None:
            ledger = environ[LEDGER] = Ledger()
        guard = self.guard
        if guard is not None:
            place = self._place(environ)
            if not (place.exempt or (place.static and guard.exempt_static)):
                asked = asked_of(environ, place)
                if drive(guard.ask(environ, asked, ledger)) is not None:
                    return _sent(ledger.answer(asked.facts), start_response)
        if not writes:
            return self.app(environ, start_response)
        return _Served(self.app, environ, start_response, ledger).begin()

    def _place(self, environ: Environ) -> Place:
        if not hasattr(self._table, "url_map"):
            return NOWHERE
        return routes.place_on_map(self._table, _path(environ), environ.get("REQUEST_METHOD", "GET"))


class _Served:
    """One answer of the application: the fields go on it at its start, and what is left to do is done at its end."""

    def __init__(self, app: WSGIApp, environ: Environ, start_response: StartResponse, ledger: Ledger) -> None:
        self._app = app
        self._environ = environ
        self._start_response = start_response
        self._ledger = ledger
        self._status = 0
        self._sent: list[tuple[str, str]] = []
        self._size = 0
        self._error: BaseException | None = None
        self._body: Iterable[bytes] = ()

    def begin(self) -> Iterable[bytes]:
        """Call the application. What it gives is handed on as it is where nothing is left to do afterwards."""
        try:
            self._body = self._app(self._environ, self._start)
        except RateLimited as refused:
            return self._refused(refused)
        except BaseException as error:
            self._error = error
            self._end()
            raise
        return self if self._ledger.unsettled or not self._status else self._body

    def _start(self, status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
        self._status = int(status.split(" ", 1)[0])
        self._sent = merged_fields(headers, self._ledger, asked=_variable(ORIGIN) in self._environ)
        return self._start_response(status, self._sent, *exc_info)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._body:
                self._size += len(part)
                yield part
        except RateLimited as refused:
            yield from self._refused(refused)
        except BaseException as error:
            self._error = error
            raise

    def _refused(self, refused: RateLimited) -> Iterable[bytes]:
        """The application, or a generator that it gave, raised a refusal before it answered."""
        self._error = refused
        drive(self._ledger.raised(refused))
        if self._status:
            self._end()
            raise refused
        self._status = HTTPStatus.TOO_MANY_REQUESTS
        self._end()
        return _sent(self._ledger.answer(facts_of(self._environ)), self._start_response)

    def close(self) -> None:
        """Close the application's iterable, whatever has become of it, and settle."""
        try:
            getattr(self._body, "close", lambda: None)()
        finally:
            self._end()

    def _end(self) -> None:
        if self._ledger.unsettled:
            response = ResponseFacts(self._status or 500, tuple(self._sent), self._size, self._error)
            drive(self._ledger.end(response))


def asked_of(environ: Environ, place: Place = NOWHERE, *, path: str | None = None) -> Asked:
    """An environ as a guard looks at it.

    Args:
        environ: the request's; Django's ``META`` is one.
        place: where it goes.
        path: the path within the application, where somebody has read it already.
    """
    forwarded = not environ.keys().isdisjoint(_FORWARDED)
    path = _path(environ) if path is None else path
    method, peer = environ.get("REQUEST_METHOD", "GET"), environ.get("REMOTE_ADDR") or None
    return Asked(method, path, peer, forwarded, lambda: facts_of(environ, place))


def facts_of(environ: Environ, place: Place = NOWHERE) -> RequestFacts:
    """Everything that an environ says of the request."""
    headers = [
        (name[5:].replace("_", "-").lower(), value) for name, value in environ.items() if name.startswith("HTTP_")
    ]
    query = environ.get("QUERY_STRING", "")
    return RequestFacts(
        method=environ.get("REQUEST_METHOD", "GET"),
        route=place.route,
        path=_path(environ),
        headers=tuple(headers),
        path_params=place.path_params,
        query=dict(reversed(parse_qsl(query, keep_blank_values=True))) if query else {},
        peer=environ.get("REMOTE_ADDR") or None,
    )


def _path(environ: Environ) -> str:
    """The path within the application; PEP 3333 has its bytes as latin-1."""
    return str(environ.get("PATH_INFO") or "/").encode("latin-1", "replace").decode("utf-8", "replace")


def _sent(response: Response, start_response: StartResponse) -> list[bytes]:
    start_response(f"{response.status} {HTTPStatus(response.status).phrase}", list(response.headers))
    return [response.body] if response.body else []
