"""Addresses as servers and proxies write them, spelled one way, and who shares a counter."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

__all__ = [
    "UNIX",
    "Address",
    "Network",
    "fold",
    "group",
    "read_address",
    "read_network",
]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

UNIX: Final = "unix"
"""What a peer on a Unix socket is called: it has no address."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
"""The well-known prefix (RFC 6052 §2.1); a network's own prefix cannot be told from any other address."""
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_PORT: Final = re.compile(r":(?:[0-9]{1,5}|_[A-Za-z0-9._-]{1,64})")
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\](.*)", re.DOTALL)
_LONGEST: Final = 100


def fold(address: Address) -> Address:
    """An IPv4 address in IPv6 clothes (mapped, RFC 4291 §2.5.5.2; NAT64, RFC 6052) as itself; a scope id is dropped."""
    if isinstance(address, IPv4Address):
        return address
    number = int(address)
    if number >> 32 == 0xFFFF or address in _NAT64:
        return IPv4Address(number & 0xFFFF_FFFF)
    return address if address.scope_id is None else IPv6Address(number)


@lru_cache(maxsize=4096)
def read_address(text: str) -> Address | None:
    """An address as servers and proxies write it, folded; None where the text is none.

    ``192.0.2.1``, ``192.0.2.1:5678``, ``2001:db8::1``, ``[2001:db8::1]``, ``[2001:db8::1]:443``, with a scope id or not.
    """
    text = text.strip(" \t")
    if not text or len(text) > _LONGEST:
        return None
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed:
        host, port = bracketed.groups()
        if ":" not in host:
            return None
    elif text.count(":") == 1:
        host, _, digits = text.partition(":")
        port = f":{digits}"
    else:
        host, port = text, ""
    if port and not (_PORT.fullmatch(port) and (port[1] == "_" or int(port[1:]) <= 65535)):
        return None
    try:
        return fold(ip_address(host))
    except ValueError:
        return None


def group(address: Address, ipv6_prefix: int) -> str:
    """The text that names everybody who shares a counter: an IPv4 address, or the IPv6 network of that prefix."""
    if isinstance(address, IPv4Address):
        return str(address)
    host_bits = 128 - ipv6_prefix
    return f"{IPv6Address(int(address) >> host_bits << host_bits)}/{ipv6_prefix}"


def read_network(text: str) -> Network:
    """A CIDR range or a single address, folded like addresses are.

    Raises:
        ValueError: the text is no range; bits beyond the prefix are an error and the message says the range meant.
    """
    try:
        network = ip_network(text.strip())
    except ValueError as error:
        try:
            meant = ip_network(text.strip(), strict=False)
        except ValueError:
            raise ValueError(f"{text!r} is no address range; expected a CIDR such as 10.0.0.0/8 or fd00::/8") from error
        raise ValueError(f"{text!r} has bits beyond its prefix; expected {meant}") from error
    if isinstance(network, IPv6Network):
        for clothes in (_MAPPED, _NAT64):
            if network.subnet_of(clothes):
                inner = IPv4Address(int(network.network_address) & 0xFFFF_FFFF)
                return IPv4Network((inner, network.prefixlen - 96))
    return network
