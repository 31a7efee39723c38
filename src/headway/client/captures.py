"""Captured responses: what `curl -i` prints, a HAR file, or JSON lines, as one stream of `Capture`."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headway.client._headers import HeaderFields
from headway.client._moments import instant, to_datetime

_STATUS_LINE = re.compile(r"HTTP/\d(?:\.\d)? (\d{3})(?:[ \t].*)?$")
_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z:-]+:")


@dataclass(frozen=True, slots=True)
class Capture:
    """One response as it was captured.

    Attributes:
        status: The HTTP status.
        headers: Name and value pairs in the order of the wire.
        body: The body's text, perhaps empty.
        received_at: When it arrived, where the capture says it, else the response's own `Date`, else None.
        id: What the capture calls it: an `id`, or the request's URL.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str | bytes
    received_at: datetime | None = None
    id: str | None = None


def from_text(text: str) -> Iterator[Capture]:
    """Read a capture whose format shows itself: HAR, JSON lines, or `curl -i` (`-v` is understood too).

    Raises:
        ValueError: The text is none of these; the message says where it stops being one.
    """
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("{"):
        try:
            whole = json.loads(start)
        except (ValueError, RecursionError):
            return from_json_lines(text)
        return from_har(whole) if isinstance(whole, dict) and "log" in whole else from_json_lines(json.dumps(whole))
    return from_curl(text)


def from_json_lines(text: str) -> Iterator[Capture]:
    """Read one response a line: `status`, `headers` (pairs or an object), `body`, `received_at` and `id`.

    Raises:
        ValueError: A line is no such object; the message names the line.
    """
    for place, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            yield _from_object(one)
        except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"line {place} is no response: expected a JSON object with status, headers and body ({error})"
            ) from error


def from_har(har: dict[str, Any]) -> Iterator[Capture]:
    """Read every response of a HAR file (HTTP Archive 1.2).

    Raises:
        ValueError: It has no `log.entries`, or an entry has no response.
    """
    try:
        entries = list(har["log"]["entries"])
    except (KeyError, TypeError) as error:
        raise ValueError("no HAR file: expected log.entries") from error
    for place, entry in enumerate(entries):
        try:
            yield _from_entry(entry)
        except (ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"entry {place} of the HAR file has no readable response ({error})") from error


def from_curl(text: str) -> Iterator[Capture]:
    """Read what `curl -i` prints; of a chain of redirects or interim answers only the last response.

    Raises:
        ValueError: The text doesn't start with a status line.
    """
    lines = _without_trace(text.lstrip("\ufeff\r\n").split("\n"))
    if not lines or not _STATUS_LINE.match(lines[0].rstrip("\r")):
        raise ValueError(f"no response: expected a status line such as 'HTTP/1.1 429', not {text[:40]!r}")
    starts = [
        place
        for place, line in enumerate(lines)
        if line.startswith("HTTP/") and _STATUS_LINE.match(line.rstrip("\r")) and _headed(lines, place)
    ]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = _STATUS_LINE.match(lines[start].rstrip("\r"))
        blank = next((place for place in range(start, end) if not lines[place].strip("\r")), end)
        body = "\n".join(lines[blank + 1 : end])
        if found is None or (end != len(lines) and not body.strip()):
            continue  # an interim answer, a redirect or a proxy's: another response follows at once
        pairs = (line.rstrip("\r").partition(":") for line in lines[start + 1 : blank])
        headers = tuple((name.strip(), value.strip()) for name, _, value in pairs if name.strip())
        yield Capture(int(found.group(1)), headers, body, _date(headers))


def _headed(lines: list[str], place: int) -> bool:
    """Whether a header field or a blank line follows a status line: a body that quotes one is no new response."""
    if place + 1 >= len(lines):
        return True
    following = lines[place + 1].rstrip("\r")
    return not following or _FIELD.match(following) is not None


def _without_trace(lines: list[str]) -> list[str]:
    """Turn `curl -v` output into that of `curl -i`: keep what was received."""
    if not any(line.startswith("< HTTP/") for line in lines):
        return lines
    kept = []
    for line in lines:
        if line.startswith("< ") or line.rstrip("\r") == "<":
            kept.append(line[2:])
        elif not line.startswith(("* ", "> ", "{ ", "} ")) and line.rstrip("\r") != ">":
            kept.append(line)
    while kept and not kept[0].startswith("HTTP/"):
        kept.pop(0)
    return kept


def _from_object(one: dict[str, Any]) -> Capture:
    """Read one object of JSON lines."""
    headers = one.get("headers") or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    fields = tuple((str(name), str(value)) for name, value in pairs)
    body = one.get("body", "")
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    identity = one.get("id")
    return Capture(
        int(one["status"]),
        fields,
        text,
        _received(one.get("received_at")) or _date(fields),
        None if identity is None else str(identity),
    )


def _from_entry(entry: dict[str, Any]) -> Capture:
    """Read one entry of a HAR file."""
    response = entry["response"]
    headers = tuple((str(field["name"]), str(field["value"])) for field in response.get("headers", ()))
    content = response.get("content") or {}
    body: str | bytes = content.get("text") or ""
    if content.get("encoding") == "base64":
        try:
            body = base64.b64decode(body)
        except binascii.Error:
            body = ""
    started = _received(entry.get("startedDateTime"))
    took = entry.get("time")
    if started is not None and isinstance(took, int | float) and 0 <= took < 1e12:
        started = to_datetime(started.timestamp() + took / 1000, started.tzinfo or UTC)
    url = (entry.get("request") or {}).get("url")
    return Capture(int(response["status"]), headers, body, started or _date(headers), url)


def _received(value: Any) -> datetime | None:
    """Read an instant: ISO 8601 (no zone: UTC) or seconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return to_datetime(float(value))
    if not isinstance(value, str):
        return None
    at = datetime.fromisoformat(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _date(headers: tuple[tuple[str, str], ...]) -> datetime | None:
    """Return the `Date` of a response, the best guess of when it arrived."""
    date = HeaderFields(headers).get("date")
    at = instant(date) if date else None
    return None if at is None else to_datetime(at)
