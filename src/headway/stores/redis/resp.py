"""The Redis protocol, as much of it as commands and replies here need (RESP2 and RESP3). Pure: bytes in, values out.

Values: bytes for strings, int, None, list (of these), and ``Failed`` for an error. Maps come as flat lists.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

__all__ = ["Failed", "Reply", "Unreadable", "command", "parse"]


_IN_SCRIPT: Final = re.compile(r"user_script: ?\d+: -?([A-Z]+) ")


class Failed(NamedTuple):
    """An error reply: ``kind`` is its first word, such as NOSCRIPT or MOVED; of a command in a script, that command's."""

    text: str

    @property
    def kind(self) -> str:
        """The first word; servers before version 7 put it after where in the script it came up."""
        inside = _IN_SCRIPT.search(self.text) if self.text.startswith("ERR ") else None
        return inside[1] if inside else self.text.split(" ", 1)[0]


class Unreadable(NamedTuple):
    """What was received is no reply: whoever answers does not speak the protocol."""

    head: bytes


Reply: TypeAlias = "bytes | int | Failed | Unreadable | list[Reply] | None"

_LONGEST_LINE = 64 * 1024
_DEEPEST = 16


def command(*parts: bytes) -> bytes:
    """One command as an array of bulk strings."""
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]))


def parse(received: bytes | bytearray, at: int = 0, depth: int = 0) -> tuple[Reply, int] | None:
    """The reply that begins at ``at``, and where the next one begins; None where it is not complete yet.

    Args:
        received: so far.
        at: where to begin.
        depth: in how many arrays it stands; no reply to a command of ours stands in more than a few.
    """
    end = received.find(b"\r\n", at)
    if end < 0:
        return (
            (Unreadable(bytes(received[at : at + 40])), len(received)) if len(received) - at > _LONGEST_LINE else None
        )
    kind, line = received[at : at + 1], bytes(received[at + 1 : end])
    after = end + 2
    if kind == b"$" or kind == b"=" or kind == b"!":
        size = _number(line)
        if size is None or size < -1:
            return Unreadable(bytes(received[at : at + 40])), len(received)
        if size == -1:
            return None, after
        if len(received) < after + size + 2:
            return None
        text = bytes(received[after : after + size])
        return (Failed(text.decode("utf-8", "replace")) if kind == b"!" else text), after + size + 2
    if kind == b"+" or kind == b"," or kind == b"(" or kind == b"#":
        return line, after
    if kind == b"-":
        return Failed(line.decode("utf-8", "replace")), after
    if kind == b":":
        number = _number(line)
        return (Unreadable(bytes(received[at : at + 40])) if number is None else number), after
    if kind == b"_":
        return None, after
    if kind in (b"*", b"~", b"%", b">", b"|") and depth < _DEEPEST:
        return _several(received, kind, line, after, depth + 1)
    return Unreadable(bytes(received[at : at + 40])), len(received)


def _several(
    received: bytes | bytearray, kind: bytes | bytearray, line: bytes, at: int, depth: int
) -> tuple[Reply, int] | None:
    count = _number(line)
    if count is None or count < -1:
        return Unreadable(line[:40]), len(received)
    if count == -1:
        return None, at
    items: list[Reply] = []
    for _ in range(2 * count if kind in (b"%", b"|") else count):
        found = parse(received, at, depth)
        if found is None:
            return None
        items.append(found[0])
        at = found[1]
    if kind in (b">", b"|"):  # pushed out of turn, or attributes of what follows: the reply comes after it
        return parse(received, at, depth)
    return items, at


def _number(line: bytes) -> int | None:
    try:
        return int(line)
    except ValueError:
        return None
