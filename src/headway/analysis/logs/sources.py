"""Where logs come from: files, compressed or not, and the standard input; told by what they begin with."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from headway.analysis.logs.formats import PARQUET_MAGIC
from headway.errors import ExtraMissing

__all__ = ["Source"]

_GZIP: Final = b"\x1f\x8b"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_BZIP2: Final = b"BZh"
_XZ: Final = b"\xfd7zXZ\x00"


class Source:
    """One log: a file's name, or ``-`` for the standard input.

    Attributes:
        name: as it was given.
        path: where Parquet can be read from; None for everything else.
        damage: why the log ended before its end, such as a truncated gzip file; None as long as all is well.
        size: bytes of a regular file, compressed as they may be; 0 where nobody knows.

    Raises:
        OSError: it cannot be opened.
        ExtraMissing: it is compressed in a way whose reader is not installed.
    """

    def __init__(self, name: str, standard_input: BinaryIO | None = None) -> None:
        self.name = name
        self.path: Path | None = None
        self.damage: str | None = None
        self._left = ExitStack()
        self._raw: BinaryIO
        buffered: io.BufferedReader[Any]
        if name == "-":
            given = standard_input or sys.stdin.buffer
            buffered = io.BufferedReader(cast(io.RawIOBase, getattr(given, "raw", given)))
            self._left.callback(buffered.detach)  # it stays open
            self._raw = buffered
        else:
            buffered = self._left.enter_context(Path(name).open("rb"))  # noqa: SIM115 - the stack closes it
            self._raw = buffered
        self.size = _size(self._raw)
        try:
            magic = buffered.peek(8)
            if magic.startswith(PARQUET_MAGIC):
                self.path = Path(name) if name != "-" else self._spooled()
            self._stream, self._errors = _decompressed(self._raw, magic, name)
            # a pipe's lines are read as they come, so that Ctrl-C leaves none unread; a file's all the same in large pieces
            self._read = buffered.read1 if self._stream is self._raw else self._stream.read
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the standard input stays open."""
        self._left.close()

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes, decompressed; empty at the end, and where the rest is damaged."""
        if self.damage:
            return b""
        try:
            return self._read(size)
        except self._errors as error:
            self.damage = f"the rest cannot be read: {error}"
            return b""

    def done(self) -> int:
        """Bytes of the file that were read, out of ``size``."""
        with suppress(OSError, ValueError):
            return self._raw.tell()
        return 0

    def _spooled(self) -> Path:
        """The standard input as a file, which Parquet needs: its table of contents is at its end."""
        spool = self._left.enter_context(tempfile.NamedTemporaryFile(suffix=".parquet"))  # noqa: SIM115 - the stack closes it
        shutil.copyfileobj(self._raw, spool)
        spool.flush()
        return Path(spool.name)


def _decompressed(raw: BinaryIO, magic: bytes, name: str) -> tuple[BinaryIO, tuple[type[Exception], ...]]:
    if magic.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw)), (gzip.BadGzipFile, EOFError, zlib.error)
    if magic.startswith(_BZIP2):
        return cast(BinaryIO, bz2.BZ2File(raw)), (OSError, EOFError)
    if magic.startswith(_XZ):
        return cast(BinaryIO, lzma.LZMAFile(raw)), (lzma.LZMAError, EOFError)
    if magic.startswith(_ZSTANDARD):
        try:
            from headway.analysis.logs.compression_backports import ZstandardError, open_zstandard
        except ModuleNotFoundError as error:
            raise ExtraMissing("Zstandard", "analysis", file=name) from error
        return open_zstandard(raw), (ZstandardError, EOFError)
    return raw, ()


def _size(raw: BinaryIO) -> int:
    with suppress(OSError, ValueError):  # no file at all
        found = os.fstat(raw.fileno())
        return found.st_size if stat.S_ISREG(found.st_mode) else 0
    return 0


def first_bytes(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first block, empty where there is none, and all of them."""
    first = next(blocks, b"")

    def all_blocks() -> Iterator[bytes]:
        if first:
            yield first
        yield from blocks

    return first, all_blocks()
