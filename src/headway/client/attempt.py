"""What a retrying caller knows: of its request, of an answer, and of the attempts so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from headway.client._headers import HeaderFields, HeadersLike
from headway.client.rejection import Rejection

__all__ = ["IDEMPOTENT", "Attempt", "Failure", "Outgoing", "Reply"]

IDEMPOTENT = frozenset(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY", "PROPFIND"])
"""Methods that may be sent twice (RFC 9110 §9.2.2, and the safe QUERY and PROPFIND)."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request, as far as retrying and pacing look at it.

    Attributes:
        repeatable: sending it twice does what sending it once does: an idempotent method, or an Idempotency-Key.
        rewindable: its body can be sent again from the start.
        attributes: what a pace is keyed by: host, method, path and whatever the caller adds.
        cost: what it costs a pace; None: 1 of everything.
    """

    repeatable: bool = True
    rewindable: bool = True
    attributes: Mapping[str, object] = field(default_factory=dict)
    cost: Any = None

    @classmethod
    def http(cls, method: str, headers: HeadersLike, *, rewindable: bool, **attributes: object) -> Outgoing:
        """An HTTP request: repeatable by its method, or because it has an `Idempotency-Key`."""
        repeatable = method.upper() in IDEMPOTENT or bool(HeaderFields(headers).get("idempotency-key"))
        return cls(repeatable, rewindable, {"method": method.upper(), **attributes})


@dataclass(frozen=True, slots=True)
class Reply(Generic[R]):
    """An answer that arrived.

    Attributes:
        status: the HTTP status; 200 for gRPC.
        headers: its fields, in any form that `read` takes.
        body: what was read of it: text, bytes or parsed JSON; None where it was left alone (a stream).
        response: what the client library made of it, the body still readable.
        rewindable: False where sending showed that the request's body cannot be sent again.
    """

    status: int
    headers: HeadersLike
    body: Any
    response: R
    rewindable: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer arrived.

    Attributes:
        error: what the client library raised.
        unsent: the connection was never made, so nothing was done.
        connection: it is the connection that failed; False for anything else, which is never retried.
        rewindable: see ``Reply``.
    """

    error: Exception
    unsent: bool = False
    connection: bool = True
    rewindable: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that did not succeed.

    Attributes:
        number: counted from 1.
        at: when its answer arrived, on the caller's clock.
        status: the HTTP status, or None where no answer arrived.
        rejection: how the answer was read, or None where no answer arrived.
        error: the connection's error as text, or None.
        wait: seconds from the answer until the next attempt was to be made; None after the last.
    """

    number: int
    at: datetime
    status: int | None = None
    rejection: Rejection | None = None
    error: str | None = None
    wait: float | None = None
