"""Where a Redis is and how to reach it: from a URL, or from a redis-py or valkey-py client that somebody brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from headway.errors import ConfigError
from headway.stores.shown import shown, unwritable

__all__ = ["ACCEPTED", "Node", "Settings", "Tls", "read_url"]

ACCEPTED: Final = (
    "redis://[[user]:password@]host[:port][/db], rediss://…, unix:///path/to/socket[?db=0], "
    "redis+sentinel://host1[:port],host2/service[/db], redis+cluster://host1[:port],host2 (rediss+… with TLS)"
)
_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_SCHEMES: Final = {
    f"redis{tls}{separator}{mode}": (bool(tls), mode or "single")
    for tls in ("", "s")
    for separator, mode in (("", ""), ("+", "sentinel"), ("+", "cluster"))
}
_QUERY: Final = (
    "db", "username", "password", "protocol", "sentinel_username", "sentinel_password",
    "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname",
)  # fmt: skip


class Node(NamedTuple):
    """One server: a host and port, or the path of a Unix socket."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return self.path or (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}")


@dataclass(frozen=True, slots=True)
class Tls:
    """How the other end's certificate is checked and what is shown to it; the defaults are the system's."""

    ca_certs: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    verify: bool = True
    check_hostname: bool = True
    ca_path: str | None = None
    ca_text: str | bytes | None = None
    password: str | None = field(default=None, repr=False)
    min_version: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that has to be known to connect.

    Attributes:
        mode: what the nodes are: one server, Sentinels that know it, or some nodes of a cluster.
        nodes: at least one.
        db: the database's number.
        username: for AUTH; empty without one.
        password: for AUTH; None without one.
        credentials: asked for (username, password) at each connection instead.
        tls: None without TLS.
        service: what Sentinel calls the master.
        sentinel_username: for AUTH to Sentinels.
        sentinel_password: the same.
        protocol: 2 or 3.
        remap: from the (host, port) that a cluster names to where we find it; None where that is the same.
    """

    mode: Literal["single", "sentinel", "cluster"]
    nodes: tuple[Node, ...]
    db: int = 0
    username: str = ""
    password: str | None = field(default=None, repr=False)
    credentials: Callable[[], Any] | None = field(default=None, repr=False)
    tls: Tls | None = None
    service: str = ""
    sentinel_username: str = ""
    sentinel_password: str | None = field(default=None, repr=False)
    protocol: int = 2
    remap: Callable[[tuple[str, int]], tuple[str, int]] | None = None

    def named(self, host: str, port: int, asked: Node) -> Node:
        """The server that a cluster names; without a host it is the one that was asked."""
        place = (asked.host if host in ("", "?") else host, port)
        return Node(*(place if self.remap is None else self.remap(place)))

    def for_sentinels(self) -> Settings:
        """How to log in to the Sentinels."""
        return replace(
            self, db=0, username=self.sentinel_username, password=self.sentinel_password, credentials=None, protocol=2
        )

    def __str__(self) -> str:
        """Where it is, without a password."""
        scheme = "rediss" if self.tls else "redis"
        mode = "" if self.mode == "single" else f"+{self.mode}"
        place = f"/{self.service}" if self.service else ""
        if self.nodes[0].path:
            return f"unix://{self.nodes[0].path}"
        return f"{scheme}{mode}://{','.join(map(str, self.nodes))}{place}/{self.db}"


def read_url(url: str, options: Mapping[str, Callable[[str], Any]]) -> tuple[Settings, dict[str, Any]]:
    """The settings a URL names, and the store's options among its query.

    Args:
        url: see ``ACCEPTED``; its parts are percent-decoded.
        options: how to read each query parameter that belongs to the store.

    Raises:
        ConfigError: names the URL without its password, what is wrong with it and what is accepted.
    """
    said = repr(shown(url))
    wrong = unwritable(url)
    if wrong:
        raise ConfigError(f"store URL {said} {wrong}")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"store URL {said} is no URL ({error}); expected {ACCEPTED}") from None
    query: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in query:
            raise ConfigError(f"store URL {said} gives {name!r} twice")
        if name not in _QUERY and name not in options:
            known = ", ".join((*options, *_QUERY))
            raise ConfigError(f"store URL {said} has the parameter {name!r}; known are {known}")
        query[name] = value
    chosen: dict[str, Any] = {}
    for name, read in options.items():
        if name in query:
            try:
                chosen[name] = read(query[name])
            except ValueError as error:
                raise ConfigError(f"store URL {said}: {name} is {query[name]!r}: {error}") from None
    return _settings(parts, query, said), chosen


def _settings(parts: SplitResult, query: Mapping[str, str], said: str) -> Settings:
    nodes: tuple[Node, ...]
    if parts.scheme == "unix":
        if parts.netloc.rpartition("@")[2] or not parts.path.strip("/"):
            raise ConfigError(f"store URL {said} names no socket; expected unix:///path/to/socket")
        secure, mode, nodes = False, "single", (Node("", 0, unquote(parts.path)),)
        rest: list[str] = []
    elif parts.scheme in _SCHEMES:
        secure, mode = _SCHEMES[parts.scheme]
        nodes = _nodes(parts.netloc.rpartition("@")[2], _SENTINEL_PORT if mode == "sentinel" else _PORT, said)
        rest = [unquote(part) for part in parts.path.split("/")[1:]]
    else:
        raise ConfigError(f"store URL {said} names no store known here; expected {ACCEPTED}")
    if mode == "single" and len(nodes) > 1:
        raise ConfigError(f"store URL {said} names several hosts; expected redis+cluster:// or redis+sentinel://")
    service = ""
    if mode == "sentinel":
        service = rest.pop(0) if rest else ""
        if not service:
            raise ConfigError(f"store URL {said} names no service; expected redis+sentinel://host1,host2/service[/db]")
    db = query.get("db") or (rest.pop(0) if rest else "") or "0"
    if any(rest) or not db.isdecimal():
        raise ConfigError(f"store URL {said}: the database is {'/'.join([db, *rest])!r}; expected a number from 0")
    if mode == "cluster" and int(db):
        raise ConfigError(f"store URL {said}: the database is {db}; a cluster has only 0")
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    protocol = query.get("protocol", "2")
    if protocol not in ("2", "3"):
        raise ConfigError(f"store URL {said}: protocol is {protocol!r}; expected 2 or 3")
    return Settings(
        mode,  # type: ignore[arg-type]  # one of _SCHEMES
        nodes,
        int(db),
        query.get("username", unquote(user)),
        query.get("password", unquote(password) if ":" in parts.netloc.rpartition("@")[0] else None),
        tls=_tls(query, said, secure=secure),
        service=service,
        sentinel_username=query.get("sentinel_username", ""),
        sentinel_password=query.get("sentinel_password"),
        protocol=int(protocol),
    )


def _nodes(hosts: str, port: int, said: str) -> tuple[Node, ...]:
    nodes = []
    for host in hosts.split(","):
        name, bracket, after = host.partition("]")
        name, _, digits = (name[1:], "", after[1:]) if bracket else host.partition(":")
        if (not digits.isdecimal() and digits) or (digits and not 0 < int(digits) < 65536):
            raise ConfigError(f"store URL {said}: the port of {host!r} is {digits!r}; expected 1 to 65535")
        nodes.append(Node(unquote(name) or "localhost", int(digits) if digits else port))
    return tuple(nodes)


def _tls(query: Mapping[str, str], said: str, *, secure: bool) -> Tls | None:
    if not secure:  # whoever says how certificates are checked means TLS
        for name in query:
            if name.startswith("ssl_"):
                raise ConfigError(f"store URL {said} has {name!r} but no TLS; expected rediss:// at the beginning")
        return None
    reqs = query.get("ssl_cert_reqs", "required")
    check = query.get("ssl_check_hostname", "true").lower()
    if reqs not in ("required", "none"):
        raise ConfigError(f"store URL {said}: ssl_cert_reqs is {reqs!r}; expected required or none")
    if check not in ("true", "false"):
        raise ConfigError(f"store URL {said}: ssl_check_hostname is {check!r}; expected true or false")
    verify = reqs == "required"
    ca, cert, key = (query.get(name) for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"))
    return Tls(ca, cert, key, verify=verify, check_hostname=verify and check == "true")
