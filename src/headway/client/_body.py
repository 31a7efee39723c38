"""What a response's body says, whatever its form: JSON, XML, a problem document, a page or a line of text.

Only what can be evidence is kept: codes, sentences, waits, limits. Bodies are read up to bounds, so that a large or
hostile one costs no more than a small one; a body that can't be parsed is read as text.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

from headway.client._body_fields import (
    CODES,
    ERROR_TEXTS,
    MESSAGES,
    NAMES,
    SENTENCES,
    declares_failure,
    field_role,
    is_code,
    plain_key,
)
from headway.client._limits import ShownLimit
from headway.client._moments import duration, number, offset

_LARGEST = 16_384  # characters of JSON that are parsed; refusals are small
_LONGEST_TEXT = 2400  # characters of a body without any form
_NODES = 160
_DEPTH = 14


@dataclass(slots=True)
class Said:
    """What a body says; filled while the body is walked.

    Attributes:
        codes: Pairs of the field (normal form: lower case, letters and digits) and its code, outermost first.
        texts: Sentences.
        waits: Pairs of the field, as written, and seconds from the server's now.
        limits: Limits shown by fields.
        names: What fields name as the violated limit, or as the limit.
        headers: Header fields that the body repeats.
        periods: What fields say of the violated limit's period (`Monthly`).
        problem_type: The `type` of a problem document.
        violated: The `violated-policies` of a problem document.
        failed: Whether the body declares itself a failure (an `error` field, `success: false`, …).
        fields: Fields with short values, for service dialects.
    """

    codes: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    waits: list[tuple[str, float]] = field(default_factory=list)
    limits: list[ShownLimit] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    periods: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    problem_type: str | None = None
    violated: list[str] = field(default_factory=list)
    failed: bool = False
    fields: list[tuple[str, str]] = field(default_factory=list)


_NAMESPACED = re.compile(r"[A-Z][A-Za-z]{1,24}:[A-Z][\w ]{2,60}", re.A)  # EAPI:Rate limit exceeded
_LINK = re.compile(r"(?:https?://|www\.)[^\s\"'<>)\]]+")


def read_body(body: Any, content_type: str, now: float) -> Said:
    """Read a body of any form.

    Args:
        body: Text, bytes, or JSON already parsed; None for none.
        content_type: The Content-Type field, in lower case, or empty.
        now: The server's time, seconds since 1970.
    """
    said = Said()
    if isinstance(body, bytes | bytearray | memoryview):
        if bytes(body[:2]) == b"\x1f\x8b":
            return said
        body = bytes(body[: 4 * _LARGEST]).decode("utf-8", "replace")
    if isinstance(body, dict | list):
        _Walk(said, now).root(body)
        return said
    if not isinstance(body, str):
        return said
    text = body.lstrip("\ufeff \t\r\n").removeprefix(")]}'").lstrip()
    if not text:
        return said
    if text[0] in '{["' and "html" not in content_type:
        parsed = _json(text)
        if parsed is not None:
            _Walk(said, now).root(parsed)
            return said
    if text[0] == "<":
        _markup(text, said, now)
        return said
    if "urlencoded" in content_type:
        _Walk(said, now).root(dict(parse_qsl(text[:_LARGEST], max_num_fields=None)[:64]))
        return said
    said.texts.append(_sentence(text[:_LONGEST_TEXT]))
    said.failed = len(text) <= _SHORT_TEXT and _COMPLAINT.match(text) is not None
    return said


def _json(text: str) -> Any:
    """Parse JSON; of a body that is too large, the value of its first `error`, or None."""
    try:
        if len(text) <= _LARGEST:
            return json.loads(text)
        found = re.compile(r'"errors?"\s*:\s*(?=[\[{"])').search(text, 0, 2048) or re.compile(
            r'"errors?"\s*:\s*(?=[\[{"])'
        ).search(text, len(text) - 4096)
        if found is None:
            return None
        end = text[found.end() : found.end() + _LARGEST]
        return {"error": json.JSONDecoder().raw_decode(end)[0]}
    except (ValueError, RecursionError):
        return None


def _sentence(text: str) -> str:
    """Return text without links and tags; a link's words say nothing about this refusal."""
    if "<" in text:
        text = html.unescape(_TAG.sub(" ", text))
    return _LINK.sub(" ", text) if "://" in text or "www." in text else text


class _Walk:
    """A bounded walk over a parsed body, outermost fields first."""

    __slots__ = ("left", "now", "said")

    def __init__(self, said: Said, now: float) -> None:
        self.said = said
        self.now = now
        self.left = _NODES

    def root(self, value: Any) -> None:
        """Walk the whole body."""
        if isinstance(value, dict):
            inner = next(iter(value.values())) if len(value) == 1 else None
            if inner is None and "messages" in value and isinstance(value["messages"], list) and value["messages"]:
                inner = value["messages"][0]  # an answer for each message that was sent
            self.said.failed = declares_failure(value) or (isinstance(inner, dict) and declares_failure(inner))
        elif isinstance(value, str):
            self.said.texts.append(_sentence(value))
        level: list[tuple[str, Any]] = [("", value)]
        for _ in range(_DEPTH):
            deeper: list[tuple[str, Any]] = []
            for key, one in level:
                if isinstance(one, dict):
                    self._object(key, one, deeper)
                elif isinstance(one, list):
                    for member in one[:32]:
                        if isinstance(member, str):
                            self._text(key, key, member)
                        else:
                            deeper.append((key, member))
            if not deeper or self.left <= 0:
                return
            level = deeper

    def _object(self, parent: str, fields: dict[Any, Any], deeper: list[tuple[str, Any]]) -> None:
        """Read the fields of one object; objects inside it wait for the next level."""
        shown: dict[str, Any] = {}
        for raw, value in list(fields.items())[: self.left]:
            self.left -= 1
            key = plain_key(str(raw))
            if isinstance(value, dict | list):
                if key == "headers" and isinstance(value, dict):
                    self.said.headers.update({str(k): str(v) for k, v in value.items() if _is_scalar(v)})
                elif raw in ("violated-policies", "policy-violations") and isinstance(value, list):
                    self.said.violated.extend(one for one in value if isinstance(one, str))
                else:
                    deeper.append((key, value))
            elif isinstance(value, bool) or value is None:
                continue
            elif isinstance(value, int | float):
                self._number(key, str(raw), value, shown)
            elif isinstance(value, str):
                self._text(key, str(raw), value, shown, parent)
        if shown:
            self._limit(shown, fields)
        if "maximumAvailable" in fields and "restoreRate" in fields:
            _cost_bucket(self.said, fields)
        if (cost := number(str(fields.get("requestedQueryCost", "")))) is not None:
            self.said.fields.append(("requestedquerycost", str(cost)))

    def _number(self, key: str, raw: str, value: float, shown: dict[str, Any]) -> None:
        """Read a field whose value is a number, or text that is one."""
        text = str(value)
        if key in CODES:
            self.said.fields.append((key, text))
            return
        self._quantity(key, raw, text, shown)

    def _quantity(self, key: str, raw: str, text: str, shown: dict[str, Any]) -> bool:
        """Read a wait, a reset or the numbers of a limit; False when the field is none of these."""
        role, unit = field_role(key)
        if role is None or len(text) > 64:
            return False
        if role in ("wait", "instant"):
            seconds = offset(text, self.now, unit=unit, reset=role == "instant")
            if seconds is not None:
                self.said.waits.append((raw, max(seconds, 0.0)))
            return seconds is not None
        if role == "reset":
            seconds = offset(text, self.now, unit=unit, reset=True)
            if seconds is not None:
                shown["reset"] = seconds
                shown["source"] = raw
            return seconds is not None
        amount = number(text)
        if role == "window" and amount is None:
            amount, unit = duration(text), 1.0  # PT24H
        if amount is not None:
            shown[role] = amount * unit if role == "window" else int(amount)
        return amount is not None

    def _text(self, key: str, raw: str, value: str, shown: dict[str, Any] | None = None, parent: str = "") -> None:
        """Read a field whose value is text: a code, a name, a quantity or a sentence."""
        value = value.strip()
        if not value or len(value) > 4 * 4096:
            return
        if shown is not None and self._quantity(key, raw, value, shown):
            return
        said = self.said
        if key == "type" and ("://" in value or value.startswith("urn:")) and said.problem_type is None:
            said.problem_type = value
        elif key == "period":
            said.periods.append(value[:96])
        elif key in NAMES and len(value) <= 96:
            said.names.append(value)
        elif " " not in value and len(value) <= 96 and value.isascii():
            if raw != "@type" and (key in CODES or key in ERROR_TEXTS) and is_code(key, value):
                said.codes.append(("sysid" if (parent, key) == ("sys", "id") else key, value.split("#")[-1]))
            elif key in MESSAGES and is_code(key, value):  # a code where a sentence is expected
                said.codes.append((key, value))
                said.texts.append(value)
            said.fields.append((key, value))
        elif key in ERROR_TEXTS and _NAMESPACED.fullmatch(value):
            said.codes.append(("namespaced", value))
        elif (
            key in SENTENCES
            or key in CODES
            or key in ERROR_TEXTS
            or ((not value.isascii() or " " in value) and len(value) < 400)
        ):
            said.texts.append(_sentence(value))

    def _limit(self, shown: dict[str, Any], fields: dict[Any, Any]) -> None:
        """Add the limit that one object's fields show; a lone `limit` is none unless it says it is a quota's."""
        if "quota" in shown:
            shown.setdefault("limit", shown["quota"])
        if "used" in shown and "limit" in shown and shown["used"] >= shown["limit"]:
            shown.setdefault("remaining", 0)
        if not shown.keys().isdisjoint(("reset", "remaining", "quota", "window")):
            name = next((fields[key] for key in ("name", "quotaId", "quota_limit") if key in fields), None)
            limit = ShownLimit(
                "",
                shown.get("limit"),
                shown.get("remaining"),
                shown.get("reset"),
                window=shown.get("window"),
                name=name if isinstance(name, str) and "limit" in shown and len(name) <= 96 else None,
                source=f"body: {shown['source']}" if "source" in shown else "",
            )
            self.said.limits.append(limit)


def _is_scalar(value: Any) -> bool:
    """Whether a value can be a header field's."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _cost_bucket(said: Said, status: dict[Any, Any]) -> None:
    """Read a cost bucket: the wait is what the request lacks, divided by what is restored a second."""
    left, restore = number(str(status.get("currentlyAvailable"))), number(str(status["restoreRate"]))
    most = number(str(status["maximumAvailable"]))
    cost = next((float(value) for key, value in said.fields if key == "requestedquerycost"), None)
    if left is None or most is None:
        return
    wait = None
    if cost is not None and restore:
        wait = round(max(cost - left, 0.0) / restore, 6)
    said.limits.append(ShownLimit("", int(most), int(left), wait=wait, source="body: throttleStatus", refuses=True))


_SHORT_TEXT = 300
_COMPLAINT = re.compile(
    r"\W*(?:error|rate.?limit|too many|throttl|quota|over |exceeded|you have|you've|your |limit|slow down|api |request|retry)",
    re.I,
)
_TAG = re.compile(r"<[^<>]{0,500}>")
_LEAF = re.compile(r"<([A-Za-z][\w.:-]{0,40})(?:\s[^<>]{0,200})?>([^<>]{1,2000})</\1\s*>")
_UNSEEN = re.compile(r"<(script|style|svg)\b.*?(?:</\1\s*>|$)", re.S | re.I)


def _markup(text: str, said: Said, now: float) -> None:
    """Read a page as text, and XML by its leaves."""
    head = text[:400].lower()
    if "<html" in head or "<!doctype html" in head or "<head" in head or "<body" in head or "<h1" in head:
        page = _UNSEEN.sub(" ", text[:_LARGEST])
        said.texts.append(" ".join(_sentence(page[: _LARGEST // 2]).split()))
        return
    walk = _Walk(said, now)
    shown: dict[str, Any] = {}
    said.failed = any(
        mark in head for mark in ("<error", "<fault", ":fault>", "<response", 'stat="fail"', "<exception")
    )
    for tag, value in islice(_leaves(text[: _LARGEST // 2]), _NODES):
        key = plain_key(tag.split(":")[-1])
        value = html.unescape(value).strip()
        if value.isdigit() and not walk._quantity(key, tag, value, shown):
            continue
        walk._text(key, tag, value, shown)
    if not said.texts and not said.codes:
        said.texts.append(" ".join(_sentence(text[: _LARGEST // 4]).split()))
    walk._limit(shown, {})


def _leaves(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every element without children, and the attributes of errors."""
    for found in _LEAF.finditer(text):
        yield found.group(1), found.group(2)
    for found in re.finditer(r"<(?:err|error)\s([^<>]{1,400})>", text, re.I):
        yield from re.findall(r"(\w+)=\"([^\"]{1,300})\"", found.group(1))
