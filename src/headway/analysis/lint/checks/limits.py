"""Whether limits can be found, read and told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from headway.analysis.lint.facts import CAPACITY, Facts, Trio
from headway.analysis.lint.hints import Form, read_hint
from headway.analysis.lint.standard import Quota, Shown

__all__ = ["check"]

_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_LIST: Final = re.compile(r"[0-9]{1,18}(?:;[^,]*)?(?:, *[0-9]{1,18};[^,]*)*")
_BARE_LIST: Final = re.compile(r"[0-9]{1,18}(?: *, *[0-9]{1,18})+")
_READABLE: Final = re.compile(
    rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]+)?|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:/[0-9]+)?"
    rb"|[^@\s]{1,64}@[\w.-]{3,255}|(?:user|account|acct|customer|uid|id|phone|email|tenant|org)[-_:= ]?\w{1,64}|\+?[0-9]{7,15}",
    re.IGNORECASE,
)
_RESET_FIELD: Final = re.compile(r"rate-?limits?\b.*reset|^x-.*reset")


def check(facts: Facts) -> Iterator[tuple[str, str]]:
    """(rule, message) of what is wrong with what shows the limits."""
    if facts.grpc:
        return
    for field, fault in facts.standard.faults:
        yield "malformed-field", f"{field}: {fault} (it is {(facts.field(field.lower()) or '')[:120]})"
    yield from _numbers(facts)
    yield from _names(facts)
    yield from _keys(facts)
    if facts.kind is not None and (facts.limited or facts.status == 429) and facts.kind not in CAPACITY:
        yield from _missing(facts)
        yield from _violated(facts)


def _numbers(facts: Facts) -> Iterator[tuple[str, str]]:
    quotas = {(one.name or "").lower(): one for one in facts.standard.quotas}
    for shown in facts.standard.shown:
        if shown.limit is not None and shown.remaining > shown.limit:
            yield "remaining-above-limit", f"RateLimit: remaining is {shown.remaining} of {shown.limit}"
        quota = quotas.get((shown.name or "").lower()) if shown.name else None
        if quota is not None and shown.remaining > quota.quota and not _bursts(facts, quota.name):
            yield "remaining-above-limit", f'RateLimit: "{shown.name}" has {shown.remaining} left of {quota.quota}'
    for trio in facts.trios:
        yield from _trio(facts, trio)
    for name, values in facts.fields.items():
        if _RESET_FIELD.search(name) and not any(name == f"{one.prefix.lower()}reset" for one in facts.trios):
            hint = read_hint(values[0], facts.now)
            if hint.form is Form.EPOCH_MS:
                yield "reset-unit-unclear", f"{name}: {values[0]} is {hint.form.value}, where most read seconds"


def _bursts(facts: Facts, name: str | None) -> bool:
    """Whether the policy says by a parameter that more than the quota may come at once."""
    return "burst=" in (facts.field("ratelimit-policy") or "") and name is not None


def _trio(facts: Facts, trio: Trio) -> Iterator[tuple[str, str]]:
    if trio.limit is not None and not _LIST.fullmatch(trio.limit) and not _BARE_LIST.fullmatch(trio.limit):
        yield "malformed-number", f"{trio.prefix}Limit: {trio.limit[:60]}"
    if trio.remaining is not None and not _WHOLE.fullmatch(trio.remaining) and not _BARE_LIST.fullmatch(trio.remaining):
        yield "malformed-number", f"{trio.prefix}Remaining: {trio.remaining[:60]}"
    if trio.most is not None and trio.left is not None and trio.left > trio.most and _WHOLE.fullmatch(trio.limit or ""):
        yield "remaining-above-limit", f"{trio.prefix}Remaining is {trio.left} of {trio.most}"
    if trio.reset is not None:
        yield from _reset(facts, trio, trio.reset)


def _reset(facts: Facts, trio: Trio, text: str) -> Iterator[tuple[str, str]]:
    field = f"{trio.prefix}Reset: {text[:60]}"
    hint = read_hint(text, facts.now)
    standard = trio.prefix == "RateLimit-"
    match hint.form:
        case Form.SECONDS if standard:
            if float(text) > 1_000_000_000:
                yield "reset-not-delta", f"{field} is more than 31 years"
        case Form.SECONDS:
            if not _corroborated(facts, float(text)):
                yield (
                    "reset-unit-unclear",
                    f"{field}: nothing says whether it is seconds, milliseconds or minutes from now",
                )
        case Form.EPOCH:
            if standard:
                yield "reset-not-delta", f"{field} is {hint.form.value}"
            if hint.seconds is not None and hint.seconds < 0 and facts.date is not None:
                yield "reset-in-past", f"{field} is {-hint.seconds:g} s before the Date"
        case Form.EPOCH_MS:
            rule = "reset-not-delta" if standard else "reset-unit-unclear"
            yield rule, f"{field} is {hint.form.value}, where most read seconds"
        case Form.ISO_DATE | Form.IMF_DATE | Form.OLD_DATE | Form.DURATION:
            if standard:
                yield "reset-not-delta", f"{field} is {hint.form.value}"
            else:
                yield "malformed-number", f"{field} is {hint.form.value}, where clients read a number"
        case _:
            yield "malformed-number", f"{field} is {hint.form.value}"


def _corroborated(facts: Facts, reset: float) -> bool:
    """Whether another hint in a known unit fits this reset as seconds: minutes would be over long after the told wait.

    Only a refusal of a limit is asked for one: it alone has something else to say.
    """
    if reset == 0 or not facts.limited:
        return True
    told = [facts.told, facts.replenish, *(seconds for _, seconds in facts.body.waits)]
    return any(one is not None and one <= max(reset + 1, 60 * reset) for one in told)


def _names(facts: Facts) -> Iterator[tuple[str, str]]:
    standard = facts.standard
    fields: tuple[tuple[str, Sequence[Shown | Quota]], ...] = (
        ("RateLimit", standard.shown),
        ("RateLimit-Policy", standard.quotas),
    )
    for field, items in fields:
        names = Counter((one.name.lower(), one.partition_key) for one in items if one.name is not None)
        for (name, _), times in names.items():
            if times > 1:
                yield "limits-indistinct", f'{field} has {times} items called "{name}" (case does not count)'
    known = {(one.name or "").lower() for one in standard.quotas}
    if standard.quotas and all(one.name for one in standard.quotas):
        for shown in standard.shown:
            if shown.name is not None and shown.name.lower() not in known:
                yield (
                    "policy-unknown",
                    f'RateLimit shows "{shown.name}", and RateLimit-Policy has {", ".join(sorted(known))}',
                )
    for trio in facts.trios:
        if _BARE_LIST.fullmatch(trio.limit or ""):
            yield "limits-indistinct", f"{trio.prefix}Limit: {trio.limit} are several limits without names or windows"


def _keys(facts: Facts) -> Iterator[tuple[str, str]]:
    items: tuple[Shown | Quota, ...] = (*facts.standard.shown, *facts.standard.quotas)
    for one in items:
        if one.partition_key and _READABLE.fullmatch(one.partition_key):
            yield (
                "partition-key-readable",
                f'the pk of "{one.name}" reads {one.partition_key[:3].decode("ascii", "replace")}…',
            )
            return


def _missing(facts: Facts) -> Iterator[tuple[str, str]]:
    heard = facts.heard
    known = heard is not None and (heard.limit, heard.remaining) != (None, None)
    if not facts.standard.shown and not facts.trios and not known:
        fields = "no field that can be read" if facts.standard.faults else "no field"
        yield "limits-not-shown", f"{fields} shows a limit, what is left of it, or its reset"
        return
    for trio in facts.trios:
        absent = [part for part in ("limit", "remaining", "reset") if getattr(trio, part) is None]
        if absent and not facts.standard.shown and not any(one.complete for one in facts.trios):
            yield "limits-incomplete", f"{trio.prefix}* has no {' and no '.join(part.title() for part in absent)}"
    sound = not facts.standard.faults
    if (
        sound
        and facts.standard.shown
        and not facts.standard.quotas
        and all(one.limit is None for one in facts.standard.shown)
    ):
        yield (
            "limits-incomplete",
            "RateLimit is sent without RateLimit-Policy, so the quota and its window are not known",
        )


def _violated(facts: Facts) -> Iterator[tuple[str, str]]:
    shown = facts.standard.shown
    known = {(one.name or "").lower() for one in shown} | {(one.name or "").lower() for one in facts.standard.quotas}
    named = facts.body.violated or ()
    strange = [name for name in named if shown and name.lower() not in known and all(one.name for one in shown)]
    if strange:
        yield "policy-unknown", f"the problem document names {', '.join(strange)}, which no field shows"
    room = bool(shown) and all(one.remaining > 0 for one in shown) and not named
    trios = [one for one in facts.trios if one.left is not None]
    if room or (
        not shown and not named and trios and all((one.left or 0) > 0 for one in trios) and not _labelled(facts)
    ):
        left = [f'"{one.name}" {one.remaining}' for one in shown if room] or [
            f"{one.prefix}* {one.left}" for one in trios
        ]
        yield "violated-limit-not-shown", f"left: {', '.join(left)}"
        return
    if not facts.violated and not any(one.name and one.remaining == 0 for one in shown):
        yield "limit-not-named", "neither a field nor the body says which limit it was"


def _labelled(facts: Facts) -> bool:
    """Whether labelled fields (per token, per hour) show the one that refused."""
    heard = facts.heard
    return heard is not None and heard.remaining == 0
