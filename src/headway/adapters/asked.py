"""``Asked``: a request as a guard first looks at it. Most are decided by what is cheap to know; the rest is read on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headway.policy.request import RequestFacts

__all__ = ["FORWARDED", "Asked"]

FORWARDED: Final = ("x-forwarded-for", "forwarded")
"""The fields that ``client_address`` reads unless it is told another; without them the address is the peer's."""


class Asked:
    """A request.

    Attributes:
        method: as sent; a handshake is a GET.
        path: the path within the application.
        peer: the address of the connection's other end; None for a Unix socket.
        forwarded: one of the fields ``FORWARDED`` is there.
    """

    __slots__ = ("_facts", "_read", "forwarded", "method", "path", "peer")

    def __init__(
        self, method: str, path: str, peer: str | None, forwarded: bool, read: Callable[[], RequestFacts]
    ) -> None:
        self.method = method
        self.path = path
        self.peer = peer
        self.forwarded = forwarded
        self._read = read
        self._facts: RequestFacts | None = None

    @property
    def facts(self) -> RequestFacts:
        """Everything that is known of it; read once."""
        if self._facts is None:
            self._facts = self._read()
        return self._facts
