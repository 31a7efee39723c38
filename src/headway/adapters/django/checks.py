"""What ``manage.py check`` says of ``settings.HEADWAY`` and of where the middleware stands."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings  # type: ignore[import-untyped]
from django.core.checks import CheckMessage, Error, Warning  # type: ignore[import-untyped]

from headway.adapters.django.configuration import SETTING, configured_guard
from headway.errors import HeadwayError

__all__ = ["check_settings"]

_MIDDLEWARE: Final = (
    "headway.adapters.django.RateLimitMiddleware",
    "headway.adapters.django.middleware.RateLimitMiddleware",
)
_CORS: Final = "corsheaders.middleware.CorsMiddleware"
_SESSIONS: Final = "django.contrib.auth.middleware.AuthenticationMiddleware"


def check_settings(**_: Any) -> list[CheckMessage]:
    """Errors: settings that cannot be right (E001), the middleware is twice there (E002).

    Warnings: settings without the middleware (W001), a refusal that CORS would not reach (W002), limits by account before
    anybody is authenticated (W003).
    """
    order = list(settings.MIDDLEWARE)
    places = [index for index, name in enumerate(order) if name in _MIDDLEWARE]
    if not places:
        if getattr(settings, SETTING, None) is None:
            return []  # decorators alone need neither
        hint = f"Add {_MIDDLEWARE[0]!r} to MIDDLEWARE, or remove {SETTING}."
        return [*_errors(), Warning(f"{SETTING} is set, and no middleware applies it.", hint=hint, id="headway.W001")]
    found = _errors()
    if len(places) > 1:
        found.append(Error("RateLimitMiddleware is in MIDDLEWARE twice.", hint="Keep one.", id="headway.E002"))
    if _CORS in order and order.index(_CORS) > places[0]:
        found.append(
            Warning(
                "RateLimitMiddleware stands before CorsMiddleware: browsers will not see its refusals.",
                hint=f"Put {_CORS!r} before it in MIDDLEWARE.",
                id="headway.W002",
            )
        )
    if not found and _SESSIONS in order and order.index(_SESSIONS) > places[0] and _by_account():
        found.append(
            Warning(
                "A limit counts by account, and RateLimitMiddleware stands before AuthenticationMiddleware.",
                hint=f"Put it after {_SESSIONS!r} in MIDDLEWARE.",
                id="headway.W003",
            )
        )
    return found


def _errors() -> list[CheckMessage]:
    try:
        configured_guard(False)
    except (HeadwayError, TypeError) as error:
        if "AsyncLimiter" in str(error) and _is_sound(asynchronous=True):
            return []
        return [Error(str(error), hint=f"See docs/how-to/django.md for what {SETTING} takes.", id="headway.E001")]
    return []


def _is_sound(*, asynchronous: bool) -> bool:
    """A LIMITER of the other kind is right where Django serves asynchronously."""
    try:
        configured_guard(asynchronous)
    except (HeadwayError, TypeError):
        return False
    return True


def _by_account() -> bool:
    return any("account" in limit.by for limit in configured_guard(False).limiter.limits)
