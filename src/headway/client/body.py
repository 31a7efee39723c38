"""Bodies of requests that can be sent again, and of responses that have to be read before deciding."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from headway.client._headers import HeaderFields, HeadersLike
from headway.client.retry import Retry

__all__ = ["LONGEST_READ", "Beginning", "looks_into", "rewinder"]

LONGEST_READ: Final = 1_048_576
"""Bytes of a body, before it is decoded, that are read to know what it means; what it says stands far before."""

_READ_WITHIN_S: Final = 10.0
_SMALL = LONGEST_READ


class Beginning:
    """As much of a body as is read to know what it means: a server may send one that never ends, or a byte a second.

    Attributes:
        parts: what came.
    """

    __slots__ = ("_size", "_until", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size = 0
        self._until = time.monotonic() + _READ_WITHIN_S

    def take(self, part: bytes) -> bool:
        """Add what came; whether that is enough, and the rest is left to whoever wants the whole body."""
        self.parts.append(part)
        self._size += len(part)
        return self._size > LONGEST_READ or time.monotonic() > self._until


def looks_into(status: int, headers: HeadersLike, retry: Retry) -> bool:
    """Whether a response's body has to be read to know what it means; any other stays a stream.

    Bodies of errors are; those of successes only where ``look_into_success`` asks for it, and only JSON up to 1 MiB.
    """
    if status >= 400:
        return True
    if not retry.look_into_success or not 200 <= status < 300:
        return False
    fields = HeaderFields(headers)
    kind = (fields.get("content-type") or "").split(";")[0].strip().lower()
    length = fields.get("content-length") or "0"
    return (kind == "application/json" or kind.endswith("+json")) and length.isdigit() and int(length) <= _SMALL


def rewinder(body: Any) -> Callable[[], None] | None:
    """How to bring a request's body to where it is now, before each attempt; None where that can't be done.

    Known are: nothing, bytes and text, anything with `seek`, anything that can be iterated over again, and streams that
    hold one of these (httpx's).
    """
    if body is None or isinstance(body, str | bytes | bytearray | memoryview):
        return _nothing
    fields = getattr(body, "fields", None)
    if isinstance(fields, list):  # httpx's multipart form: it seeks its files itself, where they can be
        files = [getattr(field, "file", None) for field in fields]
        return _nothing if all(_seekable(file) is not None or not hasattr(file, "read") for file in files) else None
    if not hasattr(body, "read") and not hasattr(body, "aread") and hasattr(body, "_stream"):
        return rewinder(body._stream)
    if hasattr(body, "aread"):  # an asynchronous file; nothing here can wait for its seek
        return None
    if hasattr(body, "read"):
        return _seekable(body)
    for begin in ("__iter__", "__aiter__"):
        if hasattr(body, begin):
            return _nothing if getattr(body, begin)() is not body else None
    return None


def _seekable(file: Any) -> Callable[[], None] | None:
    try:
        start = file.tell()
        file.seek(start)
    except (AttributeError, OSError, ValueError):
        return None

    def back() -> None:
        file.seek(start)

    return back


def _nothing() -> None:
    """Nothing to be done."""
