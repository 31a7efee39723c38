"""headway: rate limiting for both sides of a refusal.

``Limiter`` decides on the server's side; ``AsyncLimiter`` is the same with ``await``. Standard library only, and the
import itself loads next to nothing: what a name needs is loaded when the name is first asked for.
"""

TYPE_CHECKING = False  # what type checkers take for typing.TYPE_CHECKING, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    from headway.core.limit import Algorithm, FailureMode, Limit
    from headway.core.outcome import Admitted, Never, Outcome, Refused
    from headway.core.quota import Quota
    from headway.errors import (
        AttributeMissing,
        AttributeUnexpected,
        AttributeUnusable,
        ConfigError,
        DeadlineTooSoon,
        ExtraMissing,
        HeadwayError,
        LimitError,
        QuotaError,
        RateLimited,
        RateLimitedError,
        StoreError,
        StoreFull,
        StoreUnavailable,
        StoreUnusable,
        UnknownName,
    )
    from headway.limiter.async_limiter import AsyncLimiter
    from headway.limiter.decision import Decision
    from headway.limiter.limiter import Limiter
    from headway.limiter.opening import open_async_limiter, open_limiter
    from headway.limiter.shadow import ShadowCount, ShadowReport
    from headway.policy.conditional import When
    from headway.policy.lists import AllowList, BanList
    from headway.policy.overrides import Overridden
    from headway.policy.provided import ProvidedLimit
    from headway.policy.tiers import TieredLimit
    from headway.stores.memory import MemoryStore
    from headway.stores.url import open_store

__all__ = [
    "Admitted",
    "Algorithm",
    "AllowList",
    "AsyncLimiter",
    "AttributeMissing",
    "AttributeUnexpected",
    "AttributeUnusable",
    "BanList",
    "ConfigError",
    "DeadlineTooSoon",
    "Decision",
    "ExtraMissing",
    "FailureMode",
    "HeadwayError",
    "Limit",
    "LimitError",
    "Limiter",
    "MemoryStore",
    "Never",
    "Outcome",
    "Overridden",
    "ProvidedLimit",
    "Quota",
    "QuotaError",
    "RateLimited",
    "RateLimitedError",
    "Refused",
    "ShadowCount",
    "ShadowReport",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnusable",
    "TieredLimit",
    "UnknownName",
    "When",
    "open_async_limiter",
    "open_limiter",
    "open_store",
]

_MODULES = {
    "Admitted": "core.outcome",
    "Algorithm": "core.limit",
    "AllowList": "policy.lists",
    "AsyncLimiter": "limiter.async_limiter",
    "AttributeMissing": "errors",
    "AttributeUnexpected": "errors",
    "AttributeUnusable": "errors",
    "BanList": "policy.lists",
    "ConfigError": "errors",
    "DeadlineTooSoon": "errors",
    "Decision": "limiter.decision",
    "ExtraMissing": "errors",
    "FailureMode": "core.limit",
    "HeadwayError": "errors",
    "Limit": "core.limit",
    "LimitError": "errors",
    "Limiter": "limiter.limiter",
    "MemoryStore": "stores.memory",
    "Never": "core.outcome",
    "Outcome": "core.outcome",
    "Overridden": "policy.overrides",
    "ProvidedLimit": "policy.provided",
    "Quota": "core.quota",
    "QuotaError": "errors",
    "RateLimited": "errors",
    "RateLimitedError": "errors",
    "Refused": "core.outcome",
    "ShadowCount": "limiter.shadow",
    "ShadowReport": "limiter.shadow",
    "StoreError": "errors",
    "StoreFull": "errors",
    "StoreUnavailable": "errors",
    "StoreUnusable": "errors",
    "TieredLimit": "policy.tiers",
    "UnknownName": "errors",
    "When": "policy.conditional",
    "open_async_limiter": "limiter.opening",
    "open_limiter": "limiter.opening",
    "open_store": "stores.url",
}
"""Where each public name is."""

_PARTS = ("core", "errors", "limiter", "policy", "stores")
"""What of the package is there without an import of its own."""


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _PARTS:
        return import_module(f"headway.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"headway.{_MODULES[name]}"), name)
    return found


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
