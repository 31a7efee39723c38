"""Where a PostgreSQL URL leads: its hosts one after the other, and each one's addresses, looked up within the caller's time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from socket import gaierror
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from headway.errors import ConfigError
from headway.stores.lookup import is_name

__all__ = ["NO_ADDRESS", "at_addresses", "check_libpq", "hosts_of", "name_in", "no_address"]

NO_ADDRESS: Final = (gaierror, UnicodeError)
"""What the resolver raises: nobody knows the name; it can be none (of the codec for names in other scripts)."""


@lru_cache(maxsize=64)
def hosts_of(url: str) -> tuple[str, ...]:
    """What to connect to, one host after the other; libpq would wait for the first that says nothing as long as it likes.

    Only libpq knows how to choose one of several at random, or to prefer one of a kind.
    """
    said: dict[str, Any] = conninfo_to_dict(url)
    names = str(said.get("host") or "").split(",")
    addresses = str(said.get("hostaddr") or "").split(",")
    count = max(len(names), len(addresses))
    ports = str(said.get("port") or "").split(",")
    asked = said.get("target_session_attrs"), said.get("load_balance_hosts")
    if count == 1 or asked[0] == "prefer-standby" or asked[1] not in (None, "disable"):
        return (url,)
    if any(len(given) not in (1, count) for given in (names, addresses, ports)):
        return (url,)  # libpq says what is wrong with it
    places = []
    for index in range(count):
        own = {"host": names, "hostaddr": addresses, "port": ports}
        chosen = {name: given[index % len(given)] or None for name, given in own.items()}
        places.append(make_conninfo(**{**said, **chosen}))
    return tuple(places)


@lru_cache(maxsize=64)
def name_in(place: str) -> tuple[str, int] | None:
    """The name of a place's host, with its port, where a name server has to be asked for it, and not by libpq.

    Args:
        place: one of ``hosts_of``.
    """
    said: dict[str, Any] = conninfo_to_dict(place)
    host, balanced = str(said.get("host") or "/"), said.get("load_balance_hosts") not in (None, "disable")
    if said.get("hostaddr") or balanced or host.startswith(("/", "@")) or "," in host or not is_name(host):
        return None
    return host, int(said.get("port") or 5432)


def at_addresses(place: str, addresses: Sequence[tuple[Any, ...]] | None) -> list[str]:
    """A place once for each of its host's addresses; None: as it is."""
    return [place] if addresses is None else [make_conninfo(place, hostaddr=at[0]) for *_, at in addresses]


def no_address(place: str, error: Exception) -> OSError:
    """What to say of a host that has no address."""
    host = str(conninfo_to_dict(place).get("host"))
    return OSError(
        f"could not translate host name {host[:80]!r} to an address ({getattr(error, 'strerror', None) or error})"
    )


def check_libpq(url: str, said: str) -> None:
    """What libpq would say of a URL at the first decision.

    Args:
        url: for libpq.
        said: the same for messages.

    Raises:
        ConfigError: it cannot be right.
    """
    try:
        read = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        reason = str(error).strip()
        raise ConfigError(f"store URL {said}: {'it cannot be read' if '@' in reason else reason}") from None
    for port in str(read.get("port") or "").split(","):
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise ConfigError(f"store URL {said}: the port is {port!r}; expected 1 to 65535")
