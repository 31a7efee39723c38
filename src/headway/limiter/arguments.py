"""What a caller gives, made exact once at the public edge: attributes, whole units, seconds, leases, secret keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from headway.core.lease import Lease
from headway.errors import ConfigError, LimitError, kind_of
from headway.stores.memory import MemoryStore

__all__ = [
    "at_least_one",
    "check_exempt",
    "check_store",
    "facts_of",
    "lease_of",
    "merged",
    "nanoseconds",
    "secret_bytes",
    "settled_answer",
]

_SHORTEST_KEY = 16
_SECOND = 1_000_000_000
_LONGEST_SHOWN = 80
_REDIS = ("RedisStore", "headway.stores.redis", "headway.stores.redis")
_POSTGRES = ("PostgresStore", "headway.stores.postgres.sync", "headway.stores.postgres.aio")
_CLIENTS = {"redis": _REDIS, "valkey": _REDIS, "psycopg": _POSTGRES, "psycopg_pool": _POSTGRES}
"""By the package of a client or a connection: the store that takes it, where that is for threads and for asyncio."""

_ELSEWHERE = {
    "timeout": "wait takes deadline=, in seconds",
    "deadline": "wait takes it: nothing else waits",
    "up_to": "hit takes it: nothing else grants a part",
}
"""Parameters that another call may be given by mistake. No limit is keyed by such a name."""


def merged(attributes: Mapping[str, object], named: Mapping[str, object]) -> Mapping[str, object]:
    """Attributes given as a mapping and by keyword.

    Raises:
        TypeError: no mapping, or one attribute given both ways.
    """
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes are {kind_of(attributes)}; expected a mapping, or keywords such as phone=…")
    twice = attributes.keys() & named.keys()
    if twice:
        raise TypeError(f"attribute {min(twice)!r} is given both in the mapping and by keyword")
    return {**attributes, **named} if named else attributes


def facts_of(
    attributes: Mapping[str, object] | None, named: Mapping[str, object], *others: str
) -> Mapping[str, object]:
    """A request's attributes, given in one way or the other or both.

    Args:
        attributes: as a mapping.
        named: by keyword.
        others: parameters of other calls that this one may be given by mistake: nothing would come of them.

    Raises:
        TypeError: what ``merged`` raises, or one of the others by keyword; says which call takes it.
    """
    for name in others:
        if name in named:
            raise TypeError(f"{name}={named[name]!r} is no attribute of a request; {_ELSEWHERE[name]}")
    return named if attributes is None else merged(attributes, named)


def check_exempt(exempt: object) -> None:
    """Whether something can say of a request that it is exempt.

    Raises:
        LimitError: it can't; says what can.
    """
    if exempt is not None and (not callable(exempt) or isinstance(exempt, type)):
        from headway.policy.spelling import described  # slow to import

        raise LimitError(
            f"exempt is {described(exempt)}; expected AllowList({{'ip': '10.0.0.0/8'}}), or a function of a request's "
            "attributes"
        )


def at_least_one(name: str, units: int) -> int:
    """A whole number above 0.

    Raises:
        TypeError: no int.
        LimitError: below 1 (a ValueError).
    """
    if isinstance(units, bool) or not isinstance(units, int):
        raise TypeError(f"{name} is {units!r}, {kind_of(units)}; expected a whole number from 1")
    if units < 1:
        raise LimitError(f"{name} is {units}; expected a whole number from 1")
    return units


def nanoseconds(name: str, seconds: float) -> int:
    """Whole ns, rounded up, from seconds at the public edge.

    Raises:
        TypeError: no number.
        LimitError: negative, NaN or infinite (a ValueError).
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name} is {seconds!r}, {kind_of(seconds)}; expected seconds")
    if not 0 <= seconds <= 1e11:
        raise LimitError(f"{name} is {seconds!r}; expected seconds from 0 to 1e11")
    numerator, denominator = seconds.as_integer_ratio()
    return -(-numerator * _SECOND // denominator)


def lease_of(ttl: float, *, of_limit: bool = False) -> Lease:
    """A lease with a token nobody else has, for that many seconds; 0 stands for the limit's own time (``of_limit``).

    Raises:
        LimitError: no time in which anybody could settle.
    """
    lasts = nanoseconds("ttl", ttl)
    if not lasts and not of_limit:
        raise LimitError(f"ttl is {ttl!r}; expected seconds above 0, up to 1e11")
    return Lease(int.from_bytes(os.urandom(8)) >> 1 or 1, lasts)


def check_store(store: object, *, asynchronous: bool) -> None:
    """Whether what is given as a store is a URL's text, or a store of this limiter's kind; opens nothing.

    Raises:
        ConfigError: it is neither; says what is accepted.
    """
    if isinstance(store, str | MemoryStore):
        return
    advance = getattr(store, "advance", None)
    if isinstance(store, type) or not callable(advance):
        raise ConfigError(f"store is {_shown(store)}; expected {_expected(store, asynchronous)}")
    if not asynchronous:
        import inspect  # slow to import, and only for stores that were opened elsewhere

        if inspect.iscoroutinefunction(advance):
            raise ConfigError(f"store is {kind_of(store)}, which has to be awaited; use AsyncLimiter")


def _shown(store: object) -> str:
    """What was given as a store; without its text where that is long, as of a client that lists its settings."""
    kind, text = type(store), repr(store)
    return (
        f"{text} ({kind.__name__})" if len(text) <= _LONGEST_SHOWN else f"of type {kind.__module__}.{kind.__qualname__}"
    )


def _expected(store: object, asynchronous: bool) -> str:
    """What to give instead: of a client or a connection, the store that takes it."""
    for base in type(store).__mro__:
        package = _CLIENTS.get(base.__module__.partition(".")[0])
        if package is not None and not isinstance(store, type):
            name, threads, loops = package
            kind, module = (f"Async{name}", loops) if asynchronous else (name, threads)
            return f"{kind}(…) around it, from {module}; or a URL"
    return "a store, or a URL such as 'sqlite:///limits.db'"


def settled_answer(answer: Any) -> Any:
    """What a provider said, where nobody can wait for it.

    Raises:
        TypeError: it is ``async``; names AsyncLimiter.
    """
    if hasattr(answer, "__await__"):
        getattr(answer, "close", lambda: None)()
        raise TypeError("the quota provider is async: use AsyncLimiter")
    return answer


def secret_bytes(given: bytes | str | None, needed: bool, in_memory: bool) -> bytes | None:
    """The key for secret attributes: as given, of the environment, a random one in memory; None where none is needed.

    Raises:
        ConfigError: fewer than 16 bytes.
    """
    key = given if given is not None else os.environ.get("HEADWAY_SECRET_KEY") if needed else None
    if key is None:
        return os.urandom(32) if needed and in_memory else None
    raw = key.encode() if isinstance(key, str) else bytes(key)
    if len(raw) < _SHORTEST_KEY:
        raise ConfigError(
            f"the secret key has {len(raw)} bytes; expected at least {_SHORTEST_KEY}, for example 32 random ones"
        )
    return raw
