"""The asynchronous connection by itself, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

from headway.stores.redis.aio_wire import AsyncWire


class OtherTransport:
    """A stream's transport of another event loop than asyncio's own: uvloop's is no ``asyncio.Transport`` either."""

    def get_extra_info(self, name: str) -> Any:
        return None

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        """Nobody listens."""

    def abort(self) -> None:
        """Nothing is open."""


def test_a_transport_of_any_event_loop_is_taken() -> None:
    """A connection made by uvloop, which uvicorn uses where it is installed, is as good as asyncio's."""

    async def main() -> list[Any]:
        wire = AsyncWire()
        wire.connection_made(OtherTransport())  # type: ignore[arg-type]  # that is the point
        assert not wire.closed
        asyncio.get_running_loop().call_soon(wire.data_received, b"+PONG\r\n")
        return await wire.trip(b"PING\r\n", 1, asyncio.get_running_loop().time() + 10)

    assert len(asyncio.run(main())) == 1
