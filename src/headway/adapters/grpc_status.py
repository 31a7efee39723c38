"""A refusal as gRPC says it: status code, message and trailers, with ``google.rpc`` details encoded by hand.

No dependency: the few protobuf fields are written as the wire format has them. Nothing here knows a gRPC library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headway.core.limit import Limit
from headway.core.verdict import Verdict
from headway.presentation.fields import fields
from headway.presentation.problem import status_of
from headway.presentation.rounding import milliseconds_up
from headway.presentation.sentence import sentence

__all__ = ["DOMAIN", "GrpcAnswer", "Metadata", "answer"]

Metadata = tuple[tuple[str, str | bytes], ...]
"""(key, value) pairs, as gRPC libraries take them; a key that ends in ``-bin`` has bytes."""

DOMAIN: Final = "headway"
"""The ``ErrorInfo.domain`` of a service that names none of its own."""

_CODES: Final = {429: 8, 422: 8, 403: 7, 503: 14}
"""RESOURCE_EXHAUSTED (also what gRPC itself says of a message that is too large), PERMISSION_DENIED, UNAVAILABLE."""
_REASONS: Final = {
    429: "RATE_LIMIT_EXCEEDED",
    422: "NEVER_ADMISSIBLE",
    403: "BLOCKED",
    503: "TEMPORARY_REDUCED_CAPACITY",
}
_TYPES: Final = "type.googleapis.com/google.rpc."
_MOST_MS: Final = 2**31 - 1
_MOST_SECONDS: Final = 315_576_000_000
"""The longest ``google.protobuf.Duration``: 10 000 years."""
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class GrpcAnswer:
    """What a gRPC server answers.

    Attributes:
        code: the status code's number: 0 for an admitted call, 8 refused or never, 7 blocked, 14 the store was away.
        message: the sentence; empty for an admitted call.
        trailers: ``ratelimit`` and ``ratelimit-policy``; on a refusal also ``grpc-retry-pushback-ms`` and
            ``grpc-status-details-bin``.
    """

    code: int
    message: str
    trailers: Metadata


def answer(verdict: Verdict, domain: str = DOMAIN) -> GrpcAnswer:
    """Build the answer.

    The pushback (gRFC A6) is the exact wait in ms, rounded up; -1, which means "do not retry", where no wait helps or
    where it does not fit 31 bits (24.8 days). ``RetryInfo`` has the wait to the nanosecond, and is left out where none
    helps.

    Args:
        verdict: the decision's facts.
        domain: who says so, for ``ErrorInfo``: the service's own name, such as ``codes.example``.
    """
    sent = tuple((name.lower(), value) for name, value in fields(verdict) if name.lower().startswith("ratelimit"))
    if verdict.allowed:
        return GrpcAnswer(0, "", sent)
    kind = status_of(verdict)
    message = sentence(verdict)
    pushback = -1 if verdict.retry_after is None else milliseconds_up(verdict.retry_after)
    status = _integer(1, _CODES[kind]) + _text(2, message) + b"".join(_details(verdict, kind, domain))
    trailers: Metadata = (
        ("grpc-retry-pushback-ms", str(pushback if pushback <= _MOST_MS else -1)),
        ("grpc-status-details-bin", status),
    )
    return GrpcAnswer(_CODES[kind], message, (*sent, *trailers))


def _details(verdict: Verdict, kind: int, domain: str) -> Iterator[bytes]:
    """The ``Any``s of ``google.rpc.Status``, as google/rpc/error_details.proto numbers their fields."""
    wait, limit = verdict.retry_after, verdict.limit
    about = {} if wait is None else {"retry_after_ms": str(milliseconds_up(wait))}
    if limit is not None:
        about |= {"quota_limit": limit.name, "quota_limit_value": str(limit.quota.count), "quota": str(limit.quota)}
    yield _any("ErrorInfo", _text(1, _REASONS[kind]) + _text(2, domain) + _map(3, about))
    if wait is not None:
        yield _any("RetryInfo", _message(1, _duration(wait)))
    if verdict.violated:
        yield _any("QuotaFailure", b"".join(_message(1, _violation(one, domain)) for one in verdict.violated))


def _violation(limit: Limit, domain: str) -> bytes:
    """One violated limit. Its subject names the attributes that form the key, never their values."""
    subject = ",".join(limit.by) or "everyone"
    description = f"{limit.name}: {limit.quota}"
    return (
        _text(1, subject)
        + _text(2, description)
        + _text(3, domain)
        + _text(5, limit.name)
        + _integer(7, limit.quota.count)
    )


def _duration(ns: int) -> bytes:
    seconds, nanos = divmod(ns, _SECOND)
    return _integer(1, _MOST_SECONDS) if seconds >= _MOST_SECONDS else _integer(1, seconds) + _integer(2, nanos)


def _any(name: str, value: bytes) -> bytes:
    return _message(3, _text(1, _TYPES + name) + _message(2, value))


def _map(number: int, entries: Mapping[str, str]) -> bytes:
    return b"".join(_message(number, _text(1, key) + _text(2, value)) for key, value in entries.items())


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode("utf-8", "replace")) if text else b""


def _message(number: int, value: bytes) -> bytes:
    """A length-delimited field (wire type 2)."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _integer(number: int, value: int) -> bytes:
    """A non-negative integer field (wire type 0); proto3 leaves out a zero."""
    return _varint(number << 3) + _varint(value) if value else b""


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
