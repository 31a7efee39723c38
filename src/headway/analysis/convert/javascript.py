"""Object literals of JavaScript, read as text: plain values and products of numbers. Whatever is code stays text, and none runs."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from headway.analysis.convert.draft import Draft
from headway.analysis.convert.places import Lines

__all__ = ["Code", "Literal", "Value", "product"]

_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NUMBER: Final = re.compile(r"[0-9][0-9_]*(?:\.[0-9]+)?(?:e[0-9]{1,2})?")
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")


class Code(NamedTuple):
    """A value that only running would give."""

    text: str


class Value(NamedTuple):
    """A value and the line that it stands on."""

    value: Any
    line: int


def product(text: str) -> Any:
    """``15 * 60 * 1000`` as its number; anything else as it is."""
    parts = [part.strip() for part in text.split("*")]
    if not all(_NUMBER.fullmatch(part) for part in parts) or len(parts) > 12:
        return text
    product = 1.0
    for part in parts:
        product *= float(part.replace("_", ""))
    return int(product) if product.is_integer() and product < 1e15 else product


class Literal:
    """Reads an object literal of JavaScript: plain values, products of numbers; the rest is code, kept as text."""

    def __init__(self, text: str, draft: Draft, lines: Lines, at: int = 0) -> None:
        self._text = text
        self._draft = draft
        self._lines = lines
        self._at = at

    def whole(self) -> Value:
        """The value that begins at the place that was given.

        Raises:
            ConfigError: with the line: brackets, quotes or commas that are missing.
        """
        return self._value(0)

    @property
    def _line(self) -> int:
        return self._lines.of(self._at)

    def _skip(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at].isspace() or self._text[self._at] == "\ufeff":
                self._at += 1
                continue
            comment = _COMMENT.match(self._text, self._at)
            if comment is None:
                return
            self._at = comment.end()

    def _value(self, depth: int) -> Value:
        if depth > 50:
            raise self._draft.error("is nested more than 50 deep", self._line)
        self._skip()
        line = self._line
        char = self._text[self._at : self._at + 1]
        if char == "{":
            return Value(self._object(depth), line)
        if char == "[" and depth == 0:
            return Value(self._array(depth), line)
        return Value(self._plain(), line)

    def _array(self, depth: int) -> list[Value]:
        self._at += 1
        found: list[Value] = []
        while True:
            self._skip()
            if self._text[self._at : self._at + 1] == "]":
                self._at += 1
                return found
            found.append(self._value(depth + 1))
            self._comma("]")

    def _object(self, depth: int) -> dict[str, Value]:
        opened = self._line
        self._at += 1
        found: dict[str, Value] = {}
        while True:
            self._skip()
            char = self._text[self._at : self._at + 1]
            if char == "}":
                self._at += 1
                return found
            if not char:
                raise self._draft.error("the brace '{' is not closed", opened)
            line = self._line
            if self._text.startswith("...", self._at):
                found[f"...{line}"] = Value(Code(self._code()), line)
            else:
                key = self._key()
                found[key] = self._member(key, depth, line)
            self._comma("}")

    def _key(self) -> str:
        char = self._text[self._at]
        if char in "\"'":
            return self._string()
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise self._draft.error(
                f"{self._text[self._at : self._at + 20]!r} stands where an option was expected", self._line
            )
        self._at = name.end()
        if name[0] in ("async", "get", "set"):
            self._skip()
            method = _NAME.match(self._text, self._at)
            if method is not None:
                self._at = method.end()
                return method[0]
        return name[0]

    def _member(self, key: str, depth: int, line: int) -> Value:
        self._skip()
        char = self._text[self._at : self._at + 1]
        if char == ":":
            self._at += 1
            value = self._value(depth + 1)
            return Value(value.value, line)
        if char == "(":  # a method
            return Value(Code(f"{key}{self._code()}"), line)
        return Value(Code(key), line)  # a shorthand: the variable of that name

    def _comma(self, end: str) -> None:
        self._skip()
        char = self._text[self._at : self._at + 1]
        if char == ",":
            self._at += 1
        elif char != end:
            shown = repr(self._text[self._at : self._at + 20]) if char else "the end of the file"
            raise self._draft.error(f"{shown} stands where a comma or '{end}' was expected", self._line)

    def _plain(self) -> Any:
        start = self._at
        char = self._text[start : start + 1]
        if char in ('"', "'") and char:
            text = self._string()
            self._skip()
            if self._text[self._at : self._at + 1] in (",", "}", "]", ""):
                return text
            self._at = start
        code = self._code()
        words: dict[str, Any] = {"true": True, "false": False, "null": None, "undefined": None}
        if code in words:
            return words[code]
        number = product(_COMMENT.sub("", code))
        return number if not isinstance(number, str) else Code(code)

    def _string(self) -> str:
        quote = self._text[self._at]
        line = self._line
        at = self._at + 1
        kept: list[str] = []
        while at < len(self._text) and self._text[at] != "\n":
            if self._text[at] == "\\":
                kept.append(self._text[at + 1 : at + 2])
                at += 2
            elif self._text[at] == quote:
                self._at = at + 1
                return "".join(kept)
            else:
                kept.append(self._text[at])
                at += 1
        raise self._draft.error(f"quotes ({quote}) are not closed", line)

    def _code(self) -> str:
        """Code up to the comma or the bracket that ends the value; brackets and quotes within it are matched."""
        start = self._at
        stack: list[str] = []
        pairs = {"(": ")", "[": "]", "{": "}"}
        while self._at < len(self._text):
            char = self._text[self._at]
            comment = _COMMENT.match(self._text, self._at)
            if comment is not None:
                self._at = comment.end()
                continue
            if char in "\"'":
                self._string()
                continue
            if char == "`":
                close = self._text.find("`", self._at + 1)
                self._at = len(self._text) if close < 0 else close + 1
                continue
            if char in pairs:
                stack.append(pairs[char])
            elif stack and char == stack[-1]:
                stack.pop()
            elif not stack and char in ",}])":
                break
            self._at += 1
        return self._text[start : self._at].strip()
