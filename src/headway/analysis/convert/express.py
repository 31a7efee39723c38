"""Options of express-rate-limit, and of what takes such options: JSON, or a JavaScript file with ``rateLimit({ … })`` in it.

JavaScript is read as text: object literals with plain values and products such as ``15 * 60 * 1000``. Whatever is code is
noted, and nothing of it runs. A window begins with a key's first request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from headway.analysis.convert.draft import Draft, LimitDraft, Names, PolicyDraft
from headway.analysis.convert.javascript import Code, Literal, Value, product
from headway.analysis.convert.places import KeyLines, Lines
from headway.core.quota import parse_duration
from headway.errors import QuotaError

__all__ = ["convert_express", "looks_like_express"]

_CALL: Final = re.compile(
    r"\b(?:const|let|var)?\s*(?:([A-Za-z_$][\w$]*)\s*=\s*)?(?:new\s+)?(rateLimit|expressRateLimit|RateLimit|RateLimiter\w*|slowDown)\s*\(\s*\{"
)
_OPTIONS: Final = re.compile(r"[\"']?\b(?:windowMs|timeWindow|points)\b[\"']?\s*:")
_DEFAULT_WINDOW_MS: Final = 60_000
_DEFAULT_LIMIT: Final = 5
_SILENT: Final = frozenset(
    [
        "standardHeaders",
        "legacyHeaders",
        "headers",
        "draft_polli_ratelimit_headers",
        "message",
        "identifier",
        "requestPropertyName",
        "validate",
        "keyPrefix",
        "storeClient",
        "inMemoryBlockOnConsumed",
    ]
)
"""About what a refusal looks like, which is headway's own, or about where counters live."""


_Options = dict[str, Value]


def looks_like_express(text: str) -> bool:
    """Whether a text holds such options."""
    return bool(_OPTIONS.search(text))


def convert_express(text: str, file: str) -> Draft:
    """Convert options: one object, an array of them, objects by name, or JavaScript.

    Raises:
        ConfigError: with the line: options that express-rate-limit would not take either, or a text without any.
    """
    draft = Draft(file, "express-rate-limit")
    names = Names()
    for name, kind, options in _found(text, draft):
        if kind == "slowDown":
            draft.note("slowDown delays and never refuses; it is left out", _line(options))
            continue
        limit = _Limiter(draft, name, options, names).limit()
        draft.policies.append(PolicyDraft(limit.name, [limit]))
    if not draft.policies:
        raise draft.error('holds no limiter; expected options such as { "windowMs": 60000, "limit": 100 }')
    if len(draft.policies) > 1:
        draft.comments.append("A policy for each limiter: ask those that the request's route uses.")
    return draft


def _line(options: _Options) -> int | None:
    return min((value.line for value in options.values()), default=None)


class _Limiter:
    """One limiter's options as a limit."""

    def __init__(self, draft: Draft, name: str, options: _Options, names: Names) -> None:
        self._draft = draft
        self._options = options
        self._name = names.take(name, "limiter")
        self._line = _line(options)

    def limit(self) -> LimitDraft:
        count, window = self._numbers()
        by = self._by()
        keys: dict[str, Any]
        if count == 0:
            self._note("limit", "0 is refused with 429 there, and blocked with 403 here")
            keys = {"block": True, "by": by}
        else:
            keys = {"quota": _quota(count, window), "algorithm": "anchored-window", "by": by, "count_refused": True}
        if self._value("passOnStoreError") is True:
            keys["on_store_failure"] = "allow"
        self._rest()
        shown = f"{count} in {window} ms"
        return self._draft.checked(LimitDraft(self._name, keys, [shown], self._line))

    def _numbers(self) -> tuple[int, int]:
        if "points" in self._options:  # rate-limiter-flexible: points in duration seconds
            return self._whole("points", 0, 4), self._whole("duration", 1, 1) * 1000
        if "timeWindow" in self._options:  # fastify's: milliseconds, or text such as "1 minute"
            return self._whole("max", 0, 1000), self._written("timeWindow")
        name = "limit" if "limit" in self._options or "max" not in self._options else "max"
        window = self._whole("windowMs", 1, _DEFAULT_WINDOW_MS)
        given = self._options.get(name)
        if given is not None and isinstance(given.value, Code):
            self._note(
                name, f"{name} is code; here it is the default, {_DEFAULT_LIMIT}: write the number, or a table of tiers"
            )
            return _DEFAULT_LIMIT, window
        if name not in self._options:
            self._said(f"no limit is given; express-rate-limit's default is {_DEFAULT_LIMIT}", self._line)
        return self._whole(name, 0, _DEFAULT_LIMIT), window

    def _whole(self, key: str, least: int, default: int) -> int:
        given = self._options.get(key)
        if given is None:
            return default
        value = given.value
        if isinstance(value, str):
            value = product(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            value = int(value)
        if type(value) is not int or not least <= value <= 10**14:
            shown = value.text if isinstance(value, Code) else repr(given.value)
            raise self._draft.error(f"{key} is {shown[:60]}; expected a whole number from {least}", given.line)
        return value

    def _written(self, key: str) -> int:
        """A duration in milliseconds, as a number or in words."""
        value, line = self._options[key]
        if not isinstance(value, str) or isinstance(product(value), int):
            return self._whole(key, 1, _DEFAULT_WINDOW_MS)
        try:
            return max(1, parse_duration(value) // 1_000_000)
        except QuotaError as error:
            raise self._draft.error(f"{key}: {error}", line) from error

    def _by(self) -> list[str]:
        if "points" in self._options:
            self._said("the key is what consume() is called with; here it is the attribute key", self._line)
            return ["key"]
        generator = self._options.get("keyGenerator")
        if generator is not None:
            text = generator.value.text if isinstance(generator.value, Code) else str(generator.value)
            self._note(
                "keyGenerator",
                f"keyGenerator is code ({_short(text)}); here the key is the attribute key: give its value",
            )
            return ["key"]
        subnet = self._value("ipv6Subnet")
        if "ipv6Subnet" in self._options or subnet is not None:
            self._note(
                "ipv6Subnet",
                f"ipv6Subnet is {_short(str(subnet))}; here who gives the address groups it (ipv6_prefix of the adapters, 64)",
            )
        return ["address"]

    def _rest(self) -> None:
        for key, (value, line) in self._options.items():
            match key:
                case (
                    "windowMs"
                    | "timeWindow"
                    | "limit"
                    | "max"
                    | "points"
                    | "duration"
                    | "keyGenerator"
                    | "ipv6Subnet"
                    | "passOnStoreError"
                ):
                    continue
                case "skipSuccessfulRequests" | "skipFailedRequests" if value is not False:
                    kind = "succeed" if key == "skipSuccessfulRequests" else "fail"
                    self._said(
                        f"{key} gives back what requests that {kind} were charged; here a refund does, after the answer",
                        line,
                    )
                case "skip":
                    self._said("skip is code; here exempt = [{ … }] of the policy leaves requests out", line)
                case "statusCode" if value != 429:
                    self._said(f"refuses with {_short(str(value))}; headway with 429", line)
                case "store":
                    self._said("the store is code; here store at the top of the file names one", line)
                case "blockDuration" if value not in (0, None):
                    self._said("blockDuration keeps refusing for longer; here a refusal ends with its window", line)
                case "execEvenly" if value is True:
                    self._said("execEvenly delays requests; here none is delayed", line)
                case _ if key in _SILENT or value in (False, None, 0):
                    continue
                case "statusCode":
                    continue
                case _:
                    self._said(f"{key} is not carried over", line)

    def _value(self, key: str) -> Any:
        given = self._options.get(key)
        return None if given is None else given.value

    def _said(self, what: str, line: int | None) -> None:
        self._draft.note(what, line, self._name, self._name)

    def _note(self, key: str, what: str) -> None:
        given = self._options.get(key) or self._options.get("max")
        self._said(what, given.line if given else self._line)


def _quota(count: int, window_ms: int) -> str:
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)):
        if window_ms % length == 0:
            times = window_ms // length
            return (
                f"{count}/{unit}"
                if times == 1
                else f"{count} per {times} {unit}{'s' if unit in ('day', 'hour') else ''}"
            )
    raise AssertionError("one millisecond divides every window")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _found(text: str, draft: Draft) -> Iterator[tuple[str, str, _Options]]:
    """Every limiter: its name, the function that makes it, its options."""
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start in ("{", "["):
        try:
            document = json.loads(text.lstrip("\ufeff"))
        except (ValueError, RecursionError) as error:
            if start == "[" or ("(" not in text and "=>" not in text and '"' in text[:200] and "'" not in text):
                raise draft.error(f"is no JSON: {error}", getattr(error, "lineno", None)) from error
            document = Literal(text, draft, Lines(text)).whole()
            yield from _objects(document, draft)
            return
        yield from _objects(_placed(document, text), draft)
        return
    lines = Lines(text)
    calls = list(_CALL.finditer(text))
    for number, call in enumerate(calls, 1):
        options = Literal(text, draft, lines, call.end() - 1).whole().value
        yield call[1] or (f"limiter-{number}" if len(calls) > 1 else "limiter"), call[2], options
    if not calls:
        raise draft.error("holds no call of rateLimit({ … }) and is no JSON")


def _placed(value: Any, text: str) -> Value:
    """JSON's value with lines: those of its keys."""
    lines = KeyLines(text)

    def place(inner: Any, line: int, depth: int) -> Value:
        if depth > 50:
            return Value(Code("nested too deeply"), line)
        if isinstance(inner, dict):
            return Value({key: place(one, lines.next(key), depth + 1) for key, one in inner.items()}, line)
        if isinstance(inner, list):
            return Value([place(one, line, depth + 1) for one in inner], line)
        return Value(inner, line)

    return place(value, 1, 0)


def _objects(document: Value, draft: Draft, name: str = "limiter") -> Iterator[tuple[str, str, _Options]]:
    value = document.value
    if isinstance(value, list):
        for number, one in enumerate(value, 1):
            yield from _objects(one, draft, f"{name}-{number}")
    elif isinstance(value, dict):
        if value.keys() & {"windowMs", "timeWindow", "limit", "max", "points"} or not any(
            isinstance(one.value, dict) for one in value.values()
        ):
            yield name, "rateLimit", value
            return
        for key, one in value.items():
            if isinstance(one.value, dict | list):
                yield from _objects(one, draft, key)
    else:
        raise draft.error(f"a limiter is {value!r}; expected an object with windowMs and limit"[:200], document.line)
