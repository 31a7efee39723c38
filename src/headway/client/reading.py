"""Read any service's refusal into one `Rejection`.

Nothing here reads a clock except the default of `received_at`, and nothing a server can send makes it raise. The
order of the evidence:

1. What kind it is: codes in the body, then sentences, then the violated limit, then the status.
2. How long to wait: the Retry-After family, else the reset of the violated limit, else a body field, else words.
3. A wait is measured from the server's `Date` where it is given; limits on a cached response (`Age` > 0) are ignored.
"""

import math
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from headway.client._body import Said, read_body
from headway.client._body_fields import MESSAGES
from headway.client._dialects import Dialect, minutes_in, spoken
from headway.client._grpc import GrpcStatus, grpc_status
from headway.client._headers import HeaderFields, HeadersLike
from headway.client._ietf import limits_from_ratelimit, with_policy
from headway.client._kinds import Evidence, decide
from headway.client._limit_fields import json_in_fields, limits_from_fields
from headway.client._limits import ShownLimit, violated
from headway.client._moments import FAR, instant, number, offset, to_datetime
from headway.client._prose import period_of_name, quota_in_words, tidy
from headway.client._prose import wait as wait_in_words
from headway.client._retry_after import retry_after
from headway.client._vocabulary import limit_named_in, names_a_limit, speaks_of_a_limit
from headway.client.rejection import Rejection, RejectionKind

_NAMING = frozenset(
    ["headererror", "tag", "namespaced", "reason"]
)  # places whose code is a name, however general its words
_STATUSES = frozenset(["code", "status", "statuscode", "errorcode", "error"])
_NEAR = 2.0  # two hints less than this many seconds apart are one hint, rounded differently


def read(
    status: int,
    headers: HeadersLike = None,
    body: Any = None,
    *,
    received_at: datetime | float | None = None,
    zone: tzinfo | str | None = None,
) -> Rejection | None:
    """Read one response; None when it's no refusal.

    Args:
        status: The HTTP status; 200 for gRPC.
        headers: A mapping or pairs, several lines of one name as several pairs; for gRPC the trailers as well.
        body: Text, bytes, or JSON already parsed.
        received_at: When the response arrived on the caller's clock: an aware datetime, or seconds since 1970; by
            default now. Only used for `retry_at` when the response has a `Date`.
        zone: Whose midnight "tomorrow" is, where the response doesn't say it (a tzinfo or an IANA name).

    Returns:
        The rejection, with `retry_at` in the zone of `received_at`.

    Raises:
        ValueError: `received_at` is a naive datetime or no finite number, or `zone` is unknown.
    """
    arrived, local = _arrival(received_at)
    known_zone = ZoneInfo(zone) if isinstance(zone, str) else zone
    return _Reading(status, HeaderFields(headers), body, arrived, local, known_zone).rejection()


def _arrival(received_at: datetime | float | None) -> tuple[float, tzinfo]:
    """Return the arrival in seconds since 1970, and the caller's zone."""
    if received_at is None:
        received_at = datetime.now(UTC)
    if isinstance(received_at, datetime):
        if received_at.tzinfo is None:
            raise ValueError(f"received_at has no time zone: {received_at!r}; give an aware datetime")
        return received_at.timestamp(), received_at.tzinfo
    if not math.isfinite(received_at):
        raise ValueError(f"received_at is finite seconds since 1970, not {received_at!r}")
    return float(received_at), UTC


class _Reading:
    """The reading of one response: each piece of evidence once, then the conclusions."""

    def __init__(
        self, status: int, fields: HeaderFields, body: Any, arrived: float, local: tzinfo, zone: tzinfo | None
    ) -> None:
        self.status = status
        self.fields = fields
        self.body = body
        self.arrived = arrived
        self.local = local
        self.zone = zone
        self.warnings: list[str] = []
        self.age = number(fields.get("age") or "") or 0.0
        self.now = self._server_now()
        self.grpc: GrpcStatus | None = grpc_status(fields, self.warnings)

    def _server_now(self) -> float:
        """Return the server's time: its `Date` plus the response's age, else the caller's clock."""
        date = self.fields.get("date")
        at = instant(date) if date else None
        if at is None:
            if date:
                self.warnings.append(f"Date: {date[:60]!r} is malformed and was ignored.")
            return self.arrived
        return at + min(self.age, 1e9)

    def rejection(self) -> Rejection | None:
        """Return the conclusions, or None when the response is no refusal."""
        said = read_body(self.body, (self.fields.get("content-type") or "").lower(), self.now)
        self._add_error_fields(said)
        json_fields = [value for value in json_in_fields(self.fields) if isinstance(value, dict | list)]
        for value in json_fields:
            aside = read_body(value, "", self.now)
            said.waits += aside.waits
            said.limits += aside.limits
        self._add_grpc(said)
        said.texts = tidy(said.texts)
        dialects = spoken(self.fields, said)
        minutes = {name for one in dialects for name in one.minutes}
        if minutes:
            said.waits.extend(one for value in json_fields for one in minutes_in(value, minutes))
        shown, reasons = self._shown(said, dialects)
        said.names.extend(name for text in said.texts if (name := limit_named_in(text)) is not None)
        said.names.sort(key=lambda name: -(period_of_name(name) or 0.0))  # of several names the longest period
        named = [*reasons, *said.violated, *said.names]
        chosen = violated(shown, named)
        waits = retry_after(self.fields, self.now, self.warnings)
        words = self._wait_in_words(said, dialects)
        evidence = Evidence(
            status=self.status,
            codes=[code for _, code in said.codes],
            texts=said.texts,
            names=[name for name in (*said.violated, *said.names, *reasons, *said.periods) if name],
            chosen=chosen,
            dialect=next((one.means for one in dialects if one.means is not None), None),
            problem_type=said.problem_type,
            failed=said.failed or self.grpc is not None,
            hint=max(
                (*(each for _, each in (*waits, *said.waits)), *(() if words is None else (words,))), default=None
            ),
            says_429=self.status != 429 and any(key in _STATUSES and text == "429" for key, text in said.fields),
            grpc=self.grpc.code if self.grpc else None,
        )
        decision = decide(evidence)
        if decision is None:
            return None
        kind, source = decision
        no_retry = self._asks_for_no_retry()
        if kind in (RejectionKind.FORBIDDEN, RejectionKind.MISCONFIGURED):
            return Rejection(kind, source=source, body=self.body, warnings=tuple(self.warnings), no_retry=no_retry)
        wait, wait_source = self._wait(waits, chosen, said, words)
        return Rejection(
            kind=kind,
            retry_after=wait,
            retry_at=None if wait is None else to_datetime(self.arrived + wait, self.local),
            limit=chosen.limit if chosen else None,
            remaining=chosen.remaining if chosen else None,
            reset_at=to_datetime(self.now + chosen.reset) if chosen and chosen.reset is not None else None,
            limit_name=self._name(chosen, reasons, said) if kind is not RejectionKind.TRANSIENT else None,
            window=chosen.window if chosen else None,
            source=wait_source or source,
            body=self.body,
            warnings=tuple(self.warnings),
            no_retry=no_retry,
        )

    def _asks_for_no_retry(self) -> bool:
        """Whether the server forbids a retry: gRFC A6's pushback, or the field that some SDKs obey."""
        if self.grpc is not None and self.grpc.no_retry:
            return True
        return (self.fields.get("x-should-retry") or "").lower() == "false"

    def _add_error_fields(self, said: Said) -> None:
        """Take codes from header fields that name an error, and mark the response as a failure."""
        for lower, values in self.fields.lines.items():
            if lower.endswith(("ratelimited", "overloaded")) and values[0].lower() in ("true", "1"):
                said.codes.append(("headerflag", lower.rpartition("-")[2]))
                continue
            if "error" in lower and lower.rpartition("-")[2] in ("error", "errortype", "code", "type", "errorcode"):
                code = values[0].split(":")[0].split(";")[0].strip()
                if code and " " not in code and not code.isdigit():
                    said.codes.insert(0, ("headererror", code[:96]))
                    said.failed = True

    def _add_grpc(self, said: Said) -> None:
        """Take what gRPC trailers say as if a body said it."""
        if self.grpc is None:
            return
        said.codes.extend(("reason", reason) for reason in self.grpc.reasons)
        said.texts.extend(text for text in (self.grpc.message, *self.grpc.texts) if text)
        said.names.extend(self.grpc.names)
        if self.grpc.limit is not None:
            said.limits.append(ShownLimit("", self.grpc.limit))
        if self.grpc.pushback is not None:
            said.waits.append(("grpc-retry-pushback-ms", self.grpc.pushback))
        elif self.grpc.retry_delay is not None:
            said.waits.append(("RetryInfo", self.grpc.retry_delay))

    def _shown(self, said: Said, dialects: list[Dialect]) -> tuple[list[ShownLimit], list[str]]:
        """Return every limit shown, and what header fields name as violated."""
        if self.age > 0:
            return [], []
        ietf, policies = limits_from_ratelimit(self.fields, self.warnings)
        shown, reasons = limits_from_fields(self.fields, self.now, self.warnings)
        if said.headers:
            more, more_reasons = limits_from_fields(HeaderFields(said.headers), self.now, self.warnings)
            shown += more
            reasons += more_reasons
        shown = [with_policy(one, policies) for one in shown]
        for one in dialects:
            if one.remaining:
                shown = [limit for limit in shown if limit.source not in one.remaining]
                left, limit_field, reset = (self.fields.get(name) or "" for name in one.remaining)
                amount, most = number(left), number(limit_field)
                if amount is not None:
                    shown.append(
                        ShownLimit(
                            "",
                            None if most is None else int(most),
                            int(amount),
                            offset(reset, self.now, unit=one.reset_unit, reset=True),
                            source=one.remaining[2],
                        )
                    )
        shown = ietf + shown + said.limits
        if not shown and len(policies) == 1:
            shown = policies
        return shown, reasons

    def _wait_in_words(self, said: Said, dialects: list[Dialect]) -> float | None:
        """Return the longest wait that the sentences announce."""
        zone = self.zone
        if zone is None:
            name = next((one.zone for one in dialects if one.zone), None)
            try:
                zone = ZoneInfo(name) if name else None
            except (OSError, ValueError, KeyError):  # no time zone data on this machine
                zone = None
        found = [seconds for text in said.texts if (seconds := wait_in_words(text, self.now, zone)) is not None]
        return max(found, default=None)

    def _wait(
        self, headers: list[tuple[str, float]], chosen: ShownLimit | None, said: Said, words: float | None
    ) -> tuple[float | None, str | None]:
        """Return the wait and the evidence it comes from."""
        in_body = max(said.waits, key=lambda one: one[1], default=None)
        if said.headers:
            headers = headers or retry_after(HeaderFields(said.headers), self.now, self.warnings)
        if headers:
            source, wait = max(headers, key=lambda one: one[1])
            if in_body is not None and 0 < in_body[1] - wait < _NEAR:
                return _seconds(in_body[1]), f"body: {in_body[0]}"
            return _seconds(wait), source
        if chosen is not None:
            if chosen.wait is not None:
                return _seconds(chosen.wait), chosen.source
            if chosen.reset is not None:
                return _seconds(chosen.reset), chosen.source
        if in_body is not None:
            return _seconds(in_body[1]), f"body: {in_body[0]}"
        if words is not None:
            return _seconds(words), "body text"
        return None, None

    def _name(self, chosen: ShownLimit | None, reasons: list[str], said: Said) -> str | None:
        """Return what the wire calls the violated limit."""
        if said.violated:
            return said.violated[0] if len(said.violated) == 1 else None
        for name in (*reasons, *said.names):
            if name:
                return name
        if chosen is not None and (chosen.name or chosen.label):
            return chosen.name or chosen.label
        for text in said.texts:
            if (quota := quota_in_words(text)) is not None:
                return quota
        specific = [
            code
            for place, code in said.codes
            if place not in MESSAGES and (speaks_of_a_limit(code) if place in _NAMING else names_a_limit(code))
        ]
        return specific[0] if specific else None


def _seconds(wait: float) -> float:
    """Return a wait as seconds from 0 up, an `int` when whole."""
    wait = min(max(wait, 0.0), FAR)
    return int(wait) if wait == int(wait) and wait < 2**53 else wait
