"""nginx's configuration files as a tree of directives, each with its file and line. What a directive means is not known here.

``nginx -T`` prints all files of a configuration; such a text is taken apart, and its includes are followed in it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from headway.errors import ConfigError

__all__ = ["Directive", "Word", "parse_nginx"]

_FILE_OF_DUMP: Final = re.compile(r"^# configuration file (.+):$")
_DEEPEST: Final = 100
_MOST: Final = 200_000


class Word(str):
    """A word of a directive; ``quoted`` says whether it stood in quotes."""

    __slots__ = ("quoted",)
    quoted: bool


@dataclass(slots=True)
class Directive:
    """One directive: its name, its words, and for a block what is in it."""

    name: str
    words: list[Word]
    line: int
    file: str
    block: list[Directive] | None = None
    missing: list[str] = field(default_factory=list)
    """Patterns of ``include`` below it whose files are not at hand."""


class _Piece(NamedTuple):
    text: str
    line: int
    quoted: bool


def parse_nginx(text: str, file: str) -> list[Directive]:
    """The directives of a configuration.

    Raises:
        ConfigError: with the line: a brace or a semicolon that is missing, quotes that do not end.
    """
    parts = _parts(text, file)
    main = next(iter(parts))
    return _Parser(parts).parse(main, 0)


def _parts(text: str, file: str) -> dict[str, tuple[int, str]]:
    """The files of a dump, each with the line of the dump before its first; a plain file is the only one."""
    found: dict[str, tuple[int, list[str]]] = {}
    lines: list[str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        head = _FILE_OF_DUMP.match(line.rstrip("\r"))
        if head:
            lines = []
            found.setdefault(head[1], (number, lines))
        elif lines is not None:
            lines.append(line)
    if not found:
        return {file: (0, text)}
    return {name: (before, "\n".join(kept)) for name, (before, kept) in found.items()}


class _Parser:
    """Parses one file after another, and follows what they include."""

    def __init__(self, parts: dict[str, tuple[int, str]]) -> None:
        self._parts = parts
        self._dump = len(parts) > 1 or next(iter(parts.values()))[0] > 0
        self._main = next(iter(parts))
        self._count = 0
        self._matched: dict[str, list[str]] = {}

    def parse(self, file: str, depth: int) -> list[Directive]:
        before, text = self._parts[file]
        pieces = _pieces(text, before, file)
        return self._block(pieces, file, depth, None)

    def _block(self, pieces: Iterator[_Piece], file: str, depth: int, opened: int | None) -> list[Directive]:
        if depth > _DEEPEST:
            raise ConfigError(f"is nested more than {_DEEPEST} deep", file=file, line=opened)
        found: list[Directive] = []
        words: list[_Piece] = []
        for piece in pieces:
            self._count += 1
            if self._count > _MOST:
                raise ConfigError(f"has more than {_MOST} words", file=file, line=piece.line)
            if piece.quoted or piece.text not in (";", "{", "}"):
                words.append(piece)
                continue
            if piece.text == "}":
                if words:
                    raise ConfigError(
                        f"'{words[0].text[:40]}' does not end with a semicolon", file=file, line=words[0].line
                    )
                if opened is None:
                    raise ConfigError("a brace '}' closes nothing", file=file, line=piece.line)
                return found
            if not words:
                raise ConfigError(f"'{piece.text}' stands where a directive was expected", file=file, line=piece.line)
            directive = _directive(words, file)
            words = []
            if piece.text == "{":
                directive.block = self._block(pieces, file, depth + 1, piece.line)
            if directive.name == "include" and directive.block is None and directive.words:
                found += self._included(directive, depth)
            else:
                found.append(directive)
        if words:
            raise ConfigError(f"'{words[0].text[:40]}' does not end with a semicolon", file=file, line=words[0].line)
        if opened is not None:
            raise ConfigError("the brace '{' is not closed", file=file, line=opened)
        return found

    def _included(self, directive: Directive, depth: int) -> list[Directive]:
        pattern = directive.words[0]
        full = pattern if pattern.startswith("/") else posixpath.join(posixpath.dirname(self._main), pattern)
        names = [name for name in self._matching(full) if name != directive.file] if self._dump else []
        if not names:
            directive.missing.append(pattern)
            return [directive]
        return [one for name in names for one in self.parse(name, depth + 1)]

    def _matching(self, pattern: str) -> Iterable[str]:
        """The files of a dump that an ``include`` takes."""
        if not any(char in pattern for char in "*?["):
            return (pattern,) if pattern in self._parts else ()
        if pattern not in self._matched:
            self._matched[pattern] = [name for name in self._parts if fnmatchcase(name, pattern)]
        return self._matched[pattern]


def _directive(words: list[_Piece], file: str) -> Directive:
    rest = []
    for piece in words[1:]:
        word = Word(piece.text)
        word.quoted = piece.quoted
        rest.append(word)
    return Directive(words[0].text, rest, words[0].line, file)


def _pieces(text: str, before: int, file: str) -> Iterator[_Piece]:
    at = 0
    line = before + 1
    while at < len(text):
        char = text[at]
        if char == "\n":
            line += 1
            at += 1
        elif char.isspace() or char == "\ufeff":
            at += 1
        elif char == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif char in ";{}":
            yield _Piece(char, line, False)
            at += 1
        elif char in "\"'":
            inner, end = _quoted(text, at, file, line)
            yield _Piece(inner, line, True)
            line += text.count("\n", at, end)
            at = end
        else:
            end = _word_end(text, at)
            yield _Piece(re.sub(r"\\(.)", r"\1", text[at:end]) if '\\"' in text[at:end] else text[at:end], line, False)
            line += text.count("\n", at, end)
            at = end


def _quoted(text: str, start: int, file: str, line: int) -> tuple[str, int]:
    quote = text[start]
    kept: list[str] = []
    at = start + 1
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            kept.append(text[at + 1] if text[at + 1] in "\"'\\" else text[at : at + 2])
            at += 2
        elif char == quote:
            return "".join(kept), at + 1
        else:
            kept.append(char)
            at += 1
    raise ConfigError(f"quotes ({quote}) are not closed", file=file, line=line)


def _word_end(text: str, start: int) -> int:
    """The end of a bare word: ``${name}`` within it opens no block."""
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
        elif text.startswith("${", at):
            close = text.find("}", at)
            at = len(text) if close < 0 else close + 1
        elif char.isspace() or char in ";{}":
            break
        else:
            at += 1
    return min(at, len(text))
