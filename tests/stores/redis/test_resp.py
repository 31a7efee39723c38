"""The protocol's replies, in RESP2 and RESP3, whole and in pieces, and what is none."""

from __future__ import annotations

import pytest

from headway.stores.redis.resp import Failed, Reply, Unreadable, command, parse

REPLIES: list[tuple[bytes, Reply]] = [
    (b"$5\r\nhello\r\n", b"hello"),
    (b"$0\r\n\r\n", b""),
    (b"$-1\r\n", None),
    (b"_\r\n", None),
    (b"*-1\r\n", None),
    (b"+OK\r\n", b"OK"),
    (b":-12\r\n", -12),
    (b"-NOSCRIPT No matching script.\r\n", Failed("NOSCRIPT No matching script.")),
    (b"!21\r\nSYNTAX invalid syntax\r\n", Failed("SYNTAX invalid syntax")),
    (b"*2\r\n$1\r\na\r\n*1\r\n:3\r\n", [b"a", [3]]),
    (b"%1\r\n+k\r\n,1.5\r\n", [b"k", b"1.5"]),
    (b">2\r\n+invalidate\r\n*0\r\n$2\r\nok\r\n", b"ok"),
    (b"*0\r\n", []),
    (b"$4\r\n\r\n\r\n\r\n", b"\r\n\r\n"),
]


@pytest.mark.parametrize(("data", "value"), REPLIES)
def test_a_reply_is_read_once_it_is_whole(data: bytes, value: Reply) -> None:
    """Every prefix is "not yet", the whole is the value, and what follows is left."""
    assert all(parse(data[:end]) is None for end in range(len(data)))
    assert parse(data + b"rest") == (value, len(data))


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n", b"$x\r\n", b"$-5\r\n", b":x\r\n", b"*x\r\n", b"x" * 70_000]
)
def test_what_is_no_reply_is_said_to_be_none(data: bytes) -> None:
    """Another protocol's answer is neither waited for nor believed."""
    found = parse(data)
    assert found is not None
    assert isinstance(found[0], Unreadable)


def test_a_commands_parts_say_their_length() -> None:
    """Nothing in a part can end it early."""
    assert command(b"SET", b"a\r\n", b"") == b"*3\r\n$3\r\nSET\r\n$3\r\na\r\n\r\n$0\r\n\r\n"


def test_the_kind_of_an_error_is_its_first_word() -> None:
    """Errors are told apart by their first word alone."""
    assert Failed("MOVED 1 a:1").kind == "MOVED"
