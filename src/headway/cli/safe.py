"""Words of strangers on a terminal: a message quotes files, logs and answers, and none of them may steer what reads it."""

from __future__ import annotations

__all__ = ["safe"]


def safe(text: str) -> str:
    r"""The text with an escape such as ``\x1b`` for whatever is not printable; ends of lines stay.

    Also what no encoding holds (half a surrogate pair) and what turns the direction of writing comes as an escape.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
