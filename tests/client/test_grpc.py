"""gRPC trailers: pushback and `google.rpc.Status` details."""

import base64

import pytest

from headway.client import Rejection, read


def varint(value: int) -> bytes:
    """Write a protobuf varint."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """Write one protobuf field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def detail(kind: str, message: bytes) -> bytes:
    """Write one `Any` of a status's details."""
    return field(3, field(1, f"type.googleapis.com/google.rpc.{kind}") + field(2, message))


def refused(*details: bytes, message: str = "", **trailers: str) -> Rejection:
    """Read a call that ended with RESOURCE_EXHAUSTED."""
    headers = {"Content-Type": "application/grpc", "grpc-status": "8", "grpc-message": message}
    if details:
        status = field(1, 8) + b"".join(details)
        headers["grpc-status-details-bin"] = base64.b64encode(status).decode().rstrip("=")
    headers |= {name.replace("_", "-"): value for name, value in trailers.items()}
    rejection = read(200, headers, b"", received_at=0.0)
    assert rejection is not None
    return rejection


def test_details_give_wait_name_and_limit() -> None:
    """RetryInfo gives the wait with its nanoseconds, ErrorInfo the limit's name and value, the name its period."""
    metadata = [field(3, field(1, "quota_limit") + field(2, "ReadsPerMinute"))]
    metadata.append(field(3, field(1, "quota_limit_value") + field(2, "60")))
    rejection = refused(
        detail("RetryInfo", field(1, field(1, 30) + field(2, 500_000_000))),
        detail("ErrorInfo", field(1, "RATE_LIMIT_EXCEEDED") + field(2, "googleapis.com") + b"".join(metadata)),
    )
    assert (rejection.kind, rejection.retry_after, rejection.source) == ("rate_limited", 30.5, "body: RetryInfo")
    assert (rejection.limit_name, rejection.limit) == ("ReadsPerMinute", 60)


def test_a_quota_failure_of_a_day_is_a_quota() -> None:
    """A violated quota whose id states a day is exhausted, not limited."""
    violation = field(2, "Daily reads are used up") + field(5, "ReadsPerDay") + field(7, 200)
    rejection = refused(detail("QuotaFailure", field(1, violation)))
    assert (rejection.kind, rejection.limit_name, rejection.limit) == ("quota_exhausted", "ReadsPerDay", 200)


def test_pushback_beats_retry_info() -> None:
    """The pushback is what gRPC clients obey; RetryInfo beside it is advice."""
    rejection = refused(detail("RetryInfo", field(1, field(1, 30))), message="slow down", grpc_retry_pushback_ms="300")
    assert rejection.retry_after == 0.3


@pytest.mark.parametrize("pushback", ["-1", "soon", "007", "1.5", ""])
def test_a_negative_pushback_forbids_retries(pushback: str) -> None:
    """A negative or malformed pushback is no hint, and the warning says what it asks for (gRFC A6)."""
    rejection = refused(message="too many requests", grpc_retry_pushback_ms=pushback)
    assert rejection.retry_after is None
    assert "no retry" in rejection.warnings[0]


@pytest.mark.parametrize("details", ["!", "////", "Cg", base64.b64encode(field(3, b"\xff" * 20)).decode()])
def test_malformed_details_are_ignored(details: str) -> None:
    """Details that are no protobuf are ignored with a warning; the rest still counts."""
    rejection = refused(message="too many requests", grpc_status_details_bin=details)
    assert rejection.kind == "rate_limited"
    assert rejection.warnings


@pytest.mark.parametrize(
    ("code", "kind"), [("14", "transient"), ("7", "forbidden"), ("16", "misconfigured"), ("8", "ambiguous")]
)
def test_a_status_without_a_word(code: str, kind: str) -> None:
    """A bare status says only its own kind; a bare RESOURCE_EXHAUSTED may be a rate or a spent quota."""
    rejection = read(200, {"grpc-status": code}, b"", received_at=0.0)
    assert rejection is not None
    assert rejection.kind == kind


@pytest.mark.parametrize("code", ["0", "5", "13"])
def test_other_statuses_are_no_refusal(code: str) -> None:
    """A call that succeeded, or failed for another reason, wasn't refused."""
    assert read(200, {"grpc-status": code, "grpc-message": "x"}, b"", received_at=0.0) is None


@pytest.mark.parametrize("pushback", ["-1", "soon", "007", ""])
def test_a_negative_or_unreadable_pushback_forbids_a_retry(pushback: str) -> None:
    """GRFC A6: a pushback that is no whole number of milliseconds means no retry at all."""
    assert refused(grpc_retry_pushback_ms=pushback).no_retry
    assert not refused(grpc_retry_pushback_ms="300").no_retry
    assert not refused().no_retry
