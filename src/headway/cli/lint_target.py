"""What ``headway lint`` looks at, read from a file: captured answers, an OpenAPI document, an access log."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from headway.analysis.lint.answer import Answer, Place
from headway.analysis.lint.audit import Report, audit
from headway.cli.captured import LARGEST, wrong_bytes
from headway.client.captures import Capture, from_curl, from_har, from_json_lines, from_text
from headway.client.reading import read
from headway.errors import ConfigError, ExtraMissing

__all__ = ["KINDS", "read_target"]

KINDS: Final = ("har", "curl", "jsonl", "openapi", "log")
_HEAD: Final = 64 * 1024
_OPENAPI: Final = re.compile(
    r"(?m)\A\s*\{[\s\S]{0,8000}?\"(?:openapi|swagger)\"\s*:|^[\"']?(?:openapi|swagger)[\"']?\s*:\s*[\"']?[0-9]"
)
_HAR: Final = re.compile(r"\A\s*\{\s*\"log\"\s*:\s*\{")
_CURL: Final = re.compile(r"(?m)\AHTTP/[0-9]|\A[*<>] |^< HTTP/[0-9]")


def read_target(
    name: str, kind: str | None, *, assume_limit: bool = False, progress: Callable[[int, int], None] | None = None
) -> Report:
    """Read and audit a file.

    Args:
        name: a file, or ``-`` for the standard input.
        kind: of ``KINDS``; None tells it by the content.
        assume_limit: see ``Answer``.
        progress: called with the bytes of a log read so far and the bytes of all.

    Raises:
        ConfigError: content that is not what it should be, with its line where there is one.
        ValueError: a log in no known format.
        OSError: a file that cannot be read.
    """
    with _opened(name) as stream:
        head = stream.peek(_HEAD)[:_HEAD]
        kind = kind or _kind(head)
        if kind == "log":
            return _log(name, io.BufferedReader(_Bytes(stream.read1)) if name == "-" else None, progress)
        raw = stream.read(LARGEST + 1)
    problem = wrong_bytes(raw)
    if problem is not None:
        raise ConfigError(problem, file=name)
    text = raw.decode("utf-8", "replace")
    if kind == "openapi":
        return _openapi(name, text)
    answers = list(_answers(name, kind, text, assume_limit))
    if not answers:
        raise ConfigError("holds no response", file=name)
    return audit(name, answers)


def _opened(name: str) -> io.BufferedReader[Any]:
    if name != "-":
        return io.BufferedReader(Path(name).open("rb", buffering=0), _HEAD)
    return io.BufferedReader(_Bytes(sys.stdin.buffer.read), _HEAD)  # a pipe's first bytes may come late


class _Bytes(io.RawIOBase):
    """What a function reads, as a stream; whatever it reads from stays open."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _kind(head: bytes) -> str:
    """What a file is, by its first bytes."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip("\r\n")
    if _CURL.search(text):
        return "curl"
    if _HAR.match(text):
        return "har"
    if _OPENAPI.search(text):
        return "openapi"
    if text.lstrip().startswith("{") and '"status"' in text and re.search(r'"(?:headers|body)"\s*:', text):
        return "jsonl"
    return "log"


def _openapi(name: str, text: str) -> Report:
    try:
        from headway.analysis.lint.openapi import audit_openapi
        from headway.analysis.yaml import read_yaml
    except ModuleNotFoundError as error:
        raise ExtraMissing("reading an OpenAPI document", "yaml", file=name) from error
    return audit_openapi(read_yaml(text, name), name)


def _log(name: str, stream: BinaryIO | None, progress: Callable[[int, int], None] | None) -> Report:
    from headway.analysis.lint.log import LogAudit, Request
    from headway.analysis.logs.read import read_logs

    found = LogAudit(name)
    blocks = read_logs([name], ("address", "path", "status"), standard_input=stream, progress=progress)
    lines = faults = 0
    try:
        for block in blocks:
            lines += block.lines
            faults += len(block.faults)
            columns = (block.columns[field] for field in ("time", "address", "path", "status"))
            found.add(
                Request(at, address, path or "", status)
                for at, address, path, status in zip(*columns, strict=True)
                if address is not None and status is not None
            )
    except KeyboardInterrupt:
        return found.report(stopped=True)
    if not lines:
        raise ConfigError(
            "is empty; expected captured answers, a HAR file, an OpenAPI document or an access log", file=name
        )
    if faults == lines:
        none = "its only line cannot" if lines == 1 else f"none of its {lines:,} lines can"
        raise ConfigError(f"{none} be read as a log", file=name)
    return found.report(unread=faults)


def _answers(name: str, kind: str, text: str, assume_limit: bool) -> Iterator[Answer]:
    for capture, place, asked, html in _captures(name, kind, text):
        heard = read(capture.status, capture.headers, capture.body, received_at=capture.received_at)
        yield Answer(
            capture.status, capture.headers, capture.body, place, heard, capture.received_at, asked, html, assume_limit
        )


def _captures(name: str, kind: str, text: str) -> Iterator[tuple[Capture, Place, str | None, bool]]:
    """Each response with its place, what it was asked with, and whether the request wanted HTML."""
    match kind:
        case "jsonl":
            yield from _json_lines(name, text)
        case "har":
            yield from _har(name, text)
        case _:
            for number, capture in enumerate(
                _read(name, lambda: from_curl(text) if kind == "curl" else from_text(text)), 1
            ):
                yield capture, Place(name, None, f"response {number}"), "the same", False


def _read(name: str, captures: Callable[[], Iterable[Capture]]) -> list[Capture]:
    try:
        return list(captures())
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(error), file=name) from error


def _json_lines(name: str, text: str) -> Iterator[tuple[Capture, Place, str | None, bool]]:
    lines = text.removeprefix("\ufeff").split("\n")
    if not _is_object(lines[0]):  # one object over many lines
        for capture in _read(name, lambda: from_text(text)):
            yield capture, Place(name, 1, capture.id or ""), capture.id, False
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            captures = list(from_json_lines(line))
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = str(error).removeprefix("line 1 ")
            raise ConfigError(problem, file=name, line=number) from error
        asked = row.get("url") or row.get("id")
        for capture in captures:
            yield (
                capture,
                Place(name, number, capture.id or str(row.get("url") or "")),
                str(asked) if asked else None,
                False,
            )


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _har(name: str, text: str) -> Iterator[tuple[Capture, Place, str | None, bool]]:
    try:
        har = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is no HAR file: {error}", file=name, line=getattr(error, "lineno", None)) from error
    if not isinstance(har, dict):
        raise ConfigError("is no HAR file: expected log.entries", file=name)
    captures = _read(name, lambda: from_har(har))
    for number, (capture, entry) in enumerate(zip(captures, har["log"]["entries"], strict=True)):
        request = entry.get("request")
        request = request if isinstance(request, dict) else {}
        method = str(request.get("method", "GET"))
        html = any(
            str(field.get("name", "")).lower() == "accept" and "text/html" in str(field.get("value", ""))
            for field in (request["headers"] if isinstance(request.get("headers"), list) else ())
            if isinstance(field, dict)
        )
        what = f"entry {number}, {method} {capture.id or ''}".rstrip()
        yield capture, Place(name, None, what), f"{method} {capture.id}", html
