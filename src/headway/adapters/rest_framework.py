"""Django REST framework: a throttle class, and an exception handler that answers refusals in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

try:
    from rest_framework.exceptions import APIException, Throttled  # type: ignore[import-untyped]
    from rest_framework.throttling import BaseThrottle  # type: ignore[import-untyped]
    from rest_framework.views import exception_handler as _default  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.rest_framework needs Django REST framework: pip install djangorestframework 'headway[django]'",
        name=error.name,
    ) from error

from headway.adapters.django import answers
from headway.adapters.django.configuration import account, configured_guard
from headway.adapters.drive import drive
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import LEDGER, Ledger
from headway.adapters.routes import is_exempt
from headway.errors import ConfigError, RateLimited
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.presentation.problem import status_of

__all__ = ["RateLimitThrottle", "exception_handler"]


class RateLimitThrottle(BaseThrottle):  # type: ignore[misc]  # no types
    """Asks a limiter; for ``throttle_classes`` and ``DEFAULT_THROTTLE_CLASSES``. Subclass it to say which.

    Attributes:
        limiter: a ``Limiter``; None takes what ``settings.HEADWAY`` describes.
        options: see ``Options``; the framework's request is REST framework's ``Request``, which is authenticated by now.
            ``account`` is the primary key of its user unless it is given.
    """

    limiter: ClassVar[Limiter | None] = None
    options: ClassVar[Options] = {}
    _guard: ClassVar[Guard | None] = None

    def __init__(self) -> None:
        self._wait: float | None = None

    def allow_request(self, request: Any, view: Any) -> bool:
        """Whether the request may go on; REST framework calls it before the view.

        Raises:
            APIException: a refusal whose status is not 429: blocked, never admissible, the store is away.
            ConfigError: something is to be settled after the response, and no middleware would do it.
        """
        if is_exempt(type(view)) or is_exempt(getattr(view, (request.method or "").lower(), None)):
            return True
        guard = self._ready()
        if guard.settles and not answers.has_middleware():
            raise ConfigError(
                f"{guard.where}: what is settled after the response needs "
                "'headway.adapters.django.RateLimitMiddleware' in MIDDLEWARE"
            )
        ledger: Ledger | None = request.META.get(LEDGER)
        if ledger is None:
            ledger = request.META[LEDGER] = Ledger()
        match = request.resolver_match
        place = answers.NOWHERE if match is None else answers.Place(f"/{match.route}", match.kwargs)
        refusal = drive(guard.ask(request, answers.asked_of(request, place), ledger))
        view.headers.update(answers.merged_fields([], ledger, asked=False))
        if refusal is None:
            return True
        decision = Decision.of(refusal)
        if status_of(refusal) != Throttled.status_code:
            refused = APIException(decision.sentence(guard.locale))
            refused.status_code = status_of(refusal)
            raise refused
        self._wait = decision.retry_after
        return False

    def wait(self) -> float | None:
        """Seconds to wait after a refusal, never rounded below the exact wait."""
        return self._wait

    @classmethod
    def _ready(cls) -> Guard:
        """The class's guard, made when it is first asked."""
        if cls.__dict__.get("_guard") is None:
            if cls.limiter is None:
                return configured_guard(False)
            given = {"exempt_paths": (), "account": account, **cls.options}
            where = f"{cls.__module__}.{cls.__qualname__}"
            cls._guard = Guard(cls.limiter, cast(Options, given), where=where, asynchronous=False)
        guard = cls._guard
        assert guard is not None  # noqa: S101  # just made
        return guard


def exception_handler(error: BaseException, context: Mapping[str, Any]) -> Any:
    """For ``EXCEPTION_HANDLER``: refusals as the complete answer of every adapter, the rest as REST framework's own."""
    request = context["request"]
    ledger: Ledger = request.META.setdefault(LEDGER, Ledger())
    if isinstance(error, RateLimited):
        drive(ledger.raised(error))
    elif ledger.refusal is None or not isinstance(error, APIException):
        return _default(error, context)
    return answers.answer(request, ledger)
