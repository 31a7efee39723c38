"""Makes small access logs."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

REAL_LOG = Path(__file__).parent / "data" / "access.log.gz"
"""A website's log: 3,456 lines in the combined format, 520 addresses, October 2015; names and addresses replaced."""

MIDNIGHT = 1_445_731_200
"""25 October 2015, 00:00 UTC, in seconds since 1970: a multiple of every window used here."""


def line(
    at: float,
    address: str = "192.0.2.1",
    request: str = "GET / HTTP/1.1",
    *,
    user: str = "-",
    status: int = 200,
    referer: str = "-",
    agent: str = "curl/8",
) -> bytes:
    """One combined line, ``at`` seconds after ``MIDNIGHT``."""
    stamp = datetime.fromtimestamp(MIDNIGHT + int(at), UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{address} - {user} [{stamp}] "{request}" {status} 5 "{referer}" "{agent}"\n'.encode()


def stream(lines: Iterable[bytes]) -> io.BytesIO:
    """A log of these lines."""
    return io.BytesIO(b"".join(lines))


def real_log() -> io.BytesIO:
    """The website's log, decompressed."""
    return io.BytesIO(gzip.decompress(REAL_LOG.read_bytes()))
