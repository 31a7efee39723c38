"""The client's address, found behind proxies that are named and never behind others.

Nothing is trusted by default: the address is the peer's. A forwarded address counts only where the hop that wrote it is
trusted, so the list is walked from the right, and what a caller puts on its left changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Final

from headway.errors import ConfigError
from headway.policy.address import UNIX, Address, Network, group, read_address, read_network
from headway.policy.forwarded import forwarded_nodes, list_entries
from headway.policy.request import RequestFacts

__all__ = ["UNSAFE_TRUST_EVERYONE", "ClientAddress", "Located", "Note", "client_address"]

UNSAFE_TRUST_EVERYONE: Final = "unsafe-trust-everyone"
"""In place of the proxies: believe the left end of the list, that is, let every caller choose its own address."""

_FORWARDED_FOR: Final = "x-forwarded-for"
_FORWARDED: Final = "forwarded"
_FIELD: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MOST_HOPS: Final = 32
"""Proxies that are walked through; nobody has more, and a longer list of trusted addresses is somebody's invention."""


class Note(StrEnum):
    """What an operator should hear about how an address was found; each is logged once, never once a request."""

    UNTRUSTED = "a forwarded address is present, but no proxy is trusted: behind a proxy everybody shares one counter"
    CONFLICT = "X-Forwarded-For and Forwarded disagree, so neither is believed: say which one the proxy writes"
    MALFORMED = "a trusted proxy sent an entry that is no address: the last good hop is counted"


_LOGGED: Final = (Note.UNTRUSTED, Note.CONFLICT)


@dataclass(frozen=True, slots=True)
class Located:
    """Whose request it is.

    Attributes:
        key: the counter's value: an IPv4 address, an IPv6 network, ``unix``, or the peer's own text where it is no
            address.
        address: the address itself, folded and ungrouped; None for a peer without one.
        hops: how many proxies lie between it and this server.
        note: what is worth telling, or None.
    """

    key: str
    address: Address | None
    hops: int = 0
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """Finds the client's address; made by ``client_address``, which checks what is given.

    Attributes:
        networks: the proxies that are trusted.
        hops: instead, how many proxies stand in front, whatever their addresses; 0 for none.
        unix: a peer on a Unix socket is a trusted proxy.
        everyone: every address is trusted (unsafe).
        ipv6_prefix: IPv6 addresses that share so many bits share a counter, 1 to 128.
        header: the one field that is read, in lower case; None for whichever of the two standard ones is there.
    """

    networks: tuple[Network, ...] = ()
    hops: int = 0
    unix: bool = False
    everyone: bool = False
    ipv6_prefix: int = 64
    header: str | None = None
    _said: set[Note] = field(default_factory=set, repr=False, compare=False)

    def __call__(self, facts: RequestFacts) -> str:
        """The key of the request's client; see ``Located``. Logs an operator's mistake once."""
        found = self.locate(facts)
        if found.note in _LOGGED and found.note not in self._said:
            self._said.add(found.note)
            import logging

            logging.getLogger("headway").warning("client address: %s", found.note.value)
        return found.key

    def locate(self, facts: RequestFacts) -> Located:
        """Find the client and say what was noticed; logs nothing."""
        peer = None if _is_unix(facts.peer) else read_address(facts.peer or "")
        here = Located(self._key(peer) if peer else UNIX if _is_unix(facts.peer) else str(facts.peer), peer)
        if not self._trusts_peer(here):
            trusts_nobody = not (self.networks or self.unix)
            suspicious = trusts_nobody and any(self._lists(facts))
            return Located(here.key, peer, note=Note.UNTRUSTED) if suspicious else here
        found = [self._walk(nodes, here) for nodes in self._lists(facts)]
        if not found:
            return here
        if len(found) > 1 and found[0].key != found[1].key:
            return Located(here.key, peer, note=Note.CONFLICT)
        return found[0]

    def _lists(self, facts: RequestFacts) -> list[Iterator[str | None]]:
        """What the proxies wrote, from the right, of each field that is there."""
        names = (_FORWARDED_FOR, _FORWARDED) if self.header is None else (self.header,)
        found = ((name, facts.lines(name)) for name in names)
        return [forwarded_nodes(lines) if name == _FORWARDED else list_entries(lines) for name, lines in found if lines]

    def _walk(self, nodes: Iterator[str | None], here: Located) -> Located:
        """Go from the peer towards the client, as long as the hop that wrote an entry is trusted."""
        found = here
        for hop, node in enumerate(nodes, 1):
            address = read_address(node) if node and hop <= _MOST_HOPS else None
            if address is None:
                return Located(found.key, found.address, found.hops, Note.MALFORMED)
            found = Located(self._key(address), address, hop)
            if hop == self.hops or not (self.hops or self._trusts(address)):
                break
        return found

    def _key(self, address: Address) -> str:
        return group(address, self.ipv6_prefix)

    def _trusts_peer(self, here: Located) -> bool:
        if self.everyone or self.hops:
            return True
        return self.unix if here.key == UNIX else here.address is not None and self._trusts(here.address)

    def _trusts(self, address: Address) -> bool:
        return self.everyone or any(address in network for network in self.networks)


def client_address(
    trusted_proxies: str | int | Iterable[str] = (), *, ipv6_prefix: int = 64, header: str | None = None
) -> ClientAddress:
    """How to find the client's address.

    Args:
        trusted_proxies: CIDR ranges or addresses (a list, or one text with commas) and ``"unix"`` for a proxy on a
            Unix socket; or the number of proxies in front, 0 to 32; or ``UNSAFE_TRUST_EVERYONE``. Empty trusts nobody.
        ipv6_prefix: IPv6 addresses are counted by networks of this many bits, 1 to 128. A subscriber has at least a /64.
        header: the only field to read: ``X-Forwarded-For``, ``Forwarded``, or another that holds addresses such as
            ``CF-Connecting-IP``. None reads whichever of the first two is there, and neither where they disagree.

    Raises:
        ConfigError: names what cannot be right and what is accepted.
    """
    if type(ipv6_prefix) is not int or not 1 <= ipv6_prefix <= 128:
        raise ConfigError(
            f"{ipv6_prefix!r} is no IPv6 prefix; expected a whole number from 1 to 128", key="ipv6_prefix"
        )
    if header is not None and not _FIELD.fullmatch(header):
        raise ConfigError(f"{header!r} is no header field; expected a name such as X-Forwarded-For", key="header")
    name = header.lower() if header else None
    if isinstance(trusted_proxies, int):
        if type(trusted_proxies) is not int or not 0 <= trusted_proxies <= _MOST_HOPS:
            raise _untrustworthy(f"{trusted_proxies!r} is no number of proxies; expected 0 to {_MOST_HOPS}")
        return ClientAddress(hops=trusted_proxies, ipv6_prefix=ipv6_prefix, header=name)
    given = trusted_proxies.split(",") if isinstance(trusted_proxies, str) else list(trusted_proxies)
    given = [str(one).strip() for one in given]
    if given == [UNSAFE_TRUST_EVERYONE]:
        return ClientAddress(everyone=True, ipv6_prefix=ipv6_prefix, header=name)
    networks = [_network(one) for one in given if one not in (UNIX, "")]
    _check_not_everyone(networks)
    return ClientAddress(tuple(networks), 0, UNIX in given, False, ipv6_prefix, name)


def _is_unix(peer: str | None) -> bool:
    return not peer or peer.startswith(("/", "@", "\0", "unix:")) or peer == UNIX


def _untrustworthy(problem: str) -> ConfigError:
    return ConfigError(problem, key="trusted_proxies")


def _network(text: str) -> Network:
    if text in ("*", UNSAFE_TRUST_EVERYONE):
        raise _untrustworthy(f"{text!r}: name the proxies, or give nothing but {UNSAFE_TRUST_EVERYONE!r}")
    try:
        return read_network(text)
    except ValueError as error:
        raise _untrustworthy(str(error)) from None


def _check_not_everyone(networks: list[Network]) -> None:
    """Refuse ranges that together hold every address of a family."""
    whole: list[Network] = [
        *collapse_addresses([one for one in networks if isinstance(one, IPv4Network)]),
        *collapse_addresses([one for one in networks if isinstance(one, IPv6Network)]),
    ]
    for network in whole:
        if network.prefixlen == 0:
            raise _untrustworthy(
                f"{network} trusts every address, so that any caller can choose its own; name the proxies, "
                f"or say {UNSAFE_TRUST_EVERYONE!r}"
            )
