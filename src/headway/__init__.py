"""headway: rate limiting for both sides of a refusal.

``Limiter`` decides on the server's side; ``AsyncLimiter`` is the same with ``await``. Standard library only.
"""

from headway.core.limit import Algorithm, FailureMode, Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import Quota
from headway.errors import (
    AttributeMissing,
    AttributeUnusable,
    ConfigError,
    HeadwayError,
    LimitError,
    QuotaError,
    RateLimited,
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

__all__ = [
    "Admitted",
    "Algorithm",
    "AsyncLimiter",
    "AttributeMissing",
    "AttributeUnusable",
    "ConfigError",
    "Decision",
    "FailureMode",
    "HeadwayError",
    "Limit",
    "LimitError",
    "Limiter",
    "MemoryStore",
    "Never",
    "Outcome",
    "Quota",
    "QuotaError",
    "RateLimited",
    "Refused",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnusable",
    "UnknownName",
    "open_store",
]
