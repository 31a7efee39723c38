"""The sentence: exact words, units, zones, custom texts."""

from __future__ import annotations

import time

import pytest

from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import DAY, HOUR, MINUTE, SECOND, Quota
from headway.core.verdict import Verdict
from headway.errors import LimitError
from headway.presentation.hear import hear
from headway.presentation.language import LOCALES
from headway.presentation.sentence import sentence

from .verdicts import NOW, one_refusal

NOON = NOW + 12 * HOUR
"""2026-12-01 12:00:00 UTC, 20:00 in Shanghai."""


def told(wait: int, quota: str = "5 per day", by: object = "phone", now: int = NOON, locale: str = "en") -> str:
    """The sentence of one refusal."""
    return sentence(one_refusal(wait, Limit("x", quota, by=by), now), locale)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (1, "in 1 second"),
        (SECOND, "in 1 second"),
        (SECOND + 1, "in 2 seconds"),
        (41 * SECOND + 200_000_000, "in 42 seconds"),
        (119 * SECOND, "in 119 seconds"),
        (119 * SECOND + 1, "in 2 minutes"),
        (2 * MINUTE + 1, "in 3 minutes"),
        (4 * MINUTE, "in 4 minutes"),
        (59 * MINUTE + 1, "in 60 minutes"),
        (HOUR, "in 60 minutes"),
        (HOUR + 1, "today at 13:01 (UTC)"),
        (3 * HOUR + 30 * MINUTE, "today at 15:30 (UTC)"),
        (12 * HOUR - 1, "tomorrow at 00:00 (UTC)"),
        (36 * HOUR - 1, "on 3 December at 00:00 (UTC)"),
        (46 * HOUR, "on 3 December at 10:00 (UTC)"),
        (31 * DAY, "on 1 January 2027 at 12:00 (UTC)"),
        (9000 * 365 * DAY, "in 3285000 days"),
    ],
)
def test_the_unit_is_chosen_and_rounded_up(wait: int, said: str) -> None:
    """Seconds below two minutes, minutes up to an hour, then a local time: rounded up, never early, never 0."""
    assert told(wait) == f"Too many requests for this phone. Try again {said}."


def test_times_are_said_in_the_zone_of_the_limit() -> None:
    """A wait over an hour names the time in the limit's own zone, and the zone."""
    assert told(4 * HOUR, "5 per day in Asia/Shanghai").endswith("Try again tomorrow at 00:00 (Asia/Shanghai).")
    assert told(4 * HOUR - 1, "5 per day in Asia/Shanghai").endswith("Try again tomorrow at 00:00 (Asia/Shanghai).")
    assert told(13 * HOUR, "5/day in Asia/Kathmandu").endswith("Try again tomorrow at 06:45 (Asia/Kathmandu).")


def test_the_reader_may_have_another_zone() -> None:
    """A zone that is given wins over the limit's."""
    verdict = one_refusal(4 * HOUR, Limit("x", "5 per day in Asia/Shanghai", by="phone"), NOON)
    assert sentence(verdict, zone="America/Los_Angeles").endswith("today at 08:00 (America/Los_Angeles).")


@pytest.mark.parametrize(
    ("by", "subject"),
    [
        ((), ""),
        ("phone", " for this phone"),
        ("ip", " for this address"),
        ("address", " for this address"),
        ("client_ip", " for this client ip"),
        ("order_id", " for this order id"),
        (("phone", "ip"), " for this phone and this address"),
        (("phone", "ip", "sku"), " for this phone, this address and this sku"),
        (("ip", "address"), " for this address"),
    ],
)
def test_the_subject_is_what_the_limit_is_keyed_by(by: object, subject: str) -> None:
    """The attributes are named in words, underscores as spaces; a limit for everybody names nobody."""
    assert told(42 * SECOND, by=by) == f"Too many requests{subject}. Try again in 42 seconds."


def test_a_limit_may_have_words_of_its_own() -> None:
    """A limit's text replaces the first sentence, and the second too where it says the wait itself."""

    def said(text: str, wait: int = 4 * MINUTE) -> str:
        return sentence(one_refusal(wait, Limit("codes", "5 per day", by="phone", text=text)))

    assert said("Too many codes for this phone.") == "Too many codes for this phone. Try again in 4 minutes."
    assert said("Only {count} codes a day ({limit}); come back {wait}.") == (
        "Only 5 codes a day (codes); come back in 4 minutes."
    )


def test_words_of_its_own_are_no_template_language() -> None:
    """Nothing but the three placeholders is replaced, and what they insert is not read again."""
    text = "{ wait! {{wait}} %s {count} }"
    verdict = one_refusal(MINUTE, Limit("x", "5 per day", by="phone", text=text))
    assert sentence(verdict) == "{ wait! {in 60 seconds} %s 5 }"


@pytest.mark.parametrize("text", ["{0}", "{limit.rule}", "{wait!r}", "{}", " ", "a\r\nb", "\ud800", "x" * 501])
def test_words_of_its_own_are_checked_at_construction(text: str) -> None:
    """Placeholders nobody fills, control characters, lone surrogates and essays are refused when the limit is made."""
    with pytest.raises(LimitError, match="limit 'x': text is"):
        Limit("x", "5 per day", by="phone", text=text)


def test_never_says_that_waiting_does_not_help() -> None:
    """A cost that can never fit is told so, with both numbers, and with no time."""
    limit = Limit("x", "20 per hour", by="ip", text="Too many codes. Try again {wait}.")
    verdict = Verdict((limit,), (Never(20, 20, 0, 0),), False, NOW, None, (50,))
    assert (
        sentence(verdict) == "This request asks for 50 at once, and at most 20 are ever possible. Waiting doesn't help."
    )
    assert "more than the 20" in sentence(Verdict((limit,), (Never(20, 20, 0, 0),), False, NOW))


def test_blocked_says_so() -> None:
    """A ban or a count of 0 is named as one; a text without a wait is taken for it."""

    def said(**options: object) -> str:
        limit = Limit("x", "0 per hour", **options)  # type: ignore[arg-type]
        return sentence(Verdict((limit,), (Never(0, 0, 0, 0),), False, NOW, None, (1,)))

    assert said(by="phone") == "Requests for this phone are blocked. Waiting doesn't help."
    assert said() == "Requests of this kind are blocked. Waiting doesn't help."
    assert said(text="Sign-ups are closed.") == "Sign-ups are closed."
    assert said(text="Try again {wait}.") == "Requests of this kind are blocked. Waiting doesn't help."


def test_without_the_store_nothing_is_blamed_on_the_caller() -> None:
    """A refusal because the store was away says that it can't be checked now, not that there were too many."""
    limit = Limit("x", "5 per day", by="phone", text="Too many codes.")
    said = sentence(Verdict((limit,), (None,), False, NOW, "connection refused to 10.0.0.1"))
    assert said == "This request can't be checked right now. Try again in 1 second."


def test_what_is_held_at_once_is_called_so() -> None:
    """A concurrency limit speaks of requests at once."""
    limit = Limit("x", Quota(3, MINUTE, concurrent=True), by="account")
    assert sentence(one_refusal(SECOND, limit)).startswith("Too many requests at once for this account.")


def test_an_admitted_request_has_a_sentence_too() -> None:
    """An admitted request says how much is left, or nothing more where that is not known."""
    limit = Limit("x", "5 per day")
    assert (
        sentence(Verdict((limit,), (Admitted(1, 1, 1),), True, NOW))
        == "This request is allowed. 1 more is possible now."
    )
    assert sentence(Verdict((limit,), (None,), True, NOW, "away")) == "This request is allowed."
    assert sentence(Verdict((), (), True, NOW)) == "This request is allowed."


@pytest.mark.parametrize(
    ("locale", "seconds", "moment"),
    [
        (
            "de",
            "Zu viele Anfragen für diese Telefonnummer. Versuchen Sie es in 42 Sekunden erneut.",
            "Zu viele Anfragen für diese Telefonnummer. Versuchen Sie es am 1. Januar 2027 um 12:00 (UTC) erneut.",
        ),
        (
            "fr-CA",
            "Trop de requêtes pour ce numéro de téléphone. Réessayez dans 42 secondes.",
            "Trop de requêtes pour ce numéro de téléphone. Réessayez le 1er janvier 2027 à 12:00 (UTC).",
        ),
        (
            "es_MX",
            "Demasiadas solicitudes para este teléfono. Inténtelo de nuevo en 42 segundos.",
            "Demasiadas solicitudes para este teléfono. Inténtelo de nuevo el 1 de enero de 2027 a las 12:00 (UTC).",
        ),
        (
            "ja",
            "この電話番号に対するリクエストが多すぎます。42秒後にもう一度お試しください。",
            "この電話番号に対するリクエストが多すぎます。2027年1月1日12:00 (UTC) 以降にもう一度お試しください。",
        ),
        (
            "zh-CN",
            "此电话号码的请求过多。请在 42 秒后重试。",
            "此电话号码的请求过多。请在2027年1月1日 12:00 (UTC) 后重试。",
        ),
        (
            "tlh",
            "Too many requests for this phone. Try again in 42 seconds.",
            "Too many requests for this phone. Try again on 1 January 2027 at 12:00 (UTC).",
        ),
    ],
)
def test_every_language_says_it(locale: str, seconds: str, moment: str) -> None:
    """The sentence in every language that is shipped; English for any other."""
    assert told(41 * SECOND + 1, locale=locale) == seconds
    assert told(31 * DAY, locale=locale) == moment


def test_a_sentence_without_a_time_is_heard_as_none() -> None:
    """Text that names no time gives None; of several times the last counts."""
    assert hear("Waiting doesn't help.", NOW) is None
    assert hear("You asked in 3 minutes. Try again in 5 seconds.", NOW) == NOW + 5 * SECOND


@pytest.mark.parametrize("day", ["29 February 2027", "31 April 2027"])
def test_a_day_that_does_not_exist_is_an_error(day: str) -> None:
    """A date that no calendar has was not rendered here, and is not taken for another day."""
    with pytest.raises(ValueError, match="day is out of range"):
        hear(f"Try again on {day} at 10:00 (UTC).", NOW)


@pytest.mark.parametrize("locale", LOCALES)
def test_a_long_row_of_digits_is_no_wait_and_costs_nothing(locale: str) -> None:
    """Digits that no sentence of ours has are passed over, once: not tried again from each of them."""
    began = time.thread_time()
    assert hear("9" * 40_000, NOW, locale) is None
    assert hear(f"Try again in {'9' * 5000} seconds.", NOW, locale) is None
    assert time.thread_time() - began < 2


def test_a_refusal_may_be_an_upper_bound() -> None:
    """A wait that is only an upper bound is said like any other: never early."""
    limit = Limit("x", Quota(3, MINUTE, concurrent=True))
    verdict = Verdict((limit,), (Refused(0, 30 * SECOND, 1, 1, at_most=True),), False, NOW)
    assert sentence(verdict).endswith("Try again in 30 seconds.")


@pytest.mark.parametrize(("power", "said"), [(29, "1" + "0" * 29), (30, "≥ 10^29"), (5000, "≥ 10^4999")])
def test_a_cost_too_long_to_read_is_told_by_its_size(power: int, said: str) -> None:
    """However large a cost is, there is a sentence; from 10^30 on it says how large at least."""
    verdict = Verdict((Limit("l", "5 per minute"),), (Never(5, 5, 0, 0),), False, NOW, None, (10**power,))
    assert f"This request asks for {said} at once" in sentence(verdict)
