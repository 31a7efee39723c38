"""What a comparison says: a report of words, tables and charts, and the same for programs."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from headway.analysis.compare.measure import Comparison, Course
from headway.analysis.explain import say_duration
from headway.analysis.figures import (
    Axis,
    Cell,
    Chart,
    Kind,
    Mark,
    Report,
    Scale,
    Section,
    Series,
    Table,
    counted,
    shorten,
)
from headway.core.quota import SECOND

__all__ = ["as_json", "report_of"]

_BYTES: Final = 8
_MODEL: Final = "leaky-bucket-drip"


def report_of(found: Comparison, source: str, *, by: str = "client", dated: bool = False, made_by: str = "") -> Report:
    """The comparison as a report.

    Args:
        found: what was measured.
        source: what was compared on, in a sentence or two.
        by: what a counter belonged to: "client", "address", or "everyone".
        dated: times are since 1970, from a log, not from the beginning of a pattern.
        made_by: see ``Report``.
    """
    quota = found.quota
    whom = "one counter for everyone" if by == "everyone" else f"one counter for each {by}"
    paragraphs = [
        source,
        f"The quota is {quota}, with {whom}. {counted(found.requests, 'request')} came from {counted(found.keys, 'key')} in "
        f"{_said(found.last - found.first)}.",
    ]
    if not found.requests:
        return Report("Algorithms compared", tuple(paragraphs), (), found.partial, made_by)
    sections = (
        Section("What each one did", tuple(_findings(found)), (_worst_chart(found),), tuple(_tables(found))),
        Section(
            "What passed, and when",
            (),
            tuple(_picture(found, course, dated) for course in found.courses),
        ),
        _one_and_the_same(found, dated),
    )
    return Report("Algorithms compared", tuple(paragraphs), sections, found.partial, made_by)


def as_json(found: Comparison, source: str, by: str) -> dict[str, object]:
    """The same for ``json.dumps``; times in seconds, from the same beginning as the arrivals'."""
    return {
        "source": source,
        "limit": str(found.quota),
        "by": by,
        "requests": found.requests,
        "keys": found.keys,
        "first_s": found.first / SECOND,
        "last_s": found.last / SECOND,
        "span_s": found.span / SECOND,
        "partial": bool(found.partial),
        "algorithms": [_course_json(found, course) for course in found.courses],
        "token_bucket_and_gcra": {"alike": found.twins.alike, "different": found.twins.different},
    }


def _course_json(found: Comparison, course: Course) -> dict[str, object]:
    return {
        "algorithm": course.algorithm,
        "name": course.name,
        "model": course.algorithm == _MODEL,
        "admitted": course.admitted,
        "refused": course.refused,
        "refused_others": course.refused_others,
        "worst_in_a_period": course.worst,
        "worst_in_a_period_all_keys": course.worst_total,
        "numbers_a_key": course.numbers,
        "bytes_a_key": course.numbers * _BYTES,
        "longest_wait_s": course.longest_wait / SECOND,
        "mean_wait_s": course.mean_wait / SECOND,
        "hints_kept": course.hints_kept,
        "admitted_over_time": [[place * found.span / SECOND, count] for place, count in course.passed],
        "refused_over_time": [[place * found.span / SECOND, count] for place, count in course.held_back],
    }


def _findings(found: Comparison) -> list[str]:
    """What a reader should not have to look for."""
    said = []
    most = max(found.courses, key=lambda course: course.worst)
    allowed = max(found.quota.count, found.quota.burst)
    if most.worst > allowed:
        said.append(
            f"The most that one key got within any {_said(found.quota.period_ns)} is {most.worst}, "
            f"{most.worst / found.quota.count:.2g} times the quota's count: {most.name}."
        )
    healthy = next((course for course in found.courses if course.algorithm == _MODEL), None)
    for course in found.courses:
        told = (
            f"{course.refused - course.hints_kept:,} of its {course.refused:,} refused would have been refused again at the "
            "very time they were told"
        )
        if healthy is not None and course.algorithm == _MODEL and course is not healthy:
            said.append(
                f"{course.name}: {course.refused:,} refused instead of {healthy.refused:,} while the process runs; {told}."
            )
        elif course.hints_kept < course.refused:
            said.append(f"{course.name}: {told}.")
    if any(course.refused for course in found.courses):
        broken = {course.algorithm for course in found.courses if course.hints_kept < course.refused}
        if not broken:
            said.append("Every refused caller would have been admitted when it was told, had nobody else come.")
        elif broken == {_MODEL}:
            said.append(
                "Every caller whom the others refused would have been admitted when it was told, had nobody else come."
            )
    return said


def _tables(found: Comparison) -> list[Table]:
    several, quota = found.keys > 1, found.quota
    busiest = shorten(found.busiest[0], 24) if found.busiest else ""
    columns = ["algorithm", "admitted", "refused", "most in a period"]
    rows: list[list[Cell]] = [[course.name, course.admitted, course.refused, course.worst] for course in found.courses]
    if several:
        columns += [f"refused, not of {busiest}", "most of all keys"]
        for row, course in zip(rows, found.courses, strict=True):
            row += [course.refused_others, course.worst_total]
    counts = Table(
        "Requests",
        tuple(columns),
        tuple(map(tuple, rows)),
        f"Most in a period: within any {_said(found.quota.period_ns)}, wherever it begins"
        + (", of one key." if several else ".")
        + (f" Windows and logs take no burst: they count up to {quota.count:,}." if quota.burst != quota.count else ""),
    )
    kept = Table(
        "What is kept, and what the refused are told",
        ("algorithm", "numbers a key", "bytes a key", "mean wait (s)", "longest wait (s)", "hint kept (%)"),
        tuple(
            (
                course.name,
                course.numbers,
                course.numbers * _BYTES,
                course.mean_wait / SECOND if course.refused else None,
                course.longest_wait / SECOND if course.refused else None,
                100 * course.hints_kept / course.refused if course.refused else None,
            )
            for course in found.courses
        ),
        f"Numbers are the most that were kept of one key, {_BYTES} bytes each. Hint kept: of the refused, how many would be "
        "admitted at the time they were told, if nobody else came. The drip process has to visit every key on each of its runs; "
        "the others keep nothing running.",
    )
    return [counts, kept]


def _worst_chart(found: Comparison) -> Chart:
    quota = found.quota
    period = _said(quota.period_ns)
    return Chart(
        f"Most in any {period}",
        Axis("algorithm"),
        Axis("requests of one key"),
        (
            Series(
                "most within one period",
                tuple((float(place), course.worst) for place, course in enumerate(found.courses)),
                Kind.BARS,
            ),
        ),
        (Mark(quota.count, f"the quota's count: {quota.count:,}"),),
        f"The most requests of one key that went on within any {period}, wherever it begins. The line is the quota's count.",
        tuple(course.name for course in found.courses),
    )


def _picture(found: Comparison, course: Course, dated: bool) -> Chart:
    width = found.span / SECOND
    fair = found.quota.count * found.span / found.quota.period_ns
    rows = (("admitted", course.passed), ("refused", course.held_back))
    return Chart(
        course.name,
        Axis("time", "UTC", Scale.TIME) if dated else Axis("time", "s"),
        Axis(f"requests in {_said(found.span)}"),
        tuple(
            Series(name, tuple((place * width, float(count)) for place, count in counts), Kind.BARS, width)
            for name, counts in rows
        ),
        (Mark(fair, f"the quota's rate: {fair:.4g} in {_said(found.span)}"),),
        f"{course.name}: {course.admitted:,} admitted, {course.refused:,} refused, at most {course.worst:,} of one key within "
        f"{_said(found.quota.period_ns)}.",
    )


def _one_and_the_same(found: Comparison, dated: bool) -> Section:
    twins = found.twins
    alike = (
        f"On {'all ' if twins.alike > 1 else ''}{counted(twins.alike, 'request')} both decided alike, and told the same wait to the nanosecond."
        if not twins.different
        else f"They differ on {twins.different:,} of {counted(twins.alike + twins.different, 'request')}."
    )
    period, count, burst = _said(found.quota.period_ns), found.quota.count, found.quota.burst
    words = (
        f"A token bucket of {burst} that {counted(count, 'token')} flow{'s' if count == 1 else ''} into every {period} keeps two numbers: its tokens, and when it was "
        "last looked at. GCRA keeps one instant, the TAT. They are one limiter in two notations: tokens = burst − (TAT − now) / T, "
        "with T = period / count, and one token is there just when GCRA admits.",
        f"To show it, a token bucket told naively, but exactly, was given the same arrivals. {alike}",
    )
    levels = twins.levels
    chart = Chart(
        "Tokens of a bucket, and what GCRA's one instant says they are",
        Axis("time", "UTC", Scale.TIME) if dated else Axis("time", "s"),
        Axis("tokens"),
        (
            Series("token bucket", tuple((now / SECOND, float(tokens)) for now, tokens, _ in levels)),
            Series("GCRA: burst − (TAT − now) / T", tuple((now / SECOND, float(room)) for now, _, room in levels)),
        ),
        (),
        "After each request. Both lines lie on each other: the dashed one is GCRA's.",
    )
    return Section("Why token bucket and GCRA are one", words, (chart,))


def _said(ns: int) -> str:
    return say_duration(Fraction(ns, SECOND))
