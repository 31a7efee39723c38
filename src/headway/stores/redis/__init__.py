"""State in Redis or Valkey, shared by any number of hosts; see docs/explanation/redis.md.

Standard library only: the protocol is spoken by ``resp`` and ``wire``, so no client library has to be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.stores.redis.sync import RedisStore

if TYPE_CHECKING:
    from headway.stores.redis.aio import AsyncRedisStore

__all__ = ["AsyncRedisStore", "RedisStore"]


def __getattr__(name: str) -> object:
    if name == "AsyncRedisStore":
        from headway.stores.redis.aio import AsyncRedisStore  # asyncio is slow to import; only its users pay

        return AsyncRedisStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
