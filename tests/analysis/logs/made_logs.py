"""Makes small access logs."""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction

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


@functools.cache
def visits() -> tuple[tuple[int, str, str], ...]:
    """A website's five days, made up: (second, address, request) of 3,456 requests from 520 addresses."""
    chance = random.Random(20151025)
    found: list[tuple[int, str, str]] = []
    for visit in itertools.count():
        if len(found) == 3456:
            break
        address = f"198.18.{visit % 520 // 250}.{visit % 520 % 250 + 1}"
        at = chance.randrange(5 * 86_400)
        for _ in range(min(chance.choice((1, 1, 2, 4, 6, 7, 9, 12)), 3456 - len(found))):
            request = chance.choice(("GET / HTTP/1.1", "GET /join_form HTTP/1.0", "POST /join_form HTTP/1.1"))
            found.append((at, address, request))
            at += chance.choice((0, 1, 1, 2, 5, 20, 45))
    return tuple(sorted(found))


def website_log() -> bytes:
    """The website's days as an access log."""
    return b"".join(line(at, address, request) for at, address, request in visits())


def denials(count: int, period: int, algorithm: str, request: str | None = None) -> tuple[int, int]:
    """(denied, keys denied) by address among the website's visits, counted the slow and obvious way."""
    denied: list[str] = []
    history: dict[str, list[int]] = {}
    arrival: dict[str, Fraction] = {}
    for second, address, asked in visits():
        at = MIDNIGHT + second
        if request is not None and not asked.startswith(request + " "):
            continue
        passed = history.setdefault(address, [])
        if algorithm == "gcra":
            theoretical = max(arrival.get(address, Fraction(0)), Fraction(at)) + Fraction(period, count)
            admitted = theoretical - period <= at
            if admitted:
                arrival[address] = theoretical
        elif algorithm == "fixed-window":
            admitted = sum(earlier // period == at // period for earlier in passed) < count
        else:
            admitted = sum(earlier + period > at for earlier in passed) < count
        if admitted:
            passed.append(at)
        else:
            denied.append(address)
    return len(denied), len(set(denied))


def compressed_log() -> bytes:
    """The website's log as ``gzip`` leaves it."""
    return gzip.compress(website_log(), mtime=0)
