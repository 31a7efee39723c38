"""What is wrong with the bytes of a file before anybody reads them: packed, in UTF-16, none at all, too many."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from typing import Final

__all__ = ["LARGEST", "wrong_bytes", "wrong_encoding"]

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a capture."""
_PACKED: Final = {
    b"\x1f\x8b": "gzip -dc",
    b"\x28\xb5\x2f\xfd": "zstd -dc",
    b"BZh": "bzip2 -dc",
    b"\xfd7zXZ\x00": "xz -dc",
}


def wrong_bytes(raw: bytes) -> str | None:
    """What keeps these bytes from being a capture, and what to do; None where they may be one.

    Args:
        raw: a capture, of which one byte more than ``LARGEST`` is enough to see that it is too large.
    """
    if len(raw) > LARGEST:
        return f"holds more than {LARGEST >> 20} MiB; expected a capture"
    if not raw.removeprefix(BOM_UTF8).strip():
        return "is empty; expected what curl -i prints, a HAR file, or JSON lines"
    return wrong_encoding(raw)


def wrong_encoding(raw: bytes) -> str | None:
    """What keeps these bytes from being text in UTF-8, and what to do; None where they may be."""
    if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # what PowerShell's > writes
        return "is in UTF-16; expected UTF-8: iconv -f UTF-16 -t UTF-8 FILE | headway … -"
    for magic, unpacked in _PACKED.items():
        if raw.startswith(magic):
            return f"is compressed; expected it unpacked: {unpacked} FILE | headway … -"
    return None
