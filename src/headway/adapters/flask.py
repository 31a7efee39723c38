"""Flask: an extension that limits the application, a decorator for its views, and the answers to refusals.

Async views work too: Flask runs each in a thread of its own, so a ``Limiter`` blocks nobody else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack

try:
    from flask import Flask, Response, g, has_request_context, request
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.flask needs Flask: pip install 'headway[flask]'", name=error.name
    ) from error

from headway.adapters.cors import ORIGIN
from headway.adapters.drive import drive
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger, ResponseFacts, merged_fields
from headway.adapters.order import check_order, decorates, late, remember
from headway.adapters.routes import NOWHERE, Place, exempt, is_exempt
from headway.adapters.wsgi import asked_of, facts_of
from headway.errors import RateLimited
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter

__all__ = ["RateLimits", "exempt"]

F = TypeVar("F", bound=Callable[..., Any])

_WRITES = "_headway_writes"


class RateLimits:
    """The extension: ``limits = RateLimits(app, limiter)``, or ``RateLimits()`` and ``init_app`` later.

    A refusal is a ``RateLimited`` that the extension answers; an ``errorhandler`` of the application's own goes before.

    Args:
        app: the application.
        limiter: asked about every request of the application; None asks nobody, for limits of single views.
        options: see ``Options``; the framework's request is ``flask.request``.

    Raises:
        TypeError: an ``AsyncLimiter``, or an unknown option.
        ConfigError: an option that cannot be right.
    """

    exempt = staticmethod(exempt)

    def __init__(self, app: Flask | None = None, limiter: Limiter | None = None, **options: Unpack[Options]) -> None:
        if limiter is None and options:
            raise TypeError(f"RateLimits has options and no limiter to apply them to: {', '.join(sorted(options))}")
        self.guard = None if limiter is None else Guard(limiter, options, where="RateLimits", asynchronous=False)
        self._apps: list[Flask] = []
        self._checked: set[int] = set()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Limit an application; several can share the extension."""
        app.extensions["headway"] = self
        self._apps.append(app)
        app.before_request(self._before)
        app.after_request(self._after)
        app.teardown_request(self._teardown)
        app.register_error_handler(RateLimited, _answer)

    def limit(self, limiter: Limiter, **options: Unpack[Options]) -> Callable[[F], F]:
        """Ask a limiter before each call of a view: ``@limits.limit(limiter)`` below ``@app.route``.

        Above it, it would never be asked: that is an error at once, or where routes are collected first (blueprints), by
        the first request.

        Args:
            limiter: a ``Limiter``.
            options: see ``Options``. ``exempt_paths`` is empty unless it is given.

        Raises:
            TypeError: an ``AsyncLimiter``, or an unknown option.
            ConfigError: an option that cannot be right; a function that was registered before it is limited.
        """

        def decorate(function: F) -> F:
            name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(function))}"
            above = decorates(function)
            if above and any(function is view for app in self._apps for view in app.view_functions.values()):
                raise late(function)
            guard = Guard(limiter, {"exempt_paths": (), **options}, where=f"limit() of {name}()", asynchronous=False)
            asynchronous = inspect.iscoroutinefunction(function)

            @functools.wraps(function)
            def limited(*args: Any, **kwargs: Any) -> Any:
                _ask(guard, limited)
                return function(*args, **kwargs)

            @functools.wraps(function)
            async def limited_async(*args: Any, **kwargs: Any) -> Any:
                _ask(guard, limited_async)
                return await function(*args, **kwargs)

            wrapper: Any = limited_async if asynchronous else limited
            if above:
                remember(function, wrapper)
            return wrapper  # type: ignore[no-any-return]  # the same to its caller

        return decorate

    def _before(self) -> None:
        app = self._app()
        if id(app) not in self._checked:
            check_order(app.view_functions.values())
            self._checked.add(id(app))
        if LEDGER not in request.environ:
            request.environ[LEDGER] = Ledger()
            setattr(g, _WRITES, True)
        if self.guard is None:
            return
        static = (request.endpoint or "").rpartition(".")[2] == "static"
        if not (static and self.guard.exempt_static):
            _ask(self.guard, app.view_functions.get(request.endpoint or ""))

    def _after(self, response: Response) -> Response:
        if not g.pop(_WRITES, False):
            return response
        ledger: Ledger = request.environ[LEDGER]
        headers = merged_fields(list(response.headers), ledger, asked=ORIGIN in request.headers)
        response.headers.clear()
        response.headers.extend(headers)
        if ledger.unsettled:
            _settle_at_the_end(response, ledger)
        return response

    def _teardown(self, error: BaseException | None) -> None:
        """An exception that nobody answers: tests and debuggers let it out, and no response was made."""
        if g.pop(_WRITES, False):
            drive(request.environ[LEDGER].end(ResponseFacts(500, error=error)))

    def _app(self) -> Flask:
        from flask import current_app

        return current_app._get_current_object()  # type: ignore[attr-defined,no-any-return]  # of the proxy


def _ask(guard: Guard, view: object) -> None:
    """Ask a guard about the request at hand.

    Raises:
        RateLimited: it refuses.
    """
    if not has_request_context():
        raise RuntimeError(f"{guard.where}: there is no request; a limited view is called by Flask")
    if is_exempt(view):
        return
    ledger: Ledger = request.environ.setdefault(LEDGER, Ledger())
    rule = request.url_rule
    place = NOWHERE if rule is None else Place(rule.rule, request.view_args or {})
    refusal = drive(guard.ask(request, asked_of(request.environ, place), ledger))
    if refusal is not None:
        raise RateLimited(Decision.of(refusal))


def _answer(refused: RateLimited) -> Response:
    """The error handler."""
    ledger: Ledger = request.environ.setdefault(LEDGER, Ledger())
    drive(ledger.raised(refused))
    answer = ledger.answer(facts_of(request.environ))
    response = Response(answer.body, answer.status)
    response.headers.clear()
    response.headers.extend(answer.headers)  # with the length of what HEAD does not get
    return response


def _settle_at_the_end(response: Response, ledger: Ledger) -> None:
    """Settle when the response has been sent, for what was sent."""
    sent = 0
    if response.is_streamed:
        inner = response.response

        def counted() -> Any:
            nonlocal sent
            for part in inner:
                sent += len(part)
                yield part

        response.response = counted()
        response.call_on_close(getattr(inner, "close", lambda: None))
    else:
        sent = response.calculate_content_length() or 0
    headers, status = tuple(response.headers), response.status_code
    response.call_on_close(lambda: drive(ledger.end(ResponseFacts(status, headers, sent))))
