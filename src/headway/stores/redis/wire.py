"""One connection to one server, for threads: a socket, one trip at a time, each bounded by one deadline as a whole.

Why not a client library's connection: their time-outs are per read, so a server that sends a byte now and then holds a
caller as long as it likes; and they send a command again after a failure, which may charge twice.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Any

from headway.errors import StoreUnavailable
from headway.stores.lookup import addresses_of
from headway.stores.redis.handshake import context_of, greeting, no_name, problem_of
from headway.stores.redis.resp import Failed, Reply, Unreadable, parse
from headway.stores.redis.settings import Node, Settings

__all__ = ["Wire"]

_CHUNK = 65536
_IDLE_S = 0.05
"""After a pause this long the socket is looked at before it is used: the server may have closed it meanwhile."""


class Wire:
    """An open connection.

    Args:
        settings: how to reach and log in.
        node: the server.
        until: ``time.monotonic()`` by which it has to be ready.

    Raises:
        OSError: no connection in time.
        StoreError: the server refuses to serve us.
    """

    __slots__ = ("_used", "socket")

    def __init__(self, settings: Settings, node: Node, until: float) -> None:
        self.socket = _connected(settings, node, until)
        self._used = time.monotonic()
        try:
            commands = greeting(settings, _credentials(settings, node))
            if commands:
                for reply in self.trip(b"".join(commands), len(commands), until):
                    if isinstance(reply, Failed | Unreadable):
                        raise problem_of(node, reply)
        except BaseException:
            self.close()
            raise

    def trip(self, packed: bytes, count: int, until: float) -> list[Reply]:
        """Send commands and read as many replies.

        Raises:
            OSError: not in time, or the connection broke; what became of the commands is not known.
        """
        self.send(packed, until)
        return self.receive(count, until)

    def send(self, packed: bytes, until: float) -> None:
        """The first half of ``trip``."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        self.socket.settimeout(left)
        self.socket.sendall(packed)
        if len(packed) > _CHUNK:  # it may have taken its time
            self.hurry(until)

    def hurry(self, until: float) -> None:
        """Of what ``receive`` waits for, only what is left; what is there already is read however late it is."""
        self.socket.settimeout(max(0.001, until - time.monotonic()))

    def receive(self, count: int, until: float) -> list[Reply]:
        """The second half of ``trip``."""
        received = self.socket.recv(_CHUNK)
        if count == 1 and received[:1] == b"$" and received[-2:] == b"\r\n":  # nearly always
            end = received.find(b"\r\n")
            if received[1:end].isdigit() and len(received) == end + 4 + int(received[1:end]):
                self._used = time.monotonic()
                return [received[end + 2 : -2]]
        return self._receive(bytearray(received), count, until)

    def _receive(self, received: bytearray, count: int, until: float) -> list[Reply]:
        replies: list[Reply] = []
        at = 0
        ended = not received
        while True:
            found = parse(received, at)
            if found is not None:
                replies.append(found[0])
                at = found[1]
                if len(replies) == count:
                    break
                continue
            if ended:
                raise ConnectionResetError("the connection was closed")
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the deadline has passed")
            self.socket.settimeout(left)
            more = self.socket.recv(_CHUNK)
            ended = not more
            received += more
        if at != len(received):
            raise ConnectionResetError("the server said more than it was asked")
        self._used = time.monotonic()
        return replies

    def stale(self) -> bool:
        """Whether the server has closed the connection, or said something unasked, while it was idle."""
        if time.monotonic() - self._used < _IDLE_S:
            return False
        if not hasattr(select, "poll"):  # Windows
            return bool(select.select([self.socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


def _credentials(settings: Settings, node: Node) -> Any:
    if settings.credentials is None:
        return None
    try:
        return settings.credentials()
    except Exception as error:
        raise StoreUnavailable(f"Redis store {node}: its credentials are not to be had: {error!r}") from error


def _connected(settings: Settings, node: Node, until: float) -> socket.socket:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    if node.path:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(left)
            made.connect(node.path)
        except BaseException:
            made.close()
            raise
        return made
    made = _reached(node, until)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if settings.tls is not None:
            made.settimeout(max(0.001, until - time.monotonic()))
            return context_of(settings.tls).wrap_socket(made, server_hostname=node.host)
    except BaseException:
        made.close()
        raise
    return made


def _reached(node: Node, until: float) -> socket.socket:
    """A connection to the first of the host's addresses that answers, all of them found and tried within the deadline."""
    problem: OSError = OSError("the host has no address")
    try:
        places = addresses_of(node.host, node.port, until)
    except ValueError as error:  # of the codec for names in other scripts
        raise no_name(node, error) from error
    for untried, (family, kind, protocol, _, address) in zip(range(len(places), 0, -1), places, strict=True):
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(left / untried)  # one that says nothing leaves the others their part of the time
            made.connect(address)
        except BaseException as error:
            made.close()
            if not isinstance(error, OSError):
                raise
            problem = error
        else:
            return made
    raise problem
