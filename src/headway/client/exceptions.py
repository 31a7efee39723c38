"""What an SDK's exception says of the response behind it, read by its shape: no SDK is imported.

Known shapes: httpx, requests, openai, anthropic, azure-core, slack-sdk (``response`` with ``status_code`` and
``headers``), botocore (``response`` is a dict with ``ResponseMetadata``), grpc and google-api-core over it
(``code()`` and ``trailing_metadata()``), PyGithub (``status``, ``data``, ``headers``), aiohttp (``status``,
``headers``), google-api-python-client (``resp``, ``content``), stripe (``http_status``, ``http_body``), urllib
(``code``, ``headers``, a body that is read once), and anything with a ``retry_after``. An error raised from one of these is looked through.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headway.client.attempt import Reply

__all__ = ["reply_in", "reply_of"]

_STATUSES = ("status_code", "status", "http_status", "code")
_BODIES = ("body", "data", "http_body", "json_body", "content", "text")
_DEEPEST = 8


def reply_in(error: BaseException) -> Reply[Any] | None:
    """The answer an exception is about, or None where there is none; its causes are looked through, nearest first."""
    seen: BaseException | None = error
    for _ in range(_DEEPEST):
        if seen is None:
            return None
        found = _of_error(seen)
        if found is not None:
            return found
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return None


def reply_of(answered: Any) -> Reply[Any] | None:
    """A returned value as an answer, where it has the shape of a response (``status_code`` and ``headers``)."""
    if isinstance(answered, Mapping | type):
        return None
    status = _status(answered)
    headers = _headers(answered)
    if status is None or headers is None:
        return None
    return Reply(status, headers, _body(answered) if status >= 400 else None, answered)


def _of_error(error: BaseException) -> Reply[Any] | None:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping) and isinstance(response.get("ResponseMetadata"), Mapping):
        return _botocore(error, response)
    for call in (error, response):
        if callable(getattr(call, "trailing_metadata", None)) and callable(getattr(call, "code", None)):
            return _grpc(error, call)
    for holder in (response, getattr(error, "resp", None), error):
        status = None if holder is None else _status(holder)
        if status is not None:
            body = _body(error, holder)
            return Reply(
                status, _headers(holder) or _headers(error) or {}, body, error if response is None else response
            )
    return _told(error)


def _told(error: BaseException) -> Reply[Any] | None:
    """An exception that states a wait and nothing else (``retry_after``: seconds, or a timedelta)."""
    told = getattr(error, "retry_after", None)
    seconds = told.total_seconds() if isinstance(told, timedelta) else told
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return None
    return Reply(429, {"Retry-After": f"{seconds:.9f}".rstrip("0").rstrip(".")}, None, error)


def _status(holder: Any) -> int | None:
    for name in _STATUSES:
        value = getattr(holder, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return int(value)
    return None


def _headers(holder: Any) -> Any:
    for name in ("headers", "raw_headers"):
        value = getattr(holder, name, None)
        if isinstance(value, Mapping) or hasattr(value, "items"):
            return value
    return holder if isinstance(holder, Mapping) else None


def _body(*holders: Any) -> Any:
    """The first body there is: parsed, bytes or text; one that can only be read once is put back for the caller."""
    for holder in holders:
        for name in _BODIES:
            try:
                value = getattr(holder, name, None)
            except Exception:  # noqa: S112  # a stream that was not read: an SDK's own error, of any kind
                continue
            if isinstance(value, str | bytes | dict | list) and value:
                return value
    for holder in holders:
        if isinstance(holder, OSError) and callable(getattr(holder, "read", None)):  # urllib's HTTPError
            return _read_once(holder)
    return None


def _read_once(error: Any) -> bytes | None:
    try:
        raw: bytes = error.read()
    except (OSError, ValueError, KeyError):
        return None
    again = io.BytesIO(raw)
    error.fp = error.file = again
    error.read = again.read
    return raw


def _botocore(error: BaseException, response: Mapping[str, Any]) -> Reply[Any]:
    metadata = response["ResponseMetadata"]
    told = response.get("Error")
    body = {"__type": told.get("Code", ""), "message": told.get("Message", "")} if isinstance(told, Mapping) else None
    return Reply(int(metadata.get("HTTPStatusCode") or 400), metadata.get("HTTPHeaders") or {}, body, response)


def _grpc(error: BaseException, call: Any) -> Reply[Any] | None:
    code = call.code()
    number = getattr(code, "value", code)
    number = number[0] if isinstance(number, tuple) else number
    if not isinstance(number, int) or number == 0:
        return None
    trailers = [
        (name, _base64(value) if str(name).endswith("-bin") else value)
        for name, value in (tuple(pair)[:2] for pair in call.trailing_metadata() or ())
    ]
    details = getattr(call, "details", None)
    message = details() if callable(details) else details
    fields = [*trailers, ("grpc-status", str(number))]
    if isinstance(message, str):
        fields.append(("grpc-message", message))
    return Reply(200, fields, None, call)


def _base64(value: Any) -> str:
    import base64

    return base64.b64encode(value if isinstance(value, bytes) else str(value).encode()).decode()
