"""``Facts``: one answer's evidence, each piece read once, before any rule looks at it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from headway.analysis.lint.answer import Answer, Heard
from headway.analysis.lint.body import Body, read_body
from headway.analysis.lint.hints import Form, Hint, http_date, read_hint, split_hints
from headway.analysis.lint.standard import Standard, read_standard

__all__ = ["CAPACITY", "LIMIT", "PERMISSION", "Facts", "Trio"]

LIMIT: Final = frozenset({"rate_limited", "quota_exhausted"})
"""Kinds that are a limit of the caller's."""
CAPACITY: Final = frozenset({"overloaded", "transient"})
"""Kinds that are about the server."""
PERMISSION: Final = frozenset({"forbidden", "misconfigured", "never"})
"""Kinds that no wait lifts."""

_NEVER: Final = "urn:headway:never-admissible"
_BLOCKED: Final = "urn:headway:blocked"
_FAMILIES: Final = ("RateLimit-", "X-RateLimit-", "X-Rate-Limit-")
_CODE_FIELDS: Final = re.compile(
    r"(?:^|-)(?:error(?:-?(?:type|code))?|reason|ratelimited|rate-?limit-(?:problem|reason|type|scope|name))$"
)
_ONLY_STATUS: Final = re.compile(
    r"\b(?:4[0-9]{2}|5[0-9]{2}|forbidden|service|temporarily|unavailable|too many requests|error|nginx|openresty|apache|sorry)\b"
    r"|[\w.]*/[0-9.]+"
)
_MONEY: Final = re.compile(
    r"billing|credit|balance|payment|paid\b|insufficient|subscri|upgrade|usage.?cap|funds|top.?up|trial", re.IGNORECASE
)
_DIGITS: Final = re.compile(r"[0-9]{1,18}")


class Trio:
    """One family of three fields: limit, remaining and reset as they were sent, each perhaps None.

    Args:
        prefix: such as ``X-RateLimit-``.
        fields: all of the response's, by lower-case name.
    """

    def __init__(self, prefix: str, fields: Mapping[str, list[str]]) -> None:
        self.prefix = prefix
        self.limit, self.remaining, self.reset = (
            fields[name][0] if (name := f"{prefix.lower()}{part}") in fields else None
            for part in ("limit", "remaining", "reset")
        )

    @property
    def most(self) -> int | None:
        """The limit as a number; the first of a list such as ``100, 100;w=60``."""
        found = _DIGITS.match((self.limit or "").strip())
        return int(found[0]) if found else None

    @property
    def left(self) -> int | None:
        """What remains, where that is a whole number."""
        text = (self.remaining or "").strip()
        return int(text) if _DIGITS.fullmatch(text) else None

    @property
    def complete(self) -> bool:
        """All three are sent."""
        return None not in (self.limit, self.remaining, self.reset)


class Facts:
    """The evidence of one answer.

    Args:
        answer: the answer.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.fields: dict[str, list[str]] = {}
        for name, value in answer.headers:
            self.fields.setdefault(name.lower().strip(), []).append(value.strip())

    def field(self, name: str) -> str | None:
        """The lines of one field, joined as a list is (RFC 9110 §5.3); None where it is absent."""
        lines = self.fields.get(name)
        return None if lines is None else ", ".join(lines)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.answer.status

    @property
    def heard(self) -> Heard | None:
        """What a client's reader made of it."""
        return self.answer.heard

    @cached_property
    def kind(self) -> str | None:
        """What kind of refusal it is; None for no refusal. A cost that can never fit and a ban are told apart here."""
        if self.body.problem_type == _NEVER:
            return "never"
        if self.body.problem_type == _BLOCKED:
            return "forbidden"
        if self.heard is None:
            return None
        kind = str(self.heard.kind)
        return "rate_limited" if self.answer.assume_limit and kind not in LIMIT else kind

    @property
    def limited(self) -> bool:
        """It refuses because of a limit of the caller's."""
        return self.kind in LIMIT

    @cached_property
    def grpc(self) -> bool:
        """The answer is gRPC's: its status is in the trailers, and HTTP's says nothing."""
        return "grpc-status" in self.fields

    @cached_property
    def content_type(self) -> str:
        """The media type, lower-case, without parameters; empty where there is none."""
        return (self.field("content-type") or "").partition(";")[0].strip().lower()

    @cached_property
    def body(self) -> Body:
        """What the body says."""
        return read_body(self.answer.body, self.content_type)

    @cached_property
    def date(self) -> float | None:
        """The server's clock by its ``Date``, seconds since 1970."""
        text = self.field("date")
        return None if text is None else http_date(text)

    @cached_property
    def age(self) -> int:
        """Seconds that the answer spent in a cache."""
        text = self.field("age") or ""
        return int(text) if _DIGITS.fullmatch(text) else 0

    @cached_property
    def now(self) -> float | None:
        """The server's time: its ``Date`` and the time in a cache, else when the answer arrived."""
        if self.date is not None:
            return self.date + self.age
        return None if self.answer.received_at is None else self.answer.received_at.timestamp()

    @cached_property
    def hints(self) -> tuple[Hint, ...]:
        """Every value of ``Retry-After``."""
        return tuple(
            read_hint(value, self.now) for line in self.fields.get("retry-after", ()) for value in split_hints(line)
        )

    @cached_property
    def told(self) -> float | None:
        """Seconds that ``Retry-After`` asks for where it is one value in one of the two legal forms, else None."""
        if len(self.hints) != 1:
            return None
        hint = self.hints[0]
        return hint.seconds if hint.form in (Form.SECONDS, Form.IMF_DATE) else None

    @cached_property
    def standard(self) -> Standard:
        """``RateLimit`` and ``RateLimit-Policy``."""
        return read_standard(self.field("ratelimit"), self.field("ratelimit-policy"))

    @cached_property
    def trios(self) -> tuple[Trio, ...]:
        """The families of three fields of which any is sent."""
        found = (Trio(prefix, self.fields) for prefix in _FAMILIES)
        return tuple(one for one in found if (one.limit, one.remaining, one.reset) != (None, None, None))

    @cached_property
    def limit_fields(self) -> tuple[str, ...]:
        """Names of every field about limits that is sent, lower-case, ``retry-after`` included."""
        return tuple(
            name
            for name in self.fields
            if name == "retry-after" or name.startswith(("ratelimit", "x-ratelimit", "x-rate-limit"))
        )

    @cached_property
    def code_field(self) -> str | None:
        """A header field that gives a reason to a program, as ``name: value``; None where there is none."""
        for name, values in self.fields.items():
            if _CODE_FIELDS.search(name) and values[0] and " " not in values[0]:
                return f"{name}: {values[0]}"
        return None

    @cached_property
    def coded(self) -> bool:
        """A program can branch on a code, in the body or in a field."""
        return bool(self.body.codes or self.body.problem_type or self.code_field)

    @cached_property
    def explained(self) -> bool:
        """The body says more in words than the status does."""
        return any(_ONLY_STATUS.sub(" ", text.lower()).strip(" .!:-") for text in self.body.sentences)

    @cached_property
    def money(self) -> bool:
        """What is spent is bought, not waited for, as far as words tell."""
        words = (*(code for _, code in self.body.codes), *self.body.sentences)
        return self.kind == "quota_exhausted" and any(_MONEY.search(text) for text in words)

    @cached_property
    def spent(self) -> bool:
        """Fields show a limit that has nothing left."""
        numbers = any(one.left == 0 for one in self.trios) or any(one.remaining == 0 for one in self.standard.shown)
        return numbers or (self.heard is not None and self.heard.remaining == 0)

    @cached_property
    def violated(self) -> tuple[str, ...]:
        """Names of the limits that refused, where a body or a field says them."""
        if self.body.violated:
            return self.body.violated
        if self.heard is not None and self.heard.limit_name:
            return (self.heard.limit_name,)
        return ()

    @cached_property
    def replenish(self) -> float | None:
        """The longest ``t`` of the limits that refused: named ones, else spent ones; None where it is not said."""
        names = {name.lower() for name in self.body.violated or ()}
        waits = [
            one.replenish
            for one in self.standard.shown
            if one.replenish is not None and ((one.name or "").lower() in names if names else one.remaining == 0)
        ]
        return max(waits, default=None)
