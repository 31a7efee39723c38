"""``open_limiter``: a limiter as a policy file says it, on the counters that ``headway serve`` and ``headway check`` use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from headway.errors import ConfigError
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.limiter.secret_file import secret_key
from headway.policy.policy import Policy, PolicyFile
from headway.policy.toml import read_policy_file
from headway.stores.base import AsyncStore, Store
from headway.stores.url import open_async_store, open_store

__all__ = ["open_async_limiter", "open_limiter"]

_L = TypeVar("_L", Limiter, AsyncLimiter)


def open_limiter(
    file: str | os.PathLike[str], policy: str | None = None, *, store: str | Store | None = None
) -> Limiter:
    """A limiter as a policy file says it: ``open_limiter("limits.toml", "one-time-codes")``.

    The file is read once; a change of it counts for limiters that are opened later. Whoever opens it closes it.

    Args:
        file: its path.
        policy: which of its policies; None for the only one.
        store: a store or its URL instead of the file's.

    Raises:
        ConfigError: what is wrong with the file, all of it, with its places; or several policies and none named.
        UnknownName: no policy of that name; names the known ones.
        StoreUnusable: a store that cannot serve.
    """
    found, chosen = _policy(file, policy)
    if store is None or isinstance(store, str):
        opened = open_store(store or found.store, base=None if store else found.folder, deadline=_seconds(found))
        try:
            return _made(Limiter, chosen, opened, owned=True)
        except BaseException:
            opened.close()
            raise
    return _made(Limiter, chosen, store, owned=False)


def open_async_limiter(
    file: str | os.PathLike[str], policy: str | None = None, *, store: str | Store | AsyncStore | None = None
) -> AsyncLimiter:
    """``open_limiter`` for an event loop; same arguments and errors."""
    found, chosen = _policy(file, policy)
    if store is None or isinstance(store, str):
        base = None if store else found.folder
        opened = open_async_store(store or found.store, base=base, deadline=_seconds(found))
        return _made(AsyncLimiter, chosen, opened, owned=True)
    return _made(AsyncLimiter, chosen, store, owned=False)


def _policy(file: str | os.PathLike[str], name: str | None) -> tuple[PolicyFile, Policy]:
    found = read_policy_file(Path(file)).policies()
    if name is None and len(found.policies) > 1:
        raise ConfigError(f"holds several policies; expected one of {', '.join(found.policies)}", file=found.source)
    return found, found.policy(next(iter(found.policies)) if name is None else name)


def _seconds(file: PolicyFile) -> float | None:
    return None if file.deadline_ns is None else file.deadline_ns / 1e9


def _made(kind: Callable[..., _L], policy: Policy, store: Any, *, owned: bool) -> _L:
    limiter = kind(
        *policy.limits,
        store=store,
        namespace=policy.namespace,
        secret_key=secret_key(getattr(store, "store", store), policy.plain_limits),
        exempt=policy.exempt,
    )
    limiter._owned = owned
    return limiter
