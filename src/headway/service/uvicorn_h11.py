"""How the service speaks HTTP/1.1: uvicorn's protocol on h11, which by itself waits for ever and takes any request."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Impatient"]

_HEAD_WITHIN_S: Final = 10.0
"""A connection that has begun and not ended a request's head after this long is closed, whatever trickles in."""

_BODY_WITHIN_S: Final = 15.0
"""The same from there to the end of its body, also where the answer did not wait for it; ``starlette.py`` gives up before."""

_LOOK_AT_READER_EVERY_S: Final = 10.0
_READ_MEANWHILE: Final = 4096
"""Bytes; a client that takes fewer of an answer in that time does not read it, and is left."""

_LONGEST_HEAD: Final = 32 * 1024
"""Bytes."""

_PIECE: Final = 8 * 1024
"""Bytes that are looked at together; h11 checks a head's length only between."""

_CHUNKS: Final = 256
_SMALLEST_CHUNKS: Final = 64
"""Bytes that the chunks of a body must have on average, from so many on; each costs h11 as much time as 10 KB do."""


class _Connection(h11.Connection):
    """h11's, which takes a body in chunks of one byte, and for each of them as long as for many bytes."""

    _chunks = 0
    _bytes = 0

    def next_event(self) -> Any:
        """The next event.

        Raises:
            h11.RemoteProtocolError: the client does not speak HTTP, or sends a body in too many pieces.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > _CHUNKS and self._bytes < self._chunks * _SMALLEST_CHUNKS:
                raise h11.RemoteProtocolError("the body comes in too small chunks")
        return event


class Impatient(H11Protocol):
    """uvicorn's HTTP/1.1, which waits for ever for a head, for a body that nobody reads, and for a client to read."""

    _late: asyncio.TimerHandle | None = None
    _receiving: object = None
    _look: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _Connection(h11.SERVER, _LONGEST_HEAD)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        """A client is there."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that whatever is not taken at once pauses writing
        self._expect_more()

    def data_received(self, data: bytes) -> None:
        """It sent something."""
        for start in range(0, len(data), _PIECE):
            super().data_received(data[start : start + _PIECE])
            if self.transport.is_closing():
                return
        self._expect_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._expect(None, 0)
        self._stop_looking()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """It does not read as fast as it is answered."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        """It has read everything."""
        self._stop_looking()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """It has its answer."""
        super().on_response_complete()
        self._expect_more()

    def _expect_more(self) -> None:
        """The time runs from the first moment that a part is awaited; more of it does not start it anew."""
        state = self.conn.their_state
        if state is h11.IDLE:
            self._expect(state, _HEAD_WITHIN_S)
        elif state is h11.SEND_BODY:
            self._expect(state, _BODY_WITHIN_S)
        else:
            self._expect(None, 0)

    def _expect(self, part: object, within: float) -> None:
        if part is not self._receiving:
            self._receiving = part
            if self._late is not None:
                self._late.cancel()
            self._late = None if part is None else self.loop.call_later(within, self.transport.close)

    def _look_later(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._look = self.loop.call_later(_LOOK_AT_READER_EVERY_S, self._look_at_reader, left)

    def _look_at_reader(self, left: int) -> None:
        if self.transport.get_write_buffer_size() > left - _READ_MEANWHILE:
            self.transport.abort()  # closing would wait for the client to read
        else:
            self._look_later()

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
