"""Django: the middleware and its settings, a decorator for views, and what ``manage.py check`` says of them.

``"headway.adapters.django"`` goes into ``INSTALLED_APPS``, ``"headway.adapters.django.RateLimitMiddleware"`` into
``MIDDLEWARE``, and the limits into ``HEADWAY``.
"""

try:
    import django as _django  # type: ignore[import-untyped]  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "headway.adapters.django needs Django: pip install 'headway[django]'", name=error.name
    ) from error

from headway.adapters.django.decorator import limit
from headway.adapters.django.middleware import RateLimitMiddleware
from headway.adapters.routes import exempt

__all__ = ["RateLimitMiddleware", "exempt", "limit"]
