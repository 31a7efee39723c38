"""``settings.HEADWAY`` as a limiter and the options of a guard. What cannot be right is a ``ConfigError`` with its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, cast

from django.conf import settings  # type: ignore[import-untyped]
from django.core.signals import setting_changed  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]

from headway.adapters.guard import Guard, Options
from headway.core.limit import Limit
from headway.errors import ConfigError, HeadwayError, kind_of
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.policy.spelling import nearest
from headway.stores.memory import MemoryStore

__all__ = ["SETTING", "account", "account_async", "configured_guard"]

SETTING: Final = "HEADWAY"

_OWN: Final = ("LIMITS", "STORE", "NAMESPACE", "SECRET_KEY", "LIMITER")
_OPTIONS: Final = {name.upper(): name for name in Options.__annotations__}
_FUNCTIONS: Final = ("ACCOUNT", "SKIP_IF", "CHARGE_IF", "ACTUAL_COST", "PROBE_LIMITER")
"""What may be given by its dotted path."""


@lru_cache(maxsize=2)
def configured_guard(asynchronous: bool) -> Guard:
    """The guard that the settings describe; sync and async ones share a memory store.

    Raises:
        ConfigError: names the key, what was found there, and what is expected.
        TypeError: an option's value is of the wrong kind.
    """
    found = _settings()
    options = {_OPTIONS[key]: _option(key, value) for key, value in found.items() if key in _OPTIONS}
    options.setdefault("account", account_async if asynchronous else account)
    return Guard(_limiter(found, asynchronous), cast(Options, options), where=SETTING, asynchronous=asynchronous)


def _settings() -> Mapping[str, Any]:
    found = getattr(settings, SETTING, None)
    if not isinstance(found, Mapping):
        given = "is missing" if found is None else f"is {kind_of(found)}"
        raise ConfigError(
            f"{given}; expected a dict with LIMITS, such as {{'LIMITS': ['100 per minute']}}", key=SETTING
        )
    for key in found:
        if key not in _OPTIONS and key not in _OWN:
            meant = nearest(str(key), (*_OWN, *_OPTIONS))
            hint = f"; did you mean {meant!r}?" if meant else f"; expected one of {', '.join((*_OWN, *_OPTIONS))}"
            raise ConfigError(f"unknown key{hint}", key=f"{SETTING}.{key}")
    return found


def _limiter(found: Mapping[str, Any], asynchronous: bool) -> Limiter | AsyncLimiter:
    given = found.get("LIMITER")
    if given is not None:
        clash = next((key for key in _OWN if key != "LIMITER" and key in found), None)
        if clash:
            raise ConfigError(f"LIMITER brings its own; drop {clash}", key=f"{SETTING}.{clash}")
        limiter = _named("LIMITER", given)
        return cast("Limiter | AsyncLimiter", limiter)
    limits = found.get("LIMITS")
    if not isinstance(limits, Iterable) or isinstance(limits, str | Mapping) or not list(limits):
        raise ConfigError(f"{limits!r}; expected a list of limits, at least one", key=f"{SETTING}.LIMITS")
    parts = [_limit(index, limit) for index, limit in enumerate(limits)]
    store = found.get("STORE", "memory://")
    kind: Any = AsyncLimiter if asynchronous else Limiter
    try:
        return cast(
            "Limiter | AsyncLimiter",
            kind(
                *parts,
                store=_memory() if store == "memory://" else store,
                namespace=found.get("NAMESPACE", "default"),
                secret_key=found.get("SECRET_KEY"),
            ),
        )
    except HeadwayError as error:
        raise ConfigError(str(error), key=SETTING) from error


@lru_cache(maxsize=1)
def _memory() -> MemoryStore:
    return MemoryStore()


def _limit(index: int, given: Any) -> Any:
    """A limit: itself, its arguments by name, or a quota's text, which counts each client's address."""
    key = f"{SETTING}.LIMITS[{index}]"
    try:
        if isinstance(given, str):
            return Limit(f"limit-{index + 1}", given, by="address")
        if isinstance(given, Mapping):
            return Limit(**given)
    except (HeadwayError, TypeError) as error:
        raise ConfigError(str(error), key=key) from error
    return given


def _option(key: str, value: Any) -> Any:
    if key in _FUNCTIONS or (key == "COST" and isinstance(value, str)):
        return _named(key, value)
    if key == "ATTRIBUTES":
        if not isinstance(value, Mapping):
            raise ConfigError(f"is {kind_of(value)}; expected a dict by attribute", key=f"{SETTING}.{key}")
        return {name: _named(f"{key}[{name!r}]", source) for name, source in value.items()}
    return value


def _named(key: str, value: Any) -> Any:
    """A thing, or the one that a dotted path names."""
    if not isinstance(value, str):
        return value
    try:
        return import_string(value)
    except ImportError as error:
        raise ConfigError(f"{value!r} cannot be imported: {error}", key=f"{SETTING}.{key}") from error


def account(request: Any) -> Any:
    """Whoever Django has authenticated: the user's primary key, or None."""
    return _key(getattr(request, "user", None))


async def account_async(request: Any) -> Any:
    """The same where asking the database has to be awaited."""
    ask: Callable[[], Any] | None = getattr(request, "auser", None)
    return _key(await ask() if ask is not None else getattr(request, "user", None))


def _key(user: Any) -> Any:
    return user.pk if user is not None and user.is_authenticated else None


def _forget(*, setting: str, **_: Any) -> None:
    """Tests change settings."""
    if setting == SETTING:
        configured_guard.cache_clear()
        _memory.cache_clear()


setting_changed.connect(_forget)
