"""``Quota``: a count per period, with a burst. Parse what people write, print it back, say what it admits.

Nothing here reads a clock. A zone is carried as a name, checked at construction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.errors import QuotaError, kind_of

__all__ = ["MAX_COUNT", "MAX_RECOVERY_NS", "SECOND", "Quota", "parse_duration", "print_duration"]

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
MONTH: Final = 30 * DAY
"""The nominal length of a calendar month: its window is exact, this is only what headers call ``w``."""

MAX_COUNT: Final = 10**12
"""Count and burst stop here: sums stay exact where a store has 53 bits, and fit an RFC 9651 Integer (15 digits)."""

MAX_RECOVERY_NS: Final = 100 * 365 * DAY
"""burst · period / count stops at 100 years of 365 days, so that every instant fits 64 bits of nanoseconds."""

_UNITS: Final = {
    "ms": MILLISECOND, "millisecond": MILLISECOND, "milliseconds": MILLISECOND,
    "s": SECOND, "sec": SECOND, "secs": SECOND, "second": SECOND, "seconds": SECOND,
    "m": MINUTE, "min": MINUTE, "mins": MINUTE, "minute": MINUTE, "minutes": MINUTE,
    "h": HOUR, "hr": HOUR, "hrs": HOUR, "hour": HOUR, "hours": HOUR,
    "d": DAY, "day": DAY, "days": DAY,
    "w": WEEK, "week": WEEK, "weeks": WEEK,
}  # fmt: skip
_CALENDAR_UNITS: Final = {
    "d": "day", "day": "day", "days": "day",
    "w": "week", "week": "week", "weeks": "week",
    "month": "month", "months": "month",
}  # fmt: skip
_NOMINAL: Final = {"day": DAY, "week": WEEK, "month": MONTH}
_SET_FORWARD: Final = {"UTC": 0, "ETC/UTC": 0, "ANTARCTICA/TROLL": 2 * HOUR}
"""By how much clocks are set forward at once, where that is not an hour."""
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PRINTED: Final = (
    ("week", WEEK), ("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", SECOND), ("ms", MILLISECOND),
)  # fmt: skip
_UNITS_SAID: Final = "ms, s, min, h, day, week"
_EXAMPLES: Final = "for example '100/s', '100/s burst 20', '5 per 10 minutes' or '11/day in America/Los_Angeles'"
_DURATIONS: Final = "for example '30 s', '1.5 minutes' or '7 days'"

_SPACE: Final = re.compile(r"\s*")
_COUNT: Final = re.compile(r"[0-9]+(?:_[0-9]+)*(?![0-9,_.])|[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,_.])")
_PER: Final = re.compile(r"/|per\b", re.IGNORECASE)
_AMOUNT: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?![0-9.,_])")
_WORD: Final = re.compile(r"[A-Za-z]+")
_NUMBERLIKE: Final = re.compile(r"[-+]?[0-9.,_]*[A-Za-z0-9.]*")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+\-/]*")
_LONGEST_TEXT: Final = 200


@dataclass(frozen=True, slots=True, repr=False)
class Quota:
    """``count`` units per ``period_ns`` nanoseconds, of which up to ``burst`` may come at once.

    Args:
        count: whole units, 0 to 10**12; 0 blocks everything.
        period_ns: nanoseconds, at least 1. For a calendar quota the nominal length (day 24 h, week 7 d, month 30 d).
        burst: whole units, 1 to 10**12; None means ``count``. A count of 0 takes none.
        zone: the IANA name of a time zone; makes this a calendar quota whose windows begin at local midnight.
        calendar: "day", "week" or "month"; given exactly when ``zone`` is.
        week_start: 0 (Monday) to 6 (Sunday); only for a calendar week.
        concurrent: the count may be held at once, each unit for at most the period ("3 at once for 60 s").

    Raises:
        QuotaError: a value out of range, a zone that is not known here, or ``burst · period / count`` above 100 years of 365 days.
    """

    count: int
    period_ns: int
    burst: int = None  # type: ignore[assignment]  # None stands for "count" and is replaced below
    zone: str | None = None
    calendar: str | None = None
    week_start: int = 0
    concurrent: bool = False

    def __post_init__(self) -> None:
        shown = f"{self.count} per {self.period_ns} ns"
        for name, value in (("count", self.count), ("period", self.period_ns)):
            if type(value) is not int:
                raise QuotaError(shown, f"the {name} is {kind_of(value)}; a whole number is expected")
        if not 0 <= self.count <= MAX_COUNT:
            raise QuotaError(shown, f"the count is {self.count}; expected 0 to {MAX_COUNT}")
        if self.period_ns < 1:
            raise QuotaError(shown, f"the period is {self.period_ns} ns; expected at least 1 ns")
        if (self.zone is None) != (self.calendar is None):
            raise QuotaError(shown, "zone and calendar go together: give both or neither")
        if self.calendar is not None and _NOMINAL.get(self.calendar) != self.period_ns:
            raise QuotaError(shown, "a calendar quota counts per one day, one week or one month")
        if self.week_start not in range(7) or (self.week_start and self.calendar != "week"):
            raise QuotaError(
                shown, f"week_start is {self.week_start!r}; expected 0 (Monday) to 6, for a calendar week only"
            )
        if self.burst is None:
            object.__setattr__(self, "burst", self.count)
        elif self.count == 0 and self.burst != 0:
            raise QuotaError(shown, "a count of 0 blocks everything and takes no burst")
        elif type(self.burst) is not int or not (1 <= self.burst <= MAX_COUNT or self.count == 0):
            raise QuotaError(shown, f"the burst is {self.burst!r}; expected a whole number from 1 to {MAX_COUNT}")
        if self.concurrent and (self.burst != self.count or self.zone is not None):
            raise QuotaError(shown, "a quota 'at once' takes neither a burst nor a zone")
        if self.zone is not None and self.burst != self.count:
            raise QuotaError(shown, "a calendar quota takes no burst: its whole count may come at once")
        if self.zone is not None:
            from headway.core.zone import zone_of  # loads zoneinfo, which most quotas do without

            zone_of(self.zone)
        if self.recovery_ns > MAX_RECOVERY_NS:
            raise QuotaError(
                shown, "burst · period / count is above 100 years of 365 days; shorten the period or the burst"
            )

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Read a quota as people write it.

        ``COUNT / UNIT``, ``COUNT per [AMOUNT] UNIT``, then optionally ``burst N``, or ``in ZONE`` after one day, week
        (``week starting sunday``) or month; or ``COUNT at once [for [AMOUNT] UNIT]`` for leases of at most that long
        (default 1 minute). Units: ms s min h day week, short, singular or plural, in any case.

        Raises:
            QuotaError: names the text, the place and what is accepted.
            TypeError: ``text`` is no str.
        """
        if not isinstance(text, str):
            raise TypeError(f"a quota is a str or a Quota, not {kind_of(text)}; {_EXAMPLES}")
        return _Reader(text).quota()

    @classmethod
    def parse_many(cls, text: str) -> tuple[Quota, ...]:
        """Read several quotas separated by ``;``: ``"10 per 90 seconds; 100/hour"``. An empty part is an error."""
        return tuple(cls.parse(part) for part in text.split(";"))

    @property
    def recovery_ns(self) -> int:
        """Burst · period / count in nanoseconds, rounded up: the time a spent burst needs to be as if unused."""
        return -(-self.burst * self.period_ns // self.count) if self.count else self.period_ns

    def most_in(self, window_ns: int) -> int:
        """The most units GCRA admits in any closed window of ``window_ns`` nanoseconds: burst + window · count / period.

        For a calendar quota, the most that can fall into such a window across its edges.
        """
        if self.count == 0:
            return 0
        if self.zone is not None:
            return self.count * (2 + max(0, window_ns - 1) // self._shortest_ns())
        return self.burst + window_ns * self.count // self.period_ns

    def _shortest_ns(self) -> int:
        """The shortest that a calendar window can be: clocks are set forward by an hour (or two), February has 28 days."""
        whole = 28 * DAY if self.calendar == "month" else self.period_ns
        return whole - _SET_FORWARD.get(str(self.zone).upper(), HOUR)

    def __str__(self) -> str:
        if self.concurrent:
            return f"{self.count} at once for {print_duration(self.period_ns)}"
        text = f"{self.count}{_print_period(self)}"
        if self.zone is not None:
            return f"{text} in {self.zone}"
        return text if self.burst == self.count else f"{text} burst {self.burst}"

    def __repr__(self) -> str:
        return f"Quota.parse({str(self)!r})"


def parse_duration(text: str) -> int:
    """Nanoseconds from ``[AMOUNT] UNIT``: ``"30 s"``, ``"1h"``, ``"1.5 minutes"``, ``"day"``.

    Raises:
        QuotaError: names the text, the place and what is accepted.
        TypeError: ``text`` is no str.
    """
    if not isinstance(text, str):
        raise TypeError(f"a duration is text such as '30 s' or '1 hour', not {kind_of(text)}")
    return _DurationReader(text).duration()


def print_duration(nanoseconds: int) -> str:
    """The reverse of ``parse_duration``, with the largest unit that divides it: ``"90 seconds"``, ``"1 hour"``."""
    for word, unit in _PRINTED:
        if nanoseconds % unit == 0:
            amount = nanoseconds // unit
            return f"{amount} {word}{'' if word == 'ms' or amount == 1 else 's'}"
    whole, rest = divmod(nanoseconds, MILLISECOND)
    return f"{whole}.{rest:06d}".rstrip("0") + " ms"


def _print_period(quota: Quota) -> str:
    if quota.calendar is not None:
        start = f" starting {_WEEKDAYS[quota.week_start]}" if quota.week_start else ""
        return f"/{quota.calendar}{start}"
    for word, unit in _PRINTED:
        if quota.period_ns == unit:
            return "/s" if unit == SECOND else f"/{word}"
    return f" per {print_duration(quota.period_ns)}"


class _Reader:
    """One pass over a quota's text, left to right, remembering where it is."""

    kind = "quota"
    examples = _EXAMPLES
    span = "period"
    units = f"{_UNITS_SAID} (month with 'in ZONE')"
    one_month = "a calendar quota counts per one month"

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, problem: str, at: int | None = None) -> QuotaError:
        place = _SPACE.match(self.text, self.at if at is None else at).end()  # type: ignore[union-attr]  # \s* always matches
        return QuotaError(self.text, f"{problem}; {self.examples}", position=place, kind=self.kind)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # \s* always matches
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def keyword(self, word: str) -> bool:
        before = self.at
        found = self.take(_WORD)
        if found and found[0].lower() == word:
            return True
        self.at = before
        return False

    def at_end(self) -> bool:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # \s* always matches
        return self.at == len(self.text)

    def quota(self) -> Quota:
        if len(self.text) > _LONGEST_TEXT:
            raise self.fail(f"a quota is at most {_LONGEST_TEXT} characters long", _LONGEST_TEXT)
        count = self.count("count", "a count, a whole number from 0")
        if self.keyword("at"):
            return self.at_once(count)
        if not self.take(_PER):
            raise self.fail("expected '/' or 'per' between the count and the period (or 'at once')")
        period_ns, calendar, week_start, unit_at = self.period()
        burst = zone = None
        while not self.at_end():
            here = self.at
            if burst is None and zone is None and self.keyword("burst"):
                burst = self.burst(count, here)
            elif zone is None and self.keyword("in"):
                zone = self.zone(calendar, unit_at, burst, here)
            elif burst is not None or zone is not None:
                raise self.fail("expected nothing more")
            else:
                raise self.fail("expected 'burst N', 'in ZONE' or the end")
        if zone is None:
            if calendar == "month":
                raise self.fail("a month has no fixed length: say 'per 30 days', or 'per month in UTC'", unit_at)
            if week_start is not None:
                raise self.fail("'starting' belongs to a calendar week: add 'in ZONE'")
            calendar = None
        return self.made(count, period_ns, burst, zone, calendar, week_start or 0)

    def at_once(self, count: int) -> Quota:
        if not self.keyword("once"):
            raise self.fail("expected 'once' after 'at'")
        period_ns = MINUTE
        if self.keyword("for"):
            period_ns = self.period()[0]
        if not self.at_end():
            raise self.fail("expected 'for [AMOUNT] UNIT' or the end")
        return self.made(count, period_ns, None, None, None, 0, concurrent=True)

    def made(
        self,
        count: int,
        period_ns: int,
        burst: int | None,
        zone: str | None,
        calendar: str | None,
        week_start: int,
        *,
        concurrent: bool = False,
    ) -> Quota:
        try:
            return Quota(count, period_ns, burst, zone, calendar, week_start, concurrent)  # type: ignore[arg-type]  # None burst is replaced
        except QuotaError as error:
            problem = str(error).split(": ", 1)[1]
            raise QuotaError(self.text, f"{problem.strip()}; {_EXAMPLES}", position=0) from None

    def count(self, name: str, expected: str) -> int:
        start = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # \s* always matches
        found = self.take(_COUNT)
        if not found:
            seen = _NUMBERLIKE.match(self.text, start)
            what = f", not {seen[0]!r}" if seen and seen[0] else ""
            raise self.fail(f"expected {expected}{what}", start)
        digits = found[0].replace("_", "").replace(",", "")
        if len(digits.lstrip("0")) > len(str(MAX_COUNT)) or int(digits) > MAX_COUNT:
            raise self.fail(f"the {name} is above {MAX_COUNT}", start)
        return int(digits)

    def burst(self, count: int, here: int) -> int:
        if count == 0:
            raise self.fail("a count of 0 blocks everything and takes no burst", here)
        number = self.count("burst", "a burst, a whole number from 1")
        if number == 0:
            raise self.fail(
                "a burst of 0 would admit nothing; expected 1 or more (a count of 0 blocks everything)", here
            )
        return number

    def period(self) -> tuple[int, str | None, int | None, int]:
        """The period in ns; its calendar unit where it is exactly one; the start of the week; where the unit stands."""
        here = self.at
        amount = self.take(_AMOUNT)
        if amount and len(amount[0]) > 30:
            raise self.fail(f"the {self.span}'s number is too long", here)
        unit_at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # \s* always matches
        word = self.take(_WORD)
        name = word[0].lower() if word else ""
        if name not in _UNITS and name not in _CALENDAR_UNITS:
            raise self.fail(f"expected a unit of time: {self.units}", unit_at)
        whole, decimals = (amount[1], amount[2] or "") if amount else ("1", "")
        scaled, rest = divmod(int(whole + decimals) * _UNITS.get(name, MONTH), 10 ** len(decimals))
        if scaled == 0 and rest == 0:
            raise self.fail(f"the {self.span} is 0; expected more than no time", here)
        if rest:
            raise self.fail(f"the {self.span} is no whole number of nanoseconds", here)
        exactly_one = amount is None or scaled == _UNITS.get(name, MONTH)
        calendar = _CALENDAR_UNITS.get(name) if exactly_one else None
        if name in ("month", "months") and calendar is None:
            raise self.fail(f"a month has no fixed length: {self.one_month}", unit_at)
        return scaled, calendar, self.week_start(calendar), unit_at

    def week_start(self, calendar: str | None) -> int | None:
        if calendar != "week" or not self.keyword("starting"):
            return None
        here = self.at
        word = self.take(_WORD)
        if not word or word[0].lower() not in _WEEKDAYS:
            raise self.fail(f"expected a day of the week: {', '.join(_WEEKDAYS)}", here)
        return _WEEKDAYS.index(word[0].lower())

    def zone(self, calendar: str | None, unit_at: int, burst: int | None, here: int) -> str:
        if calendar is None:
            raise self.fail("'in ZONE' counts per one day, one week or one month", unit_at)
        if burst is not None:
            raise self.fail("a calendar quota takes no burst: its whole count may come at once", here)
        found = self.take(_ZONE)
        if not found:
            raise self.fail("expected the name of a time zone, such as UTC or Asia/Shanghai")
        from headway.core.zone import zone_of  # loads zoneinfo, which most quotas do without

        try:
            zone_of(found[0])
        except QuotaError as error:
            raise QuotaError(self.text, str(error).split(": ", 1)[1], position=found.start()) from error
        return found[0]


class _DurationReader(_Reader):
    """The same for a duration's text."""

    kind = "duration"
    examples = _DURATIONS
    span = "duration"
    units = _UNITS_SAID
    one_month = "say it in days, such as '30 days'"

    def duration(self) -> int:
        if len(self.text) > _LONGEST_TEXT:
            raise self.fail(f"a duration is at most {_LONGEST_TEXT} characters long", _LONGEST_TEXT)
        duration, calendar, _, unit_at = self.period()
        if calendar == "month":
            raise self.fail(f"a month has no fixed length: {self.one_month}", unit_at)
        if not self.at_end():
            raise self.fail("expected nothing more")
        return duration

    def week_start(self, calendar: str | None) -> int | None:
        return None  # a duration begins nowhere
