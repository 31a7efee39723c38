"""What logs with named values call the fields, and how to read a value of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headway.analysis.logs.block import FIELDS
from headway.analysis.logs.lines import split_request, split_target, without_port
from headway.analysis.logs.moments import moment, seconds
from headway.core.quota import MICROSECOND, MILLISECOND, SECOND

__all__ = ["CADDY", "GENERIC", "TRAEFIK", "Names", "check_columns", "known_names", "plain", "readers_of"]

Names = Mapping[str, tuple[str, ...]]
"""For each field (and for ``request``, a whole request line) the names it may have, the best first; a dot leads inwards."""

GENERIC: Final[Names] = {
    "time": ("time_iso8601", "msec", "time_local", "@timestamp", "timestamp", "time", "ts", "datetime", "date_time", "date"),
    "address": ("remote_addr", "client_ip", "clientip", "remote_ip", "client_address", "address", "ip", "client", "source_ip", "src_ip", "remote_host"),
    "user": ("remote_user", "user", "username", "user_name", "user_id", "userid", "account", "account_id"),
    "agent": ("http_user_agent", "user_agent", "useragent", "agent", "ua"),
    "method": ("request_method", "method", "http_method", "verb"),
    "path": ("request_uri", "uri", "path", "url", "request_path", "endpoint"),
    "status": ("status", "status_code", "http_status", "response_status", "code"),
    "referer": ("http_referer", "http_referrer", "referer", "referrer"),
    "host": ("http_host", "host", "server_name", "vhost", "virtual_host", "domain"),
    "api_key": ("api_key", "apikey", "api-key", "x_api_key", "x-api-key", "http_x_api_key", "key_id"),
    "duration": ("request_time", "duration", "duration_s", "elapsed", "response_time", "duration_ms", "latency_ms", "response_time_ms", "elapsed_ms", "duration_us", "duration_ns"),
    "bytes": ("body_bytes_sent", "bytes_sent", "bytes", "size", "response_size", "sent_bytes"),
    "request": ("request", "request_line"),
}  # fmt: skip
"""nginx's variables, which its JSON formats are made of, and what exports and other programs write."""

CADDY: Final[Names] = {
    "time": ("ts",),
    "address": ("request.client_ip", "request.remote_ip", "request.remote_addr"),
    "user": ("user_id",),
    "agent": ("request.headers.User-Agent",),
    "method": ("request.method",),
    "path": ("request.uri",),
    "status": ("status",),
    "referer": ("request.headers.Referer",),
    "host": ("request.host",),
    "api_key": ("request.headers.X-Api-Key", "request.headers.X-API-Key"),
    "duration": ("duration",),
    "bytes": ("size",),
}

TRAEFIK: Final[Names] = {
    "time": ("StartUTC", "StartLocal", "time"),
    "address": ("ClientHost", "ClientAddr"),
    "user": ("ClientUsername",),
    "agent": ("request_User-Agent",),
    "method": ("RequestMethod",),
    "path": ("RequestPath",),
    "status": ("DownstreamStatus", "OriginStatus"),
    "referer": ("request_Referer",),
    "host": ("RequestHost", "RequestAddr"),
    "api_key": ("request_X-Api-Key", "request_X-API-Key"),
    "duration": ("Duration",),
    "bytes": ("DownstreamContentSize",),
}

_SUFFIXES: Final = (("_ms", MILLISECOND), ("_us", MICROSECOND), ("_ns", 1))


def check_columns(columns: Mapping[str, str]) -> None:
    """Check what somebody calls the fields.

    Raises:
        ValueError: a field that there is none of; names it and what is accepted.
    """
    for field in columns:
        if field not in (*FIELDS, "request"):
            raise ValueError(
                f"--columns names the field {field!r}; expected NAME=COLUMN with any of {', '.join((*FIELDS, 'request'))}"
            )


def known_names(names: Names, columns: Mapping[str, str] | None) -> Names:
    """The names with those that somebody gave instead."""
    return {**names, **{field: (name,) for field, name in (columns or {}).items()}}


def readers_of(name: str, field: str, form: str) -> Callable[[Any], Any]:
    """How to read a value of a field that is called ``name`` in a log of a format."""
    if field == "duration":
        unit = 1 if form == "traefik-json" else next((ns for end, ns in _SUFFIXES if name.endswith(end)), SECOND)
        return lambda value: seconds(value, unit)
    return _READERS.get(field, plain)


def plain(value: Any) -> str | None:
    """A text, a number's text, the first of a list; None for "", "-" and anything else."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str):
        return value if value and value != "-" else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _address(value: Any) -> str | None:
    text = plain(value)
    return None if text is None else without_port(text)


def _path(value: Any) -> str | None:
    text = plain(value)
    return None if text is None else split_target(text)[0]


def _host(value: Any) -> str | None:
    text = plain(value)
    return None if text is None else without_port(text)


def request_part(value: Any, field: str) -> str | None:
    """Method, path or host out of a request line, as far as it has them."""
    text = plain(value)
    if text is None:
        return None
    return split_request(text)[("method", "path", "host").index(field)]


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "time": moment,
    "status": _whole,
    "bytes": _whole,
    "address": _address,
    "path": _path,
    "host": _host,
}
