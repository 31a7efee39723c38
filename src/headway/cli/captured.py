"""What is wrong with the bytes of a capture before anybody reads them: none at all, too many, or packed."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import Final

__all__ = ["LARGEST", "wrong_bytes"]

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
    if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # what PowerShell's > writes
        return "is in UTF-16; expected UTF-8: iconv -f UTF-16 -t UTF-8 FILE | headway … -"
    for magic, unpacked in _PACKED.items():
        if raw.startswith(magic):
            return f"is compressed; expected it unpacked: {unpacked} FILE | headway … -"
    if not raw.removeprefix(b"\xef\xbb\xbf").strip():
        return "is empty; expected what curl -i prints, a HAR file, or JSON lines"
    return None
