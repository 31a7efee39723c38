"""The Lua scripts, put together from their files, with the SHA-1 that EVALSHA calls them by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files

__all__ = ["Script", "script"]


@dataclass(frozen=True, slots=True)
class Script:
    """One script.

    Attributes:
        text: its source.
        sha: the SHA-1 of the source, in hexadecimal.
    """

    text: bytes
    sha: bytes


@cache
def script(name: str) -> Script:
    """The script of that name ("advance", "change", "exchange"); a line ``--@include FILE`` stands for a file's lines."""
    text = _lines(f"{name}.lua").encode()
    return Script(text, sha1(text, usedforsecurity=False).hexdigest().encode())


def _lines(name: str) -> str:
    """A file's lines without comments of whole lines and indentation, which the server would keep."""
    kept: list[str] = []
    for line in (files(__package__) / name).read_text("utf-8").splitlines():
        bare = line.strip()
        if bare.startswith("--@include "):
            kept.append(_lines(bare.removeprefix("--@include ")))
        elif bare and not bare.startswith("--"):
            kept.append(bare)
    return "\n".join(kept)
