"""What a sentence written for people says about waiting, and about the period of a limit.

A wait is believed only after words that announce one ("try again in", "retry after", "wait", "available in", "until").
Vague words ("later", "a few minutes", "a moment") are no hint. Several waits: the longest.
"""

import re
from datetime import tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from headway.client._moments import (
    DATE,
    DURATION,
    duration,
    from_number,
    instant,
    next_clock,
    next_midnight,
)
from headway.client._other_languages import wait_abroad

LONGEST = 1200
"""Characters of a text that are read; whatever explains a refusal comes early."""

_DAY = 86_400
_ANNOUNCE = (
    r"\b(?:re-?try(?:ing)?(?:[ -]?(?:after|in|at))?|try(?:ing)?|again|wait(?:ing)?|available|resets?|resetting|expires?|expired"
    r"|expected|unblock\w*|unbann?\w*|lift\w*|bann?(?:ed)?|block(?:ed|ing)?|break|cool(?:ing)?[- ]?down|back[- ]?off"
    r"|sleep|back|resumes?|refill\w*|restor\w*|replenish\w*|limited|throttled|suspended|locked|disabled|renews?"
    r"|delay|pause|paused|ends?|postponed?|hold|(?:another|next) (?:request|call|attempt|message|code|e-?mail|one))\b"
)
_FILLER = (
    r"(?:[\s:=,(\[]{1,4}(?:your|the|this|that|it|a|requests?|calls?|operations?|quota|limit|please|again|later|or|and|in|after"
    r"|for|until|till|at|on|by|to|least|about|around|approximately|approx\.?|roughly|another|next|within|back|is|be"
    r"|was|has|will|been|next|time|once|more|than|now|send|sending|making|temporarily|of|a|minimum|before"
    r"|from|available|allowed|permitted|possible|up|first|~))"
)
_ISO = r"PT\d[\dHMS.]{0,15}[HMS](?![\w])"
_WHEN = rf"(?P<date>{DATE})|(?P<duration>{DURATION}|{_ISO})|(?P<number>\d{{1,20}}(?:\.\d{{1,12}})?)(?=\s*(?:[.,;!?)\]\"'<]|$))"
_WAIT = re.compile(rf"{_ANNOUNCE}{_FILLER}{{0,7}}?[\s:=,(\[~\"']{{0,4}}(?:{_WHEN})", re.I | re.A)
_SPAN = re.compile(r"\b(?:in|for|wait)\s+((?:\d{1,4}\.)?\d{1,3}:\d\d:\d\d)(?![\w:])", re.I | re.A)
_LEFT = re.compile(rf"(?P<duration>{DURATION})\s+(?:before|until|left|remaining|to\s+go)\b", re.I | re.A)
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

_LONG = re.compile(
    r"\b(?:daily|weekly|monthly|yearly|annual(?:ly)?|lifetime|today|tomorrow|midnight)\b|\bat 00:00(?::00)?\b"
    r"|(?:\b(?:per|a|each|every|this|for the|current|last|past|previous|in an?|within an?|over an?)[\s-]+|/\s?)(?:1\s+)?"
    r"(?:calendar\s+|billing\s+)?(?:day|week|month|year)\b"
    r"|\b(?:day|week|month|year)[\s-]+(?:limit|quota|cap|window)\b|\b[rt]pd\b"
    r"|\b(?:per|in|over|every|last|past|within|rolling|a)\b[\s\w]{0,12}?\b\d{1,4}\s*-?\s*(?:days?|weeks?|months?|d)\b",
    re.I,
)
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
        for pattern, stems in ((_WAIT, ()), (_LEFT, _LEFT_STEMS)):
            for found in pattern.finditer(text) if not stems or any(stem in text for stem in stems) else ():
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
        text = _WAIT.sub(" ", text)  # "try again in 1 day" is a wait, not a period
        hours = [int(one or other) for one, other in _HOURS.findall(text)]
        long = _LONG.search(text) is not None or any(count >= 24 for count in hours)
    short = any(count < 24 for count in hours)
    if not short and any(stem in text for stem in _SHORT_STEMS):
        short = _SHORT.search(text) is not None
    return short, long


_SHORT_STEMS = ("sec", "min", "hour", "hr", "/", "pm", "qps")
_LONG_STEMS = ("day", "dail", "week", "month", "year", "annual", "lifetime", "tomorrow", "night", "00:00", "pd", "d ")
_HOUR_STEM = re.compile(r"\d\s?-?h")
_QUOTA = re.compile(r"(?:^|[:.]\s|\s)(\d+ per \d+ (?:second|minute|hour|day|month|year)s?)\.?\s*$", re.I | re.A)


@lru_cache(maxsize=512)
def quota_in_words(text: str) -> str | None:
    """Return a quota that a text ends with, as limiters print their limits (`5 per 1 minute`), or None."""
    found = _QUOTA.search(text[-200:])
    return found.group(1) if found else None
