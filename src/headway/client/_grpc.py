"""gRPC's refusals: `grpc-status`, the pushback (gRFC A6) and `google.rpc.Status` details in trailers.

The few protobuf fields that are evidence are read by hand: no dependency, and what is malformed is simply not there.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from headway.client._headers import HeaderFields
from headway.client._moments import FAR

_LONGEST_MESSAGE = 2048  # characters of it, as written, that are read
_MOST_FIELDS = 64  # of one protobuf message are read
_PUSHBACK = re.compile(r"0|[1-9][0-9]{0,9}")
CODES = {
    "4": "DEADLINE_EXCEEDED",
    "7": "PERMISSION_DENIED",
    "8": "RESOURCE_EXHAUSTED",
    "14": "UNAVAILABLE",
    "16": "UNAUTHENTICATED",
}


@dataclass(slots=True)
class GrpcStatus:
    """What the trailers of a call say; `pushback` and `retry_delay` are seconds; `no_retry`: a pushback forbids it."""

    code: str
    message: str = ""
    pushback: float | None = None
    retry_delay: float | None = None
    reasons: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    limit: int | None = None
    no_retry: bool = False
    texts: list[str] = field(default_factory=list)


def grpc_status(fields: HeaderFields, warnings: list[str]) -> GrpcStatus | None:
    """Read the trailers of a gRPC call; None when it is none or succeeded."""
    code = fields.get("grpc-status")
    if code is None or code == "0":
        return None
    status = GrpcStatus(CODES.get(code, code), unquote((fields.get("grpc-message") or "")[:_LONGEST_MESSAGE]))
    pushback = fields.get("grpc-retry-pushback-ms")
    if pushback is not None:
        if _PUSHBACK.fullmatch(pushback):
            status.pushback = int(pushback) / 1000
        else:
            status.no_retry = True
            warnings.append(f"grpc-retry-pushback-ms: {pushback[:40]!r} asks for no retry at all (gRFC A6).")
    details = fields.get("grpc-status-details-bin")
    if details:
        try:
            raw = base64.b64decode(details[:16_384] + "=" * (-len(details) % 4), validate=True)
            _read_status(raw, status)
        except (binascii.Error, ValueError, IndexError):
            warnings.append("grpc-status-details-bin is malformed and was ignored.")
    return status


def _read_status(raw: bytes, status: GrpcStatus) -> None:
    """Read `google.rpc.Status`: message = 2, details = 3 (`Any`: type_url = 1, value = 2)."""
    for number, value in _protobuf(raw):
        if number == 2 and isinstance(value, bytes) and not status.message:
            status.message = value.decode("utf-8", "replace")
        elif number == 3 and isinstance(value, bytes):
            detail = dict(_protobuf(value))
            url, message = detail.get(1, b""), detail.get(2, b"")
            if isinstance(url, bytes) and isinstance(message, bytes):
                _read_detail(url.rpartition(b".")[2].decode("ascii", "replace"), message, status)


def _read_detail(kind: str, message: bytes, status: GrpcStatus) -> None:
    """Read one of google/rpc/error_details.proto's messages."""
    for number, value in _protobuf(message):
        if kind == "RetryInfo" and number == 1 and isinstance(value, bytes):
            parts = dict(_protobuf(value))
            seconds, nanos = parts.get(1, 0), parts.get(2, 0)
            if isinstance(seconds, int) and isinstance(nanos, int) and seconds < 2**63 and nanos < 10**9:
                status.retry_delay = min(seconds + nanos / 1e9, FAR)
        elif kind == "ErrorInfo" and isinstance(value, bytes):
            if number == 1:
                status.reasons.append(value.decode("utf-8", "replace"))
            elif number == 3:
                entry = dict(_protobuf(value))
                key, text = entry.get(1), entry.get(2)
                if isinstance(text, bytes) and key == b"quota_limit":
                    status.names.append(text.decode("utf-8", "replace"))
                elif isinstance(text, bytes) and key == b"quota_limit_value" and text.isdigit() and len(text) < 20:
                    status.limit = int(text)
        elif kind == "QuotaFailure" and number == 1 and isinstance(value, bytes):
            for part, text in _protobuf(value):
                if part == 2 and isinstance(text, bytes):
                    status.texts.append(text.decode("utf-8", "replace"))
                elif part == 5 and isinstance(text, bytes):
                    status.names.append(text.decode("utf-8", "replace"))
                elif part == 7 and isinstance(text, int):
                    status.limit = text


def _protobuf(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield field numbers and values of a protobuf message: varints and length-delimited; others are skipped.

    Raises:
        IndexError: The message ends early.
        ValueError: The wire type is none of the known ones.
    """
    at = 0
    for _ in range(_MOST_FIELDS):
        if at >= len(raw):
            return
        key, at = _varint(raw, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(raw, at)
            yield key >> 3, value
        elif wire == 2:
            length, at = _varint(raw, at)
            if at + length > len(raw):
                raise IndexError("a field ends after its message")
            yield key >> 3, raw[at : at + length]
            at += length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ValueError(f"protobuf wire type {wire} is not in use")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return a varint of at most ten bytes and where it ends."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint has at most ten bytes")
