"""Reports that are hard to draw."""

from __future__ import annotations

from headway.analysis.figures import Axis, Chart, Kind, Mark, Report, Scale, Section, Series, Table

HOSTILE = "<script>alert(1)</script>\u202e$x$\x1b[31m&\"'" + "x" * 90
"""What a client may put into a log: markup, a change of direction, mathematics, a terminal's escape, no space."""

TIME = Axis("time", "s")

BARS = Chart(
    "Admitted and refused",
    TIME,
    Axis("requests", "a second"),
    (
        Series("admitted", tuple((float(n), 3 + n % 7) for n in range(60)), Kind.BARS),
        Series("refused", tuple((float(n), n % 5) for n in range(60)), Kind.BARS),
    ),
    (Mark(10, "quota: 10/s"),),
    "What came in each second.",
)
LINES = Chart(
    HOSTILE,
    Axis("requests in a minute", scale=Scale.LOG),
    Axis("share of clients", "%"),
    (
        Series("by address", tuple((10 ** (n / 20), min(100, n * 2)) for n in range(60))),
        Series("_hidden " + HOSTILE, tuple((10 ** (n / 25), min(100, n * 3)) for n in range(60)), Kind.STEPS),
        Series("none of a logarithm", ((0, 0), (10, 50))),
    ),
    (Mark(60, "proposed: 60/min " + HOSTILE, axis="x"),),
    HOSTILE,
)
TIMES = Chart(
    "Requests over time",
    Axis("time", "UTC", Scale.TIME),
    Axis("requests"),
    (Series("all", tuple((1_445_731_200 + 60 * n, 30 + n % 70) for n in range(600)), Kind.STEPS),),
)
NAMES = Chart(
    "Most denied",
    Axis("key"),
    Axis("refused requests"),
    (Series("refused", tuple((float(n), 100 / (n + 1)) for n in range(5)), Kind.BARS),),
    categories=("203.0.113.7", HOSTILE, "日本語", "2001:db8::1:2", "$5"),
)
MANY = Chart(
    "Twelve of them",
    TIME,
    Axis("requests of each of the clients that sent the most of all, by address", "in each of the seconds"),
    tuple(Series(f"{n} {HOSTILE}", tuple((float(x), n + x % 3) for x in range(20))) for n in range(12)),
    (Mark(6, "a limit"), Mark(12, "begin", "x")),
)
CHARTS = (BARS, LINES, TIMES, NAMES, MANY)
WIDE_TABLE = Table(
    "Who would have been refused",
    ("key", "requests", "share", "agent"),
    ((HOSTILE, 12_345, 0.25, "Mozilla/5.0 " * 20), ("203.0.113.7", 7, None, "curl/8"), ("\ud800", 0, 1e-9, "")),
    "A note.",
)


def report(partial: str = "") -> Report:
    """A report with everything in it."""
    return Report(
        "headway compare: " + HOSTILE,
        ("The answer. " + HOSTILE, "More."),
        (Section("Charts " + HOSTILE, ("Words.",), CHARTS), Section("Tables", (), (), (WIDE_TABLE,))),
        partial,
        "headway compare --pattern '<b>'",
    )
