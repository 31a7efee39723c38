"""Django, set up once in this process; what a test needs of it is overridden for its time."""

from __future__ import annotations

__all__ = ["configured"]


def configured() -> None:
    """Set Django up, if nobody has yet."""
    import django
    from django.conf import settings

    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=["*"],
            SECRET_KEY="of these tests",
            DEBUG=False,
            INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "headway.adapters.django"],
            ROOT_URLCONF=(),
            LOGGING_CONFIG=None,
            USE_TZ=True,
            REST_FRAMEWORK={"DEFAULT_AUTHENTICATION_CLASSES": []},
        )
        django.setup()
