"""One plain sentence for a person: what happened, and when to try again."""

from __future__ import annotations

import re
from typing import Final

from headway.core.limit import Limit
from headway.core.outcome import Never
from headway.core.verdict import Verdict
from headway.presentation.language import Language, language, mark, resolve
from headway.presentation.wait import say_wait

__all__ = ["KNOWN", "sentence"]

KNOWN: Final = {
    "ip": mark("this address"),
    "address": mark("this address"),
    "client_address": mark("this address"),
    "phone": mark("this phone"),
    "email": mark("this email"),
    "account": mark("this account"),
    "user": mark("this user"),
    "user_id": mark("this user id"),
    "username": mark("this username"),
    "customer": mark("this customer"),
    "tenant": mark("this tenant"),
    "project": mark("this project"),
    "team": mark("this team"),
    "organisation": mark("this organisation"),
    "organization": mark("this organization"),
    "api_key": mark("this api key"),
    "key": mark("this key"),
    "token": mark("this token"),
    "session": mark("this session"),
    "device": mark("this device"),
    "client": mark("this client"),
    "client_ip": mark("this client ip"),
    "host": mark("this host"),
    "route": mark("this route"),
    "method": mark("this method"),
    "plan": mark("this plan"),
    "model": mark("this model"),
    "country": mark("this country"),
    "card": mark("this card"),
}
"""How attributes are called that many programs have; others by their name, underscores as spaces."""

_PLACEHOLDER: Final = re.compile(r"\{(wait|limit|count)\}")


def sentence(verdict: Verdict, locale: str = "en", *, zone: str | None = None) -> str:
    """What a person is told, such as "Too many requests for this phone. Try again in 42 seconds.".

    A limit's own ``text`` replaces the first part; where it does not say ``{wait}`` itself, the second part follows.

    Args:
        verdict: the decision's facts.
        locale: a language tag such as ``de`` or ``de-AT``; English where no such language is shipped.
        zone: the IANA name of the reader's time zone, for waits above an hour; None is the limit's own, or UTC.
    """
    locale = resolve(locale) or "en"
    words = language(locale)
    if verdict.allowed:
        return _admitted(verdict, words)
    limit, wait = verdict.limit, verdict.retry_after
    if wait is None:
        return _never(verdict, limit, words)
    said = say_wait(wait, verdict.now, zone or (limit.quota.zone if limit else None), words)
    advice = words.gettext("Try again {wait}.").format(wait=said)
    if verdict.binding is None:
        return _join(words, words.gettext("This request can't be checked right now."), advice)
    custom = _custom(limit, said)
    if custom is not None:
        return custom[0] if custom[1] else _join(words, custom[0], advice)
    return _join(words, _reason(limit, words), advice)


def _reason(limit: Limit | None, words: Language) -> str:
    about = _subject(limit, words)
    if limit is not None and limit.quota.concurrent:
        if about:
            return words.gettext("Too many requests at once for {subject}.").format(subject=about)
        return words.gettext("Too many requests at once.")
    if about:
        return words.gettext("Too many requests for {subject}.").format(subject=about)
    return words.gettext("Too many requests.")


def _admitted(verdict: Verdict, words: Language) -> str:
    if verdict.binding is None:
        return words.gettext("This request is allowed.")
    left = verdict.binding.remaining
    more = words.ngettext("{count} more is possible now.", "{count} more are possible now.", left).format(count=left)
    return _join(words, words.gettext("This request is allowed."), more)


def _never(verdict: Verdict, limit: Limit | None, words: Language) -> str:
    useless = words.gettext("Waiting doesn't help.")
    if verdict.blocked:
        custom = _custom(limit, "")
        if custom is not None and not custom[1]:
            return custom[0]
        about = _subject(limit, words)
        reason = (
            words.gettext("Requests for {subject} are blocked.").format(subject=about)
            if about
            else words.gettext("Requests of this kind are blocked.")
        )
        return _join(words, reason, useless)
    assert isinstance(verdict.binding, Never) and verdict.bound is not None  # noqa: S101  # retry_after is None
    most = verdict.binding.burst
    if verdict.costs:
        reason = words.gettext("This request asks for {cost} at once, and at most {most} are ever possible.").format(
            cost=_legible(verdict.costs[verdict.bound]), most=most
        )
    else:
        reason = words.gettext("This request asks for more than the {most} that are ever possible at once.").format(
            most=most
        )
    return _join(words, reason, useless)


def _legible(units: int) -> str:
    """A number; of one that nobody could read (and Python prints only up to 4300 digits) how large it is at least."""
    return str(units) if units < 10**30 else f"≥ 10^{(units.bit_length() - 1) * 30103 // 100000}"


def _join(words: Language, first: str, second: str) -> str:
    return words.gettext("{first} {second}").format(first=first, second=second)


def _subject(limit: Limit | None, words: Language) -> str:
    """Whom the limit counts: "this phone", "this phone and this address"; empty for a limit without a key."""
    if limit is None or not limit.by:
        return ""
    named = [_attribute(name, words) for name in limit.by]
    named = list(dict.fromkeys(named))
    if len(named) == 1:
        return named[0]
    comma = words.gettext(", ")
    return words.gettext("{first} and {last}").format(first=comma.join(named[:-1]), last=named[-1])


def _attribute(name: str, words: Language) -> str:
    if name in KNOWN:
        return words.gettext(KNOWN[name])
    return words.gettext("this {attribute}").format(attribute=name.replace("_", " ").strip() or name)


def _custom(limit: Limit | None, wait: str) -> tuple[str, bool] | None:
    """(the limit's own text, whether it says the wait), or None where it has none."""
    if limit is None or limit.text is None:
        return None
    values = {"wait": wait, "limit": limit.name, "count": str(limit.quota.count)}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], limit.text), "{wait}" in limit.text
