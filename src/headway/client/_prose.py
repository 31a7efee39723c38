"""What a sentence written for people says about waiting, and about the period of a limit.

A wait is believed only after words that announce one ("try again in", "retry after", "wait", "available in", "until").
Vague words ("later", "a few minutes", "a moment") are no hint. Several waits: the longest.
"""

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from headway.client._alternatives import Alternatives
from headway.client._moments import (
    DATE,
    DURATION,
    UNIT,
    duration,
    from_number,
    instant,
    next_clock,
    next_midnight,
)
from headway.client._other_languages import wait_abroad

LONGEST = 600
"""Characters of a text that are read; whatever explains a refusal comes early."""

_DAY = 86_400
_ANNOUNCE = re.compile(
    r"\b(?:re-?try(?:ing)?(?:[ -]?(?:after|in|at))?|try(?:ing)?|again|wait(?:ing)?|available|resets?|resetting|expires?|expired"
    r"|expected|unblock\w*|unbann?\w*|lift\w*|bann?(?:ed)?|block(?:ed|ing)?|break|cool(?:ing)?[- ]?down|back[- ]?off"
    r"|sleep|back|resumes?|refill\w*|restor\w*|replenish\w*|limited|throttled|suspended|locked|disabled|renews?"
    r"|delay|pause|paused|ends?|postponed?|hold|(?:another|next) (?:request|call|attempt|message|code|e-?mail|one))\b",
    re.I | re.A,
)
_FILLERS = re.compile(
    rf"(?:[\s:=,(\[]{{1,4}}(?:(?:your|the|this|that|it|a(?!\s+(?:{UNIT})(?:s|\(s\))?(?![a-z]))|requests?|calls?|operations?|quota|limit|please|again|later|or|and|in|after"
    r"|for|until|till|at|on|by|to|least|about|around|approximately|approx\.?|roughly|another|next|within|back|is|be"
    r"|was|has|will|been|next|time|once|more|than|now|send|sending|making|temporarily|of|minimum|before"
    r"|from|available|allowed|permitted|possible|up|first)(?!\w)|~)){0,14}+",
    re.I | re.A,
)
_ISO = r"PT\d[\dHMS.]{0,15}[HMS](?![\w])"
_WHEN = rf"(?P<date>{DATE})|(?P<duration>{DURATION}|{_ISO})|(?P<number>\d{{1,20}}(?:\.\d{{1,12}})?)(?=\s*(?:[.,;!?)\]\"'<]|$))"
_SEPARATED = r"[\s:=,(\[~\"']{0,4}"
_AMOUNT = re.compile(rf"{_SEPARATED}(?:{_WHEN})", re.I | re.A)
_SPAN = re.compile(r"\b(?:in|for|wait)\s+((?:\d{1,4}\.)?\d{1,3}:\d\d:\d\d)(?![\w:])", re.I | re.A)
_TIME_LEFT = re.compile(rf"(?P<duration>{DURATION})", re.I | re.A)
_LEFT = re.compile(r"\s+(?:before|until|left|remaining|to\s+go)\b", re.I)
_MORE = re.compile(
    r"(?<=\d )(?:more|further|additional) (?=(?:seconds?|secs?|minutes?|mins?|hours?|days?)\b)", re.I
)  # wait 2 more minutes
_WAIT_CODE = re.compile(r"(?<![A-Za-z0-9])WAIT_(\d{1,7})(?!\w)", re.A)  # FLOOD_WAIT_35
_PERIOD_BEFORE = re.compile(r"(?:\bper|/|\bevery|\beach|\bin the last|\bin the past|\bwithin)\s*$", re.I)
_TOMORROW = re.compile(
    r"\b(?:tomorrow|(?:un)?till? (?:the )?next day|(?:at|after|until|till|by) midnight|next day|resets? (?:daily )?at "
    r"(?:midnight|00:00))\b",
    re.I,
)
_NEGATED = re.compile(r"\b(?:not|never|don't|no need to|cannot|can't)\s+$", re.I)
_ZONES = (
    (re.compile(r"\b(?:UTC|GMT|Z(?:ulu)?)\b"), "UTC"),
    (re.compile(r"\b(?:PT|PST|PDT)\b|\bPacific\b"), "America/Los_Angeles"),
    (re.compile(r"\b(?:ET|EST|EDT)\b|\bEastern\b"), "America/New_York"),
    (re.compile(r"\b(?:CET|CEST)\b"), "Europe/Paris"),
    (re.compile(r"\b(?:JST)\b|\bJapan\b"), "Asia/Tokyo"),
    (re.compile(r"\bKST\b"), "Asia/Seoul"),
    (re.compile(r"\b(?:Beijing|China)\b"), "Asia/Shanghai"),
)
_NAMED_ZONE = re.compile(r"\b(?:Africa|America|Asia|Atlantic|Australia|Europe|Pacific)/[A-Z]\w+(?:/[A-Z]\w+)?\b")

_LONG = Alternatives(
    r"\bdaily\b|\bweekly\b|\bmonthly\b|\byearly\b|\bannual(?:ly)?\b|\blifetime\b|\btoday\b|\btomorrow\b|\bmidnight\b"
    r"|\bat 00:00(?::00)?\b|\b[rt]pd\b"
)
_LONG_UNIT = re.compile(r"(?:days?|weeks?|months?|year|d)\b")
_LONG_AFTER = re.compile(r"[\s-]+(?:limit|quota|cap|window)\b")
_ONE_BEFORE = re.compile(
    r"(?:\b(?:per|a|each|every|this|for the|current|last|past|previous|in an?|within an?|over an?)[\s-]+|/\s?)(?:1\s+)?"
    r"(?:calendar\s+|billing\s+)?\Z"
)
_MANY_BEFORE = re.compile(r"\b(?:per|in|over|every|last|past|within|rolling|a)\b[\s\w]{0,12}?\b\d{1,4}\s*-?\s*\Z")
_PERIOD_WITHIN = 40
"""Characters before a unit that are read to know whether it is a limit's period."""
_SHORT = re.compile(
    r"(?:\b(?:per|a|each|every|in an?|within an?|last|past|within|in)|/)\s*(?:\d{1,6}\s*-?\s*)?"
    r"(?:seconds?|secs?|minutes?|mins?)\b|\b(?:per|an?|each|every|last|/)\s*(?:hour|hr)\b|/\s*(?:\d{1,6}\s*)?(?:s|sec|m|min|h|hr)\b"
    r"|\b(?:secondly|minutely|hourly|[rt]pm|qps)\b|\b\d{1,6}\s*-?\s*(?:seconds?|minutes?)\s+(?:window|period|limit)",
    re.I,
)
_HOURS = re.compile(
    r"(?:\b(?:per|in|over|every|last|past|within|rolling|a|the)\b[\s\w]{0,12}?|/\s?)\b(\d{1,4})\s*-?\s*h(?:ours?|rs?|\d+m\S*)?\b"
    r"|\b(\d{1,4})\s*-?\s*h(?:ours?|rs?)?\s*(?:limit|quota|cap|period|window|rolling)",
    re.I | re.A,
)
_PERIOD_WORDS = (
    (re.compile(r"(?:per)?seco?nds?|secondly|sec|qps|rps|tps", re.I), 1.0),
    (re.compile(r"(?:per)?minutes?|minutely|mins?|[rt]pm|qpm", re.I), 60.0),
    (re.compile(r"(?:per)?hours?|hourly|hrs?|qph|rph", re.I), 3600.0),
    (re.compile(r"(?:per)?days?|daily|today|[rtq]pd", re.I), float(_DAY)),
    (re.compile(r"weeks?|weekly", re.I), 7.0 * _DAY),
    (re.compile(r"(?:per)?months?|monthly", re.I), 30.0 * _DAY),
    (re.compile(r"years?|yearly|annual(?:ly)?", re.I), 365.0 * _DAY),
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-./:#]+")
_COUNTED = re.compile(r"(\d{1,6}) ?(s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|weeks?|months?)$", re.I)


_AMOUNTS = 16
"""Waits that a text announces of which the longest counts."""
_SENTENCES = 12
"""Texts of a body that are read; the first ones say what there is to say."""
_BLANKS = re.compile(r"\s{2,}")


def tidy(texts: list[str]) -> list[str]:
    """Return the texts that are read: each once, without runs of blanks, and all together ``LONGEST`` characters.

    Short texts are kept whole, and what they leave is shared by the long ones.
    """
    each = [
        _BLANKS.sub(lambda run: "\n" if "\n" in run[0] else " ", text[: 4 * LONGEST])
        for text in list(dict.fromkeys(texts))[:_SENTENCES]
    ]
    left, most = LONGEST, 0
    for place, length in enumerate(sorted(map(len, each))):
        most = left // (len(each) - place)
        if length > most:
            break
        left -= length
    else:
        return each
    return [text[:most] for text in each]


@lru_cache(maxsize=512)
def words(code: str) -> str:
    """Split a code into words: `ReadRequestsPerMinute` and `READ_REQUESTS_PER_MINUTE` read alike."""
    return " ".join(_CAMEL.sub(" ", code).split())


def wait(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the longest wait a text announces, in seconds from now (0 for the past), or None.

    Args:
        text: A message in English, or one of the languages of `wait_abroad`.
        now: The server's time, seconds since 1970.
        zone: Whose day "tomorrow" belongs to, when known.
    """
    text = _MORE.sub("", text[:LONGEST])
    best: float | None = None
    if "WAIT_" in text and (code := _WAIT_CODE.search(text)) is not None:
        best = float(code.group(1))
    if _DIGIT.search(text) or _NUMBER_WORD.search(text):
        for found in (*(amount for _, amount in _announced(text)), *_left(text)):
            seconds = _one_wait(found, text, now)
            if seconds is not None:
                best = max(best or 0.0, seconds, 0.0)
    if ":" in text and (span := _SPAN.search(text)) is not None:
        best = max(best or 0.0, duration(span.group(1)) or 0.0)
    if best is None and (clock := _CLOCK_TIME.search(text)) is not None:
        best = _until_clock(clock, text, now, zone)
    if best is None and _NIGHT.search(text) and (tomorrow := _TOMORROW.search(text)) is not None:
        own = zone_named(text[tomorrow.start() :])
        best = round(next_midnight(now, own or zone) - now, 6)
    if best is None and not (text.isascii() and _ENGLISH.search(text)):
        best = wait_abroad(text, now, zone)
    return best


_ENGLISH = re.compile(r"\b(?:the|you|your|please|too|requests?|limit|exceeded|again)\b", re.I)
_DIGIT = re.compile(r"[0-9]")
_NIGHT = re.compile(r"tomorrow|midnight|next day|00:00", re.I)
_LEFT_STEMS = ("before", "until", "left", "remaining", "to go")
_NUMBER_WORD = re.compile(
    r"\b(?:an?|one|two|three|four|five|six|ten|fifteen|twenty|thirty|sixty)\s+(?:second|minute|hour|day|week)", re.I
)


_CLOCK_TIME = re.compile(
    r"\b(?:at|until|till|resets?|after|before|by)\s+(?=\d{1,2}(?::|\s*[ap]\.?m\b))(\d{1,2})(?::([0-5]\d)(?::[0-5]\d)?)?"
    r"\s*([ap])?(?:\.?m\b\.?)?(?![\w:])",
    re.I | re.A,
)


def _announced(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield where a word announces a wait, and the amount or date that follows after a few words that say nothing.

    Words that say nothing are passed once, whatever stands before them, so the whole takes no more than the text is long.
    """
    at = count = 0
    while count < _AMOUNTS and (word := _ANNOUNCE.search(text, at)) is not None:
        fillers = _FILLERS.match(text, word.end())
        at = word.end() if fillers is None else fillers.end()
        found = _AMOUNT.match(text, at)
        if found is not None:
            yield word.start(), found
            at = found.end()
            count += 1


def _left(text: str) -> Iterator[re.Match[str]]:
    """Yield the amounts of which a text says that they are left."""
    if any(stem in text for stem in _LEFT_STEMS):
        yield from (found for found in _TIME_LEFT.finditer(text) if _LEFT.match(text, found.end()))


def _until_clock(found: re.Match[str], text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the seconds to a time of day such as `8pm (America/New_York)` or `00:00 UTC`."""
    hour, minute, half = int(found.group(1)), int(found.group(2) or 0), (found.group(3) or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    if hour > 23:
        return None
    own = zone_named(text[found.end() : found.end() + 48])
    return round(next_clock(now, hour, minute, own or zone) - now, 6)


def _one_wait(found: re.Match[str], text: str, now: float) -> float | None:
    """Return the seconds of one announced wait, or None when it is no wait after all."""
    groups = found.groupdict()
    if groups.get("date"):
        at = instant(groups["date"].strip())
        return None if at is None else round(at - now, 6)
    if groups["duration"]:
        written = groups["duration"].lower()
        if _PERIOD_BEFORE.search(text[max(0, found.start("duration") - 16) : found.start("duration")]):
            return None
        written = re.sub(r"^\d+\s*(?:-|–|to)\s*(?=\d)", "", written)
        return duration(written.strip())
    return from_number(float(groups["number"]), now)


def zone_named(text: str) -> tzinfo | None:
    """Return the time zone a text names, or None."""
    named = _NAMED_ZONE.search(text)
    try:
        if named is not None:
            return ZoneInfo(named.group())
        for pattern, name in _ZONES:
            if pattern.search(text):
                return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # no time zone data, or no such zone: nothing is known
        return None
    return None


@lru_cache(maxsize=512)
def period_of_name(name: str) -> float | None:
    """Return the period, in seconds, that a limit's own name states (`PerDay`, `Hour`, `24hour`, `minute`), or None.

    The last period word counts: a name ends with what it is per.
    """
    best: float | None = None
    for word in words(name).split():
        for pattern, seconds in _PERIOD_WORDS:
            if pattern.fullmatch(word):
                best = seconds
                break
        else:
            found = _COUNTED.search(word)
            if found is not None:
                best = duration(found.group()) or best
    return best


@lru_cache(maxsize=512)
def periods(text: str) -> tuple[bool, bool]:
    """Return whether a text names a period shorter than a day, and one of a day or longer."""
    text = text[:LONGEST].lower()
    hours: list[int] = []
    long = False
    if any(stem in text for stem in _LONG_STEMS) or _HOUR_STEM.search(text):
        for start, amount in reversed(list(_announced(text))):
            text = f"{text[:start]} {text[amount.end() :]}"  # "try again in 1 day" is a wait, not a period
        hours = [int(one or other) for one, other in _HOURS.findall(text)]
        long = _LONG.search(text) or any(count >= 24 for count in hours) or _long_unit(text)
    short = any(count < 24 for count in hours)
    if not short and any(stem in text for stem in _SHORT_STEMS):
        short = _SHORT.search(text) is not None
    return short, long


def _long_unit(text: str) -> bool:
    """Whether a text, in lower case, has days, weeks, months or years in a place where a limit's period stands."""
    for unit in _LONG_UNIT.finditer(text):
        start = unit.start()
        before = (text, max(0, start - _PERIOD_WITHIN), start)
        one = unit[0] in ("day", "week", "month", "year")
        if one and (_ONE_BEFORE.search(*before) or (_LONG_AFTER.match(text, unit.end()) and not _in_word(text, start))):
            return True
        if unit[0] != "year" and _MANY_BEFORE.search(*before):
            return True
    return False


def _in_word(text: str, at: int) -> bool:
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")


_SHORT_STEMS = ("sec", "min", "hour", "hr", "/", "pm", "qps")
_LONG_STEMS = ("day", "dail", "week", "month", "year", "annual", "lifetime", "tomorrow", "night", "00:00", "pd", "d ")
_HOUR_STEM = re.compile(r"\d\s?-?h")
_QUOTA = re.compile(r"(?:^|[:.]\s|\s)(\d+ per \d+ (?:second|minute|hour|day|month|year)s?)\.?\s*$", re.I | re.A)


@lru_cache(maxsize=512)
def quota_in_words(text: str) -> str | None:
    """Return a quota that a text ends with, as limiters print their limits (`5 per 1 minute`), or None."""
    found = _QUOTA.search(text[-200:])
    return found.group(1) if found else None
