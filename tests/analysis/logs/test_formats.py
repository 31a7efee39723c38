"""Every format: told by its content, read whole, never broken by what is in it."""

from __future__ import annotations

import json
import random

import pytest

from headway.analysis.logs.formats import FORMATS, detect, format_named

from .samples import AT, COMBINED, HEADER, LACKS, ROW, SEMICOLONS, STAMP, TEXTS, WHOLE, lines, problems, read, requests

SAME = {"common": "combined", "traefik": "combined"}


@pytest.mark.parametrize("form", TEXTS)
def test_a_format_is_told_by_its_content_and_gives_all_it_has(form: str) -> None:
    """One request is the same in every format, and what a format cannot say is None."""
    expected = {name: None if name in LACKS.get(form, ()) else value for name, value in WHOLE.items()}
    assert detect(TEXTS[form].encode(), "log") == SAME.get(form, form)
    for told in (None, form):
        blocks = read(TEXTS[form], form=format_named(told) if told else None)
        assert requests(blocks) == [expected]
        assert problems(blocks) == []


@pytest.mark.parametrize("form", TEXTS)
def test_only_what_is_asked_for_is_read(form: str) -> None:
    """A field asked for alone is what it is among all, and the time always comes."""
    for field in WHOLE:
        expected = None if field in LACKS.get(form, ()) else WHOLE[field]
        assert requests(read(TEXTS[form], (field,))) == [{"time": AT, field: expected}]
    assert requests(read(TEXTS[form], ())) == [{"time": AT}]


@pytest.mark.parametrize("form", TEXTS)
def test_hostile_lines_are_counted_with_number_and_reason(form: str) -> None:
    """Bytes that are no text, no JSON, no table, in whatever order, are faults of their lines, and all else is read."""
    chance = random.Random(form)
    good = TEXTS[form].encode().splitlines(keepends=True)
    header = good[:1] if form in ("csv", "tsv") else []
    bad = [
        b"\n",
        b"\x00" * 40 + b"\n",
        b"\xff\xfe\xfd junk\n",
        b"{\n",
        b"[1, 2]\n",
        b'{"a": ' * 5000 + b"\n",
        b'"' * 999 + b"\n",
        b"{}\n",
        b"x" * 70_000 + b"\n",
        b'{"time": 1e999, "ts": NaN, "StartUTC": ' + b"9" * 5000 + b"}\n",
        good[-1][:50].strip() + b"\n",
    ]
    body = [good[-1]] * 30 + bad
    chance.shuffle(body)
    log = b"".join((*header, *body))
    blocks = read(log, form=format_named(form))
    first = 1 + len(header)
    assert len(requests(blocks)) == 30
    assert [number for number, _ in problems(blocks)] == [
        number for number, line in enumerate(body, first) if line in bad
    ]
    assert all(problem.isprintable() and 2 < len(problem) < 400 for _, problem in problems(blocks))
    assert lines(blocks) == len(body)


def test_random_bytes_raise_nothing() -> None:
    """Hundreds of thousands of random bytes, read as any line format, are faults."""
    noise = random.Random(3).randbytes(200_000) + b"\n"
    for form in ("combined", "vhost", "alb", "nginx-json", "caddy-json", "traefik-json"):
        blocks = read(noise, form=form)
        assert requests(blocks) == []
        assert len(problems(blocks)) == lines(blocks) == noise.count(b"\n")


def test_damaged_bytes_come_as_escapes_and_characters_as_they_are() -> None:
    """UTF-8 stays, other bytes become escapes; half a surrogate pair from JSON is escaped, so that it can be written."""
    for agent, expected in ((b"\xc3\xbc/1", "ü/1"), (b"\xff/1", "\\xff/1")):
        (found,) = requests(read(COMBINED.encode().replace(b"Mozilla/5.0", agent), ("agent",)))
        assert str(found["agent"]).startswith(expected)
    log = json.dumps({"time": 1445742685, "agent": "\ud800/1", "user": "\U0001f600"}) + "\n"
    (found,) = requests(read(log, ("agent", "user")))
    assert (found["agent"], found["user"]) == ("\\ud800/1", "\U0001f600")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("198.51.100.7:5678", "198.51.100.7"),
        ("[2001:db8::1]:5678", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("-", None),
        ("", None),
    ],
)
def test_addresses_lose_their_ports(text: str, expected: str | None) -> None:
    """An address with a port is the address, IPv6 too."""
    log = json.dumps({"time": 1445742685, "ip": text}) + "\n"
    assert requests(read(log, ("address",))) == [{"time": AT, "address": expected}]


def test_ipv6_before_a_load_balancer_loses_its_port() -> None:
    """The load balancer writes an IPv6 client with its port behind the last colon, in brackets or not."""
    for client in ("2001:db8::1:48160", "[2001:db8::1]:48160"):
        (found,) = requests(read(TEXTS["alb"].replace("198.51.100.7:48160", client), ("address",)))
        assert found["address"] == "2001:db8::1"


def test_a_load_balancers_time_is_the_arrival() -> None:
    """The time is when the request came, not when it was answered; an older line without it gives the answer's."""
    late = TEXTS["alb"].replace("2015-10-25T03:11:25.017000Z", "2015-10-25T03:12:00.000000Z")
    assert requests(read(late, ())) == [{"time": AT}]
    old = TEXTS["alb"].partition(" ECDHE")[0] + "\n"
    assert requests(read(old, ())) == [{"time": AT + 17_000_000}]


def test_lines_of_other_kinds_beside_requests_are_faults() -> None:
    """What Caddy and Traefik write besides requests is said to be none, and does not hide the format."""
    for form in ("caddy-json", "traefik-json"):
        other = (
            json.dumps({"level": "error", "ts": 1445742680.0, "time": "2015-10-25T03:11:25Z", "msg": "reloaded"}) + "\n"
        )
        blocks = read(other * 5 + TEXTS[form])
        assert len(requests(blocks)) == 1
        assert [number for number, _ in problems(blocks)] == [1, 2, 3, 4, 5]
        assert all(problem.startswith("no request") for _, problem in problems(blocks))


def test_what_a_container_puts_in_front_of_an_object_is_no_harm() -> None:
    """Docker's, Kubernetes' and syslog's prefixes before an object are passed over."""
    for prefix in ("web-1  | ", "2026-11-30T12:00:00.1Z stdout F ", "<134>Nov 30 12:00:00 host caddy[7]: "):
        assert detect((prefix + TEXTS["caddy-json"]).encode(), "log") == "caddy-json"
        assert len(requests(read(prefix + TEXTS["caddy-json"]))) == 1


def test_columns_can_be_named() -> None:
    """A name that somebody gives goes before the known ones; a dot leads into an object; letters' case is the log's."""
    log = json.dumps({"when": 1445742685123, "who": {"ip": "192.0.2.1"}, "time": "never"}) + "\n"
    columns = {"time": "when", "address": "who.ip"}
    assert requests(read(log, ("address",), form="nginx-json", columns=columns)) == [
        {"time": AT + 123_000_000, "address": "192.0.2.1"}
    ]
    table = "When,Who\n1445742685,192.0.2.1\n"
    assert requests(read(table, ("address",), columns={"time": "when", "address": "WHO"})) == [
        {"time": AT, "address": "192.0.2.1"}
    ]


def test_columns_without_a_header_are_numbered() -> None:
    """Numbers from 1 say that the first line is a request already."""
    log = "192.0.2.1,1445742685\n192.0.2.2,1445742686\n"
    found = requests(read(log, ("address",), columns={"time": "2", "address": "1"}))
    assert [request["address"] for request in found] == ["192.0.2.1", "192.0.2.2"]


def test_tables_have_quotes_other_delimiters_and_a_byte_order_mark() -> None:
    """A quoted comma is none between columns, semicolons are told by the header, CRLF and a mark do no harm."""
    quoted = "\r\n".join((HEADER, ROW.replace("/items/1?q=x%20y", '"/a,""b"'), ""))
    (found,) = requests(read(b"\xef\xbb\xbf" + quoted.encode(), ("path", "bytes")))
    assert (found["path"], found["bytes"]) == ('/a,"b', 512)
    (found,) = requests(read(SEMICOLONS, ("path", "bytes")))
    assert (found["path"], found["bytes"]) == ("/items/1", 512)


def test_a_table_without_a_time_says_which_columns_it_has() -> None:
    """The message names the columns and the option that helps."""
    with pytest.raises(
        ValueError, match=r"no column for the time; its columns are a, b; say which with --columns time"
    ):
        read("a,b\n1,2\n", form="csv")
    with pytest.raises(ValueError, match=r"has no column 'x' for address; its columns are time, b"):
        read("time,b\n1,2\n", form="csv", columns={"address": "x"})


def test_a_log_in_no_format_is_shown() -> None:
    """The message shows the first line, escaped, and lists the formats."""
    with pytest.raises(ValueError, match=r"-: no line is in a known format: '\\x1b\[2Jhello'; .*parquet"):
        read("\x1b[2Jhello\n")
    with pytest.raises(ValueError, match=r"format is 'w3c'; expected any of common, combined"):
        format_named("w3c")
    assert {format_named(name) for name in FORMATS} == {format_named(name) for name in TEXTS} | {"parquet"}


def test_an_empty_log_has_no_requests() -> None:
    """Nothing is in it, and that is no error."""
    assert requests(read("")) == []
    assert requests(read("\n\n")) == []
    assert STAMP in COMBINED
