"""Whether a client knows exactly when to come back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from headway.analysis.lint.facts import CAPACITY, PERMISSION, Facts
from headway.analysis.lint.hints import Form, Hint, weekday

__all__ = ["TOO_LONG", "check", "early_by"]

TOO_LONG: Final = 10 * 366 * 86_400
_SKEW: Final = 10.0
"""Seconds between the two clocks that a slow network does not explain."""
_NEAR: Final = 2.0
"""Seconds by which two roundings of one moment differ at most."""
_DATE_STEP: Final = 1.0
"""A ``Date`` is whole seconds, and servers keep one for a second: what is counted from it is not exact."""
_INSTANT: Final = re.compile(r"(?:^|[a-z_-])(?:[Aa]t|[Uu]ntil|[Rr]eset\w*|[Tt]ime\w*|[Dd]ate|[Ee]xpir\w*)$")
"""Names of fields of a body that hold an instant."""
_MS_FIELD: Final = re.compile(r"(?:^|-)retry-?after-?(?:ms|millis|milliseconds)$")
_DAY_WORDS: Final = re.compile(
    r"\b(?:tomorrow|midnight|end of (?:the |this )?(?:day|month)|next (?:day|month)|(?:later )?today|tonight)\b",
    re.IGNORECASE,
)
_ZONE: Final = re.compile(
    r"\b(?:UTC|GMT|Z|[PMCE][SD]T|Pacific|Eastern|Central|CET|CEST|BST|JST|IST|AEST|time zone)\b|[+-][0-9]{2}:?[0-9]{2}\b"
    r"|\b[A-Z][a-z]+/[A-Z][a-z_A-Z]+\b"
)


def check(facts: Facts) -> Iterator[tuple[str, str]]:
    """(rule, message) of what is wrong with the wait."""
    yield from _clock(facts)
    if facts.kind is None or facts.grpc:
        return
    for hint in facts.hints:
        yield from _one(facts, hint)
    if len(facts.hints) > 1:
        shown = ", ".join(hint.text or "(empty)" for hint in facts.hints)
        yield "retry-after-several", f"Retry-After has {len(facts.hints)} values: {shown[:100]}"
    if not facts.hints and _needs_wait(facts):
        yield "retry-after-missing", f"the {facts.status} has no Retry-After{_else(facts)}"
    yield from _compared(facts)
    yield from _words(facts)


def early_by(facts: Facts) -> float:
    """Seconds by which ``Retry-After`` is over too soon, by what else the answer says; 0 where it is not."""
    told = facts.told
    if told is None or told <= 0:
        return 0.0
    later = [facts.replenish or 0.0, *(seconds for _, seconds in _stated(facts))]
    return max(0.0, max(later) - told)


def _needs_wait(facts: Facts) -> bool:
    if facts.kind in PERMISSION or facts.status == 402 or facts.money:
        return False
    return facts.limited or facts.kind in CAPACITY or facts.status in (429, 503)


def _else(facts: Facts) -> str:
    """Where else the wait stands, for the message."""
    heard = facts.heard
    if heard is None or heard.retry_after is None:
        return ", and nothing else says when to come back"
    return f"; a client has to find {heard.retry_after:g} s in {heard.source}"


def _one(facts: Facts, hint: Hint) -> Iterator[tuple[str, str]]:
    field = f"Retry-After: {hint.text[:60]}"
    match hint.form:
        case Form.SECONDS:
            pass
        case Form.IMF_DATE:
            day = weekday(hint.text)
            if day is not None:
                yield "retry-after-old-date", f"{field}: that day is a {day}"
        case Form.FRACTION:
            up = math.ceil(float(hint.text))
            yield "retry-after-fractional", f"{field}; send {max(1, up)}"
        case Form.EPOCH | Form.EPOCH_MS:
            yield "retry-after-epoch", f"{field} is {hint.form.value}{_meant(hint)}"
        case Form.OLD_DATE:
            yield (
                "retry-after-old-date",
                f"{field}; send whole seconds, or a date such as Sat, 01 Aug 2026 00:02:00 GMT",
            )
        case Form.EMPTY:
            yield "retry-after-malformed", "Retry-After is empty"
        case form:
            yield "retry-after-malformed", f"{field} is {form.value}{_meant(hint)}"
    seconds = hint.seconds
    if hint.form in (Form.IMF_DATE, Form.OLD_DATE) and facts.date is None:
        yield "instant-without-date", f"{field}, and there is no Date"
    if seconds is None or hint.form is Form.NEGATIVE:
        return
    if seconds <= 0:
        yield "retry-after-now", f"{field} is {'0' if not seconds else f'{-seconds:g} s ago by the Date'}"
    elif seconds > TOO_LONG:
        yield "retry-after-absurd", f"{field} is {seconds / 31_557_600:.0f} years"


def _meant(hint: Hint) -> str:
    return f", {hint.seconds:g} s from now" if hint.seconds is not None and hint.seconds > 0 else ""


def _stated(facts: Facts) -> list[tuple[str, float]]:
    """Other waits, exact to the millisecond or the second: (where, seconds)."""
    found = list(facts.body.waits)
    heard = facts.heard
    if heard is not None and heard.retry_after is not None and heard.source.startswith("body: "):
        where = heard.source.removeprefix("body: ")
        told = facts.told or 0.0
        new = all(where != name for name, _ in found) and not _INSTANT.search(where)
        if new and heard.retry_after > told + _DATE_STEP:
            found.append((where, heard.retry_after))  # by a name that only the client's reader knows
    for name, values in facts.fields.items():
        if _MS_FIELD.search(name) and values[0].isascii() and values[0].isdigit() and len(values[0]) < 16:
            found.append((name, int(values[0]) / 1000))
    return found


def _compared(facts: Facts) -> Iterator[tuple[str, str]]:
    told = facts.told
    if told is None or told <= 0:
        return
    if facts.replenish is not None and told < facts.replenish:
        yield "retry-after-before-t", f"Retry-After is {told:g} s and t is {facts.replenish:g} s"
    stated = _stated(facts)
    for where, seconds in stated:
        if told < seconds < told + _NEAR or (told < seconds and where == "the sentence"):
            yield (
                "retry-after-early",
                f"Retry-After is {told:g} s and {where} says {seconds:g} s: it was cut, not rounded up",
            )
        elif told < seconds or (told > seconds + _NEAR and where != "the sentence"):
            yield "hints-disagree", f"Retry-After is {told:g} s and {where} says {seconds:g} s"


def _words(facts: Facts) -> Iterator[tuple[str, str]]:
    heard = facts.heard
    usable = any(hint.form in (Form.SECONDS, Form.IMF_DATE, Form.OLD_DATE) for hint in facts.hints)
    for text in facts.body.sentences:
        found = _DAY_WORDS.search(text[:2000])
        if found and facts.kind not in PERMISSION and not _ZONE.search(text[:2000]):
            yield "tomorrow-without-zone", f"the body says {found[0]!r} and no time zone"
            return
    if not usable and heard is not None and heard.source == "body text" and heard.retry_after is not None:
        yield "wait-in-words-only", f"{heard.retry_after:g} s stand in a sentence only"


def _clock(facts: Facts) -> Iterator[tuple[str, str]]:
    arrived = facts.answer.received_at
    if facts.date is None or arrived is None or facts.age:
        return
    skew = facts.date - arrived.timestamp()
    if abs(skew) > _SKEW:
        way = "ahead of" if skew > 0 else "behind"
        yield "clock-skew", f"Date is {abs(skew):,.0f} s {way} the time at which the answer came"
