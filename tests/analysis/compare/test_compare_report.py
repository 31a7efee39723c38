"""What a comparison says."""

from __future__ import annotations

import json

from headway.analysis.compare.contenders import NAMES, contenders_for
from headway.analysis.compare.measure import Comparing, Comparison
from headway.analysis.compare.patterns import Arrival, Pattern, arrivals_of
from headway.analysis.compare.report import as_json, report_of
from headway.analysis.figures import Report, Scale
from headway.analysis.pictures.terminal import report_text
from headway.core.quota import SECOND, Quota

TEN = Quota.parse("10/s")


def compared(
    arrivals: list[Arrival], quota: Quota = TEN, pause: tuple[int, int] | None = None, partial: str = ""
) -> Comparison:
    """Everything on some arrivals."""
    comparing = Comparing(quota, contenders_for(quota, tuple(NAMES), pause), SECOND // 5)
    for at, key in arrivals:
        comparing.add(key, at)
    return comparing.comparison(partial)


def said(report: Report) -> str:
    """A report's words and tables, in one line."""
    return " ".join(report_text(report, 200).split())


def test_the_worst_is_named() -> None:
    """The first finding is who lets most through, and how many times the count; nobody is named who keeps to it."""
    text = said(report_of(compared(arrivals_of(Pattern.WINDOW_EDGE, TEN)), "A pattern."))
    assert "The most that one key got within any 1 s is 20, 2 times the quota's count: time-bucketed counter." in text
    few = [Arrival(n * SECOND, "a") for n in range(5)]
    assert "The most that one key got" not in said(report_of(compared(few), "Few."))


def test_hints_that_do_not_hold_are_named() -> None:
    """A process that stops is said to have told times at which callers would be refused again; the others' held."""
    end = 6 * SECOND
    found = compared(arrivals_of(Pattern.DRIP_PAUSE, TEN), pause=(end // 3, 2 * end // 3))
    text = said(report_of(found, "A pattern."))
    assert (
        "leaky bucket, drip stops for good: 37 refused instead of 1 while the process runs; 37 of its 37 refused"
        in text
    )
    assert "Every caller whom the others refused would have been admitted when it was told" in text
    assert "Every refused caller" in said(report_of(compared(arrivals_of(Pattern.STEADY, TEN)), "A pattern."))


def test_every_algorithm_has_a_picture() -> None:
    """There is a chart of the worst, one for each algorithm over time, and one of the twins, each with a description."""
    found = compared(arrivals_of(Pattern.STEADY, TEN))
    report = report_of(found, "A pattern.")
    assert [chart.title for chart in report.charts][1:-1] == [course.name for course in found.courses]
    assert all(chart.description for chart in report.charts)
    worst, tokens = report.charts[0], report.charts[-1]
    assert worst.categories == tuple(course.name for course in found.courses)
    assert tokens.series[0].points == tokens.series[1].points


def test_several_keys_have_columns_of_their_own() -> None:
    """With several keys the tables say what became of the others than the busiest, and of all together."""
    found = compared(arrivals_of(Pattern.GREEDY, TEN))
    columns = report_of(found, "A pattern.").sections[0].tables[0].columns
    assert columns[-2:] == ("refused, not of greedy", "most of all keys")
    one = compared(arrivals_of(Pattern.STEADY, TEN))
    assert len(report_of(one, "A pattern.").sections[0].tables[0].columns) == 4


def test_a_burst_is_not_a_windows() -> None:
    """Where the quota has a burst of its own, the table says that windows count without it."""
    quota = Quota.parse("10/s burst 3")
    note = "Windows and logs take no burst: they count up to 10."
    assert note in said(report_of(compared(arrivals_of(Pattern.STEADY, quota), quota), "A pattern."))
    assert note not in said(report_of(compared(arrivals_of(Pattern.STEADY, TEN)), "A pattern."))


def test_a_log_has_times_of_day() -> None:
    """From a log the charts' axes are times, from a pattern seconds."""
    found = compared([Arrival(1_445_731_200 * SECOND + n, "a") for n in range(20)])
    dated = report_of(found, "A log.", dated=True).charts[1]
    assert dated.x.scale is Scale.TIME
    assert dated.series[0].points[0][0] == 1_445_731_200
    assert report_of(found, "A pattern.").charts[1].x.scale is Scale.LINEAR


def test_a_partial_comparison_says_so() -> None:
    """What was stopped is said to be partial, to people and to programs."""
    found = compared([Arrival(0, "a")], partial="stopped by Ctrl-C")
    assert report_of(found, "A log.").partial == "stopped by Ctrl-C"
    assert as_json(found, "A log.", "everyone")["partial"] is True


def test_nothing_to_compare() -> None:
    """Without requests there is a sentence and no chart, and the JSON is whole."""
    found = compared([])
    report = report_of(found, "An empty log.")
    assert "0 requests came from 0 keys" in said(report)
    assert report.charts == ()
    assert json.loads(json.dumps(as_json(found, "An empty log.", "address")))["requests"] == 0


def test_programs_get_the_figures_in_seconds() -> None:
    """The JSON has the figures of each course, times in seconds, and what passed over time."""
    found = compared(arrivals_of(Pattern.STEADY, TEN))
    told = json.loads(json.dumps(as_json(found, "A pattern.", "everyone")))
    gcra = next(course for course in told["algorithms"] if course["algorithm"] == "gcra")
    (course,) = [course for course in found.courses if course.algorithm == "gcra"]
    assert gcra["longest_wait_s"] == course.longest_wait / 1e9
    assert gcra["bytes_a_key"] == 8
    assert [count for _, count in gcra["admitted_over_time"]] == [count for _, count in course.passed]
    assert gcra["admitted_over_time"][1][0] == 0.2
    assert told["span_s"] == 0.2
