"""Waits that a sentence announces in languages other than English.

The same rule as for English: a number of units is a wait only after words that announce one, in the same sentence and near
it; a period ("100 Anfragen in 1 Minute") and vague words ("einen Moment") are none. Several waits: the longest.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Final

from headway.client._moments import next_midnight

__all__ = ["wait_abroad"]

_UNITS: Final[Mapping[str, float]] = {
    r"sekunden?|secondes?|segundos?|secondi|secondo|seconden?|секунд\w*|сек|秒[钟鐘]?|초": 1.0,
    r"minuten?|minutes?|minutos?|minuti|minuto|минут\w*|мин|分[钟鐘]?|분": 60.0,
    r"stunden?|heures?|horas?|ore|ora|uur|час\w*|小时|小時|時間|시간": 3600.0,
    r"tage?n?|jours?|d[ií]as?|giorn[io]|dagen|dag|дн\w*|день|天|日|일": 86_400.0,
}
_UNIT: Final = "|".join(_UNITS)
_ONE: Final = r"(?:eine[rmn]?|une?|una|uno|um|uma|één|een|одну|один|一)"
_AMOUNT: Final = rf"(?P<amount>\d{{1,9}}(?:[.,]\d{{1,3}})?|{_ONE})\s*(?P<unit>{_UNIT})"
_ANNOUNCE: Final = re.compile(
    r"\b(?:versuch|wart|erneut|wieder|verfügbar|gesperrt|r[ée]+essay|patient|attend|nouveau|disponible|bloqu|int[ée]nt|esper"
    r"|nuevo|vuelv|tent|aguard|novamente|riprov|attend|riprend|probeer|wacht|opnieuw|beschikbaar"
    r"|повтор|подожд|попроб|доступ|заблок)\w*+",
    re.IGNORECASE,
)
_BEFORE: Final = r"\b(?:in|nach|für|dans|apr[èe]s|pendant|en|dentro\s+de|durante|em|ap[óo]s|por|tra|fra|dopo|per|over|na|gedurende|через|на)"
_ENDS_BEFORE: Final = re.compile(rf"{_BEFORE}\Z", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!?\n\d]")
_WESTERN: Final = re.compile(
    rf"(?<!\s)\s+(?:noch\s+|encore\s+|mindestens\s+|au\s+moins\s+|circa\s+|ca\.\s+)?{_AMOUNT}(?!\w)", re.IGNORECASE
)
_TURNED: Final = re.compile(
    rf"{_BEFORE}\s+{_AMOUNT}\s+(?:erneut|wieder|de\s+nouveau|de\s+nuevo|novamente|opnieuw|снова)\b", re.IGNORECASE
)
_STEMS: Final = (
    *(
        "versuch",
        "wart",
        "erneut",
        "wieder",
        "verfügbar",
        "gesperrt",
        "essay",
        "patient",
        "attend",
        "nouveau",
        "disponible",
    ),
    *(
        "bloqu",
        "int",
        "esper",
        "nuevo",
        "vuelv",
        "tent",
        "aguard",
        "novamente",
        "riprov",
        "riprend",
        "probeer",
        "wacht",
    ),
    *("opnieuw", "beschikbaar", "повтор", "подожд", "попроб", "доступ", "заблок"),
)
"""One of these is in every word of ``_ANNOUNCE``."""
_AGAIN: Final = ("erneut", "wieder", "nouveau", "nuevo", "novamente", "opnieuw", "снова")
_EASTERN: Final = re.compile(
    rf"(?<!\d){_AMOUNT}\s*(?:之后|之後|以后|以後|后|後|후|ほど待|待|お待ち|기다)|(?:等待|等候|稍等|间隔|等)\s*"
    + _AMOUNT.replace("amount", "amount2").replace("unit", "unit2")
)
_TOMORROW: Final = re.compile(
    r"明天|明日|翌日|次日|내일|\bdemain\b|\bmañana\b|\bamanhã\b|\bdomani\b|завтра|(?:erneut|wieder|versuch\w{0,12}+|wart\w{0,12}+|erst|bis)"
    r"[^.!?\n]{0,30}?\bmorgen\b|\bmorgen\b[^.!?\n]{0,30}?\b(?:erneut|wieder|opnieuw)\b",
    re.IGNORECASE,
)
_DAYS: Final = (*("明天", "明日", "翌日", "次日", "내일", "demain", "mañana", "amanhã", "domani", "завтра"), "morgen")
_NEAR: Final = 24
"""Characters between the word that announces a wait and the wait."""
_NEAR_ENOUGH: Final = 72
"""The same where a preposition comes last."""


def wait_abroad(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the longest wait that a text announces in a language other than English, in seconds from now, or None.

    Read are German, French, Spanish, Portuguese, Italian, Dutch, Russian, Chinese, Japanese and Korean.

    Args:
        text: a message, not too long.
        now: the server's time, seconds since 1970.
        zone: whose day "tomorrow" belongs to, where known.
    """
    lower = text.lower()
    eastern = () if text.isascii() else _EASTERN.finditer(text)
    turned = _TURNED.finditer(text) if any(word in lower for word in _AGAIN) else ()
    announced = _announced(text) if any(stem in lower for stem in _STEMS) else ()
    matches = [*announced, *turned, *eastern]
    found = [seconds for one in matches if (seconds := _seconds(one)) is not None]
    if found:
        return max(found)
    if any(word in lower for word in _DAYS) and _TOMORROW.search(text):
        return round(next_midnight(now, zone) - now, 6)
    return None


def _announced(text: str) -> Iterator[re.Match[str]]:
    """Yield the amounts that a word shortly before them, in the same sentence, announces as waits.

    Each amount is held against the last such word alone: all words against all amounts would take the square of the text.
    """
    announced = [word.end() for word in _ANNOUNCE.finditer(text)]
    for amount in _WESTERN.finditer(text) if announced else ():
        place = bisect_right(announced, amount.start())
        between = text[announced[place - 1] : amount.start()] if place else ""
        if not place or len(between) > _NEAR_ENOUGH or _SENTENCE_END.search(between):
            continue
        if len(between) <= _NEAR or _ENDS_BEFORE.search(between):
            yield amount


def _seconds(found: re.Match[str]) -> float | None:
    groups = found.groupdict()
    amount, unit = groups["amount"] or groups.get("amount2"), groups["unit"] or groups.get("unit2")
    if amount is None or unit is None:
        return None
    count = float(amount.replace(",", ".")) if amount[0].isdigit() else 1.0
    return next(count * seconds for units, seconds in _UNITS.items() if re.fullmatch(units, unit, re.IGNORECASE))
