"""State in Redis or Valkey, shared by any number of hosts; see docs/explanation/redis.md.

Standard library only: the protocol is spoken by ``resp`` and ``wire``, so no client library has to be installed.
"""

from __future__ import annotations

from headway.stores.redis.sync import RedisStore

__all__ = ["RedisStore"]
