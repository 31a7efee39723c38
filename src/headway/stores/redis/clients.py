"""The settings of a client that somebody brings: redis-py or valkey-py, synchronous or not, cluster or Sentinel or plain.

Only its settings are used: where the server is, how to log in, TLS. headway opens connections of its own, so the client's
time-outs, its retries, its pool's size, ``decode_responses`` and its protocol make no difference, and closing one
leaves the other open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.errors import ConfigError, kind_of
from headway.stores.redis.settings import ACCEPTED, Node, Settings, Tls

__all__ = ["settings_of"]


def settings_of(client: Any) -> Settings:
    """What a client knows about its server.

    Raises:
        ConfigError: it is no client we know.
    """
    cluster = getattr(client, "nodes_manager", None)
    if cluster is not None:
        nodes = getattr(cluster, "startup_nodes", {})
        places = tuple(Node(node.host, int(node.port)) for node in nodes.values())
        keywords = getattr(client, "connection_kwargs", None) or getattr(cluster, "connection_kwargs", {})
        secure = bool(keywords.get("ssl")) or "SSL" in getattr(keywords.get("connection_class"), "__name__", "")
        made = _made("cluster", places, {**keywords, "db": 0}, secure)
        return replace(made, remap=getattr(cluster, "address_remap", None))
    pool = getattr(client, "connection_pool", None)
    keywords = getattr(pool, "connection_kwargs", None)
    if keywords is None:
        raise ConfigError(
            f"store is {kind_of(client)}; expected a store, a redis-py or valkey-py client, or a URL: {ACCEPTED}"
        )
    secure = _is_tls(getattr(pool, "connection_class", None))
    sentinels = getattr(pool, "sentinel_manager", None)
    if sentinels is None:
        path = keywords.get("path")
        node = (
            Node("", 0, str(path))
            if path
            else Node(keywords.get("host") or "localhost", int(keywords.get("port") or 6379))
        )
        return _made("single", (node,), keywords, secure)
    known = [one.connection_pool.connection_kwargs for one in sentinels.sentinels]
    places = tuple(Node(one.get("host") or "localhost", int(one.get("port") or 26379)) for one in known)
    return _made(
        "sentinel", places, keywords, secure, service=str(getattr(pool, "service_name", "")), sentinel=known[0]
    )


def _is_tls(kind: Any) -> bool:
    """Whether a connection class is one with TLS."""
    return any("SSL" in base.__name__ for base in getattr(kind, "__mro__", ()))


def _made(
    mode: Any,
    nodes: tuple[Node, ...],
    keywords: Mapping[str, Any],
    secure: bool,
    *,
    service: str = "",
    sentinel: Mapping[str, Any] | None = None,
) -> Settings:
    provider = keywords.get("credential_provider")
    sentinel = sentinel or {}
    return Settings(
        mode,
        nodes,
        int(keywords.get("db") or 0),
        _text(keywords.get("username")) or "",
        _text(keywords.get("password")),
        None if provider is None else provider.get_credentials,
        _tls(keywords) if secure else None,
        service,
        _text(sentinel.get("username")) or "",
        _text(sentinel.get("password")),
    )


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _tls(keywords: Mapping[str, Any]) -> Tls:
    reqs = keywords.get("ssl_cert_reqs", "required")
    verify = reqs not in ("none", None, 0)  # ssl.CERT_NONE is 0
    return Tls(
        keywords.get("ssl_ca_certs"),
        keywords.get("ssl_certfile"),
        keywords.get("ssl_keyfile"),
        verify=verify,
        check_hostname=verify and bool(keywords.get("ssl_check_hostname", True)),
        ca_path=keywords.get("ssl_ca_path"),
        ca_text=keywords.get("ssl_ca_data"),
        password=keywords.get("ssl_password"),
        min_version=keywords.get("ssl_min_version"),
    )
