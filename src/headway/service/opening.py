"""From a policy file to something that decides: which file, which store, which key for secret attributes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import overload

from headway.core.limit import Limit
from headway.errors import ConfigError
from headway.limiter.secret_file import secret_key as _secret_key
from headway.policy.builtin import builtin_policies
from headway.policy.policy import PolicyFile
from headway.policy.toml import Reading, read_policy_file
from headway.stores.base import AsyncStore, Store
from headway.stores.memory import MemoryStore
from headway.stores.shown import shown
from headway.stores.url import check_networked, is_networked, open_async_store, open_store

__all__ = ["check_store_url", "open_policy_store", "read_policies", "secret_key", "state_folder"]


def read_policies(path: Path | None) -> Reading:
    """The policies of a file, or the built-in ones, whose store is in the user's state folder.

    Raises:
        ConfigError: no file was named and there is no state folder.
    """
    if path is not None:
        return read_policy_file(path, check_store=check_store_url)
    policies = builtin_policies(state_folder())
    return Reading(policies, (), policies.warnings)


@overload
def open_policy_store(file: PolicyFile) -> tuple[Store, bytes | None]: ...
@overload
def open_policy_store(file: PolicyFile, *, asynchronous: bool) -> tuple[Store | AsyncStore, bytes | None]: ...
def open_policy_store(file: PolicyFile, *, asynchronous: bool = False) -> tuple[Store | AsyncStore, bytes | None]:
    """The store of a policy file and the key for its secret attributes (None where the limiter finds it by itself).

    Args:
        file: its ``deadline`` is that of a networked store.
        asynchronous: open a networked store for an event loop.

    Raises:
        ConfigError: no key can be had.
        StoreUnusable: what the URL names cannot serve.
    """
    deadline = None if file.deadline_ns is None else file.deadline_ns / 1e9
    limits = [limit for policy in file.policies.values() for limit in policy.plain_limits]
    if asynchronous and is_networked(file.store):
        later = open_async_store(file.store, deadline=deadline)
        return later, secret_key(later, limits)
    store = open_store(file.store, base=file.folder, deadline=deadline)
    try:
        return store, secret_key(store, limits)
    except BaseException:
        store.close()
        raise


def secret_key(store: Store | AsyncStore, limits: Sequence[Limit]) -> bytes | None:
    """The key that values of secret attributes are hashed with; None where the limiter finds it by itself.

    Raises:
        ConfigError: no key can be had.
    """
    secret = next((limit for limit in limits if limit.secret), None)
    own = isinstance(store, MemoryStore) or hasattr(store, "path")
    if secret is not None and not own and "HEADWAY_SECRET_KEY" not in os.environ:
        raise ConfigError(
            f"limit {secret.name!r} has secret attributes, and a store on a server has no key for them; expected the same "
            "one in the environment of all who share the limit: HEADWAY_SECRET_KEY, at least 16 bytes"
        )
    return _secret_key(store, limits)


def check_store_url(url: str) -> None:
    """Whether a URL names a store, without creating the file or reaching for the server that it names.

    Raises:
        ConfigError: it names none, with what is accepted.
    """
    from urllib.parse import urlsplit  # slow to import

    try:
        parts = urlsplit(url)
        names_file = parts.path.strip("/") and not parts.path.endswith("/")
        if parts.scheme == "sqlite" and names_file and not (parts.netloc or parts.query or parts.fragment):
            return
        if is_networked(url):
            check_networked(url)
        else:
            open_store(url).close()  # says what is wrong; a memory store costs nothing
    except ConfigError:
        raise
    except ValueError as error:  # urlsplit's own complaint
        raise ConfigError(f"store URL {shown(url)!r} cannot be read: {error}") from error


def state_folder(instead: str = "name a policy file") -> Path:
    r"""The user's folder for state, created for the user alone (0700) if it is missing.

    ``$XDG_STATE_HOME/headway`` (where that is absolute, as the XDG Base Directory Specification asks), else
    ``~/.local/state/headway``; on Windows ``%LOCALAPPDATA%\headway``.

    Args:
        instead: what does without it, for the message.

    Raises:
        ConfigError: it cannot be had; says which setting helps.
    """
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME"
    named = Path(os.environ.get(variable, ""))
    try:
        base = named if named.is_absolute() else Path.home() / ".local" / "state"
        folder = base / "headway"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"no folder for state: {str(error).rstrip('.')}; set {variable} to a folder that can be written, or {instead}"
        ) from error
    return folder
