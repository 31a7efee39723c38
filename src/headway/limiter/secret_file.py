"""The key for secret attributes that a policy file's store keeps beside its own file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headway.core.limit import Limit
from headway.errors import ConfigError
from headway.stores.base import AsyncStore, Store

__all__ = ["secret_key"]

_KEY_BYTES = 32
_SHORTEST_KEY = 16


def secret_key(store: Store | AsyncStore, limits: Sequence[Limit]) -> bytes | None:
    """The key that values of secret attributes are hashed with.

    The environment variable HEADWAY_SECRET_KEY comes first and is left to the limiter, which reads it itself; so is a
    memory store, which takes a random key. For a store that is a file, the key is in the file beside it that is called
    the same with ``.key`` behind; it is created with 32 random bytes, for the user alone (0600), by whoever comes first.

    Raises:
        ConfigError: the key file cannot be read or written, or is too short.
    """
    path = getattr(store, "path", None)
    if not isinstance(path, Path) or "HEADWAY_SECRET_KEY" in os.environ or not any(limit.secret for limit in limits):
        return None
    file = path.with_name(f"{path.name}.key")
    try:
        if not file.exists():
            _create(file)
        key = file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the key for secret attributes, {file}: {error.strerror or error}; "
            "let it be created, or set HEADWAY_SECRET_KEY"
        ) from error
    if len(key) < _SHORTEST_KEY:
        raise ConfigError(f"{file} has {len(key)} bytes; expected the {_KEY_BYTES} random ones it was created with")
    return key


def _create(file: Path) -> None:
    """Make the key file in one step: complete, or not there; the first of several processes wins."""
    draft = file.with_name(f"{file.name}.{os.getpid()}-{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(secrets.token_bytes(_KEY_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink()
