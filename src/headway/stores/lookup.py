"""``addresses_of``, ``find_addresses``: where a host is, asked of the system's resolver within a caller's time.

The resolver cannot be told to hurry: with a name server that is away it takes half a minute. So a thread asks it, all who
want the same name wait for the same answer, and each leaves when its own time is up. The thread ends with its answer.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import Future
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

__all__ = ["addresses_of", "find_addresses", "is_name"]

Address: TypeAlias = "tuple[Any, ...]"
"""As of ``socket.getaddrinfo``: family, kind, protocol, canonical name, address."""

_lock = threading.Lock()
_asking: dict[tuple[str, int], Future[list[Address]]] = {}
_BY_HAND: Final = ("localhost", "")
"""Names that no name server is asked for."""


def is_name(host: str) -> bool:
    """Whether a name server may have to be asked."""
    if host in _BY_HAND:
        return False
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return True
    return False


def addresses_of(host: str, port: int, until: float) -> list[Address]:
    """The addresses of a host, for streams, best first.

    Args:
        host: a name or an address.
        port: what comes with them.
        until: ``time.monotonic()`` by which the caller wants them.

    Raises:
        TimeoutError: they did not come in time.
        OSError: there are none (``socket.gaierror``).
        ValueError: what can be no name.
    """
    if not is_name(host):
        return _asked(host, port)
    answer = _lookup(host, port)
    try:
        return answer.result(max(0.0, until - time.monotonic()))
    except TimeoutError:
        if answer.done():  # the resolver's own
            raise
        raise TimeoutError(f"the address of {host} was not found in time") from None


async def find_addresses(host: str, port: int) -> list[Address]:
    """``addresses_of`` for asyncio, in which the caller says how long it waits. The loop's own threads are left to others."""
    if not is_name(host):
        return _asked(host, port)
    import asyncio  # whoever awaits has imported it

    return await asyncio.wrap_future(_lookup(host, port))  # it is running: who leaves cannot cancel it for the others


def _lookup(host: str, port: int) -> Future[list[Address]]:
    """The answer to come, for all who want this name meanwhile."""
    with _lock:
        answer = _asking.get((host, port))
        if answer is not None:
            return answer
        answer = _asking[host, port] = Future()
        answer.set_running_or_notify_cancel()

    def ask() -> None:
        try:
            found = _asked(host, port)
        except BaseException as error:
            answer.set_exception(error)
        else:
            answer.set_result(found)
        finally:
            with _lock:
                _asking.pop((host, port), None)

    try:
        threading.Thread(target=ask, name=f"headway looks up {host}", daemon=True).start()
    except RuntimeError:  # no more threads: this one asks
        ask()
    return answer


def _asked(host: str, port: int) -> list[Address]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


if hasattr(os, "register_at_fork"):

    def _in_child() -> None:
        """The threads that ask are the parent's, and nobody here holds the lock."""
        global _lock  # one for the process
        _lock = threading.Lock()
        _asking.clear()

    os.register_at_fork(after_in_child=_in_child)
