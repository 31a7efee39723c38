"""headway: rate limiting for both sides of a refusal.

``Limiter`` decides on the server's side; ``AsyncLimiter`` is the same with ``await``. Standard library only.
"""

from typing import TYPE_CHECKING, Any

from headway.core.limit import Algorithm, FailureMode, Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import Quota
from headway.errors import (
    AttributeMissing,
    AttributeUnexpected,
    AttributeUnusable,
    ConfigError,
    DeadlineTooSoon,
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
from headway.stores.memory import MemoryStore
from headway.stores.url import open_store

if TYPE_CHECKING:
    from headway.policy.conditional import When
    from headway.policy.lists import AllowList, BanList
    from headway.policy.overrides import Overridden
    from headway.policy.provided import ProvidedLimit
    from headway.policy.tiers import TieredLimit

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
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnusable",
    "TieredLimit",
    "UnknownName",
    "When",
    "open_store",
]

_WHEN_ASKED_FOR = {
    "AllowList": "lists",
    "BanList": "lists",
    "Overridden": "overrides",
    "ProvidedLimit": "provided",
    "TieredLimit": "tiers",
    "When": "conditional",
}
"""Names that plain limits do without, and the modules of ``headway.policy`` that are loaded when one is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"headway.policy.{_WHEN_ASKED_FOR[name]}"), name)
    return found
