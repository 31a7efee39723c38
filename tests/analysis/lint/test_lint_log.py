"""Access logs: limits that hide behind 403 and 503, and clients that never wait."""

from __future__ import annotations

import random

from headway.analysis.lint.audit import Report
from headway.analysis.lint.log import LogAudit, Request

SECOND = 10**9


def audited(*requests: tuple[float, str, str, int]) -> Report:
    found = LogAudit("access.log")
    found.add(Request(int(at * SECOND), address, path, status) for at, address, path, status in sorted(requests))
    return found.report()


def rules(report: Report) -> set[str]:
    return {one.rule for one in report.findings}


def burst(status: int, start: float = 10, count: int = 8, address: str = "a") -> list[tuple[float, str, str, int]]:
    """Served, refused some times within seconds, served again."""
    refused = [(start + place / 2, address, "/api", status) for place in range(count)]
    return [(start - 5, address, "/api", 200), *refused, (start + 90, address, "/api", 200)]


def others() -> list[tuple[float, str, str, int]]:
    """Somebody else, who is served all the time."""
    return [(float(second), "b", "/api", 200) for second in range(0, 120, 3)]


def test_a_burst_of_403_that_time_lifts_is_a_limit() -> None:
    """The same pages before and after: a limit; pages that are never served: a permission."""
    assert rules(audited(*burst(403))) == {"log-forbidden-burst"}
    never = [(second / 2, "a", f"/admin/{second}", 403) for second in range(20)]
    assert rules(audited(*never, (1, "a", "/", 200), (90, "a", "/", 200))) == set()
    assert rules(audited(*burst(403, count=3))) == set()


def test_a_burst_of_503_while_others_are_served_is_a_limit() -> None:
    """Nobody served: the server is down; one refused and others served: a limit."""
    assert rules(audited(*burst(503), *others())) == {"log-unavailable-burst"}
    assert rules(audited(*burst(503))) == set()


def test_clients_that_never_wait_are_found() -> None:
    """A 429 within a second of the one before, time and again; a client that pauses is none."""
    hammering = [(place / 10, "a", "/api", 429) for place in range(50)]
    assert rules(audited(*hammering)) == {"log-refused-without-pause"}
    patient = [(place * 30.0, "a", "/api", 429) for place in range(50)]
    assert rules(audited(*patient)) == set()


def test_the_status_alone_can_be_marked() -> None:
    """429 only is full marks for the status, with the rest unknown; nothing refused is not scored."""
    (graded,) = audited((1, "a", "/", 429), (60, "a", "/", 200)).graded
    assert [mark.points for mark in graded.marks] == [5, None, None, None]
    (graded,) = audited(*burst(403)).graded
    assert [mark.points for mark in graded.marks] == [1, None, None, None]
    assert audited((1, "a", "/", 200)).graded == ()


def test_a_known_truth_in_noise() -> None:
    """Among thousands of ordinary requests exactly the hidden limit is found, with its client's address."""
    chance = random.Random(3)
    noise = [(chance.uniform(0, 3600), f"192.0.2.{chance.randint(1, 99)}", f"/p{chance.randint(1, 9)}", chance.choice((200, 200, 304, 404)))
             for _ in range(5000)]  # fmt: skip
    report = audited(*noise, *burst(403, 1800, address="203.0.113.7"))
    (finding,) = report.findings
    assert finding.rule == "log-forbidden-burst"
    assert "203.0.113.7 1" in finding.message


def test_memory_is_bounded() -> None:
    """However many addresses a log has, only the latest are remembered."""
    found = LogAudit("access.log")
    found.add(Request(place, f"10.{place}", "/", 429) for place in range(150_000))
    assert len(found._clients) == 100_000
