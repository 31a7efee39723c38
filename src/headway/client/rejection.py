"""A rejection: somebody else's refusal as the client read it."""

import math
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Any

from headway.client._sentence import sentence


class RejectionKind(StrEnum):
    """What a refusal is, by what the caller should do about it."""

    RATE_LIMITED = "rate_limited"
    """Too many requests in a period shorter than a day: wait, then try again."""
    QUOTA_EXHAUSTED = "quota_exhausted"
    """An allowance of a day or longer, or money, is spent: stop; retrying burns attempts."""
    OVERLOADED = "overloaded"
    """The server's own capacity is short: back off."""
    TRANSIENT = "transient"
    """Temporary and not about the caller (maintenance, a restart): back off."""
    FORBIDDEN = "forbidden"
    """Time does not lift it."""
    MISCONFIGURED = "misconfigured"
    """The caller's set-up is wrong: a key, a switch, an address."""
    AMBIGUOUS = "ambiguous"
    """Two causes with different right actions, not told apart by the response."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One refusal by somebody else's limiter, read from its response.

    Attributes:
        kind: What kind of refusal it is.
        retry_after: Seconds to wait, 0 or more, never infinite, as measured on the server's clock; None when the
            response states no wait. No margin is added.
        retry_at: The same instant on the caller's clock; None without a hint or beyond the year 9999.
        limit: How many the violated limit allows; None when not stated in a field, or when only limits that were
            not violated are shown.
        remaining: What is left of the violated limit; mostly 0.
        reset_at: When the violated limit resets, on the server's clock; only from a field that says so.
        limit_name: What the wire calls the violated limit, else None.
        window: The violated limit's period in seconds, where stated.
        source: Which evidence gave the wait, else which gave the kind: a field name in lower case, `body: FIELD`,
            `body text`, or `status`.
        body: The response's body as it was given.
        warnings: Hints that were malformed and therefore ignored, one sentence each.
        no_retry: The server asks for no retry at all: a negative or unreadable gRPC pushback (gRFC A6), or
            `x-should-retry: false`.
    """

    kind: RejectionKind
    retry_after: float | None = None
    retry_at: datetime | None = None
    limit: int | None = None
    remaining: int | None = None
    reset_at: datetime | None = None
    limit_name: str | None = None
    window: float | None = None
    source: str = "status"
    body: Any = None
    warnings: tuple[str, ...] = ()
    no_retry: bool = False

    def __post_init__(self) -> None:
        """Reject waits that nobody could act on."""
        if self.retry_after is not None and not 0 <= self.retry_after < math.inf:
            raise ValueError(f"retry_after is 0 or more finite seconds, not {self.retry_after}")

    @property
    def waiting_helps(self) -> bool:
        """Whether the refusal can end by itself."""
        return self.kind not in (RejectionKind.FORBIDDEN, RejectionKind.MISCONFIGURED)

    def sentence(self, locale: str = "en", *, zone: tzinfo | None = None) -> str:
        """Say the refusal to a person: what happened and when to try again.

        Args:
            locale: A language tag; English is the only language so far, and the one used for any other.
            zone: The zone of an absolute time; by default the zone of `retry_at`.
        """
        del locale
        retry_at = self.retry_at.astimezone(zone) if self.retry_at and zone else self.retry_at
        return sentence(self.kind.value, self.retry_after, retry_at, self.window)
