"""Lines of access logs, well-formed and hostile."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime

import pytest

from headway.analysis.access_log import (
    PARTS,
    instant,
    line_pattern,
    method_and_path,
    request_matcher,
    whole_lines,
)

COMBINED = (
    b'198.18.0.1 - - [25/Oct/2015:04:11:25 +0100] "GET /a?b=c HTTP/1.1" 200 24323 "http://x.example/" "Firefox/35.0"'
)
COMMON = b'198.18.0.1 - - [25/Oct/2015:04:11:25 +0100] "GET /a HTTP/1.0" 304 -'
ALL = line_pattern(PARTS)


def parsed(line: bytes) -> dict[str, bytes] | None:
    """The parts of one line, or None; every line is taken whole, whichever parts are asked for."""
    found = ALL.findall(line + b"\n")
    assert len(found) == 1
    for part in PARTS:
        (narrow,) = line_pattern((part, "stamp")).findall(line + b"\n")
        assert narrow[-1] == found[0][-1]
    *values, bad = found[0]
    return None if bad or not values[PARTS.index("stamp")] else dict(zip(PARTS, values, strict=True))


def test_a_combined_line_gives_all_its_parts() -> None:
    """Every part of the combined format is read as it was logged."""
    assert parsed(COMBINED) == {
        "address": b"198.18.0.1",
        "user": b"- ",
        "stamp": b"25/Oct/2015:04:11:25 +0100",
        "request": b"GET /a?b=c HTTP/1.1",
        "status": b"200",
        "referer": b"http://x.example/",
        "agent": b"Firefox/35.0",
    }


def test_a_common_line_has_no_referer_and_no_agent() -> None:
    """The common format parses, its missing parts empty."""
    found = parsed(COMMON)
    assert found is not None
    assert (found["referer"], found["agent"], found["status"]) == (b"", b"", b"304")


@pytest.mark.parametrize(
    ("line", "part", "value"),
    [
        (COMBINED.replace(b"198.18.0.1", b"2001:db8::1"), "address", b"2001:db8::1"),
        (COMBINED.replace(b"198.18.0.1", b"::ffff:192.0.2.1"), "address", b"::ffff:192.0.2.1"),
        (COMBINED.replace(b"198.18.0.1", b"host.example"), "address", b"host.example"),
        (COMBINED.replace(b"- - [", b"- frank ["), "user", b"frank "),
        (COMBINED.replace(b"- - [", b"- frank miller ["), "user", b"frank miller "),
        (COMBINED.replace(b"- - [", b'- "" ['), "user", b'"" '),
        (COMBINED.replace(b"- - [", b"identd frank ["), "user", b"frank "),
        (COMBINED.replace(b"GET /a?b=c", rb"GET /\"quoted\"\\"), "request", rb"GET /\"quoted\"\\ HTTP/1.1"),
        (COMBINED.replace(b"GET /a?b=c HTTP/1.1", rb"\x16\x03\x01"), "request", rb"\x16\x03\x01"),
        (COMBINED.replace(b"GET /a?b=c HTTP/1.1", b"-"), "request", b"-"),
        (COMBINED.replace(b"GET /a?b=c HTTP/1.1", b""), "request", b""),
        (COMBINED.replace(b"/a?b=c", b"/\x00\xff\xfe"), "request", b"GET /\x00\xff\xfe HTTP/1.1"),
        (COMBINED.replace(b"Firefox", rb"Fire\"fox"), "agent", rb"Fire\"fox/35.0"),
        (COMBINED + b' "203.0.113.9" 0.003', "agent", b"Firefox/35.0"),
        (COMBINED + b"\r", "agent", b"Firefox/35.0"),
        (COMMON + b"\r", "status", b"304"),
        (COMBINED[:-1], "agent", b""),
        (COMBINED.replace(b" 200 24323", b" 499 -"), "status", b"499"),
    ],
)
def test_odd_lines_that_servers_write_parse(line: bytes, part: str, value: bytes) -> None:
    """IPv6, users with spaces, escaped quotes, bytes that are no text, extra fields, cut agents: all of them parse."""
    found = parsed(line)
    assert found is not None
    assert found[part] == value


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"\x00" * 50,
        b"\xff\xfe\xfd",
        COMBINED[40:],
        COMBINED[:70],
        b" " + COMBINED,
        COMBINED.replace(b"198.18.0.1 ", b""),
        COMBINED.replace(b"- - [", b"- ["),
        COMBINED.replace(b"- - [", b"["),
        COMBINED.replace(b"- - [", b"- -["),
        COMBINED.replace(b"[25/Oct/2015:04:11:25 +0100]", b"-"),
        COMBINED.replace(b"+0100", b"CET"),
        COMBINED.replace(b" +0100", b""),
        COMBINED.replace(b"25/Oct/2015:04:11:25 +0100", b"2015-10-25T04:11:25+01:00"),
        COMBINED.replace(b"[", b"").replace(b"]", b""),
        COMBINED.replace(b'"GET /a?b=c HTTP/1.1" ', b""),
        COMBINED.replace(b"HTTP/1.1", rb"HTTP/1.1\\\\\\"[:-1]),
        COMBINED.replace(b" 200 24323", b" 200"),
        COMBINED.replace(b" 200 24323", b" OK 24323"),
        COMBINED.replace(b" 200 24323", b" 200 2e4"),
        b"www.example.com:80 " + COMBINED,
        b'{"time": "25/Oct/2015:04:11:25 +0100"}',
    ],
)
def test_other_lines_do_not_parse(line: bytes) -> None:
    """A line with a missing or foreign field, a host's name before the address included, is never half read."""
    assert parsed(line) is None


def test_no_line_is_scanned_twice() -> None:
    """Megabytes of quotes, backslashes and brackets take time in proportion, not in its square (which would take hours)."""
    head = COMBINED.partition(b"GET")[0]
    for text in (b"a", b'"', b"\\", b'\\"', b"[", b" ", b"- ", b"] ", b'" "', b"\x00"):
        for line in (text * (1_000_000 // len(text)), head + text * (1_000_000 // len(text))):
            assert len(ALL.findall(line + b"\n")) == 1


def test_random_bytes_are_one_line_each() -> None:
    """Whatever the bytes, a block has as many matches as line ends, so that line numbers are right."""
    chance = random.Random(1)
    for _ in range(2000):
        lines = [COMBINED, COMMON, b""]
        for _ in range(3):
            broken = bytearray(chance.choice(lines[:2]))
            for _ in range(chance.randrange(1, 6)):
                broken[chance.randrange(len(broken))] = chance.choice(b'"\\[] \x00\xff-\n\r9a')
            lines.append(bytes(broken))
        block = b"\n".join(lines) + b"\n"
        assert len(ALL.findall(block)) == block.count(b"\n")


def test_blocks_hold_whole_lines() -> None:
    """However a stream hands out its bytes, the blocks are its lines, each complete, the last one given its end."""
    text = b"\xef\xbb\xbfone\n\ntwo\r\n" + b"x" * 700_000 + b"\n" + b"y\n" * 300_000 + b"last"
    chance = random.Random(2)
    stream = io.BytesIO(text)
    blocks = list(whole_lines(lambda size: stream.read(chance.randrange(1, size))))
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) == text[3:] + b"\n"


def test_a_stream_without_line_ends_is_cut() -> None:
    """A line of hundreds of megabytes is one line, and all but its first 8 MiB are dropped."""
    left = 300

    def read(size: int) -> bytes:
        nonlocal left
        left -= 1
        return b"" if left < 0 else b"\n" + COMMON + b"\n" if left == 0 else b"z" * size

    blocks = list(whole_lines(read))
    assert sum(block.count(b"\n") for block in blocks) == 2
    assert sum(map(len, blocks)) < 9 * 1024 * 1024
    assert blocks[-1].endswith(b"\n" + COMMON + b"\n")


@pytest.mark.parametrize("zone", ["+0000", "+0100", "-0800", "+0545", "-0330", "+1400"])
def test_an_instant_is_the_calendars(zone: str) -> None:
    """A time with its zone is the instant that the calendar says, to the second, across years and leap days."""
    chance = random.Random(zone)
    for _ in range(500):
        moment = datetime.fromtimestamp(chance.randrange(86_400, 9_000_000_000), UTC)
        stamp = f"{moment:%d/%b/%Y:%H:%M:%S} {zone}"
        expected = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z")
        assert instant(stamp.encode()) == int(expected.timestamp()) * 1_000_000_000


def test_a_leap_second_is_the_next_minutes_first() -> None:
    """A logged second of 60 parses."""
    assert instant(b"31/Dec/2016:23:59:60 +0000") == instant(b"01/Jan/2017:00:00:00 +0000")


@pytest.mark.parametrize(
    "stamp",
    [
        b"",
        b"30/Feb/2015:04:11:25 +0100",
        b"29/Feb/2015:04:11:25 +0100",
        b"00/Oct/2015:04:11:25 +0100",
        b"32/Oct/2015:04:11:25 +0100",
        b"25/Okt/2015:04:11:25 +0100",
        b"25/Oct/0000:04:11:25 +0100",
        b"25/Oct/1969:04:11:25 +0100",
        b"01/Jan/1970:00:30:00 +0100",
        b"25/Oct/2262:04:11:25 +0100",
        b"25/Oct/9999:04:11:25 +0100",
        b"25/Oct/2015:24:00:00 +0100",
        b"25/Oct/2015:04:60:25 +0100",
        b"25/Oct/2015:04:11:61 +0100",
        b"25/Oct/2015:04:11:25 +2400",
        b"25/Oct/2015:04:11:25 +0160",
    ],
)
def test_a_time_that_no_clock_shows_is_none(stamp: bytes) -> None:
    """Dates out of range are no instant, and no error either."""
    assert instant(stamp) is None


@pytest.mark.parametrize(
    ("request_line", "method", "path"),
    [
        (b"POST /join_form HTTP/1.1", b"POST", b"/join_form"),
        (b"POST /join_form?from=mail&x=? HTTP/1.1", b"POST", b"/join_form"),
        (b"GET /", b"GET", b"/"),
        (b"GET /a b HTTP/1.0", b"GET", b"/a b"),
        (b"GET  /a HTTP/2.0", b"GET", b"/a"),
        (b"OPTIONS * HTTP/1.1", b"OPTIONS", b"*"),
        (b"-", b"-", b"-"),
        (b"", b"-", b"-"),
        (b"GET", b"-", b"-"),
        (b"GET ?x HTTP/1.1", b"-", b"-"),
        (rb"\x16\x03\x01", b"-", b"-"),
    ],
)
def test_method_and_path(request_line: bytes, method: bytes, path: bytes) -> None:
    """A request is split into its method and its path without the query; garbage has neither."""
    assert method_and_path(request_line) == (method, path)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (
            "POST /join_form",
            ["POST /join_form HTTP/1.1", "POST /join_form?a=b HTTP/1.1", "POST /join_form"],
            [
                "GET /join_form HTTP/1.1",
                "POST /join_form/ HTTP/1.1",
                "POST /join_forms HTTP/1.1",
                "POST /JOIN_FORM HTTP/1.1",
            ],
        ),
        ("post /join_form?x=1", ["POST /join_form HTTP/1.1"], ["POST /join HTTP/1.1"]),
        ("POST /join_form HTTP/1.1", ["POST /join_form HTTP/1.0"], ["PUT /join_form HTTP/1.1"]),
        (
            "/health",
            ["GET /health HTTP/1.1", "HEAD /health HTTP/1.1"],
            ["GET /healthcare HTTP/1.1", "GET /a/health HTTP/1.1"],
        ),
        ("* /a", ["GET /a HTTP/1.1", "PUT /a HTTP/1.1"], ["GET /b HTTP/1.1"]),
        ("P* /a", ["PUT /a HTTP/1.1", "PATCH /a HTTP/1.1"], ["GET /a HTTP/1.1"]),
        (
            "GET /api/*",
            ["GET /api/ HTTP/1.1", "GET /api/v1/x?y HTTP/1.1"],
            ["GET /api HTTP/1.1", "GET /x?/api/ HTTP/1.1"],
        ),
        ("GET /a*c", ["GET /ac HTTP/1.1", "GET /abc HTTP/1.1"], ["GET /a?c HTTP/1.1", "GET /ab HTTP/1.1c"]),
        ("GET /a*1", ["GET /ab1 HTTP/1.1"], ["GET /a HTTP/1.1"]),
        ("*", ["GET / HTTP/1.1", "-", "junk"], []),
        ("GET /a[b].(c)+$", ["GET /a[b].(c)+$ HTTP/1.1"], ["GET /ab.c HTTP/1.1"]),
        ("GET /a.b", ["GET /a.b HTTP/1.1"], ["GET /axb HTTP/1.1"]),
        ("GET /a b", ["GET /a b HTTP/1.1"], ["GET /a HTTP/1.1"]),
        ("GET /ü", ["GET /ü HTTP/1.1"], ["GET /u HTTP/1.1"]),
    ],
)
def test_a_pattern_matches_method_and_exact_path(pattern: str, yes: list[str], no: list[str]) -> None:
    """The method and the whole path match, the query does not matter, and only * is special."""
    matches = request_matcher(pattern)
    for _ in range(2):  # the second time from memory
        assert [request for request in yes if not matches(request.encode())] == []
        assert [request for request in no if matches(request.encode())] == []


def test_many_stars_and_a_long_path_are_no_trap() -> None:
    """A pattern with many stars is decided without backtracking, on a path of a megabyte too."""
    assert not request_matcher("GET /" + "*a" * 20 + "b")(b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1")


@pytest.mark.parametrize("pattern", ["", " ", "POST", "join_form", "POST join_form", "POST ?a"])
def test_a_pattern_that_cannot_match_is_named(pattern: str) -> None:
    """A pattern without a path is an error that shows it and says what is expected."""
    with pytest.raises(ValueError, match="expected a method and a path such as 'POST /join_form'") as error:
        request_matcher(pattern)
    assert repr(pattern) in str(error.value)
