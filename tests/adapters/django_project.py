"""Django, set up once in this process; what a test needs of it is overridden for its time."""

from __future__ import annotations

__all__ = ["configured"]


def configured() -> None:
    """Set Django up as docs/how-to/django.md does, if neither has yet."""
    import django
    from django.conf import settings

    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=["*"],
            INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "headway.adapters.django"],
        )
        django.setup()
