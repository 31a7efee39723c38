"""The application that ``INSTALLED_APPS`` names, so that ``manage.py check`` looks at the settings."""

from __future__ import annotations

from django.apps import AppConfig  # type: ignore[import-untyped]
from django.core.checks import register  # type: ignore[import-untyped]

from headway.adapters.django.checks import check_settings

__all__ = ["HeadwayConfig"]


class HeadwayConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """headway."""

    name = "headway.adapters.django"
    label = "headway"
    verbose_name = "headway"

    def ready(self) -> None:
        """Register the checks."""
        register(check_settings, "headway")
