"""What a refusal's body says to a program: a problem document, codes, waits, prose. Bounded in depth and size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Final

__all__ = ["Body", "read_body"]

_DEEPEST: Final = 6
_MOST: Final = 400
_LONGEST: Final = 1 << 20
_CODE_KEYS: Final = frozenset(
    [
        "code",
        "error",
        "error_code",
        "errorcode",
        "errortype",
        "error_type",
        "error_name",
        "error_id",
        "errorid",
        "type",
        "reason",
        "name",
        "id",
        "sub_code",
        "subcode",
        "status",
        "fault",
        "faultcode",
        "__type",
        "problem",
        "exception",
        "scope",
        "title",
        "key",
    ]
)
_NOT_CODES: Final = frozenset(
    {"error", "about:blank", "true", "false", "none", "null", "ok", "fail", "failed", "failure"}
)
_XML_CODE: Final = re.compile(
    r"<(?:\w+:)?(Code|code|faultCode|errorCode|ErrorCode|Type)>\s*([A-Za-z][\w.:#-]{1,120})\s*</"
)
_CODE: Final = re.compile(r"[A-Za-z][\w.:#/+-]{1,120}")
_WORDS: Final = re.compile(r"message|detail|description|error|title|text|reason|msg|info|note", re.IGNORECASE)
_WAIT_KEY: Final = re.compile(
    r"retry_?-?(?:after|in|delay)(?:_?-?(ms|millis|milliseconds|s|sec|secs|seconds))?\Z", re.IGNORECASE
)
_GO_SECONDS: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)s")
_PROSE_WAIT: Final = re.compile(
    r"\b(?:try again|retry|wait|available|expected)\b[^.\d]{0,40}?([0-9]{1,9}(?:\.[0-9]{1,6})?) ?s(?:ec(?:ond)?s?)?\b",
    re.IGNORECASE,
)
_HTML_START: Final = re.compile(r"\s*<(?:!doctype html|html|head|body|h1|title|center)\b", re.IGNORECASE)


@dataclass(slots=True)
class Body:
    """What was found.

    Attributes:
        text: the body, decoded, cut at 1 MiB.
        html: it is an HTML page.
        json: it is JSON, or None; an embedded problem document of a page counts.
        embedded: ``json`` comes from a page's script.
        codes: strings and numbers that a program can branch on, with the keys they stand under.
        sentences: texts meant for people.
        waits: (where, seconds) of fields such as ``retry_after_ms``, and of seconds in a sentence.
        problem_type: a problem document's ``type``, unless it is ``about:blank``.
        violated: ``violated-policies`` or what stands for it, or None.
    """

    text: str
    html: bool = False
    json: Any = None
    embedded: bool = False
    codes: list[tuple[str, str]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    waits: list[tuple[str, float]] = field(default_factory=list)
    problem_type: str | None = None
    violated: tuple[str, ...] | None = None


def read_body(raw: str | bytes, content_type: str) -> Body:
    """Read a body.

    Args:
        raw: as captured.
        content_type: the response's media type, lower-case; empty where it has none.
    """
    text = (raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw)[:_LONGEST]
    body = Body(text, html=content_type.startswith(("text/html", "application/xhtml")) or bool(_HTML_START.match(text)))
    document = _json(text)
    if document is None and body.html:
        body.html = True
        document = _embedded(text)
        body.embedded = document is not None
    elif isinstance(document, dict | list):
        body.html = False
    body.json = document if isinstance(document, dict | list) else None
    if isinstance(body.json, dict):
        _problem(body, body.json)
    if body.json is None:
        body.sentences.append(_plain(text) if body.html else text.strip())
        body.codes.extend((found[1], found[2]) for found in _XML_CODE.finditer(text[:20_000]))
    else:
        for number, (key, value) in enumerate(_leaves(body.json)):
            if number >= _MOST:
                break
            _leaf(body, key, value)
    for sentence in body.sentences:
        body.waits.extend(("the sentence", float(found[1])) for found in _PROSE_WAIT.finditer(sentence[:2000]))
    return body


def _json(text: str) -> Any:
    start = text.lstrip()[:1]
    if start not in ("{", "[", '"'):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every scalar with the key it stands under; an array's members stand under the array's key."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, str(name), depth + 1)
    elif isinstance(value, list):
        for inner in value[:50]:
            yield from _leaves(inner, key, depth + 1)
    else:
        yield key, value


def _leaf(body: Body, key: str, value: Any) -> None:
    low = key.lower()
    if _WAIT_KEY.match(key) and not isinstance(value, bool):
        wait = _wait(key, value)
        if wait is not None:
            body.waits.append((key, wait))
            return
    if isinstance(value, str):
        if low in _CODE_KEYS and _CODE.fullmatch(value) and value.lower() not in _NOT_CODES:
            body.codes.append((key, value))
        elif value.strip() and (_WORDS.search(key) or " " in value):
            body.sentences.append(value)
    elif type(value) is int and low in _CODE_KEYS - {"id", "status"} and not 100 <= value < 600:
        body.codes.append((key, str(value)))  # but not the HTTP status once more, which is no reason


def _wait(key: str, value: Any) -> float | None:
    found = _WAIT_KEY.match(key)
    unit = (found[1] or "").lower() if found else ""
    scale = 0.001 if unit.startswith("m") else 1.0
    if isinstance(value, int | float) and 0 <= value < 1e12:
        return value * scale
    if isinstance(value, str):
        seconds = _GO_SECONDS.fullmatch(value.strip())
        if seconds:
            return float(seconds[1])
        if value.strip().isascii() and value.strip().isdigit() and len(value) < 13:
            return int(value) * scale
    return None


def _problem(body: Body, document: Mapping[str, Any]) -> None:
    kind = document.get("type")
    looks_right = "title" in document or "status" in document or "detail" in document
    if isinstance(kind, str) and looks_right and kind != "about:blank" and (":" in kind or "/" in kind):
        body.problem_type = kind
    for key in ("violated-policies", "policy-violations", "violated_policies"):
        names = document.get(key)
        if isinstance(names, list):
            body.violated = tuple(str(name) for name in names if isinstance(name, str))
            break


class _Text(HTMLParser):
    """The words of a page, and the JSON of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            holds_json = tag == "script" and "json" in (dict(attrs).get("type") or "")
            self._within.append("json" if holds_json else tag)
            if holds_json:
                self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style") and self._within:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.words.append(data)
        elif self._within[-1] == "json":
            self.scripts[-1] += data


def _parsed(text: str) -> _Text:
    parser = _Text()
    parser.feed(text[: 1 << 17])
    return parser


def _plain(text: str) -> str:
    return " ".join(" ".join(_parsed(text).words).split())


def _embedded(text: str) -> Any:
    for script in _parsed(text).scripts:
        document = _json(script)
        if isinstance(document, dict):
            return document
    return None
