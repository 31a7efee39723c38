"""Waits that a sentence announces in languages other than English.

The same rule as for English: a number of units is a wait only after words that announce one, in the same sentence and near
it; a period ("100 Anfragen in 1 Minute") and vague words ("einen Moment") are none. Several waits: the longest.
"""

import re
from collections.abc import Mapping
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
_ANNOUNCE: Final = (
    r"\b(?:versuch|wart|erneut|wieder|verfügbar|gesperrt|r[ée]+essay|patient|attend|nouveau|disponible|bloqu|int[ée]nt|esper"
    r"|nuevo|vuelv|tent|aguard|novamente|riprov|attend|riprend|probeer|wacht|opnieuw|beschikbaar"
    r"|повтор|подожд|попроб|доступ|заблок)\w*"
)
_BEFORE: Final = r"\b(?:in|nach|für|dans|apr[èe]s|pendant|en|dentro\s+de|durante|em|ap[óo]s|por|tra|fra|dopo|per|over|na|gedurende|через|на)"
_WESTERN: Final = re.compile(
    rf"{_ANNOUNCE}(?:[^.!?\n\d]{{0,60}}?{_BEFORE}|[^.!?\n\d]{{0,24}}?)\s+(?:noch\s+|encore\s+|mindestens\s+|au\s+moins\s+|circa\s+|ca\.\s+)?{_AMOUNT}(?!\w)",
    re.IGNORECASE,
)
_TURNED: Final = re.compile(
    rf"{_BEFORE}\s+{_AMOUNT}\s+(?:erneut|wieder|de\s+nouveau|de\s+nuevo|novamente|opnieuw|снова)\b", re.IGNORECASE
)
_EASTERN: Final = re.compile(
    rf"{_AMOUNT}\s*(?:之后|之後|以后|以後|后|後|후|ほど待|待|お待ち|기다)|(?:等待|等候|稍等|间隔|等)\s*"
    + _AMOUNT.replace("amount", "amount2").replace("unit", "unit2")
)
_TOMORROW: Final = re.compile(
    r"明天|明日|翌日|次日|내일|\bdemain\b|\bmañana\b|\bamanhã\b|\bdomani\b|завтра|(?:erneut|wieder|versuch\w*|wart\w*|erst|bis)"
    r"[^.!?\n]{0,30}?\bmorgen\b|\bmorgen\b[^.!?\n]{0,30}?\b(?:erneut|wieder|opnieuw)\b",
    re.IGNORECASE,
)


def wait_abroad(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the longest wait that a text announces in a language other than English, in seconds from now, or None.

    Read are German, French, Spanish, Portuguese, Italian, Dutch, Russian, Chinese, Japanese and Korean.

    Args:
        text: a message, not too long.
        now: the server's time, seconds since 1970.
        zone: whose day "tomorrow" belongs to, where known.
    """
    found = [
        seconds
        for pattern in (_WESTERN, _TURNED, _EASTERN)
        for one in pattern.finditer(text)
        if (seconds := _seconds(one)) is not None
    ]
    if found:
        return max(found)
    if _TOMORROW.search(text):
        return round(next_midnight(now, zone) - now, 6)
    return None


def _seconds(found: re.Match[str]) -> float | None:
    groups = found.groupdict()
    amount, unit = groups["amount"] or groups.get("amount2"), groups["unit"] or groups.get("unit2")
    if amount is None or unit is None:
        return None
    count = float(amount.replace(",", ".")) if amount[0].isdigit() else 1.0
    return next(count * seconds for units, seconds in _UNITS.items() if re.fullmatch(units, unit, re.IGNORECASE))
