"""Sentences: which announce a wait, and which name a period."""

import pytest

from headway.client._prose import period_of_name, periods, quota_in_words, wait

NOW = 1785542400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Too Many Requests: retry after 35", 35),
        ("Please try again in 7m12s.", 432),
        ("more requests available in 46472 seconds", 46472),
        ("Take a break for 7 minutes before trying again.", 420),
        ("Expected available in 37 seconds.", 37),
        ("Limit may reset in 12 seconds.", 12),
        ("Your rate limit resets in ~3s.", 3),
        ("IP banned until 1785542520000. Use streams.", 120),
        ("retry after 2026-08-01 00:12:11 UTC: see the docs", 731),
        ("Please try again after Sat, 01 Aug 2026 00:07:17 GMT", 437),
        ("Please wait at least one minute before trying again", 60),
        ("30 seconds left", 30),
        ("retry after 1343.2 minutes", 80592),
        ("wait 15 minutes and try again in 5 seconds", 900),
        ("Please retry your request in 58.9 s", 58.9),
        ("Quota will be replenished in 15.07:02:29.", 1321349),
        ("Please wait 2 more minutes.", 120),
        ("You can make another request in 4m 5s.", 245),
        ("Next request allowed at 1785542700.", 300),
        ("Available again in PT30S.", 30),
        ("[420 FLOOD_WAIT_X] - FLOOD_WAIT_35", 35),
    ],
)
def test_an_announced_wait_is_read(text: str, seconds: float) -> None:
    """A wait after words that announce one is read; of several the longest."""
    assert wait(text, NOW, None) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "5 requests per 10 seconds",
        "Only 2500 requests are allowed per 1 hour.",
        "Please wait a few minutes before you try again.",
        "Try again later.",
        "You have exceeded 40 calls in the last 5 minutes",
        "Limits reset every 24 hours",
        "too many failed logins (5) in the last 1h0m0s",
        "You can retry 5 times",
        "Wait a moment",
        "Expected quota reset within 24h.",
        "error 429 at line 30",
        "There are 3 more requests in this batch",
        "NOWAIT_35",
    ],
)
def test_what_announces_nothing_is_no_wait(text: str) -> None:
    """Periods, counts and vague words are no wait."""
    assert wait(text, NOW, None) is None


@pytest.mark.parametrize(
    ("text", "short", "long"),
    [
        ("25 requests per day", False, True),
        ("in the last 168h0m0s", False, True),
        ("in the last 24 hours", False, True),
        ("100 requests over a 24 hour period", False, True),
        ("the MONTHLY quota", False, True),
        ("10 API calls / minute", True, False),
        ("in the last 1h0m0s", True, False),
        ("5 calls per minute and 500 calls per day", True, True),
        ("try again in 1 day", False, False),
        ("try again in 12 minutes (more than 100, free-per-day)", False, True),
        ("have a nice Sunday", False, False),
    ],
)
def test_periods_in_sentences(text: str, *, short: bool, long: bool) -> None:
    """A sentence's periods are told into shorter than a day and a day or longer; a wait is no period."""
    assert periods(text) == (short, long)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("ReadRequestsPerMinutePerUser", 60),
        ("DefaultPublishRequestsPerDayPerProject", 86400),
        ("TEN_SECONDLY_ROLLING", 1),
        ("Hour", 3600),
        ("user-limit-24hour", 86400),
        ("10-in-1min", 60),
        ("Monthly", 2592000),
        ("requests", None),
        ("jira-burst-based", None),
    ],
)
def test_periods_in_names(name: str, seconds: float | None) -> None:
    """A limit's own name states its period in words of any spelling."""
    assert period_of_name(name) == seconds


def test_a_printed_quota_is_a_name() -> None:
    """A message that ends with a quota as limiters print it names that quota."""
    assert quota_in_words("Rate limit exceeded: 5 per 1 minute") == "5 per 1 minute"
    assert quota_in_words("You made 5 per 1 minute of noise") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Zu viele Anfragen. Bitte versuchen Sie es in 5 Minuten erneut.", 300),
        ("Bitte warten Sie noch 30 Sekunden.", 30),
        ("In 2 Stunden erneut versuchen", 7200),
        ("Versuchen Sie es in einer Minute erneut.", 60),
        ("Trop de requêtes. Réessayez dans 1,5 minute.", 90),
        ("Veuillez patienter 45 secondes avant de continuer", 45),
        ("Demasiadas solicitudes. Inténtelo de nuevo en 3 minutos.", 180),
        ("Muitas tentativas, tente novamente em 10 segundos.", 10),
        ("Troppe richieste: riprova tra 2 ore", 7200),
        ("Te veel verzoeken. Probeer het over 5 minuten opnieuw.", 300),
        ("Слишком много запросов. Повторите через 15 секунд.", 15),
        ("请求过于频繁，请60秒后重试", 60),
        ("操作太快，请等待 30 秒", 30),
        ("リクエストが多すぎます。5分後にもう一度お試しください。", 300),
        ("요청이 너무 많습니다. 20초 후 다시 시도하세요.", 20),
    ],
)
def test_a_wait_is_read_in_other_languages(text: str, seconds: float) -> None:
    """A wait announced in another language is read as in English."""
    assert wait(text, NOW, None) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "Höchstens 100 Anfragen in 1 Minute",
        "Limite : 10 requêtes en 1 minute",
        "Máximo 10 solicitudes en 60 segundos",
        "每分钟最多60次请求",
        "1分間に60回まで",
        "Einen Moment bitte, wir sind gleich wieder da",
        "Réessayez plus tard",
        "Guten Morgen",
    ],
)
def test_periods_and_vague_words_are_no_wait_in_other_languages(text: str) -> None:
    """A period, a greeting and "later" announce nothing."""
    assert wait(text, NOW, None) is None


def test_tomorrow_in_other_languages_is_the_latest_midnight_anywhere() -> None:
    """Without a zone, tomorrow is the last midnight on earth, as in English."""
    english = wait("Try again tomorrow", NOW, None)
    for text in (
        "请明天再试",
        "明日もう一度お試しください",
        "Versuchen Sie es morgen wieder",
        "Réessayez demain",
        "Vuelva mañana",
    ):
        assert wait(text, NOW, None) == english
