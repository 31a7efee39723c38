"""Logs compressed with Zstandard: Python's own ``compression.zstd``, which before 3.14 is a package's."""

from __future__ import annotations

import sys
from typing import BinaryIO, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["ZstandardError", "open_zstandard"]

ZstandardError = zstd.ZstdError


def open_zstandard(raw: BinaryIO) -> BinaryIO:
    """What a stream holds, decompressed, one frame after another."""
    return cast(BinaryIO, zstd.ZstdFile(raw))
