r"""Access logs in the common and combined formats, read as bytes: whole lines, their parts, their times.

Apache's ``%h %l %u %t "%r" %>s %b``, optionally followed by ``"%{Referer}i" "%{User-agent}i"`` and by anything else;
nginx writes the same by default. Values stay as they were logged, escapes such as ``\"`` and ``\x16`` included. No input
raises, and whether a line parses does not depend on which of its parts are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import translate
from functools import lru_cache
from typing import Final

from headway.core.quota import SECOND

__all__ = ["ABSENT", "PARTS", "SHAPES", "instant", "line_pattern", "method_and_path", "request_matcher", "whole_lines"]

ABSENT: Final = b"-"
"""What both formats write for a value that a request does not have."""

PARTS: Final = ("address", "user", "stamp", "request", "status", "referer", "agent")
"""What ``line_pattern`` can capture, in the order in which a line has it."""

_BLOCK: Final = 256 * 1024
_LONGEST_LINE: Final = 8 * 1024 * 1024
_LONGEST_REMEMBERED: Final = 1024

# Possessive throughout: no text, however long, is scanned twice. A backslash takes the next character with it.
_QUOTED: Final = rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+'
# A user's name may hold spaces, but only after an identity of "-": a log with the host's name in front of the address
# (vhost_combined) must not pass for one that begins with the address.
_IDENTITY: Final = rb"(?:- |[^ \n]++ (?=[^ \n]++ \[))"
SHAPES: Final = {
    "address": rb"[^ \n]++",
    "identity": _IDENTITY,
    "user": rb"[^\[\n]++",
    "stamp": rb"[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}",
    "request": _QUOTED,
    "status": rb"[0-9]{3}|-",
    "referer": _QUOTED,
    "agent": _QUOTED,
}
"""What each part of a line looks like, and the identity (with the space behind it), which nobody captures."""

_COMMON: Final = (
    rb'%(address)s %(identity)s%(user)s(?<= )\[%(stamp)s\] "%(request)s" %(status)s (?:[0-9]++|-)(?![^ \r\n])'
)
_COMBINED: Final = rb'(?: "%(referer)s" "%(agent)s")?+'

_MONTHS: Final = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR: Final = 2261
"""The last whole year whose nanoseconds since 1970 fit 64 bits."""


def line_pattern(parts: Collection[str]) -> re.Pattern[bytes]:
    r"""A pattern that takes exactly one line, its ``\n`` included, whatever is in it.

    Args:
        parts: the names among ``PARTS`` to capture.

    Returns:
        One group for each of ``parts``, in the order of ``PARTS``, then one with the whole text of a line that does not
        parse, which leaves the others empty. Referer and agent are empty too where a line has none; a user's name is
        followed by a space.
    """
    shapes = {name.encode(): (b"(%s)" if name in parts else b"(?:%s)") % shape for name, shape in SHAPES.items()}
    line = _COMMON + (_COMBINED if {"referer", "agent"} & set(parts) else b"")
    return re.compile(rb"(?:" + line % shapes + rb"[^\n]*+|([^\n]*+))\n")


def whole_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    r"""What a binary stream holds, in blocks of whole lines: each ends with ``\n``, the stream's last one too.

    A line is kept up to about 8 MiB and cut there, so that a stream without line ends cannot fill the memory. A byte
    order mark at the beginning is dropped.

    Args:
        read: the stream's ``read``; what it raises passes through.
    """
    held: list[bytes] = []
    size = 0
    first = True
    while block := read(_BLOCK):
        if first:
            block = block.removeprefix(b"\xef\xbb\xbf")
            first = False
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*held, block[:cut]))
            held, size = [block[cut:]], len(block) - cut
        elif size < _LONGEST_LINE:
            held.append(block)
            size += len(block)
    if size:
        yield b"".join((*held, b"\n"))


def instant(stamp: bytes) -> int | None:
    """The time a line gives, in ns since 1970; None for one that no clock shows or that is outside 1970 to 2261.

    Args:
        stamp: ``25/Oct/2015:04:11:25 +0100``, or empty. A second of 60, which a leap second is logged as, is the next
            minute's first.
    """
    minute = _minute(stamp[:17], stamp[21:])
    if minute is None:
        return None
    second = int(stamp[18:20])
    return (minute + second) * SECOND if second <= 60 else None


@lru_cache(maxsize=4096)  # a log's lines share their minutes
def _minute(local: bytes, zone: bytes) -> int | None:
    """Seconds since 1970 at the start of ``25/Oct/2015:04:11`` in the zone ``+0100``."""
    try:
        day, month, year = int(local[:2]), _MONTHS.index(local[3:6]) + 1, int(local[7:11])
        moment = datetime(year, month, day, int(local[12:14]), int(local[15:17]), tzinfo=UTC)
        hours, minutes = int(zone[1:3]), int(zone[3:5])
    except ValueError:
        return None
    if hours > 23 or minutes > 59 or year > _LAST_YEAR:
        return None
    ahead = (hours * 60 + minutes) * (-60 if zone[:1] == b"-" else 60)
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - ahead
    return seconds if seconds >= 0 else None


def method_and_path(request: bytes) -> tuple[bytes, bytes]:
    """``POST`` and ``/join_form`` of ``POST /join_form?from=mail HTTP/1.1``; both ``-`` where a request has no path."""
    method, _, rest = request.partition(b" ")
    target, _, protocol = rest.rpartition(b" ")
    if not protocol.startswith(b"HTTP/"):
        target = rest
    path = target.strip(b" ").partition(b"?")[0]
    return (method, path) if path else (ABSENT, ABSENT)


def request_matcher(pattern: str) -> Callable[[bytes], bool]:
    """Whether a request has the method and the path of ``"POST /join_form"``.

    Args:
        pattern: a method and a path, or a path alone for any method; ``*`` stands for any characters, none included, and
            everything else for itself. The query does not matter, a pasted ``HTTP/1.1`` neither.

    Raises:
        ValueError: no method and path; names the pattern and what is accepted.
    """
    text = pattern.strip()
    method, path = method_and_path((f"* {text}" if text.startswith(("/", "*")) and " /" not in text else text).encode())
    if not path.startswith((b"/", b"*")) or not method:
        raise ValueError(
            f"match is {pattern!r}; expected a method and a path such as 'POST /join_form', or a path such as '/api/*'"
        )
    methods, paths = _glob(method.upper()), _glob(path)

    def matches(request: bytes) -> bool:
        method, path = method_and_path(request)
        return methods(method) is not None and paths(path) is not None

    @lru_cache(maxsize=1024)  # a log's lines share their requests
    def remembered(request: bytes) -> bool:
        return matches(request)

    return lambda request: (remembered if len(request) <= _LONGEST_REMEMBERED else matches)(request)


def _glob(pattern: bytes) -> Callable[[bytes], re.Match[bytes] | None]:
    """The whole of a text against ``pattern``, in which only ``*`` is special; linear in the text a star."""
    special = pattern.decode("latin-1").replace("[", "[[]").replace("?", "[?]")
    return re.compile(translate(special).encode("latin-1")).match
