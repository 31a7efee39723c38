"""Explain: what a quota admits, as exact numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from headway.core.quota import SECOND, Quota

__all__ = ["WINDOWS", "Explanation", "explain_quota", "say_duration"]

WINDOWS: Final = (("1s", SECOND), ("1m", 60 * SECOND), ("1h", 3600 * SECOND), ("1d", 86_400 * SECOND))
"""The windows every explanation covers: name, nanoseconds."""

_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONG_UNITS: Final = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_SHORT_UNITS: Final = (("s", 1), ("ms", 1000), ("µs", 1_000_000), ("ns", 1_000_000_000))


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a quota admits under GCRA, or in its calendar windows. Times are exact, in seconds.

    Attributes:
        quota: the quota.
        emission_interval: T = period / count; None where units do not come back one by one: a calendar quota, units
            held at once, a count of 0.
        tolerance: τ = (burst − 1) · T; None where T is.
        burst: the most units admitted at once.
        recovery: burst · T, until a spent burst is there again; for a calendar quota the nominal length of its window
            (a day 24 hours, a month 30 days), for units held at once the longest that one can be held without renewal;
            None for a count of 0.
        most_in: (name, units) for each of ``WINDOWS``: the most units in any closed window of that length; None where
            units are held at once, because that depends on how soon they are given back.
    """

    quota: Quota
    emission_interval: Fraction | None
    tolerance: Fraction | None
    burst: int
    recovery: Fraction | None
    most_in: tuple[tuple[str, int | None], ...]

    def as_json(self) -> dict[str, object]:
        """The same for ``json.dumps``: whole numbers as int, others as the nearest double."""
        return {
            "emission_interval_s": _number(self.emission_interval),
            "tolerance_s": _number(self.tolerance),
            "burst": self.burst,
            "recovery_s": _number(self.recovery),
            "most_in": dict(self.most_in),
        }

    def sentence(self) -> str:
        """What the quota admits, in words."""
        quota = self.quota
        if quota.count == 0:
            return "It blocks everything: no wait helps."
        if quota.concurrent:
            return (
                f"{quota.count} may be held at once, each for at most {say_duration(self.recovery)} unless renewed. How many pass in "
                "a while depends on how soon they are given back."
            )
        if quota.zone is not None:
            begins = {"day": "at midnight there", "month": "at midnight there, when the first of the month begins"}.get(
                quota.calendar or "", f"at midnight there, when {_WEEKDAYS[quota.week_start]} begins"
            )
            return (
                f"{quota.count} may come in each {quota.calendar} of {quota.zone}, all at once if need be. The next "
                f"{quota.calendar} begins {begins}; what is left of the old one is lost. Around that moment up to "
                f"{2 * quota.count} can come."
            )
        interval, recovery = say_duration(self.emission_interval), say_duration(self.recovery)
        if quota.burst == 1:
            return f"One may come every {interval}: never two at once, and one that comes sooner is refused."
        return (
            f"{quota.burst} may come at once; after that, one more every {interval}. A spent burst is whole again after "
            f"{recovery} without requests."
        )


def explain_quota(quota: Quota) -> Explanation:
    """What ``quota`` admits; see ``Explanation``."""
    most_in: tuple[tuple[str, int | None], ...] = tuple((name, quota.most_in(window)) for name, window in WINDOWS)
    if quota.count == 0:
        return Explanation(quota, None, None, 0, None, most_in)
    if quota.concurrent:
        most_in = tuple((name, None) for name, _ in WINDOWS)
    if quota.concurrent or quota.zone is not None:
        return Explanation(quota, None, None, quota.burst, Fraction(quota.period_ns, SECOND), most_in)
    interval = Fraction(quota.period_ns, quota.count * SECOND)
    return Explanation(quota, interval, (quota.burst - 1) * interval, quota.burst, quota.burst * interval, most_in)


def say_duration(seconds: Fraction | None) -> str:
    """A duration as people say it: "10 ms", "1 min 40 s", "about 2 h 10 min 55 s".

    Rounded to the nearest thousandth of its unit below a minute and to the nearest second above, and then with "about".

    Args:
        seconds: at least 0; None is said as "none".
    """
    if seconds is None:
        return "none"
    if not seconds:
        return "0 s"
    unit, scale = next((pair for pair in _SHORT_UNITS if seconds * pair[1] >= 1), _SHORT_UNITS[-1])
    step = Fraction(1) if seconds >= 60 else Fraction(1, 1000 * scale)
    said = round(seconds / step) * step
    if not said:
        return f"less than 0.001 {unit}"
    if said != seconds:
        return f"about {say_duration(said)}"  # which may have reached the next unit
    if seconds < 60:
        whole, thousandths = divmod(int(seconds * scale * 1000), 1000)
        return f"{whole}.{thousandths:03d}".rstrip("0").rstrip(".") + f" {unit}"
    words, left = [], int(seconds)
    for unit, size in _LONG_UNITS:
        amount, left = divmod(left, size)
        words += [f"{amount} {unit}"] if amount else []
    return " ".join(words)


def _number(value: Fraction | None) -> int | float | None:
    """An int where the value is whole, else the nearest double: int / int rounds correctly, however large."""
    if value is None:
        return None
    return value.numerator if value.denominator == 1 else value.numerator / value.denominator
