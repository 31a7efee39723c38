"""What people are shown of a replay: numbers as they are, gaps as gaps, text from logs as text."""

from __future__ import annotations

import pytest

from analysis.logs.made_logs import MIDNIGHT, line, stream
from headway import AllowList, BanList, Limit, Overridden, TieredLimit, When
from headway.analysis.figures import Report
from headway.analysis.logs.read import read_logs
from headway.analysis.pictures.terminal import report_text
from headway.analysis.replay.fields import mapped
from headway.analysis.replay.figures import replay_report, sparkline
from headway.analysis.replay.limits import LimitReplay
from headway.analysis.replay.policy import Asked, fields_of, replay_policy
from headway.analysis.replay.tally import LimitTally
from headway.core.quota import SECOND
from headway.policy.policy import Policy


def report(*lines: bytes, series: bool = True, exempt: AllowList | None = None, **options: object) -> Report:
    """The report of a log under one request a minute by address."""
    policy = Policy("site", (Limit("per-ip", "1 per 60s", by="ip"),), "site", exempt)
    asked = Asked(policy, "today.toml", mapped([policy], {}, {}), **options)  # type: ignore[arg-type]  # options pass through
    found = replay_policy(read_logs(["-"], fields_of(asked), standard_input=stream(lines)), asked)
    return replay_report(found, "access.log", series=series)


def test_the_highest_bar_is_full_and_nothing_is_nothing() -> None:
    """A sparkline's heights are shares of the highest, rounded up; 0 is a gap."""
    assert sparkline([0, 1, 4, 8, 0]) == " ▁▄█ "
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "  "
    assert sparkline([1, 1_000_000]) == "▁█"


def test_a_gap_in_the_log_is_a_gap_in_the_lines() -> None:
    """Steps without requests count as 0 refusals, not as many as before."""
    told = report(*[line(at, status=429) for at in (0, 1, 300, 301)], step=60 * SECOND)
    _, refusals = told.charts
    policy = next(series for series in refusals.series if series.name == "by the policy")
    assert policy.points == tuple(
        (MIDNIGHT + at, count) for at, count in zip(range(0, 301, 60), (1, 0, 0, 0, 0, 1), strict=True)
    )


def test_bars_are_admitted_and_refused() -> None:
    """Together they are the requests."""
    (chart,) = report(line(0), line(1), line(2), step=60 * SECOND).charts
    assert [(series.name, series.points) for series in chart.series] == [
        ("admitted", ((MIDNIGHT, 1.0),)),
        ("refused", ((MIDNIGHT, 2.0),)),
    ]


def test_hostile_keys_come_out_printable() -> None:
    """What a log calls an address cannot move the cursor of whoever reads the report."""
    text = report_text(report(*[line(0).replace(b"192.0.2.1", b"\x1b[2J\xe2\x80\xae\xff")] * 2))
    assert "\\x1b[2J" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_was_not_decided_is_said() -> None:
    """Exempt requests, lines out of order and lines that could not be read are in the answer."""
    text = report_text(
        report(line(9, user="boss"), line(3), b"junk\n", exempt=AllowList({"user": "boss"}), series=False)
    )
    assert "2 requests from" in text
    assert "Exempt from 'site' of today.toml: 1 request." in text
    assert "1 of 3 lines could not be read." in text
    assert "out of order" in text


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Limit("a", "5 per 60s burst 2", by="ip"), "5/minute burst 2"),
        (When({"path": "/login"}, Limit("a", "5/min")), "5/minute when path is /login"),
        (Overridden(Limit("a", "5/min", by="ip"), {"x": "9/s"}), "5/minute 1 ip with a quota of their own"),
        (TieredLimit("a", {"free": "1/s"}, by="ip", tier="plan"), "free 1/s by plan (unknown: error, missing: error)"),
        (BanList("a", {"ip": "x"}), "blocks 1 entry by ip"),
    ],
)
def test_a_limit_s_quotas_are_one_line(part: Limit, said: str) -> None:
    """Of a limit that depends on the request, what it depends on is said with its quota."""
    assert LimitReplay.of(part, LimitTally(), 5, behind=False).quota == said
