"""Calendar windows: a counter for a local day, week or month, exact across daylight-saving changes.

A window begins at the first instant of its first local day (a repeated midnight at its first occurrence, a missing one
at the instant of the change) and ends where the next begins, so a day has 22 to 25 hours, whatever its zone says.
Windows are known by their instants, never by a local date.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from headway.core.fixed_window import Windowed
from headway.core.quota import DAY, MONTH, SECOND, WEEK, Quota
from headway.core.zone import zone_of

__all__ = ["CalendarWindow"]

_FIRST_NS: Final = -62_000_000_000 * SECOND
_LAST_NS: Final = 221_000_000_000 * SECOND
"""Years 5 to 8973. A clock beyond has no calendar (dates end in 9999): its windows are of the nominal length, in UTC."""
_NOMINAL: Final = {"day": DAY, "week": WEEK, "month": MONTH}


@dataclass(frozen=True, slots=True)
class CalendarWindow(Windowed):
    """Up to ``burst`` units a local day, week or month; see ``Rule``.

    Args:
        burst: the quota's count.
        zone: the time zone whose midnights bound the windows.
        unit: "day", "week" or "month".
        week_start: 0 (Monday) to 6 (Sunday); for weeks.
        count_refused: as for ``FixedWindow``.
    """

    burst: int
    zone: ZoneInfo
    unit: Literal["day", "week", "month"] = "day"
    week_start: int = 0
    count_refused: bool = False
    _last: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)], init=False, repr=False, compare=False)

    @classmethod
    def of(cls, quota: Quota, *, count_refused: bool = False) -> CalendarWindow:
        """The rule of a quota with a zone.

        Raises:
            QuotaError: the zone is not known here.
        """
        assert quota.zone is not None  # noqa: S101  # the caller's branch; a quota pairs zone and calendar
        unit: Literal["day", "week", "month"] = quota.calendar  # type: ignore[assignment]  # checked by Quota
        return cls(quota.count, zone_of(quota.zone), unit, quota.week_start, count_refused)

    def fresh_end(self, now: int) -> int:
        """See ``Windowed``."""
        return self.window(now)[1]

    def window(self, now: int) -> tuple[int, int]:
        """First instant of the window that holds ``now`` and of the next one, in ns since 1970."""
        start, end = self._last[0]  # the window of the latest call: a benign race, both numbers are read at once
        if start <= now < end:
            return start, end
        if not _FIRST_NS <= now < _LAST_NS:
            start = now - now % _NOMINAL[self.unit]
            return start, start + _NOMINAL[self.unit]
        first = self._first_day(datetime.fromtimestamp(now // SECOND, self.zone).date())
        start, end = self._instant(first), self._instant(self._next(first))
        while now >= end:  # the clock went back over midnight: the local date lags behind the window that has begun
            first = self._next(first)
            start, end = end, self._instant(self._next(first))
        self._last[0] = start, end
        return start, end

    def _first_day(self, day: date) -> date:
        if self.unit == "month":
            return day.replace(day=1)
        if self.unit == "week":
            return day - timedelta(days=(day.weekday() - self.week_start) % 7)
        return day

    def _next(self, first: date) -> date:
        if self.unit == "month":
            return date(first.year + first.month // 12, first.month % 12 + 1, 1)
        return first + timedelta(days=7 if self.unit == "week" else 1)

    def _instant(self, day: date) -> int:
        """The first instant of a local day, in ns since 1970."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=self.zone)
        first, before = int(midnight.timestamp()), int(midnight.replace(fold=1).timestamp())
        while first - before > 1:  # a missing midnight: the clock was set forward somewhere between its two readings
            middle = (first + before) // 2
            if datetime.fromtimestamp(middle, self.zone).date() < day:
                before = middle
            else:
                first = middle
        return first * SECOND
